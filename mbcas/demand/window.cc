#include "mbcas/demand/window.h"

#include <algorithm>
#include <limits>

namespace mbcas::demand {
namespace {

std::int32_t narrow(Millicores amount) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(amount.count(), 0, kMost));
}

}  // namespace

void Window::add(MonotonicTime at, Nanos interval, Millicores usage, Millicores value,
                 std::optional<Millicores> guessed_at) {
  while (size_ > 0 && (size_ == kCapacity || entry(0).at <= at - kSpan)) {
    if (entry(0).value != 0) --nonzero_;
    if (entry(0).guessed_at >= 0) --guesses_;
    first_ = (first_ + 1) % kCapacity;
    --size_;
  }
  entry(size_++) = {at, static_cast<std::uint32_t>(interval.count() / 1000), narrow(usage),
                    narrow(value), guessed_at ? narrow(*guessed_at) : -1};
  if (narrow(value) != 0) ++nonzero_;
  if (guessed_at) ++guesses_;
}

void Window::correctGuesses(Millicores measured, Millicores limit) {
  for (std::size_t i = 0; guesses_ > 0 && i < size_; ++i) {
    Entry& e = entry(i);
    if (e.guessed_at < 0 || e.guessed_at >= narrow(limit) || e.value == 0) continue;
    e.value = std::clamp(narrow(measured), std::min(e.usage, e.value), e.value);
    if (e.value == 0) --nonzero_;
  }
}

Millicores Window::median() const {
  if (size_ == 0 || nonzero_ * 2 < size_) return Millicores(0);
  std::array<std::int32_t, kCapacity> values;
  for (std::size_t i = 0; i < size_; ++i) values[i] = entry(i).value;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(size_ / 2);
  std::nth_element(values.begin(), middle, values.begin() + static_cast<std::ptrdiff_t>(size_));
  return Millicores(*middle);
}

Millicores Window::highestMean() const {
  if (nonzero_ == 0) return Millicores(0);
  constexpr std::int64_t kMeanMicros = kMean.count() / 1000;
  std::int64_t highest = 0;  // of spans [begin, end] of five seconds
  std::int64_t work = 0;     // millicores times microseconds
  std::int64_t span = 0;
  std::size_t begin = 0;
  for (std::size_t end = 0; end < size_; ++end) {
    work += std::int64_t{entry(end).value} * entry(end).interval_us;
    span += entry(end).interval_us;
    while (span - entry(begin).interval_us >= kMeanMicros) {
      work -= std::int64_t{entry(begin).value} * entry(begin).interval_us;
      span -= entry(begin++).interval_us;
    }
    // A window that is shorter yet counts as a whole.
    const bool whole = begin == 0 && end + 1 == size_;
    if (span > 0 && (span >= kMeanMicros || whole)) highest = std::max(highest, work / span);
  }
  return Millicores(highest);
}

}  // namespace mbcas::demand
