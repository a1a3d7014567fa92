// Whether MBCAS can be installed on a cluster, and would work there: `mbcas doctor --pre`. As with
// the other check-ups, facts are gathered first, and what they mean is a pure function of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/cli/cluster_checkup.h"
#include "mbcas/cli/findings.h"
#include "mbcas/kube/client.h"

namespace mbcas::cli {

struct InstallFacts {
  struct Node {
    std::string name;
    std::string architecture;      // "amd64"
    std::string operating_system;  // "linux"
    std::string kubelet_version;   // "v1.35.4"
  };
  // What the server said to a pod like those of MBCAS, without making it.
  struct Trial {
    std::string name_space;      // where
    std::string priority_class;  // of the pod
    bool admitted = false;
    std::string why;  // it was not admitted
  };

  std::string server;  // address
  kube::ServerVersion version;
  bool serves_resize = false;
  bool serves_policies = false;  // ValidatingAdmissionPolicy v1
  bool installed = false;        // PodAllocation is served already
  std::string system_namespace;
  bool namespace_exists = false;
  std::string pod_security;       // the level that the namespace enforces; empty: none of its own
  std::vector<Access> to_create;  // what the manifests contain
  std::vector<Access> to_grant;   // what the roles contain; empty: everything may be granted
  std::optional<std::vector<Node>> nodes;  // nothing: they may not be listed
  std::vector<Trial> trials;
  std::vector<std::string> images;  // architectures that the images have
  std::vector<std::string> notes;   // what could not be asked, and why
};

// Changes nothing. Fails only if the server does not answer. `images`: the architectures that the
// images have.
Result<InstallFacts> examineBefore(kube::Client& client, const std::string& system_namespace,
                                   std::vector<std::string> images);
Findings diagnoseBefore(const InstallFacts& facts);

}  // namespace mbcas::cli
