// A controller that dies or stops at a given step: `controller_process KUBECONFIG STEP [IDENTITY]`.
// At STEP, as controller::name() has it, the process dies with exit code 9; at "stop-at-STEP" it
// stops itself, once (SIGSTOP); "never" is no step. With an IDENTITY it stands for election, and
// ends with 3 when it has lost the lease. Prints L when it works. For tests of what a death leaves.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "mbcas/controller/cluster.h"
#include "mbcas/controller/replica.h"
#include "mbcas/kube/client.h"

int main(int argc, char** argv) {
  using namespace mbcas;
  if (argc != 3 && argc != 4) return 2;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Result<kube::ClientConfig> config = kube::loadKubeconfig({.explicit_path = argv[1]});
  if (!config) return 1;
  const std::string deadly = argv[2];
  std::atomic<bool> stopped = false;
  const SystemClock clock;
  kube::HttpLoop loop;
  kube::Client client(loop, *config, clock);
  controller::ReplicaOptions options{
      .engine = {.overrides = {{"cooldown", "0s"}, {"silence", "1h"}},
                 .log =
                     [](const std::string& line) {
                       if (line == "leads") (void)!::write(STDOUT_FILENO, "L", 1);
                     },
                 .after =
                     [&](controller::Step step) {
                       const std::string name(controller::name(step));
                       if (name == deadly) ::_exit(9);
                       if ("stop-at-" + name == deadly && !stopped.exchange(true)) {
                         ::kill(::getpid(), SIGSTOP);
                       }
                     }},
      .on_lost = [] { ::_exit(3); }};
  if (argc == 4) {
    options.election = {.name_space = "mbcas-system",
                        .name = controller::kLeaderLease,
                        .identity = argv[3],
                        .lease = std::chrono::seconds(8),  // a busy machine may stall for seconds
                        .renew_deadline = std::chrono::seconds(6),
                        .retry = std::chrono::seconds(1)};
  }
  controller::Replica replica(client, std::move(options));
  replica.start();
  std::stop_source stop;
  std::jthread work([&] {
    if (!replica.run(stop.get_token())) ::_exit(1);
  });
  int signal = 0;
  sigwait(&signals, &signal);
  stop.request_stop();
  work.join();
  return 0;
}
