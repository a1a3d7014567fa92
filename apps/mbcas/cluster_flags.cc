#include "apps/mbcas/cluster_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace mbcas::cli {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return value == nullptr ? "" : value;
}

}  // namespace

CLI::Option* addSeconds(CLI::App& command, const std::string& name, double& seconds,
                        const std::string& description) {
  return command.add_option(name, seconds, description)
      ->type_name("SECONDS")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{
                                            {"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}})
                      .description(""))
      ->check(CLI::Range(0.001, 86400.0).description(""))
      ->capture_default_str();
}

void addClusterFlags(CLI::App& command, ClusterFlags& flags) {
  command.add_option("--kubeconfig", flags.kubeconfig,
                     "Kubeconfig file (default $KUBECONFIG, then ~/.kube/config)");
  command.add_option("--context", flags.context, "Context of the kubeconfig");
  command.add_option("-n,--namespace", flags.name_space,
                     "Namespace (default: that of the context)");
  addSeconds(command, "--request-timeout", flags.request_timeout, "Of one request to the cluster");
}

void addSystemNamespace(CLI::App& command, ClusterFlags& flags) {
  command.add_option("--system-namespace", flags.system_namespace, "Where MBCAS is installed")
      ->capture_default_str();
}

void addPodFlags(CLI::App& command, PodFlags& flags) {
  command.add_flag("-A,--all-namespaces", flags.all_namespaces, "Pods of all namespaces");
  command.add_option("-l,--selector", flags.label_selector, "Only pods with these labels: app=web");
  command.add_option("--node", flags.node, "Only pods on this node");
}

Selection selectionOf(const ClusterFlags& cluster, const PodFlags& pods,
                      const std::string& default_namespace) {
  return {.name_space = pods.all_namespaces           ? ""
                        : !cluster.name_space.empty() ? cluster.name_space
                                                      : default_namespace,
          .label_selector = pods.label_selector,
          .node = pods.node};
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

Connection::Connection(kube::ClientConfig config, Nanos timeout)
    : client_(loop_, std::move(config), clock_,
              {.user_agent = "mbcas/" MBCAS_VERSION,
               .max_retries = 3,
               .timeout = timeout,
               .list_idle = timeout}) {
  deaf_.end();
}

Connection::Deaf::Deaf() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

void Connection::Deaf::end() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Result<std::unique_ptr<Connection>> Connection::open(const ClusterFlags& flags) {
  Result<kube::ClientConfig> config = findCluster(flags);
  if (!config) return failure(std::move(config).error());
  return std::unique_ptr<Connection>(
      new Connection(*std::move(config), nanos(flags.request_timeout)));
}

bool isTarget(const std::string& words) {
  const std::size_t slash = words.find('/');
  return !words.empty() && words.back() != '/' && slash != 0 && slash == words.rfind('/');
}

Target targetOf(const std::string& words, const std::string& default_namespace) {
  const kube::SplitKey key = kube::splitKey(words);
  return {key.name_space.empty() ? default_namespace : std::string(key.name_space),
          std::string(key.name)};
}

}  // namespace mbcas::cli
