#include "apps/mbcas/cluster_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

namespace mbcas::cli {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return value == nullptr ? "" : value;
}

}  // namespace

void addClusterFlags(CLI::App& command, ClusterFlags& flags) {
  command.add_option("--kubeconfig", flags.kubeconfig,
                     "Kubeconfig file (default $KUBECONFIG, then ~/.kube/config)");
  command.add_option("--context", flags.context, "Context of the kubeconfig");
  command.add_option("-n,--namespace", flags.name_space,
                     "Namespace (default: that of the context)");
}

Result<kube::ClientConfig> findCluster(const ClusterFlags& flags) {
  const std::string home = environment("HOME");
  const kube::KubeconfigSource source{.explicit_path = flags.kubeconfig,
                                      .environment = environment("KUBECONFIG"),
                                      .home = home,
                                      .context = flags.context};
  const kube::InClusterSource pod{.service_host = environment("KUBERNETES_SERVICE_HOST"),
                                  .service_port = environment("KUBERNETES_SERVICE_PORT")};
  std::error_code ignored;
  const bool has_file = !source.explicit_path.empty() || !source.environment.empty() ||
                        std::filesystem::exists(home + "/.kube/config", ignored);
  Result<kube::ClientConfig> config = !has_file && !pod.service_host.empty()
                                          ? kube::inClusterConfig(pod)
                                          : kube::loadKubeconfig(source);
  if (config && !flags.name_space.empty()) config->name_space = flags.name_space;
  return config;
}

}  // namespace mbcas::cli
