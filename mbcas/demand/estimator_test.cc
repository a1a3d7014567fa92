#include "mbcas/demand/estimator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mbcas::demand {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

// One container whose samples the test writes, second by second.
class Load {
 public:
  explicit Load(Settings settings = {.cpus = 4}) : estimator_(makeEstimator(settings)) {}

  Sample sample;
  Need need;

  const Need& second(Millicores usage, Millicores blocked = 0_m, std::uint64_t throttled = 0) {
    return sampleOf(seconds(1), usage, blocked, throttled);
  }
  const Need& sampleOf(Nanos interval, Millicores usage, Millicores blocked,
                       std::uint64_t throttled) {
    sample.at += interval;
    sample.interval = interval;
    sample.usage = usage;
    sample.blocked = blocked;
    sample.periods = static_cast<std::uint64_t>(interval / milliseconds(100));
    sample.throttled_periods = throttled;
    sample.at_limit = sample.limit && usage * 10 >= *sample.limit * 9;
    need = estimator_->update(sample);
    return need;
  }
  const Need& secondsOf(int count, Millicores usage) {
    for (int i = 0; i < count; ++i) second(usage);
    return need;
  }
  // What the control law makes of it, without its caution.
  Millicores followed() const {
    return std::max(need.burst, Millicores(need.use_peak.count() * 5 / 4));
  }

 private:
  std::unique_ptr<Estimator> estimator_;
};

Load limited(Millicores limit) {
  Load load;
  load.sample.limit = limit;
  return load;
}

TEST(Responsive, UnthrottledNeedIsUsage) {
  Load load = limited(500_m);
  load.secondsOf(10, 120_m);
  EXPECT_EQ(load.need.use, 120_m);
  EXPECT_EQ(load.need.use_peak, 120_m);
  EXPECT_EQ(load.need.burst, 0_m);
  EXPECT_EQ(load.need.burst_state, BurstState::kNone);
}

TEST(Responsive, WarmsUpUnlessThrottled) {
  Load calm = limited(500_m);
  EXPECT_FALSE(calm.second(10_m).ready);
  EXPECT_FALSE(calm.secondsOf(3, 10_m).ready);
  EXPECT_TRUE(calm.second(10_m).ready);
  EXPECT_TRUE(limited(200_m).second(200_m, 800_m, 10).ready);
}

TEST(Responsive, ASaturatedLoadJumpsToTheTruthInOneSample) {
  Load load = limited(200_m);
  load.second(200_m, 800_m, 10);
  EXPECT_TRUE(load.need.binding);
  EXPECT_EQ(load.need.use, 1000_m);
  EXPECT_EQ(load.need.use_peak, 1000_m);
  EXPECT_EQ(load.need.burst, 1000_m);
  load.sample.limit = load.followed();
  EXPECT_EQ(*load.sample.limit, 1250_m);
  load.secondsOf(10, 1000_m);
  EXPECT_EQ(load.need.use, 1000_m);
  EXPECT_EQ(load.followed(), 1250_m);
}

TEST(Responsive, AJumpFromIdleIsNotDilutedByTheIdleTimeBefore) {
  Load load = limited(200_m);
  load.secondsOf(30, 20_m);
  load.second(200_m, 800_m, 10);
  EXPECT_EQ(load.need.use_peak, 1000_m);
  load.sample.limit = load.followed();
  for (int i = 0; i < 8; ++i) {
    EXPECT_GE(load.second(1000_m).burst, 1000_m) << "must not fall back while the window fills";
  }
}

TEST(Responsive, TheJumpIsBoundedByThreadsAndCpus) {
  Load load = limited(200_m);
  load.sample.threads = 2;
  EXPECT_EQ(load.second(200_m, 7000_m, 10).use_peak, 2000_m);
  Load many = limited(500_m);
  many.sample.threads = 64;
  EXPECT_EQ(many.second(500_m, 60'000_m, 10).use_peak, 4000_m) << "4 CPUs";
  Load unknown = limited(500_m);
  EXPECT_EQ(unknown.second(500_m, 60'000_m, 10).use_peak, 4000_m);
}

TEST(Responsive, AnOverestimateFromABacklogIsCorrectedByTheNextSamples) {
  Load load = limited(200_m);
  load.second(200_m, 800_m, 10);  // 30 ms each 100 ms: truth 300m, backlog says 1000m
  EXPECT_EQ(load.need.use, 1000_m);
  load.sample.limit = load.followed();
  load.second(320_m);  // the limit changed in this interval
  load.secondsOf(3, 300_m);
  EXPECT_EQ(load.need.use, 300_m);
  EXPECT_LE(load.need.use_peak, 310_m);
  EXPECT_EQ(load.need.burst_state, BurstState::kGuessed);
  load.secondsOf(120, 300_m);
  EXPECT_EQ(load.followed(), 375_m) << "a guess is trimmed away within two minutes";
}

TEST(Responsive, BlockedWorkOfABurstIsNoUse) {
  Load load = limited(200_m);
  load.second(50_m, 130_m, 2);  // 50 ms once a second
  EXPECT_FALSE(load.need.binding);
  EXPECT_EQ(load.need.use, 50_m);
  EXPECT_EQ(load.need.use_peak, 50_m);
  EXPECT_EQ(load.need.burst, 550_m) << "all its work in one period, with a margin";
  EXPECT_EQ(load.need.burst_state, BurstState::kLearned);
}

TEST(Responsive, ABurstStepIsBetween150And300Percent) {
  Load small = limited(1000_m);
  EXPECT_EQ(small.second(500_m, 5_m, 5).burst, 1500_m);
  Load large = limited(100_m);
  EXPECT_EQ(large.second(80_m, 2000_m, 2).burst, 300_m);
}

TEST(Responsive, APeriodCutOffOnceASecondIsASmallStep) {
  Load once = limited(1000_m);
  EXPECT_EQ(once.second(500_m, 90_m, 1).burst, 1250_m);
  Load twice = limited(1000_m);
  EXPECT_EQ(twice.second(500_m, 180_m, 2).burst, 1900_m);
  // In short samples too, but not when the next one shows more of it.
  Load soon = limited(1000_m);
  soon.secondsOf(2, 500_m);
  EXPECT_EQ(soon.sampleOf(milliseconds(200), 500_m, 400_m, 1).burst, 1250_m);
  EXPECT_EQ(soon.sampleOf(milliseconds(200), 500_m, 400_m, 1).burst, 1500_m);
}

TEST(Responsive, WhereBurstsAreKnownAShortSampleAtTheLimitIsOne) {
  Load bursty = limited(200_m);
  EXPECT_EQ(bursty.second(120_m, 250_m, 4).burst, 600_m);
  bursty.second(120_m, 250_m, 4);
  bursty.sampleOf(milliseconds(200), 200_m, 700_m, 2);
  EXPECT_FALSE(bursty.need.binding);
  EXPECT_EQ(bursty.need.burst, 600_m);
  bursty.second(200_m, 700_m, 10);
  EXPECT_TRUE(bursty.need.binding);
  EXPECT_EQ(bursty.need.burst, 900_m);

  Load begins = limited(200_m);
  begins.sampleOf(milliseconds(200), 100_m, 300_m, 1);
  EXPECT_FALSE(begins.need.binding);
  begins.sampleOf(milliseconds(200), 200_m, 800_m, 2);
  EXPECT_TRUE(begins.need.binding);
  EXPECT_EQ(begins.need.burst, 1000_m);
}

TEST(Responsive, ALearnedLevelIsHeldThenTriedLowerAndRestoredWithADoubledHold) {
  Load load = limited(200_m);
  load.second(50_m, 130_m, 2);
  load.sample.limit = 550_m;
  load.secondsOf(299, 50_m);
  EXPECT_EQ(load.need.burst, 550_m);
  load.secondsOf(2, 50_m);
  EXPECT_EQ(load.need.burst, 440_m);
  EXPECT_EQ(load.need.burst_state, BurstState::kTrying);

  load.sample.limit = 440_m;
  load.second(50_m);
  load.second(50_m, 6_m, 1);  // it does throttle
  EXPECT_EQ(load.need.burst, 550_m);
  EXPECT_EQ(load.need.burst_state, BurstState::kLearned);
  EXPECT_EQ(load.need.burst_until - load.need.at, seconds(600));
  load.sample.limit = 550_m;
  load.secondsOf(590, 50_m);
  EXPECT_EQ(load.need.burst, 550_m);
}

TEST(Responsive, TheHoldNeverExceedsAnHour) {
  Load load = limited(200_m);
  load.second(50_m, 130_m, 2);
  for (int round = 0; round < 8; ++round) {
    load.sample.limit = load.need.burst;
    for (int i = 0; i < 4000 && load.need.burst_state != BurstState::kTrying; ++i) {
      load.second(50_m);
    }
    ASSERT_EQ(load.need.burst_state, BurstState::kTrying);
    load.sample.limit = load.need.burst;
    load.second(50_m);
    load.second(50_m, 6_m, 1);
  }
  EXPECT_EQ(load.need.burst_until - load.need.at, std::chrono::hours(1));
}

TEST(Responsive, AfterAFallOfLoadTheNeedReturnsWithinFiveMinutes) {
  Load busy = limited(200_m);
  busy.second(200_m, 800_m, 10);
  busy.sample.limit = 1250_m;
  busy.secondsOf(60, 1000_m);
  busy.secondsOf(300, 20_m);
  EXPECT_LE(busy.followed(), 50_m);

  Load bursty = limited(200_m);
  bursty.second(50_m, 130_m, 2);
  bursty.sample.limit = 550_m;
  bursty.secondsOf(10, 50_m);
  bursty.secondsOf(610, 2_m);  // the hold ends, then nothing but what was seen counts
  EXPECT_LE(bursty.followed(), 30_m);
}

TEST(Responsive, ALimitThatChangedDuringTheIntervalTeachesNothing) {
  Load load = limited(200_m);
  load.second(200_m, 800_m, 10);
  load.sample.limit = 1250_m;
  // Half the second was still under the old limit.
  load.second(600_m, 400_m, 5);
  EXPECT_EQ(load.need.burst, 1000_m);
  EXPECT_FALSE(load.need.binding);
}

TEST(Responsive, WithoutALimitNothingBinds) {
  Load load;
  load.second(700_m, 0_m);
  EXPECT_EQ(load.need.use, 700_m);
  EXPECT_EQ(load.need.burst, 0_m);
}

RC_GTEST_PROP(Responsive, StaysWithinWhatCanBeUsed, ()) {
  Load load = limited(Millicores(*rc::gen::inRange(10, 4000)));
  const int count = *rc::gen::inRange(1, 200);
  for (int i = 0; i < count; ++i) {
    const Millicores usage(*rc::gen::inRange<std::int64_t>(0, load.sample.limit->count() + 1));
    const bool throttled = *rc::gen::arbitrary<bool>();
    load.second(usage, Millicores(throttled ? *rc::gen::inRange(0, 20'000) : 0),
                throttled ? *rc::gen::inRange<std::uint64_t>(1, 11) : 0);
    RC_ASSERT(load.need.use <= 4000_m);
    RC_ASSERT(load.need.use_peak <= 4000_m);
    RC_ASSERT(load.need.burst <= 4000_m);
    RC_ASSERT(load.need.use >= 0_m);
    if (*rc::gen::inRange(0, 4) == 0) {
      load.sample.limit = std::max(10_m, std::min(load.followed(), 4000_m));
    }
  }
}

TEST(Classic, IsTheThrottlingRatioOverItsThresholdSmoothed) {
  Load load({.kind = Kind::kClassic, .cpus = 4});
  load.sample.limit = 200_m;
  load.second(200_m, 800_m, 10);
  EXPECT_DOUBLE_EQ(*load.need.pressure, 0.3);
  load.second(200_m, 800_m, 1);  // 10 % of the periods is full demand too
  EXPECT_DOUBLE_EQ(*load.need.pressure, 0.51);
  load.second(100_m);
  EXPECT_DOUBLE_EQ(*load.need.pressure, 0.459);
  EXPECT_EQ(load.need.burst, 0_m);
  EXPECT_EQ(demand(load.need, 0_m, 1000_m), *load.need.pressure);
  for (int i = 0; i < 100; ++i) load.second(200_m, 800_m, 10);
  EXPECT_NEAR(*load.need.pressure, 1, 1e-9);
}

TEST(DemandInUnitInterval, IsWhereUseStandsBetweenFloorAndCeiling) {
  Need need;
  need.use = 300_m;
  EXPECT_DOUBLE_EQ(demand(need, 100_m, 500_m), 0.5);
  EXPECT_DOUBLE_EQ(demand(need, 400_m, 500_m), 0);
  EXPECT_DOUBLE_EQ(demand(need, 100_m, 200_m), 1);
  EXPECT_DOUBLE_EQ(demand(need, 200_m, 200_m), 1);
}

TEST(Kind, IsParsed) {
  EXPECT_EQ(parseKind("classic").value(), Kind::kClassic);
  EXPECT_EQ(parseKind("responsive").value(), Kind::kResponsive);
  EXPECT_FALSE(parseKind("other"));
}

}  // namespace
}  // namespace mbcas::demand
