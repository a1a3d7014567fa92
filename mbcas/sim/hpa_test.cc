#include "mbcas/sim/hpa.h"

#include <gtest/gtest.h>

#include <vector>

namespace mbcas::sim {
namespace {

using namespace literals;
using namespace std::chrono_literals;

std::vector<HpaPod> pods(int count, Millicores usage, Millicores request = 100_m) {
  return std::vector<HpaPod>(static_cast<std::size_t>(count), {.request = request, .usage = usage});
}

// Cases as in Kubernetes' replica_calculator_test.go and its documentation.
TEST(Hpa, CeilingOfRatioTimesReplicas) {
  const HpaSettings half{.target = 50};
  EXPECT_EQ(hpaWants(pods(1, 200_m, 200_m), 1, half), 2);
  EXPECT_EQ(hpaWants(pods(3, 90_m), 3, {.target = 30}), 9);
  EXPECT_EQ(hpaWants(pods(5, 28_m), 5, {.target = 50}), 3) << "2.8";
}

TEST(Hpa, WithinATenthNothingIsDone) {
  EXPECT_EQ(hpaWants(pods(3, 54_m), 3, {.target = 50}), 3);
  EXPECT_EQ(hpaWants(pods(3, 55_m), 3, {.target = 50}), 3);
  EXPECT_EQ(hpaWants(pods(3, 56_m), 3, {.target = 50}), 4);
  EXPECT_EQ(hpaWants(pods(3, 45_m), 3, {.target = 50}), 3);
  EXPECT_EQ(hpaWants(pods(4, 44_m), 4, {.target = 50}), 4) << "3.52, rounded up";
}

TEST(Hpa, PercentsAreCutOff) {
  // 100 of 300 is 33 %, not 33.3: a ratio of 0.66.
  EXPECT_EQ(hpaWants(pods(3, 100_m, 300_m), 3, {.target = 50}), 2);
}

TEST(Hpa, WhatIsUnknownSpeaksAgainstAChange) {
  // Three of four use 40 of 100; the fourth, missing, counts as 100 on the way down: 55 %.
  std::vector<HpaPod> four = pods(4, 40_m);
  four[3].usage.reset();
  EXPECT_EQ(hpaWants(four, 4, {.target = 50}), 4);
  EXPECT_EQ(hpaWants(pods(3, 40_m), 3, {.target = 50}), 3) << "2.4";
  // On the way up an unready one counts as nothing.
  std::vector<HpaPod> two = {{.request = 100_m, .usage = 260_m},
                             {.request = 300_m, .usage = 900_m, .ready = false}};
  EXPECT_EQ(hpaWants(two, 2, {.target = 50}), 3) << "1.3 times 2, not 5.2 times 1";
  // And no change where that turns the direction round.
  two[1].request = 1000_m;
  EXPECT_EQ(hpaWants(two, 2, {.target = 50}), 2);
  EXPECT_EQ(hpaWants(std::vector<HpaPod>{{.request = 100_m}}, 1, {}), std::nullopt);
}

TEST(Hpa, UpAtOnceAtMostTwofoldOrToFour) {
  Hpa hpa({.target = 50, .most = 100});
  MonotonicTime now{};
  EXPECT_EQ(hpa.sync(now, pods(1, 1000_m), 1), 4);
  EXPECT_EQ(hpa.sync(now += 15s, pods(4, 1000_m), 4), 8);
  EXPECT_EQ(hpa.sync(now += 15s, pods(8, 1000_m), 8), 16);
  Hpa few({.target = 50, .most = 3});
  EXPECT_EQ(few.sync(now, pods(1, 1000_m), 1), 3);
}

TEST(Hpa, DownOnlyToTheMostOfFiveMinutes) {
  Hpa hpa({.target = 50});
  MonotonicTime now{};
  EXPECT_EQ(hpa.sync(now, pods(4, 70_m), 4), 6);
  int replicas = 6;
  for (; now < MonotonicTime(300s); now += 15s) {
    replicas = hpa.sync(now, pods(replicas, 10_m), replicas);
    EXPECT_EQ(replicas, 6);
  }
  replicas = hpa.sync(now + 15s, pods(replicas, 10_m), replicas);
  EXPECT_EQ(replicas, 2);
  EXPECT_EQ(hpa.sync(now + 30s, std::vector<HpaPod>{{.request = 100_m}}, 2), 2) << "no metrics";
}

}  // namespace
}  // namespace mbcas::sim
