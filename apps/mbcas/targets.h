// The pods that a command was asked about, by one name.
#pragma once

#include <string>
#include <vector>

#include "mbcas/cli/workload.h"
#include "mbcas/kube/client.h"

namespace mbcas::app {

inline constexpr const char* kTargetHelp = "POD, NAMESPACE/POD, pod/NAME or deploy/NAME";

struct Targets {
  std::string name_space;
  std::string workload;           // "deployments/web"; empty: one pod was named
  std::vector<std::string> pods;  // names, at least one

  // "deployments/web is 3 pods: a, b and 2 more"
  std::string announcement() const;
};

// The words must be a target. A pod is not looked for; of a workload the pods that run.
Result<Targets> findTargets(kube::Client& client, const cli::Target& target,
                            const std::string& default_namespace);

// "x: not POD, ..."
std::string notATarget(const std::string& words);

}  // namespace mbcas::app
