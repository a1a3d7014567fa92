#include "mbcas/base/time.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mbcas {
namespace {

using namespace std::chrono;

WallTime at(int y, unsigned mo, unsigned d, int h, int mi, int s, Nanos fraction = Nanos(0)) {
  return sys_days(year(y) / month(mo) / day(d)) + hours(h) + minutes(mi) + seconds(s) + fraction;
}

TEST(Rfc3339, Formats) {
  const WallTime time = at(2026, 1, 31, 8, 30, 5, Nanos(123'456'789));
  EXPECT_EQ(formatRfc3339(time), "2026-01-31T08:30:05Z");
  EXPECT_EQ(formatRfc3339(time, TimePrecision::kMicros), "2026-01-31T08:30:05.123456Z");
  EXPECT_EQ(formatRfc3339(WallTime(Nanos(-1)), TimePrecision::kMicros),
            "1969-12-31T23:59:59.999999Z");
}

TEST(Rfc3339, ParsesEveryForm) {
  EXPECT_EQ(parseRfc3339("2026-01-31T08:30:05Z"), at(2026, 1, 31, 8, 30, 5));
  EXPECT_EQ(parseRfc3339("2026-01-31t08:30:05.5z"), at(2026, 1, 31, 8, 30, 5, Nanos(500'000'000)));
  EXPECT_EQ(parseRfc3339("2026-01-31T10:30:05+02:00"), at(2026, 1, 31, 8, 30, 5));
  EXPECT_EQ(parseRfc3339("2026-01-31T03:00:05-05:30"), at(2026, 1, 31, 8, 30, 5));
  EXPECT_EQ(parseRfc3339("2024-02-29T00:00:00.123456789123Z"),
            at(2024, 2, 29, 0, 0, 0, Nanos(123'456'789)));
  EXPECT_EQ(parseRfc3339("2016-12-31T23:59:60Z"), at(2017, 1, 1, 0, 0, 0));
}

TEST(Rfc3339, RefusesWhatIsNotATime) {
  for (const char* text :
       {"", "2026", "2026-01-31", "2026-01-31 08:30:05Z", "2026-01-31T08:30:05",
        "2026-1-31T08:30:05Z", "2026-02-29T08:30:05Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T08:60:00Z",
        "2026-01-31T08:30:61Z", "2026-01-31T08:30:05.Z", "2026-01-31T08:30:05Z ",
        "2026-01-31T08:30:05+24:00", "2026-01-31T08:30:05+0200", "--2026-01-31T08:30:05Z",
        "-026-01-31T08:30:05Z", "99999-02-30T00:00:00Z"}) {
    const Result<WallTime> parsed = parseRfc3339(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message().find(text), std::string::npos);
  }
}

TEST(Rfc3339, StopsAtWhatCanBeRead) {
  for (const char* text :
       {"2116-12-31T00:00:00Z", "2311-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999-23:59",
        "10000-01-01T00:00:00Z", "+146138514283-06-19T07:45:04Z"}) {
    EXPECT_EQ(parseRfc3339(text), kLatestTime) << text;
  }
  for (const char* text :
       {"1823-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00+23:59",
        "-0001-01-01T00:00:00Z", "-146138514283-06-19T07:45:04Z"}) {
    EXPECT_EQ(parseRfc3339(text), kEarliestTime) << text;
  }
  EXPECT_GT(kLatestTime - kEarliestTime, Nanos(0)) << "the largest difference fits";
  EXPECT_TRUE(saturated(kLatestTime) && saturated(kEarliestTime));
  EXPECT_FALSE(saturated(at(2100, 1, 1, 0, 0, 0)) || saturated(at(1900, 1, 1, 0, 0, 0)));
  for (const std::int64_t seconds : {INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(saturatedTime(seconds), seconds > 0 ? kLatestTime : kEarliestTime);
  }
}

RC_GTEST_PROP(Rfc3339, RoundTripsToTheMicrosecond, ()) {
  const auto micros =
      *rc::gen::inRange<std::int64_t>(-4'600'000'000'000'000, 4'600'000'000'000'000);
  const WallTime time{microseconds(micros)};
  RC_ASSERT(parseRfc3339(formatRfc3339(time, TimePrecision::kMicros)).value() == time);
}

}  // namespace
}  // namespace mbcas
