// The flags by which a command finds its cluster, as kubectl has them.
#pragma once

#include <string>

#include "mbcas/base/result.h"
#include "mbcas/kube/config.h"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
}

namespace mbcas::cli {

struct ClusterFlags {
  std::string kubeconfig;
  std::string context;
  std::string name_space;
};
void addClusterFlags(CLI::App& command, ClusterFlags& flags);

// --kubeconfig, else $KUBECONFIG, else ~/.kube/config, else the service account of the pod that
// this runs in.
Result<kube::ClientConfig> findCluster(const ClusterFlags& flags);

}  // namespace mbcas::cli
