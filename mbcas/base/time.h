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
// second. Times that nanoseconds since 1970 in 64 bits cannot hold (before 1678, after 2261, in
// UTC) are refused.
Result<WallTime> parseRfc3339(std::string_view text);

}  // namespace mbcas
