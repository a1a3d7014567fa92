// How the kernel's counters relate to the work that was really blocked. Prints the table that
// docs/sensing-figures.md contains:  build/release/test/kernel/kernel_counters_test | grep '^|'
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "mbcas/kernel/cgroup.h"
#include "test/kernel/burner.h"
#include "test/kernel/scratch.h"
#include "test/support/machine.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;
using kernel::Cgroup;

struct Case {
  std::string id;
  std::string name;
  std::vector<LoadShape> loads;  // one container each
  std::optional<Millicores> pod;
  std::vector<std::optional<Millicores>> containers;
  bool neighbours = false;  // as many threads outside as there are CPUs

  bool limited() const { return pod || containers[0]; }
};

struct Totals {
  double usage = 0;
  double stat = 0;
  double local = 0;
  double some = 0;
  double full = 0;
};

// Readings of one cgroup, in seconds; a file that is missing reads as zero.
Totals read(Cgroup& cgroup) {
  const auto inSeconds = [](Nanos time) { return std::chrono::duration<double>(time).count(); };
  Totals totals;
  totals.usage = inSeconds(cgroup.usage().value());
  const auto stat = cgroup.stat();
  if (stat && stat->throttling) totals.stat = inSeconds(stat->throttling->time);
  if (const auto local = cgroup.throttledLocal()) totals.local = inSeconds(*local);
  if (const auto pressure = cgroup.pressure(kernel::Resource::kCpu)) {
    totals.some = inSeconds(pressure->some);
    totals.full = inSeconds(pressure->full.value_or(Nanos(0)));
  }
  return totals;
}

Totals perSecond(const Totals& after, const Totals& before, double seconds) {
  return {(after.usage - before.usage) / seconds, (after.stat - before.stat) / seconds,
          (after.local - before.local) / seconds, (after.some - before.some) / seconds,
          (after.full - before.full) / seconds};
}

struct Row {
  Totals pod;
  std::vector<Totals> containers;
  double truth = 0;
  bool has_local = false;  // cpu.stat.local exists

  // Of all containers.
  double sum(double Totals::* field) const {
    double total = 0;
    for (const Totals& container : containers) total += container.*field;
    return total;
  }
};

Row measure(Scratch& scratch, const Case& c, unsigned cpus) {
  Row row;
  scratch.add(podPath(0));
  scratch.setLimit(podPath(0), c.pod);
  std::vector<Burner> burners;
  std::vector<Cgroup> cgroups;
  cgroups.push_back(Cgroup::open(scratch.mounts(), podPath(0)).value());
  for (std::size_t i = 0; i < c.loads.size(); ++i) {
    const std::string path = containerPath(0, static_cast<int>(i));
    const std::vector<std::string> directories = scratch.add(path);
    scratch.setLimit(path, c.containers[i]);
    cgroups.push_back(Cgroup::open(scratch.mounts(), path).value());
    burners.emplace_back(c.loads[i], directories);
    row.truth += c.loads[i].demand(cpus);
  }
  row.truth = std::min(row.truth, static_cast<double>(cpus));
  if (c.neighbours) {
    burners.emplace_back(LoadShape{.threads = static_cast<int>(cpus)}, scratch.add("/neighbours"));
  }
  row.has_local = cgroups.back().throttledLocal().has_value();
  std::this_thread::sleep_for(400ms);
  std::vector<Totals> before;
  before.reserve(cgroups.size());
  const auto start = std::chrono::steady_clock::now();
  for (Cgroup& cgroup : cgroups) before.push_back(read(cgroup));
  std::this_thread::sleep_for(2s);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (std::size_t i = 0; i < cgroups.size(); ++i) {
    const Totals rates = perSecond(read(cgroups[i]), before[i], seconds);
    if (i == 0) {
      row.pod = rates;
    } else {
      row.containers.push_back(rates);
    }
  }
  burners.clear();
  scratch.remove("/kubepods");
  scratch.remove("/neighbours");
  return row;
}

constexpr auto kSpin = [](int threads) { return LoadShape{.threads = threads}; };
LoadShape periodic(int threads, std::chrono::microseconds on, std::chrono::microseconds period) {
  return {.threads = threads, .on = on, .period = period};
}

std::vector<Case> cases() {
  const auto none = std::nullopt;
  return {
      {"Equal", "1 spinner, pod = container = 200m", {kSpin(1)}, 200_m, {200_m}},
      {"ContainerLower", "1 spinner, pod 400m, container 200m", {kSpin(1)}, 400_m, {200_m}},
      {"PodOnly", "1 spinner, pod 200m, container unlimited", {kSpin(1)}, 200_m, {none}},
      {"FourThreads", "4 spinners, pod = container = 500m", {kSpin(4)}, 500_m, {500_m}},
      {"Backlog", "30 ms each 100 ms, 200m", {periodic(1, 30ms, 100ms)}, 200_m, {200_m}},
      {"TwoThreads", "2 x 15 ms each 100 ms, 200m", {periodic(2, 15ms, 100ms)}, 200_m, {200_m}},
      {"Bursts", "50 ms each second, 200m", {periodic(1, 50ms, 1000ms)}, 200_m, {200_m}},
      {"TwoContainers",
       "2 containers spinning, 200m each, pod 400m",
       {kSpin(1), kSpin(1)},
       400_m,
       {200_m, 200_m}},
      {"Sidecar",
       "spinning 200m next to idle 200m, pod 400m",
       {kSpin(1), periodic(1, 1ms, 100ms)},
       400_m,
       {200_m, 200_m}},
      {"Unequal",
       "2 containers spinning, 300m and 100m, pod 400m",
       {kSpin(1), kSpin(1)},
       400_m,
       {300_m, 100_m}},
      {"PodBelowSum",
       "2 containers spinning, 300m each, pod 400m",
       {kSpin(1), kSpin(1)},
       400_m,
       {300_m, 300_m}},
      {"LimitedContended",
       "2 spinners 200m, CPUs shared with neighbours",
       {kSpin(2)},
       200_m,
       {200_m},
       true},
      {"Contended",
       "2 spinners unlimited, CPUs shared with neighbours",
       {kSpin(2)},
       none,
       {none},
       true},
  };
}

// What does not hold of how the counters relate to the blocked work; empty: everything does.
std::string complaint(const Case& c, const Row& row) {
  const double usage = row.sum(&Totals::usage);
  const double local = row.sum(&Totals::local);
  const double stat = row.sum(&Totals::stat);
  if (!c.limited()) {
    if (local + stat != 0) return "throttled without a quota";
    if (row.pod.some > 0 && row.pod.some <= 0.2) return "pressure must show what throttling cannot";
    return "";
  }
  if (std::max(stat, row.pod.stat) <= 0.01) return "throttled at no level";
  if (!row.has_local) return "";
  if (local <= 0.01) return "cpu.stat.local does not show the throttling";
  const bool saturated = std::ranges::all_of(c.loads, &LoadShape::saturated);
  if (saturated && !c.neighbours && std::abs(usage + local - row.truth) > 0.15 * row.truth) {
    return fmt::format("usage + local must be the demand for saturated work: {:.2f}, not {:.2f}",
                       usage + local, row.truth);
  }
  return "";
}

class Counters : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    fmt::print(
        "| load and limits | true demand | usage | cpu.stat pod | cpu.stat containers | "
        "cpu.stat.local | PSI some / full | usage + local | usage + larger | usage + both |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n");
  }
};

TEST_P(Counters, RelateToBlockedWork) {
  Result<std::unique_ptr<Scratch>> scratch = Scratch::make();
  if (!scratch) GTEST_SKIP() << scratch.error().message();
  const Case& c = GetParam();
  const auto cpus = static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN));
  Row row;
  // Work outside of the test takes CPU time from a load, which then is throttled less. Throttled
  // time is counted when it ends: where in a period the measurement begins and ends is chance.
  const Trial trial = tryOnCalmMachine((*scratch)->mounts(), {.others = 0.1, .chances = 2}, [&] {
    row = measure(**scratch, c, cpus);
    return complaint(c, row).empty();
  });
  const double usage = row.sum(&Totals::usage);
  const double local = row.sum(&Totals::local);
  const double stat = row.sum(&Totals::stat);
  const auto orDash = [&](double value) {
    return row.has_local ? fmt::format("{:.2f}", value) : std::string("-");
  };
  fmt::print(
      "| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} | {:.2f} / {:.2f} | {} | {:.2f} | {:.2f} |\n",
      c.name, row.truth, usage, row.pod.stat, stat, orDash(local), row.pod.some, row.pod.full,
      orDash(usage + local), usage + std::max(stat, row.pod.stat), usage + stat + row.pod.stat);

  if (trial.disturbed()) GTEST_SKIP() << trial.reason();
  EXPECT_EQ(complaint(c, row), "");
}

INSTANTIATE_TEST_SUITE_P(RealKernel, Counters, ::testing::ValuesIn(cases()),
                         [](const auto& c) { return c.param.id; });

}  // namespace
}  // namespace mbcas::test
