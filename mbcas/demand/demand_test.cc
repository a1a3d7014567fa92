#include "mbcas/demand/demand.h"

#include <gtest/gtest.h>

#include "test/support/count_allocations.h"

namespace mbcas::demand {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

sense::CpuSignals cpu(MonotonicTime at, Nanos usage, Nanos quota, Nanos blocked = Nanos(0)) {
  sense::CpuSignals signals;
  signals.at = at;
  signals.interval = seconds(1);
  signals.good_until = at + seconds(3);
  signals.usage = usage;
  signals.limit = kernel::CpuLimit{quota, milliseconds(100)};
  signals.blocked = blocked;
  if (blocked > Nanos(0)) signals.throttling = {10, 8, blocked};
  return signals;
}

sense::PodSignals pod(MonotonicTime at, Nanos main, Nanos main_blocked, Nanos side) {
  sense::PodSignals signals;
  signals.cgroup = 1;
  signals.uid = "u1";
  signals.cpu = cpu(at, main + side, milliseconds(40));
  signals.containers = {
      {.cgroup = 2, .cpu = cpu(at, main, milliseconds(20), main_blocked), .id = "main"},
      {.cgroup = 3, .cpu = cpu(at, side, milliseconds(20)), .id = "side"}};
  return signals;
}

TEST(Demand, SizesEachContainerForItself) {
  Demand demand({.cpus = 2});
  const MonotonicTime at{seconds(10)};
  const auto needs =
      demand.update(std::vector{pod(at, milliseconds(200), milliseconds(800), milliseconds(30))});
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(needs[0].uid, "u1");
  EXPECT_EQ(needs[0].containers[0].need.use, 1000_m);
  EXPECT_EQ(needs[0].containers[1].need.use, 30_m);
  EXPECT_EQ(needs[0].total.use, 1030_m);
  EXPECT_EQ(needs[0].total.burst, 1000_m);
  EXPECT_EQ(needs[0].total.blocked, 800_m);
  EXPECT_TRUE(needs[0].total.binding);
  EXPECT_TRUE(needs[0].total.ready) << "throttled";
  EXPECT_FALSE(needs[0].containers[1].need.ready) << "still warming up";
  EXPECT_EQ(needs[0].total.good_until, at + seconds(3));
}

TEST(Demand, ThrottlingByThePodsLimitCountsForTheContainerThatRan) {
  sense::PodSignals signals = pod({}, milliseconds(390), Nanos(0), Nanos(0));
  signals.cpu.throttling = {10, 9, milliseconds(600)};
  signals.containers[0].cpu.limit = kernel::CpuLimit{};
  signals.containers[0].cpu.blocked = milliseconds(600);
  const Sample main = sampleOf(signals.containers[0], signals);
  EXPECT_EQ(main.limit, 400_m);
  EXPECT_EQ(main.throttled_periods, 9u);
  EXPECT_TRUE(main.at_limit);
  EXPECT_EQ(sampleOf(signals.containers[1], signals).throttled_periods, 0u);
}

TEST(Demand, NoNewReadingNoNewConclusion) {
  Demand demand({.cpus = 2});
  const MonotonicTime at{seconds(10)};
  std::vector<sense::PodSignals> signals{pod(at, milliseconds(100), Nanos(0), Nanos(0))};
  const Need first = demand.update(signals)[0].containers[0].need;
  EXPECT_EQ(demand.update(signals)[0].containers[0].need, first);
  signals[0].containers[0].cpu.interval = Nanos(0);  // started anew
  signals[0].containers[0].cpu.at = at + seconds(1);
  EXPECT_EQ(demand.update(signals)[0].containers[0].need, first);
}

TEST(Demand, AContainerKeepsItsHistoryWhenOthersComeAndGo) {
  Demand demand({.cpus = 2});
  std::vector<sense::PodSignals> signals;
  for (int i = 1; i <= 10; ++i) {
    signals = {pod(MonotonicTime{seconds(i)}, milliseconds(100), Nanos(0), Nanos(0))};
    demand.update(signals);
  }
  signals[0].containers[1].cgroup = 4;  // restarted
  sense::PodSignals other = signals[0];
  other.cgroup = 10;
  other.containers[0].cgroup = 11;
  other.containers[1].cgroup = 12;
  signals.insert(signals.begin(), other);
  for (sense::PodSignals& each : signals) {
    for (sense::ContainerSignals& c : each.containers) c.cpu.at = MonotonicTime{seconds(11)};
  }
  const auto needs = demand.update(signals);
  ASSERT_EQ(needs.size(), 2u);
  EXPECT_EQ(needs[0].containers[0].need.samples, 1u);
  EXPECT_EQ(needs[1].containers[0].need.samples, 11u);
  EXPECT_EQ(needs[1].containers[1].need.samples, 1u);
}

TEST(Demand, AContainerThatSleptForLongJumpsAtOnce) {
  Demand demand({.cpus = 2});
  int second = 1;
  for (; second < 100; ++second) {
    demand.update(std::vector{pod(MonotonicTime{seconds(second)}, Nanos(0), Nanos(0), Nanos(0))});
  }
  const auto needs = demand.update(std::vector{
      pod(MonotonicTime{seconds(second)}, milliseconds(200), milliseconds(800), Nanos(0))});
  EXPECT_EQ(needs[0].containers[0].need.use_peak, 1000_m);
  EXPECT_EQ(needs[0].containers[0].need.use, 0_m) << "the median of a window of sleep";
  EXPECT_EQ(needs[0].containers[0].need.samples, 30u);
}

TEST(Demand, AWarmUpdateAllocatesNothing) {
  Demand demand({.cpus = 2});
  std::vector<sense::PodSignals> signals{
      pod(MonotonicTime{seconds(1)}, milliseconds(200), milliseconds(100), milliseconds(5))};
  demand.update(signals);
  const std::uint64_t before = test::allocationsSoFar();
  for (int i = 2; i < 100; ++i) {
    for (sense::ContainerSignals& c : signals[0].containers) c.cpu.at = MonotonicTime{seconds(i)};
    demand.update(signals);
  }
  EXPECT_EQ(test::allocationsSoFar(), before);
}

}  // namespace
}  // namespace mbcas::demand
