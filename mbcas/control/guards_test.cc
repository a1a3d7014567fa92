#include "mbcas/control/guards.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "mbcas/control/weight.h"

namespace mbcas::control {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MonotonicTime kNow{seconds(1000)};
const GuardSettings kResponsive = settingsOf(Profile::kResponsive).guards;
const GuardSettings kClassic = settingsOf(Profile::kClassic).guards;

Change change(Millicores from, Millicores to, Nanos since_last) {
  return {.now = kNow, .last_change = kNow - since_last, .in_force = from, .desired = to};
}

TEST(Guard, NothingToDo) {
  EXPECT_EQ(guard(change(500_m, 500_m, seconds(0)), kResponsive), (Allowed{500_m}));
}

TEST(Guard, ARaiseGoesAllTheWayAtOnce) {
  EXPECT_EQ(guard(change(200_m, 1250_m, seconds(1)), kResponsive), (Allowed{1250_m}));
  const Allowed soon = guard(change(200_m, 1250_m, milliseconds(500)), kResponsive);
  EXPECT_EQ(soon.limit, 200_m);
  EXPECT_EQ(soon.held_by, Hold::kCooldown);
  EXPECT_EQ(soon.again, kNow + milliseconds(400));
}

TEST(Guard, ARaiseIsCappedAtEightfold) {
  const Allowed far = guard(change(100_m, 2000_m, seconds(5)), kResponsive);
  EXPECT_EQ(far.limit, 800_m);
  EXPECT_EQ(far.held_by, Hold::kStep);
}

TEST(Guard, ADecreaseWaitsAndGoesByOneAndAHalf) {
  const Allowed soon = guard(change(900_m, 100_m, seconds(29)), kResponsive);
  EXPECT_EQ(soon.limit, 900_m);
  EXPECT_EQ(soon.again, kNow + seconds(1));
  const Allowed step = guard(change(900_m, 100_m, seconds(30)), kResponsive);
  EXPECT_EQ(step.limit, 600_m);
  EXPECT_EQ(step.held_by, Hold::kStep);
  EXPECT_EQ(guard(change(900_m, 700_m, seconds(30)), kResponsive), (Allowed{700_m}));
}

TEST(Guard, ADecreaseThatRoundingSwallowsStillMoves) {
  EXPECT_EQ(guard(change(20_m, 10_m, seconds(60)), kResponsive).limit, 10_m);
  EXPECT_LT(guard(change(30_m, 10_m, seconds(60)), kResponsive).limit, 30_m);
}

TEST(Guard, PodsOfAnHpaAreLoweredHalfAsOften) {
  Change slow = change(900_m, 700_m, seconds(45));
  slow.lower_slowly = true;
  EXPECT_EQ(guard(slow, kResponsive).held_by, Hold::kCooldown);
  slow.last_change = kNow - seconds(60);
  EXPECT_EQ(guard(slow, kResponsive).limit, 700_m);
}

TEST(Guard, AConstrainedPodFollowsTheMarketBothWays) {
  Change down = change(900_m, 100_m, seconds(15));
  down.constrained = true;
  EXPECT_EQ(guard(down, kResponsive), (Allowed{100_m}));
  down.last_change = kNow - seconds(14);
  EXPECT_EQ(guard(down, kResponsive).held_by, Hold::kCooldown);
  Change up = change(100_m, 300_m, seconds(14));
  up.constrained = true;
  EXPECT_EQ(guard(up, kResponsive).held_by, Hold::kCooldown);
}

TEST(Guard, AReasonNotToLowerHoldsADecreaseOnly) {
  Change down = change(900_m, 100_m, seconds(60));
  down.no_decrease = Hold::kNotReady;
  EXPECT_EQ(guard(down, kResponsive), (Allowed{900_m, Hold::kNotReady}));
  down.desired = 1000_m;
  EXPECT_EQ(guard(down, kResponsive), (Allowed{1000_m}));
}

TEST(Guard, ClassicIsSlowBothWays) {
  EXPECT_EQ(guard(change(200_m, 1250_m, seconds(29)), kClassic).held_by, Hold::kCooldown);
  EXPECT_EQ(guard(change(200_m, 1250_m, seconds(30)), kClassic).limit, 300_m);
  Change down = change(900_m, 100_m, seconds(30));
  down.constrained = true;
  EXPECT_EQ(guard(down, kClassic).limit, 600_m);
}

RC_GTEST_PROP(Guard, NeverOvershootsAndAlwaysArrives, ()) {
  Change move;
  move.in_force = Millicores(10 * *rc::gen::inRange(1, 1000));
  move.desired = Millicores(10 * *rc::gen::inRange(1, 1000));
  move.constrained = *rc::gen::arbitrary<bool>();
  move.lower_slowly = *rc::gen::arbitrary<bool>();
  const GuardSettings& settings = *rc::gen::arbitrary<bool>() ? kResponsive : kClassic;
  int changes = 0;
  for (int second = 0; second < 3600 && move.in_force != move.desired; ++second) {
    move.now += seconds(1);
    const Allowed allowed = guard(move, settings);
    RC_ASSERT(allowed.limit >= std::min(move.in_force, move.desired));
    RC_ASSERT(allowed.limit <= std::max(move.in_force, move.desired));
    RC_ASSERT(allowed.limit.count() % 10 == 0);
    if (allowed.limit == move.in_force) {
      RC_ASSERT(allowed.again.has_value());
      RC_ASSERT(*allowed.again > move.now);
      continue;
    }
    move.in_force = allowed.limit;
    move.last_change = move.now;
    ++changes;
  }
  RC_ASSERT(move.in_force == move.desired);
  RC_ASSERT(changes <= 40);
}

TEST(Weight, GrowsWithRequestAndPriority) {
  EXPECT_EQ(priorityFactor(0), 1);
  EXPECT_EQ(priorityFactor(1000), 1);
  EXPECT_EQ(priorityFactor(2000), 1.5);
  EXPECT_EQ(priorityFactor(1'000'000'000), 4);
  EXPECT_EQ(priorityFactor(-500), 0.75);
  EXPECT_EQ(priorityFactor(-1'000'000), 0.5);
  EXPECT_EQ(weightOf(250_m, 2000, 2), 750);
  EXPECT_EQ(weightOf(0_m), 1);
}

TEST(Settings, ProfilesAreValidAndNamesAreParsed) {
  EXPECT_TRUE(validate(settingsOf(Profile::kResponsive)));
  EXPECT_TRUE(validate(settingsOf(Profile::kClassic)));
  for (const Profile profile : {Profile::kResponsive, Profile::kClassic}) {
    EXPECT_EQ(parseProfile(name(profile)).value(), profile);
  }
  for (const BidRule rule : {BidRule::kEntitlement, BidRule::kPressure}) {
    EXPECT_EQ(parseBidRule(name(rule)).value(), rule);
  }
  for (const Reclaim reclaim : {Reclaim::kScarce, Reclaim::kAlways, Reclaim::kNever}) {
    EXPECT_EQ(parseReclaim(name(reclaim)).value(), reclaim);
  }
  EXPECT_EQ(parseReclaim("often").error().message(),
            "no reclaim mode \"often\": it is one of scarce, always, never");
}

TEST(Settings, AnImpossibleValueIsNamed) {
  Settings settings;
  settings.hysteresis = 1.5;
  EXPECT_EQ(validate(settings).error().message(), "hysteresis: 1.5 is not between 0 and 0.25");
  settings = {};
  settings.scarce_until = 0.99;
  EXPECT_FALSE(validate(settings));
  settings = {};
  settings.guards.max_step = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(validate(settings));
}

}  // namespace
}  // namespace mbcas::control
