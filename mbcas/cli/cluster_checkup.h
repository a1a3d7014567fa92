// Whether MBCAS can work on a cluster, and works. Facts are gathered first; what they mean is a
// pure function of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/cli/admission.h"
#include "mbcas/cli/findings.h"
#include "mbcas/cli/snapshot.h"
#include "mbcas/kube/client.h"

namespace mbcas::cli {

// The CustomResourceDefinition of PodAllocation, as the server has it.
struct Definition {
  bool established = false;
  std::vector<std::string> served;  // versions
  std::vector<std::string> fields;  // of v1alpha1: "spec.reason", "status.bounds.floor", ...
};
Result<Definition> parseDefinition(std::string crd);

struct Access {
  std::string what;         // "patch pods/resize"
  std::string needed_by{};  // "mbcas resize"
  bool allowed = false;
};

struct PriorityClass {
  std::string name;
  std::int64_t value = 0;
};

struct ClusterFacts {
  std::string server;  // address
  kube::ServerVersion version;
  bool serves_resize = false;
  std::optional<Definition> definition;       // nothing: not installed
  std::optional<AdmissionObjects> admission;  // nothing: it may not be read
  std::vector<PriorityClass> priority_classes;
  std::vector<Access> mine;  // what the user's own commands need
  // What the accounts of controller and agents need; nothing: it cannot be asked.
  std::optional<std::vector<Access>> controllers;
  std::optional<std::vector<Access>> agents;
  std::string system_namespace;
  std::vector<std::shared_ptr<const kube::Lease>> leases;  // of the system namespace
  std::vector<PodPtr> system_pods;
  policy::SettingsData settings;  // as they stand in the ConfigMap
  Snapshot snapshot;
  std::vector<std::string> notes;  // what could not be asked, and why
  WallTime now{};
};

// Fails only if the server does not answer.
Result<ClusterFacts> examineCluster(kube::Client& client, const Selection& selection,
                                    const std::string& system_namespace);
Findings diagnose(const ClusterFacts& facts);

}  // namespace mbcas::cli
