#include "mbcas/agent/tripwire.h"

#include <gtest/gtest.h>

namespace mbcas::agent {
namespace {

using namespace literals;
using namespace std::chrono_literals;

constexpr MonotonicTime kStart{100s};

// CPU time of the machine after `wall` of this use.
Nanos used(Millicores use, Nanos wall) {
  return Nanos(use.count() * wall.count() / 1000);
}

TEST(Tripwire, TripsWhenAPodMayHaveRunIntoItsLimit) {
  Tripwire wire({});
  wire.arm(kStart, 50s, 1000_m, 200_m);
  EXPECT_TRUE(wire.armed());
  EXPECT_FALSE(wire.trips(kStart + 300ms, 50s + used(1090_m, 300ms))) << "less than half the room";
  EXPECT_TRUE(wire.trips(kStart + 600ms, 50s + used(1090_m, 300ms) + used(1100_m, 300ms)))
      << "each look speaks of the time since the one before";
}

TEST(Tripwire, IgnoresNoiseHoweverLittleRoomThereIs) {
  Tripwire wire({.least = 20_m});
  wire.arm(kStart, 0s, 100_m, 4_m);
  EXPECT_FALSE(wire.trips(kStart + 300ms, used(119_m, 300ms)));
  EXPECT_TRUE(wire.trips(kStart + 600ms, used(119_m, 300ms) + used(120_m, 300ms)));
}

TEST(Tripwire, IsNotArmedWithoutAPodThatCouldBeHelped) {
  Tripwire wire({});
  EXPECT_FALSE(wire.armed());
  wire.arm(kStart, 0s, 0_m, std::nullopt);
  EXPECT_FALSE(wire.armed());
  EXPECT_FALSE(wire.trips(kStart + 300ms, 1s));
}

TEST(Tripwire, IsBoundedOnARestlessNode) {
  Tripwire wire({.per_second = 0.5, .burst = 20});
  int trips = 0;
  Nanos total{0};
  for (int i = 0; i < 3000; ++i) {  // 15 minutes
    const MonotonicTime now = kStart + 300ms * i;
    wire.arm(now, total, 0_m, 100_m);
    total += 300ms;
    trips += wire.trips(now + 300ms, total) ? 1 : 0;
  }
  EXPECT_GE(trips, 450);
  EXPECT_LE(trips, 20 + 450 + 1);
}

TEST(Tripwire, LooksAfterWholePeriods) {
  EXPECT_EQ(Tripwire::interval(1s), Nanos(200ms));
  EXPECT_EQ(Tripwire::interval(2250ms), Nanos(500ms));
  EXPECT_EQ(Tripwire::interval(10s), Nanos(2s));
}

}  // namespace
}  // namespace mbcas::agent
