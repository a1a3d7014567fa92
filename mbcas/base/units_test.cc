#include "mbcas/base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <type_traits>

namespace mbcas {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

static_assert(!std::is_convertible_v<int, Millicores>, "a bare number is not an amount of CPU");
static_assert(!std::is_convertible_v<Millicores, std::int64_t>);

TEST(Millicores, AddsComparesAndScales) {
  EXPECT_EQ(250_m + 750_m, 1000_m);
  EXPECT_EQ(100_m - 250_m, -150_m);
  EXPECT_LT(100_m, 101_m);
  EXPECT_EQ(250_m * 4, 1000_m);
  EXPECT_DOUBLE_EQ((1500_m).cores(), 1.5);
}

TEST(Rate, RoundsToNearest) {
  EXPECT_EQ(rate(seconds(2), seconds(1)), 2000_m);
  EXPECT_EQ(rate(Nanos(1'499'999), seconds(1)), 1_m);
  EXPECT_EQ(rate(Nanos(1'500'000), seconds(1)), 2_m);
  EXPECT_EQ(rate(-seconds(1), seconds(1)), -1000_m);
}

TEST(Rate, IsZeroWhenNoTimeHasPassed) {
  EXPECT_EQ(rate(seconds(1), Nanos(0)), 0_m);
  EXPECT_EQ(rate(seconds(1), -seconds(1)), 0_m);
}

TEST(Rate, SurvivesYearsOfCpuTime) {
  EXPECT_EQ(rate(std::chrono::hours(24 * 365 * 128), std::chrono::hours(24 * 365)), 128'000_m);
}

RC_GTEST_PROP(Rate, InvertsMultiplication, ()) {
  const auto cpu = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
  const auto wall_ms = *rc::gen::inRange<std::int64_t>(1, 100'000);
  // cpu millicores for wall_ms milliseconds is cpu * wall_ms microseconds of CPU time.
  RC_ASSERT(rate(Nanos(cpu * wall_ms * 1000), milliseconds(wall_ms)) == Millicores(cpu));
}

}  // namespace
}  // namespace mbcas
