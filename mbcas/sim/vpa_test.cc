#include "mbcas/sim/vpa.h"

#include <gtest/gtest.h>

namespace mbcas::sim {
namespace {

using namespace literals;
using namespace std::chrono_literals;

TEST(DecayingHistogram, AnswersTheEndOfTheBucket) {
  DecayingHistogram histogram;
  EXPECT_EQ(histogram.percentile(0.9), 0);
  histogram.add(0.001, 1, {});
  EXPECT_NEAR(histogram.percentile(0.9), 0.01, 1e-12);
  // 0.2 is between 0.01 (1.05^14 - 1) / 0.05 and the same with 15.
  for (int i = 0; i < 99; ++i) histogram.add(0.2, 1, {});
  EXPECT_NEAR(histogram.percentile(0.9), 0.21579, 1e-5);
  EXPECT_NEAR(histogram.percentile(0.005), 0.01, 1e-12);
  histogram.add(1e6, 1000, {});
  EXPECT_GT(histogram.percentile(0.9), 900) << "the last bucket has no end";
}

TEST(DecayingHistogram, ADayHalvesASample) {
  DecayingHistogram histogram;
  const MonotonicTime start{};
  histogram.add(1, 1.9, start);
  histogram.add(0.1, 1, start + 24h);
  EXPECT_LT(histogram.percentile(0.5), 0.2) << "1.9 has become 0.95";
  DecayingHistogram heavier;
  heavier.add(1, 2.1, start);
  heavier.add(0.1, 1, start + 24h);
  EXPECT_GT(heavier.percentile(0.5), 1);
  // The reference moves on before the factors overflow.
  heavier.add(0.1, 1, start + 24h * 5000);
  EXPECT_LT(heavier.percentile(0.99), 0.2);
}

// As measured with version 1.8.1: a pod that stood at its limit of 200m, request 100m, was given
// 494m, and when it stood at that, 1174m.
TEST(Vpa, TargetsAsMeasured) {
  VpaRecommender at_200;
  at_200.add(MonotonicTime{}, 0.2, 100_m);
  EXPECT_EQ(at_200.advice().target, 247_m);
  VpaRecommender at_494;
  at_494.add(MonotonicTime{}, 0.494, 247_m);
  EXPECT_EQ(at_494.advice().target, 587_m);
}

TEST(Vpa, BoundsNarrowWithConfidence) {
  VpaRecommender recommender;
  EXPECT_TRUE(recommender.empty());
  MonotonicTime now{};
  recommender.add(now, 0.2, 100_m);
  EXPECT_EQ(recommender.advice().lower, 25_m) << "one sample says nothing, and 25m is the least";
  EXPECT_GT(recommender.advice().upper, 1'000'000_m);
  // The request of 100m is out of bounds with the fourth sample, a minute apart.
  for (int i = 1; i < 3; ++i) recommender.add(now += 1min, 0.2, 100_m);
  EXPECT_LT(recommender.advice().lower, 100_m);
  EXPECT_FALSE(vpaUpdates(100_m, recommender.advice(), 1min));
  recommender.add(now += 1min, 0.2, 100_m);
  EXPECT_GT(recommender.advice().lower, 100_m);
  EXPECT_TRUE(vpaUpdates(100_m, recommender.advice(), 1min));
  for (int i = 0; i < 7 * 24 * 60; ++i) recommender.add(now += 1min, 0.2, 100_m);
  EXPECT_NEAR(recommender.advice().lower.cores(), 0.247, 0.002);
  EXPECT_NEAR(recommender.advice().upper.cores(), 0.247 * 8 / 7, 0.002);
}

TEST(Vpa, UpdatesWithinBoundsOnlyOldPodsAndForATenth) {
  const VpaAdvice advice{.lower = 100_m, .target = 200_m, .upper = 400_m};
  EXPECT_FALSE(vpaUpdates(150_m, advice, 11h));
  EXPECT_TRUE(vpaUpdates(150_m, advice, 12h));
  EXPECT_FALSE(vpaUpdates(190_m, advice, 12h));
  EXPECT_TRUE(vpaUpdates(401_m, advice, 1min));
  EXPECT_TRUE(vpaUpdates(99_m, advice, 1min));
}

}  // namespace
}  // namespace mbcas::sim
