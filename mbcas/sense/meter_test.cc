#include "mbcas/sense/meter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mbcas::sense {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Meter, YieldsGrowthFromTheSecondReadingOn) {
  Meter meter;
  EXPECT_FALSE(meter.started());
  EXPECT_EQ(meter.usage(Nanos(100)), Nanos(0));
  EXPECT_EQ(meter.usage(Nanos(130)), Nanos(30));
  EXPECT_EQ(meter.local(Nanos(5)), Nanos(0)) << "each counter for itself";
  EXPECT_EQ(meter.throttling({10, 5, Nanos(50)}), kernel::Throttling{});
  EXPECT_EQ(meter.throttling({20, 7, Nanos(80)}), (kernel::Throttling{10, 2, Nanos(30)}));
}

TEST(Meter, ADecreaseIsANewBeginning) {
  Meter meter;
  meter.usage(Nanos(100));
  EXPECT_EQ(meter.usage(Nanos(7)), Nanos(0));
  EXPECT_EQ(meter.resets(), 1u);
  EXPECT_EQ(meter.usage(Nanos(10)), Nanos(3));
  meter.throttling({10, 5, Nanos(50)});
  EXPECT_EQ(meter.throttling({11, 6, Nanos(40)}), kernel::Throttling{});
  EXPECT_EQ(meter.resets(), 2u);
  meter.forget();
  EXPECT_EQ(meter.usage(Nanos(50)), Nanos(0));
  EXPECT_EQ(meter.resets(), 2u);
}

RC_GTEST_PROP(Meter, NeverYieldsANegativeDifference, (const std::vector<int>& totals)) {
  Meter meter;
  for (const int total : totals) RC_ASSERT(meter.usage(Nanos(total)) >= Nanos(0));
}

TEST(UsageMeter, YieldsTheRateBetweenTwoReadings) {
  UsageMeter meter;
  const MonotonicTime start{seconds(10)};
  EXPECT_FALSE(meter.advance(start, seconds(5)));
  EXPECT_EQ(meter.advance(start + milliseconds(500), seconds(6)), 2000_m);
  EXPECT_FALSE(meter.advance(start + milliseconds(500), seconds(7))) << "no time passed";
  EXPECT_FALSE(meter.advance(start + seconds(1), seconds(6))) << "went down";
  EXPECT_EQ(meter.advance(start + seconds(2), seconds(6)), 0_m);
}

TEST(PressureMeter, YieldsSharesOfItsOwnInterval) {
  PressureMeter meter;
  const MonotonicTime start{seconds(10)};
  EXPECT_FALSE(meter.advance(start, {seconds(1), seconds(1)}));
  const auto share = meter.advance(start + seconds(2), {seconds(2), milliseconds(1500)});
  ASSERT_TRUE(share);
  EXPECT_EQ(share->interval, seconds(2));
  EXPECT_DOUBLE_EQ(share->some, 0.5);
  EXPECT_DOUBLE_EQ(share->full, 0.25);
  EXPECT_FALSE(meter.advance(start + seconds(2), {seconds(3), seconds(3)})) << "no time passed";
  EXPECT_FALSE(meter.advance(start + seconds(3), {seconds(0), seconds(0)})) << "went down";
}

TEST(Contention, IsWhatTheQuotaDoesNotExplain) {
  const auto some = [](double share) { return PressureSignals{{}, seconds(1), share, 0}; };
  EXPECT_DOUBLE_EQ(contention(some(0.8), 800_m), 0);
  EXPECT_DOUBLE_EQ(contention(some(0.8), 0_m), 0.8);
  EXPECT_DOUBLE_EQ(contention(some(0.36), 398_m), 0) << "never negative";
  EXPECT_DOUBLE_EQ(contention(some(1.0), 1500_m), 0) << "throttled time sums over CPUs";
}

}  // namespace
}  // namespace mbcas::sense
