// The cost of a tick, next to the bare readings of the same files, in one run.
//
// Real cgroups of its own (cgroup v1 or v2, as the machine has), made and removed here, so it needs
// root. A tick and the bare readings take turns, with a pause before each, so that both meet caches
// as cold as an agent's; both are measured in CPU time of the thread. Reported per tick:
//   ratio    median tick / median of its bare readings; ratio_sense: without the estimators
//   core_%   of one core, at a tick a second
//   reads    files read
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "bench/memory.h"
#include "mbcas/demand/demand.h"
#include "mbcas/sense/machine.h"
#include "mbcas/sense/sampler.h"
#include "test/kernel/burner.h"
#include "test/kernel/scratch.h"

namespace mbcas {
namespace {

using namespace std::chrono_literals;
using namespace literals;

enum Load {
  kIdle,        // nothing runs
  kMixed,       // a quarter of the pods work a little, one in twenty is throttled
  kEverything,  // nothing runs, and reading less is switched off
};

std::int64_t threadTime() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

double median(std::vector<std::int64_t>& values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return static_cast<double>(values[values.size() / 2]);
}

double residentMegabytes() {
  return static_cast<double>(bench::residentBytes()) / 1e6;
}

// Time that moves a second per tick, whatever passed: the pause between ticks is shorter.
class Second final : public Clock {
 public:
  MonotonicTime monotonic() const override { return now_; }
  WallTime wall() const override { return WallTime(now_.time_since_epoch()); }
  void pass() { now_ += 1s; }

 private:
  MonotonicTime now_{1000s};
};

// Arguments: pods, containers in each, what they do.
void tick(benchmark::State& state) {
  Result<std::unique_ptr<test::Scratch>> scratch = test::Scratch::make();
  if (!scratch) {
    state.SkipWithError(scratch.error().message().c_str());
    return;
  }
  // Thousands of files stay open.
  rlimit most{.rlim_cur = 65536, .rlim_max = 65536};
  ::setrlimit(RLIMIT_NOFILE, &most);
  const auto pods = static_cast<int>(state.range(0));
  const auto containers = static_cast<int>(state.range(1));
  const auto load = static_cast<Load>(state.range(2));
  std::vector<test::Burner> burners;
  for (int pod = 0; pod < pods; ++pod) {
    for (int c = 0; c < containers; ++c) {
      (*scratch)->add(test::containerPath(pod, c));
      (*scratch)->setLimit(test::containerPath(pod, c), 200_m);
    }
  }
  for (int pod = 0; pod < pods && load == kMixed; ++pod) {
    const bool throttled = pod % 20 == 0;
    if (throttled) (*scratch)->setLimit(test::containerPath(pod), 50_m);
    if (throttled || pod % 4 == 0) {
      burners.emplace_back(
          test::LoadShape{.threads = 1, .on = throttled ? 10ms : 1ms, .period = 100ms},
          (*scratch)->directories(test::containerPath(pod)));
    }
  }
  Second clock;
  const double before = residentMegabytes();
  sense::Sampler sampler(std::make_unique<kernel::PodTree>((*scratch)->mounts()), clock,
                         {.read_everything = load == kEverything});
  demand::Demand demand({.cpus = 2});
  for (int i = 0; i < 35; ++i) {
    std::this_thread::sleep_for(load == kMixed ? 50ms : 1ms);
    clock.pass();
    demand.update(sampler.tick());
  }
  const double memory = residentMegabytes() - before;
  std::vector<int> read;
  read.reserve(100'000);
  sampler.logReads(&read);
  std::vector<std::int64_t> ticks, sense, bare;
  std::uint64_t reads = 0;
  char buffer[1024];
  for (auto _ : state) {
    std::this_thread::sleep_for(50ms);
    clock.pass();
    read.clear();
    std::int64_t start = threadTime();
    const auto signals = sampler.tick();
    const std::int64_t sensed = threadTime();
    demand.update(signals);
    ticks.push_back(threadTime() - start);
    sense.push_back(sensed - start);
    reads += read.size();
    state.SetIterationTime(static_cast<double>(ticks.back()) / 1e9);

    std::this_thread::sleep_for(50ms);
    start = threadTime();
    for (const int fd : read) benchmark::DoNotOptimize(::pread(fd, buffer, sizeof buffer, 0));
    bare.push_back(threadTime() - start);
  }
  state.counters["reads"] = static_cast<double>(reads) / static_cast<double>(ticks.size());
  state.counters["core_%"] = median(ticks) / 1e9 * 100;
  state.counters["bare_us"] = median(bare) / 1e3;
  state.counters["tick_us"] = median(ticks) / 1e3;
  state.counters["ratio"] = median(ticks) / median(bare);
  state.counters["ratio_sense"] = median(sense) / median(bare);
  state.counters["sampler_MB"] = memory;
  state.counters["process_MB"] = residentMegabytes();
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"pods", "containers", "load"});
  for (const int load : {kMixed, kEverything}) {
    for (const int containers : {1, 2}) benchmark->Args({110, containers, load});
  }
  for (const int pods : {10, 110, 500, 1000}) benchmark->Args({pods, 1, kIdle});
}

BENCHMARK(tick)->Apply(shapes)->UseManualTime()->Iterations(41)->Unit(benchmark::kMicrosecond);

// What the rest of the machine costs next to 110 pods: the argument is the number of cgroups that
// are neither pods nor lead to one. Means, since every tenth tick reads more; "longest" is such a
// one.
void machine(benchmark::State& state) {
  Result<std::unique_ptr<test::Scratch>> scratch = test::Scratch::make();
  if (!scratch) {
    state.SkipWithError(scratch.error().message().c_str());
    return;
  }
  rlimit most{.rlim_cur = 65536, .rlim_max = 65536};
  ::setrlimit(RLIMIT_NOFILE, &most);
  for (int pod = 0; pod < 110; ++pod) (*scratch)->add(test::containerPath(pod));
  for (int other = 0; other < state.range(0); ++other) {
    (*scratch)->add(fmt::format("/other{}", other));
  }
  Second clock;
  sense::Sampler sampler(std::make_unique<kernel::PodTree>((*scratch)->mounts()), clock, {});
  sense::MachineSampler sampling(sampler.source(), clock, {});
  for (int i = 0; i < 12; ++i) {
    clock.pass();
    sampling.tick(sampler.tick());
  }
  std::int64_t pods = 0, rest = 0, longest = 0;
  std::uint64_t reads = sampling.counters().reads;
  for (auto _ : state) {
    std::this_thread::sleep_for(50ms);
    clock.pass();
    const std::int64_t start = threadTime();
    const auto signals = sampler.tick();
    const std::int64_t sampled = threadTime();
    sampling.tick(signals);
    const std::int64_t took = threadTime() - sampled;
    pods += sampled - start;
    rest += took;
    longest = std::max(longest, took);
    state.SetIterationTime(static_cast<double>(took) / 1e9);
  }
  reads = sampling.counters().reads - reads;
  const auto ticks = static_cast<double>(state.iterations());
  state.counters["pods_us"] = static_cast<double>(pods) / ticks / 1e3;
  state.counters["machine_us"] = static_cast<double>(rest) / ticks / 1e3;
  state.counters["longest_us"] = static_cast<double>(longest) / 1e3;
  state.counters["reads"] = static_cast<double>(reads) / ticks;
  state.counters["core_%"] = static_cast<double>(rest) / ticks / 1e9 * 100;
}
BENCHMARK(machine)->Arg(8)->Arg(50)->UseManualTime()->Iterations(60)->Unit(benchmark::kMicrosecond);

// What noticing that nothing changed costs, for 110 pods: events, link counts, or listing it all.
void noticeChanges(benchmark::State& state) {
  Result<std::unique_ptr<test::Scratch>> scratch = test::Scratch::make();
  if (!scratch) {
    state.SkipWithError(scratch.error().message().c_str());
    return;
  }
  const std::string& cpu = (*scratch)->mounts().cpu;
  kernel::DirectoryWatch watch(kernel::DirectoryWatch::Method::kInotify);
  kernel::PodTree tree((*scratch)->mounts());
  for (int pod = 0; pod < 110; ++pod) {
    (*scratch)->add(test::containerPath(pod));
    watch.add(test::podPath(pod), cpu + test::podPath(pod));
  }
  std::unordered_set<std::string> changed;
  watch.poll(changed, true);
  tree.scan();
  std::vector<std::int64_t> times;
  for (auto _ : state) {
    std::this_thread::sleep_for(20ms);
    const std::int64_t start = threadTime();
    if (state.range(0) == 2) {
      tree.scan();
    } else {
      watch.poll(changed, state.range(0) == 1);
    }
    times.push_back(threadTime() - start);
    state.SetIterationTime(static_cast<double>(times.back()) / 1e9);
  }
  state.counters["median_us"] = median(times) / 1e3;
  state.SetLabel(state.range(0) == 0 ? "events" : state.range(0) == 1 ? "link counts" : "walk");
}
BENCHMARK(noticeChanges)
    ->DenseRange(0, 2)
    ->UseManualTime()
    ->Iterations(41)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace mbcas
