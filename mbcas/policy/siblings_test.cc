#include "mbcas/policy/siblings.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mbcas::policy {
namespace {

using namespace literals;

TEST(StartLevel, IsTheMedian) {
  EXPECT_EQ(startLevel({}), std::nullopt);
  EXPECT_EQ(startLevel({300_m}), 300_m);
  EXPECT_EQ(startLevel({900_m, 100_m, 300_m}), 300_m);
}

TEST(WorkloadMemory, ForgetsAfterAnHourAndIsBounded) {
  WorkloadMemory memory;
  MonotonicTime now{};
  memory.remember("a", 300_m, now);
  EXPECT_EQ(memory.recall("a", now + std::chrono::minutes(59)), 300_m);
  EXPECT_EQ(memory.recall("a", now + std::chrono::minutes(61)), std::nullopt);
  EXPECT_EQ(memory.recall("b", now), std::nullopt);
  for (std::size_t i = 0; i < WorkloadMemory::kMost + 100; ++i) {
    now += std::chrono::milliseconds(1);
    memory.remember(std::to_string(i), 1_m, now);
  }
  EXPECT_LE(memory.size(), WorkloadMemory::kMost);
  EXPECT_EQ(memory.recall("a", now), std::nullopt) << "the oldest goes first";
  EXPECT_TRUE(memory.recall(std::to_string(WorkloadMemory::kMost + 99), now));
}

TEST(FairWeights, NobodyIsHelpedWhileAllAreSatisfied) {
  EXPECT_EQ(fairWeights({{500_m, 500_m}, {460_m, 500_m}}), (std::vector<double>{1, 1}));
  EXPECT_EQ(fairWeights({{100_m, 500_m}}), (std::vector<double>{1})) << "alone";
}

TEST(FairWeights, TheOneOnTheScarceNodeIsHelped) {
  const std::vector<double> weights = fairWeights({{200_m, 800_m}, {800_m, 800_m}, {800_m, 800_m}});
  EXPECT_EQ(weights[0], 2);
  EXPECT_EQ(weights[1], 0.75);
  EXPECT_EQ(weights[2], 0.75);
}

RC_GTEST_PROP(FairWeights, WithinLimitsAndOrdered, ()) {
  std::vector<GroupMember> group;
  const int count = *rc::gen::inRange(0, 10);
  for (int i = 0; i < count; ++i) {
    group.push_back(
        {Millicores(*rc::gen::inRange(0, 4000)), Millicores(*rc::gen::inRange(0, 4000))});
  }
  const std::vector<double> weights = fairWeights(group);
  RC_ASSERT(weights.size() == group.size());
  const auto satisfied = [](const GroupMember& m) {
    return std::min(1.0, static_cast<double>(m.in_force.count()) /
                             static_cast<double>(std::max<std::int64_t>(1, m.wanted.count())));
  };
  for (std::size_t i = 0; i < group.size(); ++i) {
    RC_ASSERT(weights[i] >= 0.5 && weights[i] <= 2);
    for (std::size_t j = 0; j < group.size(); ++j) {
      if (satisfied(group[i]) < satisfied(group[j])) RC_ASSERT(weights[i] >= weights[j]);
    }
  }
}

}  // namespace
}  // namespace mbcas::policy
