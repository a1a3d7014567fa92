#include "mbcas/node/loop.h"

#include <gtest/gtest.h>

namespace mbcas::node {
namespace {

using namespace literals;
using namespace std::chrono_literals;

constexpr MonotonicTime kStart{1h};

sense::CpuSignals cpu(MonotonicTime now, Nanos usage) {
  sense::CpuSignals signals;
  signals.at = now;
  signals.interval = 1s;
  signals.good_until = now + 2s;
  signals.usage = usage;
  signals.limit = kernel::CpuLimit{.quota = 50ms, .period = 100ms};
  return signals;
}

// A pod of one container that uses so much of every second.
sense::PodSignals podSignals(std::uint64_t cgroup, MonotonicTime now, Nanos usage) {
  sense::PodSignals pod;
  pod.cgroup = cgroup;
  pod.cpu = cpu(now, usage);
  pod.uid = "pod-" + std::to_string(cgroup);
  sense::ContainerSignals& container = pod.containers.emplace_back();
  container.cgroup = cgroup + 100;
  container.cpu = pod.cpu;
  container.id = "main";
  return pod;
}

Participant participant(const std::string& id, std::optional<std::size_t> signals) {
  Participant pod{.id = id, .signals = signals};
  pod.containers.push_back({.name = "main", .limit = 500_m, .declared = 500_m, .request = 100_m});
  if (signals) pod.containers[0].signals = 0;
  return pod;
}

TEST(Loop, AssemblesWhatTheLawDecidesFrom) {
  Loop loop({}, {});
  std::vector<sense::PodSignals> pods{podSignals(1, kStart, 300ms), podSignals(2, kStart, 200ms)};
  pods[0].memory_pressure = sense::PressureSignals{.some = 0.2};
  pods[0].contention = 0.4;
  loop.observe({.now = kStart, .pods = pods, .machine_use = 900_m});
  Participant web = participant("web", 0);
  web.floor = 150_m;
  web.weight = 7;
  const std::vector<Participant> participants{web};
  const control::NodeDecision& decision = loop.decide(
      {.capacity = 4000_m, .unmanaged_requests = 50_m, .pressure_conditions = 1}, participants);
  ASSERT_EQ(decision.pods.size(), 1u);
  const control::NodeInput& input = loop.input();
  EXPECT_EQ(input.now, kStart);
  EXPECT_EQ(input.capacity, 4000_m);
  EXPECT_EQ(input.unmanaged_requests, 50_m);
  EXPECT_EQ(input.pressure_conditions, 1);
  EXPECT_EQ(input.unmanaged_use, 600_m) << "of the machine's 900m, 300m are the managed pod's";
  ASSERT_EQ(input.pods.size(), 1u);
  EXPECT_EQ(input.pods[0].id, "web");
  EXPECT_EQ(input.pods[0].weight, 7);
  EXPECT_EQ(input.pods[0].floor, 150_m);
  EXPECT_TRUE(input.pods[0].memory_or_io_pressure);
  EXPECT_EQ(input.pods[0].contention, 0.4);
  EXPECT_EQ(input.pods[0].containers[0].need.last.usage, 300_m);
}

TEST(Loop, UsesThePodsWhereTheMachineIsNotKnown) {
  Loop loop({}, {});
  const std::vector<sense::PodSignals> pods{podSignals(1, kStart, 300ms),
                                            podSignals(2, kStart, 200ms)};
  loop.observe({.now = kStart, .pods = pods});
  const std::vector<Participant> participants{participant("web", 0)};
  loop.decide({.capacity = 4000_m}, participants);
  EXPECT_EQ(loop.input().unmanaged_use, 200_m);
}

TEST(Loop, AContainerThatDoesNotRunNeedsNothingAndOneThatIsNotFoundIsNotJudged) {
  Loop loop({}, {});
  loop.observe({.now = kStart});
  std::vector<Participant> participants{participant("stopped", std::nullopt),
                                        participant("lost", std::nullopt)};
  participants[0].containers[0].stopped = true;
  const control::NodeDecision& decision = loop.decide({.capacity = 4000_m}, participants);
  EXPECT_TRUE(decision.pods[0].fresh);
  EXPECT_FALSE(decision.pods[1].fresh);
  EXPECT_EQ(decision.pods[1].desired, 500_m);
}

TEST(Loop, KeepsWhatItLearnedWhenSettingsChange) {
  Loop loop({}, {});
  const std::vector<Participant> participants{participant("web", 0)};
  MonotonicTime now = kStart;
  for (int second = 0; second < 30; ++second, now += 1s) {
    const std::vector<sense::PodSignals> pods{podSignals(1, now, 300ms)};
    loop.observe({.now = now, .pods = pods});
    loop.decide({.capacity = 4000_m}, participants);
  }
  control::Settings law;
  law.hysteresis = 0.2;
  loop.configure({}, law);
  EXPECT_TRUE(loop.knows("web"));
  const std::vector<sense::PodSignals> pods{podSignals(1, now, 300ms)};
  loop.observe({.now = now, .pods = pods});
  EXPECT_GE(loop.needs()[0].containers[0].need.samples, 29u);
}

}  // namespace
}  // namespace mbcas::node
