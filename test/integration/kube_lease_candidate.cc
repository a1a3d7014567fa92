// Stands for a Lease: `kube_lease_candidate KUBECONFIG NAMESPACE IDENTITY`. Prints L when it begins
// to lead and w for every piece of work that it does as the leader, some fifty a second. Ends in
// order on SIGTERM, releasing the lease, and with 3 when it has lost the lease. For tests that kill
// and stop it.
#include <signal.h>
#include <unistd.h>

#include <thread>

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
       .lease = std::chrono::seconds(6),  // a busy machine may stall for seconds
       .renew_deadline = std::chrono::seconds(5),
       .retry = std::chrono::milliseconds(300)},
      {.on_started = [] { (void)!::write(STDOUT_FILENO, "L", 1); }, .on_lost = [] { _exit(3); }});
  if (!elector.start()) return 1;
  std::jthread work([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (elector.leads()) (void)!::write(STDOUT_FILENO, "w", 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  int signal = 0;
  sigwait(&signals, &signal);
  work = {};
  elector.stop();
  return 0;
}
