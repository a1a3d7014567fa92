// Syncs an informer on all pods once and prints what it cost as one line of JSON, for
// tools/informer-baseline/compare: `kube_informer KUBECONFIG [PREFIX]`. With a prefix,
// only annotations that begin with it are kept.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "bench/memory.h"
#include "mbcas/kube/informer.h"
#include "mbcas/kube/types.h"

namespace {

using namespace mbcas;

double cpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

long heapBytes() {
  return static_cast<long>(mallinfo2().uordblks);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return 2;
  const Result<kube::ClientConfig> config = kube::loadKubeconfig({.explicit_path = argv[1]});
  if (!config) {
    fmt::print(stderr, "{}\n", config.error().message());
    return 1;
  }
  const SystemClock clock;
  kube::HttpLoop loop;
  kube::Client client(loop, *config, clock);
  if (const auto version = client.version(); !version) {  // the connection is not what is measured
    fmt::print(stderr, "{}\n", version.error().describe());
    return 1;
  }
  const long base = bench::residentBytes();
  const long heap = heapBytes();
  const double cpu = cpuSeconds();
  const auto start = std::chrono::steady_clock::now();

  std::size_t handled = 0;
  kube::WatchOptions options;
  if (argc == 3) options.annotations = {argv[2]};
  kube::Informer<kube::Pod> pods(client, options);
  pods.onChange([&](const kube::TypedChange<kube::Pod>&) { ++handled; });
  pods.start();
  if (!pods.waitForSync(std::chrono::minutes(5))) {
    fmt::print(stderr, "not synced after 5 minutes\n");
    return 1;
  }
  const double sync =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double cpu_used = cpuSeconds() - cpu;
  const long synced = bench::residentBytes();
  const long live = heapBytes() - heap;
  malloc_trim(0);
  const long returned = bench::residentBytes();
  const auto count = static_cast<long>(pods.size());
  fmt::print(
      R"({{"client":"mbcas kube","pods":{},"baseRssBytes":{},"syncedRssBytes":{},"returnedRssBytes":{},)"
      R"("liveHeapBytes":{},"syncSeconds":{:.3f},"cpuSeconds":{:.3f},"rssBytesPerPod":{}}})"
      "\n",
      count, base, synced, returned, live, sync, cpu_used, (synced - base) / std::max(1L, count));
  return handled == pods.size() ? 0 : 1;
}
