#include <cstdio>

#include "mbcas/base/clock.h"
#include "mbcas/resize/resize.h"

int main() {
  using namespace mbcas;
  const auto pod = kube::decodeObject<kube::Pod>(
      R"({"metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"containers":[
          {"name":"main","resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"200m"}}}]}})");
  if (!pod) return 1;
  const auto containers = resize::split(**pod, Millicores(750));
  if (!containers) return 1;
  const resize::Request request{.containers = *containers};
  if (resize::check(**pod, request)) return 1;
  std::puts(resize::patchBody(**pod, request).c_str());

  const SystemClock clock;
  kube::HttpLoop loop;
  kube::Client client(loop, {.server = "http://127.0.0.1:1"}, clock, {.max_retries = 0});
  const resize::Outcome outcome = resize::submit(client, **pod, request);
  std::puts(outcome.message.c_str());
  return outcome.verdict == resize::Verdict::kUnreachable ? 0 : 1;
}
