// The flags by which a command finds its cluster and chooses among its pods, as kubectl has them.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/mbcas/flags.h"
#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/cli/snapshot.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/config.h"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
}

namespace mbcas::app {

struct ClusterFlags {
  std::string kubeconfig;
  std::string context;
  std::string cluster;
  std::string user;
  std::string as;
  std::string as_uid;
  std::vector<std::string> as_groups;
  std::string name_space;
  double request_timeout = 10;  // seconds
  std::string system_namespace = "mbcas-system";
};
void addClusterFlags(CLI::App& command, ClusterFlags& flags);
// Of commands that look for the controller, the agents or their settings.
void addSystemNamespace(CLI::App& command, ClusterFlags& flags);

// Of commands that show many pods.
struct PodFlags {
  bool all_namespaces = false;
  std::string label_selector;
  std::string node;
};
void addPodFlags(CLI::App& command, PodFlags& flags);
cli::Selection selectionOf(const ClusterFlags& cluster, const PodFlags& pods,
                           const std::string& default_namespace);

// What can be done about it; empty: nothing that is known.
std::string remedyFor(const kube::ApiError& error);
// What the server said, and what can be done about it, in one line.
std::string explained(const kube::ApiError& error);

// What can be done where no cluster is found.
inline constexpr const char* kNoClusterRemedy =
    "kubectl config get-contexts lists contexts, and without a cluster there are mbcas demo and "
    "the "
    "flag --host";
// --kubeconfig, else $KUBECONFIG, else ~/.kube/config, else the service account of the pod that
// this runs in.
Result<kube::ClientConfig> findCluster(const ClusterFlags& flags);

// A client of that cluster, with all that it needs.
class Connection {
 public:
  // An error says what can be done.
  static Result<std::unique_ptr<Connection>> open(const ClusterFlags& flags);

  kube::Client& client() { return client_; }
  const std::string& defaultNamespace() const { return client_.config().name_space; }
  const Clock& clock() const { return clock_; }

 private:
  Connection(kube::ClientConfig config, Nanos timeout);

  // Signals are for the main thread: another would end the process before a terminal is put back.
  // Threads that are made meanwhile do not get them.
  class Deaf {
   public:
    Deaf();
    void end();

   private:
    sigset_t before_{};
  };

  Deaf deaf_;
  const SystemClock clock_;
  kube::HttpLoop loop_;
  kube::Client client_;
};

}  // namespace mbcas::app
