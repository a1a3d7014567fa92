// stamper KUBECONFIG: runs the example on a cluster until Ctrl-C.
#include <csignal>
#include <cstdio>

#include "mbcas/base/clock.h"
#include "mbcas/kube/config.h"
#include "mbcas/kube/http_loop.h"
#include "stamper.h"

namespace {
std::atomic<bool> stop = false;
}

int main(int argc, char** argv) {
  using namespace mbcas;
  if (argc != 2) {
    std::fputs("usage: stamper KUBECONFIG\n", stderr);
    return 2;
  }
  const Result<kube::ClientConfig> config = kube::loadKubeconfig({.explicit_path = argv[1]});
  if (!config) {
    std::fprintf(stderr, "stamper: %s\n", config.error().message().c_str());
    return 1;
  }
  std::signal(SIGINT, [](int) { stop = true; });
  std::signal(SIGTERM, [](int) { stop = true; });
  const SystemClock clock;
  kube::HttpLoop loop;  // outlives everything that uses it
  kube::Client client(loop, *config, clock, {.user_agent = "stamper/1.0"});
  example::runStamper(client, stop);
}
