#include <gtest/gtest.h>

#include <cstdlib>

#include "test/support/machine.h"

namespace mbcas::test {
namespace {

// What other work uses is never below zero and never above all CPUs: these decide what is calm.
constexpr Needs kAlwaysCalm{.others = 1e6, .patience = Nanos(0)};
constexpr Needs kAlwaysBusy{.others = -1, .patience = Nanos(0)};

// Whether the n-th try and all after it are good.
std::function<bool()> goodFrom(int n) {
  return [n]() mutable { return --n <= 0; };
}

TEST(Trial, WhatIsGoodIsNotRepeated) {
  for (const Needs& needs : {kAlwaysCalm, kAlwaysBusy}) {
    const Trial trial = tryOnCalmMachine({}, needs, goodFrom(1));
    EXPECT_TRUE(trial.good);
    EXPECT_EQ(trial.tries, 1);
    EXPECT_FALSE(trial.disturbed());
  }
}

TEST(Trial, OnACalmMachineTheFirstTryCounts) {
  const Trial trial = tryOnCalmMachine({}, kAlwaysCalm, goodFrom(2));
  EXPECT_FALSE(trial.good);
  EXPECT_EQ(trial.tries, 1);
  EXPECT_FALSE(trial.disturbed()) << "so the test fails";
}

TEST(Trial, OnABusyMachineItIsRepeated) {
  const Trial trial = tryOnCalmMachine({}, kAlwaysBusy, goodFrom(3));
  EXPECT_TRUE(trial.good);
  EXPECT_EQ(trial.tries, 3);
}

TEST(Trial, AMachineThatStaysBusyLeavesItUndecided) {
  const Trial trial = tryOnCalmMachine({}, kAlwaysBusy, goodFrom(4));
  EXPECT_FALSE(trial.good);
  EXPECT_EQ(trial.tries, 3);
  EXPECT_TRUE(trial.disturbed()) << "so the test is skipped";
  EXPECT_NE(trial.reason().find("other work used"), std::string::npos) << "scripts/test reads it";
}

TEST(Trial, AMachineThatCannotMeasureGivesMoreChances) {
  ASSERT_EQ(::setenv("MBCAS_CHANCES", "2", 1), 0);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_TRUE(tryOnCalmMachine({}, kAlwaysCalm, goodFrom(2)).good);
  EXPECT_FALSE(tryOnCalmMachine({}, kAlwaysCalm, goodFrom(3)).good);
  ASSERT_EQ(::unsetenv("MBCAS_CHANCES"), 0);  // NOLINT(concurrency-mt-unsafe)
}

TEST(Trial, ChancesAreForMeasurementsThatDependOnChance) {
  Needs needs = kAlwaysCalm;
  needs.chances = 3;
  EXPECT_TRUE(tryOnCalmMachine({}, needs, goodFrom(3)).good);
  const Trial trial = tryOnCalmMachine({}, needs, goodFrom(4));
  EXPECT_FALSE(trial.good);
  EXPECT_FALSE(trial.disturbed());
  EXPECT_EQ(trial.tries, 3);
}

}  // namespace
}  // namespace mbcas::test
