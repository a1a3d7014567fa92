// Wall time as RFC 3339 text, the form of every timestamp in a Kubernetes object.
#pragma once

#include <string>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"

namespace mbcas {

// How many digits of the second to write: Time has none, MicroTime (Leases, Events) has six.
enum class TimePrecision { kSeconds, kMicros };

// "2026-01-31T08:30:00Z", "2026-01-31T08:30:00.123456Z". Truncates towards the past.
std::string formatRfc3339(WallTime time, TimePrecision precision = TimePrecision::kSeconds);

// Accepts any RFC 3339 time: lower-case t and z, any number of fractional digits (beyond
// nanoseconds they are dropped), numeric offsets. A leap second (:60) is taken as the following
// second.
//
// Years of any length are understood too, with a sign, because Go writes what it was given. Times
// before kEarliestTime or after kLatestTime read as these; the difference of any two times that
// were read fits into Nanos.
Result<WallTime> parseRfc3339(std::string_view text);

inline constexpr WallTime kEarliestTime{std::chrono::seconds(-4'611'686'018)};  // in 1823
inline constexpr WallTime kLatestTime{std::chrono::seconds(4'611'686'018)};     // in 2116

// The nearest time that can be read.
WallTime saturatedTime(std::int64_t seconds_since_1970);
// Whether the time may stand for one further away, so that it must not be written back.
constexpr bool saturated(WallTime time) {
  return time <= kEarliestTime || time >= kLatestTime;
}

}  // namespace mbcas
