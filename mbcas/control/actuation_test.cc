#include "mbcas/control/actuation.h"

#include <gtest/gtest.h>

#include "mbcas/control/dice.h"
#include "mbcas/control/fluid_node.h"

namespace mbcas::control {
namespace {

using namespace literals;
using namespace std::chrono_literals;

const Settings kResponsive = settingsOf(Profile::kResponsive);
constexpr MonotonicTime kNow{1h};

Transition transition(std::vector<Millicores> in_force, std::vector<Millicores> target,
                      Millicores declared) {
  return {.now = kNow,
          .in_force = std::move(in_force),
          .target = std::move(target),
          .declared = declared};
}

Move moveOf(const Transition& transition, std::optional<Nanos> since_last_change = std::nullopt) {
  ActuationMemory memory;
  if (since_last_change) memory.last_change = transition.now - *since_last_change;
  return nextMove(transition, kResponsive, memory);
}

TEST(NextMove, GoesAllTheWayWhereNothingHoldsIt) {
  const Move move = moveOf(transition({200_m}, {500_m}, 200_m));
  EXPECT_TRUE(move.moves);
  EXPECT_EQ(move.containers, std::vector{500_m});
  EXPECT_EQ(move.held_by, Hold::kNothing);
}

TEST(NextMove, AContainerThatNeedsNoChangeKeepsItsLimitOnTheWay) {
  const Move move = moveOf(transition({100_m, 100_m}, {100_m, 3000_m}, 200_m));
  EXPECT_EQ(move.limit, 1600_m) << "a raise multiplies by eight at most";
  EXPECT_EQ(move.held_by, Hold::kStep);
  EXPECT_EQ(move.containers, (std::vector{100_m, 1500_m}));
}

TEST(NextMove, ARaiseWaitsForItsNodeAndItsQuota) {
  Transition raise = transition({200_m}, {500_m}, 200_m);
  raise.may_raise = false;
  EXPECT_FALSE(moveOf(raise).moves);
  EXPECT_EQ(moveOf(raise).held_by, Hold::kRaiseRate);
  raise.may_raise = true;
  raise.room = 105_m;
  EXPECT_EQ(moveOf(raise).limit, 300_m) << "what the quota has left, in whole steps";
  EXPECT_EQ(moveOf(raise).held_by, Hold::kQuota);
  raise.room = -50_m;
  EXPECT_FALSE(moveOf(raise).moves) << "a quota that is exceeded already has no room";
  Transition lower = transition({500_m}, {400_m}, 200_m);
  lower.may_raise = false;
  lower.room = 0_m;
  EXPECT_EQ(moveOf(lower).limit, 400_m) << "a decrease needs no room";
}

TEST(NextMove, AnHpasPodsAreLoweredHalfAsOften) {
  Transition lower = transition({900_m}, {800_m}, 200_m);
  EXPECT_TRUE(moveOf(lower, 31s).moves);
  lower.scaled_by_hpa = true;
  EXPECT_FALSE(moveOf(lower, 31s).moves);
  EXPECT_TRUE(moveOf(lower, 61s).moves);
}

TEST(NextMove, TheSameSumIsSplitInAnotherWayOnlyWhereItMatters) {
  EXPECT_FALSE(moveOf(transition({500_m, 500_m}, {520_m, 480_m}, 1000_m), 1min).moves);
  const Transition resplit = transition({500_m, 500_m}, {700_m, 300_m}, 1000_m);
  EXPECT_TRUE(moveOf(resplit, 1min).moves);
  const Move soon = moveOf(resplit, 10s);
  EXPECT_FALSE(soon.moves);
  EXPECT_EQ(soon.held_by, Hold::kCooldown);
  EXPECT_EQ(soon.again, kNow + 20s);
}

TEST(Excuse, CountsForALimitedTime) {
  Excuse excuse;
  EXPECT_FALSE(excuse.counts(false, kNow, 10min));
  EXPECT_TRUE(excuse.counts(true, kNow, 10min));
  EXPECT_EQ(excuse.ends(10min), kNow + 10min);
  EXPECT_TRUE(excuse.counts(true, kNow + 9min, 10min));
  EXPECT_FALSE(excuse.counts(true, kNow + 10min, 10min));
}

TEST(Excuse, CountsAgainOnlyAfterAsLongWithoutIt) {
  Excuse excuse;
  EXPECT_TRUE(excuse.counts(true, kNow, 10min));
  EXPECT_FALSE(excuse.counts(false, kNow + 9min, 10min));
  EXPECT_FALSE(excuse.counts(true, kNow + 12min, 10min));
  EXPECT_FALSE(excuse.counts(false, kNow + 13min, 10min));
  EXPECT_TRUE(excuse.counts(true, kNow + 23min, 10min)) << "it was not asked in between";
}

TEST(NextMove, UnreadinessAndABudgetHoldADecreaseForTenMinutesAtMost) {
  for (const bool unready : {true, false}) {
    Transition lower = transition({900_m}, {800_m}, 200_m);
    lower.ready = !unready;
    lower.disruption_blocked = !unready;
    ActuationMemory memory;
    const Move first = nextMove(lower, kResponsive, memory);
    EXPECT_FALSE(first.moves);
    EXPECT_EQ(first.held_by, unready ? Hold::kNotReady : Hold::kDisruption);
    ASSERT_EQ(first.again, kNow + 10min);
    lower.now = *first.again;
    EXPECT_TRUE(nextMove(lower, kResponsive, memory).moves);
  }
}

// However a pod starts and whatever is desired, its moves end there, and no container goes beyond
// the two ends of its own way by more than a step.
TEST(NextMove, ArrivesFromAnywhere) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    Transition way{.now = kNow, .declared = Millicores(10 * dice.between(1, 400))};
    const std::int64_t containers = dice.between(1, 4);
    for (std::int64_t i = 0; i < containers; ++i) {
      way.in_force.emplace_back(10 * dice.between(1, 400));
      way.target.emplace_back(10 * dice.between(1, 400));
    }
    way.scaled_by_hpa = dice.chance(30);
    way.ready = dice.chance(70);
    const std::vector<Millicores> start = way.in_force;
    ActuationMemory memory;
    int moves = 0;
    for (int step = 0; step < 200; ++step) {
      const Move move = nextMove(way, kResponsive, memory);
      for (std::size_t i = 0; i < start.size(); ++i) {
        ASSERT_GE(move.containers[i], std::min(start[i], way.target[i]) - 10_m);
        ASSERT_LE(move.containers[i], std::max(start[i], way.target[i]) + 40_m);
      }
      if (move.moves) {
        ++moves;
        way.in_force = move.containers;
        memory.last_change = way.now;
      }
      if (!move.again) {
        if (!move.moves) break;
        continue;
      }
      ASSERT_GT(*move.again, way.now);
      way.now = *move.again;
    }
    ASSERT_LE(moves, 40);
    for (std::size_t i = 0; i < start.size(); ++i) {
      const Millicores off =
          std::max(way.in_force[i] - way.target[i], way.target[i] - way.in_force[i]);
      ASSERT_LE(off.count() * 10, way.in_force[i].count());
    }
  }
}

TEST(RaiseBudget, GivesANodeSoMuchInASecond) {
  RaiseBudget budget;
  const MonotonicTime start{1h};
  const auto room = [&](MonotonicTime now) { return budget.hasRoom("n1", 2000_m, 2, now); };
  EXPECT_TRUE(room(start));
  budget.spend("n1", 3000_m, start);
  EXPECT_TRUE(room(start));
  budget.spend("n1", 5000_m, start);  // 4000m over what a second allows
  EXPECT_FALSE(room(start));
  EXPECT_TRUE(budget.hasRoom("n2", 2000_m, 2, start));
  EXPECT_FALSE(room(start + 1s));
  EXPECT_TRUE(room(start + 1100ms));
  budget.spend("n1", 3900_m, start + 1100ms);
  EXPECT_FALSE(room(start + 1100ms));
  EXPECT_TRUE(room(start + 1min));
}

TEST(NodeActuator, AnotherWritersChangeStartsTheCooldown) {
  FluidNode node(4, kResponsive);
  node.add(fluidPod("a", 100_m, 200_m, [](int second) { return second < 60 ? 900_m : 20_m; }));
  for (int second = 0; second < 75; ++second) node.second();
  node.pod(0).containers[0].limit = 2000_m;
  for (int second = 0; second < 29; ++second) {
    node.second();
    ASSERT_EQ(node.pod(0).limit(), 2000_m) << second;
  }
  for (int second = 0; second < 60; ++second) node.second();
  EXPECT_LT(node.pod(0).limit(), 2000_m);
}

}  // namespace
}  // namespace mbcas::control
