// Loads of known demand on the real kernel, with the limit following the estimate. Prints the table
// of docs/sensing-figures.md:  build/release/test/kernel/kernel_convergence_test | grep '^|'
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "mbcas/demand/demand.h"
#include "mbcas/sense/sampler.h"
#include "test/kernel/burner.h"
#include "test/kernel/scratch.h"
#include "test/support/machine.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;

struct Case {
  std::string name;
  LoadShape shape;
  Millicores start;  // the limit it begins with
};

struct Group {
  std::string name;
  std::vector<Case> cases;
};

// What became of one case, second by second.
struct Course {
  double truth = 0;       // cores
  double first = 0;       // first estimate of use while throttled
  int calm_after = 0;     // seconds until throttling stayed below 20 ms/s
  int true_after = 0;     // seconds until use stayed within 10 % of the truth
  double use = 0;         // at the end
  double worst_late = 0;  // throttled ms/s, worst second after the tenth
  double got = 0;         // cores used over the last three seconds
  double limit = 0;       // at the end
};

constexpr int kSeconds = 12;
constexpr int kDeadline = 10;

// The limit that the control law gives a free pod, without the law's own caution.
Millicores follow(const demand::Need& need, Millicores limit) {
  const Millicores wanted = std::max(need.burst, Millicores(need.use_peak.count() * 5 / 4));
  // In steps of 10m, as the kubelet's systemd driver rounds.
  const Millicores rounded((std::max(wanted, 10_m).count() + 9) / 10 * 10);
  return need.ready ? rounded : limit;
}

std::vector<Course> run(Scratch& scratch, const std::vector<Case>& cases, unsigned cpus) {
  std::vector<Course> courses(cases.size());
  std::vector<Millicores> limits;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const int n = static_cast<int>(i);
    scratch.add(containerPath(n));
    scratch.setLimit(podPath(n), cases[i].start);
    scratch.setLimit(containerPath(n), cases[i].start);
    limits.push_back(cases[i].start);
    courses[i].truth = cases[i].shape.demand(cpus);
  }
  const SystemClock clock;
  sense::Sampler sampler(std::make_unique<kernel::PodTree>(scratch.mounts()), clock, {});
  demand::Demand demand({.cpus = cpus});
  demand.update(sampler.tick());
  std::vector<Burner> burners;
  burners.reserve(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    burners.emplace_back(cases[i].shape, scratch.directories(containerPath(static_cast<int>(i))));
  }
  auto due = std::chrono::steady_clock::now();
  for (int second = 1; second <= kSeconds; ++second) {
    std::this_thread::sleep_until(due += 1s);
    const auto signals = sampler.tick();
    const auto needs = demand.update(signals);
    for (std::size_t i = 0; i < needs.size(); ++i) {
      Course& course = courses[i];
      const demand::Need& need = needs[i].containers[0].need;
      const sense::CpuSignals& cpu = signals[i].containers[0].cpu;
      const double throttled = cpu.blockedRate().cores() * 1000;
      course.use = need.use.cores();
      if (course.first == 0 && throttled > 20) course.first = need.use_peak.cores();
      if (throttled > 20) course.calm_after = second;
      if (std::abs(course.use - course.truth) > 0.1 * course.truth) course.true_after = second;
      if (second > kDeadline) course.worst_late = std::max(course.worst_late, throttled);
      if (second > kSeconds - 3) course.got += cpu.usageRate().cores() / 3;
      const Millicores limit = follow(need, limits[i]);
      const int n = static_cast<int>(i);
      const std::string levels[] = {podPath(n), containerPath(n)};
      // v1 refuses a container's limit above its pod's.
      const bool raise = limit > limits[i];
      for (const int level : {raise ? 0 : 1, raise ? 1 : 0}) scratch.setLimit(levels[level], limit);
      if (limit != limits[i]) sampler.limitChanged(signals[i].uid);
      limits[i] = limit;
      course.limit = limit.cores();
    }
  }
  EXPECT_EQ(sampler.counters().failures, 0u) << sampler.counters().last_failure;
  burners.clear();
  scratch.remove("/kubepods");
  return courses;
}

void printHeader() {
  fmt::print(
      "| load | true demand | first limit | first estimate | throttling < 20 ms/s after | use "
      "within "
      "10 % after | use | used | last limit | throttled, worst late second |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
}

bool good(const Course& course) {
  return course.calm_after <= kDeadline && course.true_after <= kDeadline &&
         course.worst_late < 20 && course.got > 0.9 * course.truth;
}

class Convergence : public ::testing::TestWithParam<Group> {
 protected:
  static void SetUpTestSuite() { printHeader(); }
};

TEST_P(Convergence, UseFindsTheTruthAndThrottlingEnds) {
  Result<std::unique_ptr<Scratch>> scratch = Scratch::make();
  if (!scratch) GTEST_SKIP() << scratch.error().message();
  const auto cpus = static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN));
  std::vector<Course> courses;
  // What others use cannot be had. And whether a burst lies in one period of its quota or in two is
  // chance: where that changes late, the level of the burst is learned late.
  const Trial trial = tryOnCalmMachine((*scratch)->mounts(), {.others = 0.1, .chances = 3}, [&] {
    courses = run(**scratch, GetParam().cases, cpus);
    return std::ranges::all_of(courses, good);
  });
  for (std::size_t i = 0; i < courses.size(); ++i) {
    const Course& c = courses[i];
    const std::string& name = GetParam().cases[i].name;
    fmt::print(
        "| {} | {:.2f} | {:.2f} | {:.2f} | {} s | {} s | {:.3f} | {:.3f} | {:.2f} | {:.1f} ms |\n",
        name, c.truth, GetParam().cases[i].start.cores(), c.first, c.calm_after, c.true_after,
        c.use, c.got, c.limit, c.worst_late);
    if (trial.disturbed()) continue;
    EXPECT_LE(c.calm_after, kDeadline) << name;
    EXPECT_LE(c.true_after, kDeadline) << name;
    EXPECT_LT(c.worst_late, 20) << name;
    EXPECT_GT(c.got, 0.9 * c.truth) << name << " starves";
  }
  if (trial.disturbed()) GTEST_SKIP() << trial.reason();
}

LoadShape saturated(int threads) {
  return {.threads = threads};
}
LoadShape periodic(int threads, std::chrono::microseconds on, std::chrono::microseconds period) {
  return {.threads = threads, .on = on, .period = period};
}

// Loads that fit on two CPUs together run together.
std::vector<Group> groups() {
  return {
      {"Periodic",
       {{"1 thread, 3 ms each 10 ms", periodic(1, 3ms, 10ms), 200_m},
        {"1 thread, 30 ms each 100 ms", periodic(1, 30ms, 100ms), 200_m},
        {"2 threads, 15 ms each 100 ms", periodic(2, 15ms, 100ms), 200_m},
        {"1 thread, 50 ms each second", periodic(1, 50ms, 1000ms), 200_m},
        {"1 thread, 50 ms each 100 ms", periodic(1, 50ms, 100ms), 100_m}}},
      {"OneThread",
       {{"1 thread, saturated", saturated(1), 200_m},
        {"1 thread, saturated", saturated(1), 500_m}}},
      {"FourThreads", {{"4 threads, saturated", saturated(4), 500_m}}},
      {"EightThreads", {{"8 threads, saturated", saturated(8), 1500_m}}},
  };
}

INSTANTIATE_TEST_SUITE_P(RealKernel, Convergence, ::testing::ValuesIn(groups()),
                         [](const auto& group) { return group.param.name; });

}  // namespace
}  // namespace mbcas::test
