// Stands for a Lease and prints L when it leads: `kube_lease_candidate KUBECONFIG NAMESPACE
// IDENTITY`. Ends in order on SIGTERM, releasing the lease. For tests that kill it.
#include <signal.h>
#include <unistd.h>

#include "mbcas/kube/client.h"
#include "mbcas/kube/leader.h"

int main(int argc, char** argv) {
  using namespace mbcas;
  if (argc != 4) return 2;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Result<kube::ClientConfig> config = kube::loadKubeconfig({.explicit_path = argv[1]});
  if (!config) return 1;
  const SystemClock clock;
  kube::HttpLoop loop;
  kube::Client client(loop, *config, clock);
  kube::LeaderElector elector(
      client,
      {.name_space = argv[2],
       .name = "candidate",
       .identity = argv[3],
       .lease = std::chrono::seconds(3),
       .renew_deadline = std::chrono::seconds(2),
       .retry = std::chrono::milliseconds(300)},
      {.on_started = [] { (void)!::write(STDOUT_FILENO, "L", 1); }, .on_lost = [] { _exit(3); }});
  if (!elector.start()) return 1;
  int signal = 0;
  sigwait(&signals, &signal);
  elector.stop();
  return 0;
}
