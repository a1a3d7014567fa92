// A controller that dies at a given step: `controller_process KUBECONFIG STEP`, STEP as
// controller::name() has it, or "never". Prints L when it works. For tests of what a death leaves.
#include <signal.h>
#include <unistd.h>

#include <string>

#include "mbcas/controller/engine.h"
#include "mbcas/kube/client.h"

int main(int argc, char** argv) {
  using namespace mbcas;
  if (argc != 3) return 2;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Result<kube::ClientConfig> config = kube::loadKubeconfig({.explicit_path = argv[1]});
  if (!config) return 1;
  const std::string deadly = argv[2];
  const SystemClock clock;
  kube::HttpLoop loop;
  kube::Client client(loop, *config, clock);
  controller::Engine engine(client, {.overrides = {{"cooldown", "0s"}, {"silence", "1h"}},
                                     .after = [&](controller::Step step) {
                                       if (controller::name(step) == deadly) ::_exit(9);
                                     }});
  engine.start();
  if (!engine.waitForSync(std::chrono::minutes(2)) || !engine.lead()) return 1;
  (void)!::write(STDOUT_FILENO, "L", 1);
  int signal = 0;
  sigwait(&signals, &signal);
  engine.stop();
  return 0;
}
