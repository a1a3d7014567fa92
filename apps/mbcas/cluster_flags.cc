#include "apps/mbcas/cluster_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

namespace mbcas::app {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return value == nullptr ? "" : value;
}

}  // namespace

std::string remedyFor(const kube::ApiError& error) {
  if (error.reason == kube::ApiError::kCredentials || error.code == 401) {
    return "log in again: kubectl auth whoami shows whether kubectl can";
  }
  if (error.reason == kube::ApiError::kTimeout) {
    return "--request-timeout 1m waits longer; kubectl cluster-info shows whether kubectl has an "
           "answer";
  }
  if (!error.answered()) {
    return "is the cluster up, and is it the right one? kubectl cluster-info, kubectl config "
           "get-contexts";
  }
  if (error.code == 403) {
    return "mbcas doctor lists the permissions that commands need; --as acts as another user";
  }
  return "";
}

std::string explained(const kube::ApiError& error) {
  const std::string remedy = remedyFor(error);
  return remedy.empty() ? error.describe() : error.describe() + "; " + remedy;
}

void addClusterFlags(CLI::App& command, ClusterFlags& flags) {
  const auto add = [&](const char* name, auto& value, const char* type, const char* description) {
    return command.add_option(name, value, description)->type_name(type)->group(kClusterGroup);
  };
  add("-n,--namespace", flags.name_space, "NAMESPACE", "Namespace (default: that of the context)");
  add("--context", flags.context, "NAME", "Context of the kubeconfig");
  add("--cluster", flags.cluster, "NAME", "Cluster of the kubeconfig, instead of the context's");
  add("--user", flags.user, "NAME", "User of the kubeconfig, instead of the context's");
  add("--kubeconfig", flags.kubeconfig, "FILE",
      "Kubeconfig file (default $KUBECONFIG, then ~/.kube/config)");
  CLI::Option* const as =
      add("--as", flags.as, "USER", "Act as this user, or system:serviceaccount:NAMESPACE:NAME");
  add("--as-group", flags.as_groups, "GROUP", "With --as: act as in this group; may be repeated")
      ->expected(1)
      ->take_all()
      ->needs(as);
  add("--as-uid", flags.as_uid, "UID", "With --as: act with this UID")->needs(as);
  addDuration(command, "--request-timeout", flags.request_timeout,
              "Time for one request to the cluster")
      ->group(kClusterGroup);
}

void addSystemNamespace(CLI::App& command, ClusterFlags& flags) {
  command.add_option("--system-namespace", flags.system_namespace, "Where MBCAS is installed")
      ->type_name("NAMESPACE")
      ->group(kClusterGroup)
      ->capture_default_str();
}

void addPodFlags(CLI::App& command, PodFlags& flags) {
  command.add_flag("-A,--all-namespaces", flags.all_namespaces, "Pods of all namespaces")
      ->group(kPodGroup);
  command.add_option("-l,--selector", flags.label_selector, "Only pods with these labels: app=web")
      ->type_name("SELECTOR")
      ->group(kPodGroup);
  command.add_option("--node", flags.node, "Only pods on this node")
      ->type_name("NODE")
      ->group(kPodGroup);
}

cli::Selection selectionOf(const ClusterFlags& cluster, const PodFlags& pods,
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
                                      .context = flags.context,
                                      .cluster = flags.cluster,
                                      .user = flags.user};
  const kube::InClusterSource pod{.service_host = environment("KUBERNETES_SERVICE_HOST"),
                                  .service_port = environment("KUBERNETES_SERVICE_PORT")};
  std::error_code ignored;
  const bool has_file = !source.explicit_path.empty() || !source.environment.empty() ||
                        std::filesystem::exists(home + "/.kube/config", ignored);
  Result<kube::ClientConfig> config = !has_file && !pod.service_host.empty()
                                          ? kube::inClusterConfig(pod)
                                          : kube::loadKubeconfig(source);
  if (!config) return config;
  if (!flags.name_space.empty()) config->name_space = flags.name_space;
  // Who is acted as by flags is not who the kubeconfig acts as.
  if (!flags.as.empty()) {
    config->impersonate = {.user = flags.as, .uid = flags.as_uid, .groups = flags.as_groups};
  }
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
  if (!config) {
    return failure(config.error().message() + "; " + kNoClusterRemedy);
  }
  return std::unique_ptr<Connection>(
      new Connection(*std::move(config), nanos(flags.request_timeout)));
}

}  // namespace mbcas::app
