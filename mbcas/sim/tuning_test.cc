#include "mbcas/sim/tuning.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mbcas::sim {
namespace {

TEST(Tuning, ByName) {
  Tuning tuning;
  ASSERT_TRUE(tune(tuning, "headroom=1.5"));
  ASSERT_TRUE(tune(tuning, "burst-hold=60"));
  ASSERT_TRUE(tune(tuning, "reclaim=always"));
  EXPECT_EQ(tuning.law.headroom, 1.5);
  EXPECT_EQ(tuning.estimator.burst_hold, std::chrono::minutes(1));
  EXPECT_EQ(tuning.law.reclaim, control::Reclaim::kAlways);
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

TEST(Tuning, ASweepTriesEverySetting) {
  const std::vector<Candidate> candidates = sweepCandidates();
  EXPECT_EQ(candidates[0].setting, "");
  for (const std::string_view name : tuningNames()) {
    EXPECT_GE(std::ranges::count(candidates, name, &Candidate::setting), 2) << name;
  }
  for (const Candidate& candidate : candidates) {
    EXPECT_TRUE(control::validate(candidate.tuning.law)) << candidate.setting;
  }
}

}  // namespace
}  // namespace mbcas::sim
