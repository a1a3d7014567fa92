#include "mbcas/base/time.h"

#include <fmt/format.h>

#include <algorithm>

namespace mbcas {
namespace {

// So many are far beyond what a WallTime holds, and still a year of std::chrono.
constexpr int kMostYears = 30'000;

// Reads from the front of a text; every failure leaves a reason and makes later reads fail too.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // Exactly `digits` digits.
  int number(int digits) {
    int value = 0;
    for (int i = 0; i < digits; ++i) {
      if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') {
        ok_ = false;
        return 0;
      }
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }

  // Four digits or more, with or without a sign. What is beyond `most` reads as it.
  int year(int most) {
    const bool negative = rest_.starts_with('-');
    if (negative || rest_.starts_with('+')) rest_.remove_prefix(1);
    const std::size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    if (digits < 4) ok_ = false;
    int value = 0;
    for (const char digit : rest_.substr(0, digits)) {
      value = std::min(most, value * 10 + (digit - '0'));
    }
    rest_.remove_prefix(digits);
    return negative ? -value : value;
  }

  char oneOf(std::string_view allowed) {
    if (rest_.empty() || allowed.find(rest_.front()) == std::string_view::npos) {
      ok_ = false;
      return '\0';
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  // ".123", at least one digit; nanoseconds.
  Nanos fraction() {
    if (rest_.empty() || rest_.front() != '.') return Nanos(0);
    rest_.remove_prefix(1);
    std::int64_t nanos = 0;
    std::int64_t unit = 100'000'000;
    bool any = false;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      nanos += unit * (rest_.front() - '0');
      unit /= 10;
      any = true;
      rest_.remove_prefix(1);
    }
    if (!any) ok_ = false;
    return Nanos(nanos);
  }

  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::string formatRfc3339(WallTime time, TimePrecision precision) {
  using namespace std::chrono;
  const auto second = floor<seconds>(time);
  const auto day = floor<days>(second);
  const year_month_day date(day);
  const hh_mm_ss clock(second - day);
  std::string text =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  clock.hours().count(), clock.minutes().count(), clock.seconds().count());
  if (precision == TimePrecision::kMicros) {
    text += fmt::format(".{:06}", floor<microseconds>(time - second).count());
  }
  text.push_back('Z');
  return text;
}

Result<WallTime> parseRfc3339(std::string_view text) {
  using namespace std::chrono;
  const auto bad = [&] {
    return failure(fmt::format("not an RFC 3339 time: \"{}\"", text.substr(0, 64)));
  };
  Reader in(text);
  const int y = in.year(kMostYears);
  in.oneOf("-");
  const int mo = in.number(2);
  in.oneOf("-");
  const int d = in.number(2);
  in.oneOf("Tt");
  const int h = in.number(2);
  in.oneOf(":");
  const int mi = in.number(2);
  in.oneOf(":");
  const int s = in.number(2);
  const Nanos fraction = in.fraction();
  const char zone = in.oneOf("Zz+-");
  minutes offset(0);
  if (zone == '+' || zone == '-') {
    const int offset_hours = in.number(2);
    in.oneOf(":");
    const int offset_minutes = in.number(2);
    if (offset_hours > 23 || offset_minutes > 59) return bad();
    offset = hours(offset_hours) + minutes(offset_minutes);
    if (zone == '-') offset = -offset;
  }
  if (!in.done() || h > 23 || mi > 59 || s > 60) return bad();
  const year_month_day date =
      year(y) / month(static_cast<unsigned>(mo)) / day(static_cast<unsigned>(d));
  if (!date.ok()) return bad();
  const sys_seconds second = sys_days(date) + hours(h) + minutes(mi) + seconds(s) - offset;
  const WallTime time = saturatedTime(second.time_since_epoch().count());
  return saturated(time) ? time : time + fraction;
}

WallTime saturatedTime(std::int64_t seconds_since_1970) {
  using std::chrono::seconds;
  constexpr auto kFirst = std::chrono::floor<seconds>(kEarliestTime).time_since_epoch();
  constexpr auto kLast = std::chrono::floor<seconds>(kLatestTime).time_since_epoch();
  return WallTime(std::clamp(seconds(seconds_since_1970), kFirst, kLast));
}

}  // namespace mbcas
