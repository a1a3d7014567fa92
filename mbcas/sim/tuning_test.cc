#include "mbcas/sim/tuning.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mbcas::sim {
namespace {

TEST(Tuning, ByName) {
  Tuning tuning;
  ASSERT_TRUE(tune(tuning, "headroom=1.5"));
  ASSERT_TRUE(tune(tuning, "burst-hold=60"));
  ASSERT_TRUE(tune(tuning, "insurance=1.5"));
  ASSERT_TRUE(tune(tuning, "reclaim=always"));
  EXPECT_EQ(tuning.law.headroom, 1.5);
  EXPECT_EQ(tuning.estimator.burst_hold, std::chrono::minutes(1));
  EXPECT_EQ(tuning.law.insurance, 1.5);
  EXPECT_EQ(tuning.law.reclaim, control::Reclaim::kAlways);
}

TEST(Tuning, KnowsWhatIsATime) {
  EXPECT_TRUE(isTime("burst-hold"));
  EXPECT_FALSE(isTime("headroom"));
  EXPECT_FALSE(isTime("reclaim"));
  EXPECT_FALSE(isTime("mood"));
}

TEST(Tuning, RefusesWhatTheLawWould) {
  Tuning tuning;
  EXPECT_EQ(tune(tuning, "headroom=1.05").error().message(),
            "hysteresis: 0.1 is not between 0 and 0.05");
  EXPECT_EQ(tune(tuning, "window=61").error().message(), "window: must be 5 to 60 seconds");
  EXPECT_EQ(tune(tuning, "mean=31").error().message(),
            "mean: must be 1 second at least, and within the window");
  EXPECT_EQ(tune(tuning, "cooldown=soon").error().message(),
            "cooldown: \"soon\" is not a number from 0 on");
  EXPECT_TRUE(
      tune(tuning, "mood=good").error().message().starts_with("no setting \"mood\"; there"));
  EXPECT_EQ(tuning.law, control::Settings{}) << "nothing changes where something is wrong";
}

TEST(Tuning, OnlyClassicHasItsEstimator) {
  Tuning responsive;
  EXPECT_EQ(tune(responsive, "ema-up=0.5").error().message(),
            "ema-up: only the profile classic has it");
  Tuning classic = tuningOf(control::Profile::kClassic);
  EXPECT_EQ(classic.law, control::settingsOf(control::Profile::kClassic));
  ASSERT_TRUE(tune(classic, "ema-up=0.5"));
  ASSERT_TRUE(tune(classic, "throttle-threshold=0.2"));
  EXPECT_EQ(classic.estimator.ema_up, 0.5);
  EXPECT_EQ(classic.estimator.throttle_threshold, 0.2);
  EXPECT_FALSE(tune(classic, "ema-down=0"));
  EXPECT_FALSE(tune(classic, "throttle-threshold=1.1"));
}

TEST(Tuning, ASweepTriesEverySetting) {
  std::vector<Candidate> candidates = sweepCandidates(control::Profile::kResponsive);
  EXPECT_EQ(candidates[0].setting, "");
  const std::vector<Candidate> classic = sweepCandidates(control::Profile::kClassic);
  EXPECT_EQ(classic[0].setting, "");
  EXPECT_EQ(classic[0].tuning.estimator.kind, demand::Kind::kClassic);
  candidates.insert(candidates.end(), classic.begin(), classic.end());
  for (const std::string_view name : tuningNames()) {
    EXPECT_GE(std::ranges::count(candidates, name, &Candidate::setting), 2) << name;
  }
  for (const Candidate& candidate : candidates) {
    EXPECT_TRUE(control::validate(candidate.tuning.law)) << candidate.setting;
  }
}

}  // namespace
}  // namespace mbcas::sim
