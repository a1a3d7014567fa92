// `mbcas diff`: what MBCAS changes, or would change, as changes to the manifests of workloads, so
// that limits can be kept in Git, with or without MBCAS.
//
//   Diff diff = diffOf(snapshot);
//   diffTable(diff, ...), patchesOf(diff)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mbcas/cli/snapshot.h"
#include "mbcas/policy/workload.h"

namespace mbcas::cli {

struct LimitChange {
  std::string container;
  Millicores declared;
  Millicores desired;  // the largest among the workload's pods

  friend bool operator==(const LimitChange&, const LimitChange&) = default;
};

struct WorkloadDiff {
  std::string name_space;
  policy::Workload workload;  // of a bare pod: kind Pod
  std::size_t pods = 0;       // that are managed
  std::vector<LimitChange> changes;

  friend bool operator==(const WorkloadDiff&, const WorkloadDiff&) = default;
};

struct Diff {
  std::vector<WorkloadDiff> workloads;  // with changes, by namespace and name
  std::vector<std::string> notes{};     // for a person: what is left out
};

// Of each workload whose pods are managed. What is held back for another pod at this moment is not
// a change: a pod that is bound counts with what it declared.
Diff diffOf(const Snapshot& snapshot);

std::string diffTable(const Diff& diff, bool namespaces, bool colours);
std::string diffJson(const Diff& diff);
// A strategic merge patch for each workload's manifest, as JSON: kind, name, and the limits of
// those containers that change. Kinds whose API is not known are left out.
std::vector<std::string> patchesOf(const Diff& diff);

}  // namespace mbcas::cli
