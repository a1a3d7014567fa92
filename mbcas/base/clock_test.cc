#include "mbcas/base/clock.h"

#include <gtest/gtest.h>

namespace mbcas {
namespace {

using std::chrono::seconds;

TEST(SimulatedClock, MovesOnlyWhenTold) {
  SimulatedClock clock(WallTime(seconds(1000)));
  const MonotonicTime start = clock.monotonic();
  clock.advance(seconds(5));
  EXPECT_EQ(clock.monotonic() - start, seconds(5));
  EXPECT_EQ(clock.wall(), WallTime(seconds(1005)));
}

TEST(SimulatedClock, SettingTheWallClockLeavesMonotonicTimeAlone) {
  SimulatedClock clock;
  clock.advance(seconds(5));
  const MonotonicTime before = clock.monotonic();
  clock.setWall(WallTime(seconds(-3600)));
  EXPECT_EQ(clock.monotonic(), before);
  EXPECT_EQ(clock.wall(), WallTime(seconds(-3600)));
}

TEST(SystemClock, MonotonicTimeNeverGoesBack) {
  const SystemClock clock;
  MonotonicTime last = clock.monotonic();
  for (int i = 0; i < 1000; ++i) {
    const MonotonicTime now = clock.monotonic();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(clock.wall(), WallTime(std::chrono::sys_days(std::chrono::year(2020) / 1 / 1)));
}

}  // namespace
}  // namespace mbcas
