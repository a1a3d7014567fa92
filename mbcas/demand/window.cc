#include "mbcas/demand/window.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace mbcas::demand {
namespace {

std::int32_t narrow(Millicores amount) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(amount.count(), 0, kMost));
}

}  // namespace

void Window::dropOldest() {
  if (values_[first_] != 0) --nonzero_;
  span_ -= intervals_[first_];
  guesses_ &= ~(std::uint64_t{1} << first_);
  first_ = next(first_);
  --size_;
}

void Window::add(Nanos interval, Millicores usage, Millicores value,
                 std::optional<Millicores> guessed_at) {
  const auto micros = static_cast<std::uint32_t>(interval.count() / 1000);
  while (size_ > 0 && (size_ == kCapacity || span_ + micros > most_micros_)) dropOldest();
  const std::size_t i = (first_ + size_++) % kCapacity;
  values_[i] = narrow(value);
  intervals_[i] = micros;
  span_ += micros;
  if (values_[i] != 0) ++nonzero_;
  if (guessed_at) {
    guesses_ |= std::uint64_t{1} << i;
    usages_[i] = narrow(usage);
    guessed_at_[i] = narrow(*guessed_at);
  }
}

void Window::correctGuesses(Millicores measured, Millicores limit) {
  if (guesses_ == 0) return;
  for (std::size_t i = 0; i < kCapacity; ++i) {
    if (!guessed(i) || guessed_at_[i] >= narrow(limit) || values_[i] == 0) continue;
    values_[i] = std::clamp(narrow(measured), std::min(usages_[i], values_[i]), values_[i]);
    if (values_[i] == 0) --nonzero_;
  }
}

Millicores Window::median() const {
  if (size_ == 0 || nonzero_ == 0) return Millicores(0);
  std::array<std::int32_t, kCapacity> values;
  std::uint32_t shortest = intervals_[first_];
  std::uint32_t longest = shortest;
  for (std::size_t k = 0, i = first_; k < size_; ++k, i = next(i)) {
    values[k] = values_[i];
    shortest = std::min(shortest, intervals_[i]);
    longest = std::max(longest, intervals_[i]);
  }
  if (longest - shortest > shortest / 2) return medianByTime();
  if (nonzero_ * 2 < size_) return Millicores(0);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(size_ / 2);
  std::nth_element(values.begin(), middle, values.begin() + static_cast<std::ptrdiff_t>(size_));
  return Millicores(*middle);
}

// The same where samples last differently long.
Millicores Window::medianByTime() const {
  std::array<std::pair<std::int32_t, std::uint32_t>, kCapacity> entries;
  for (std::size_t k = 0, i = first_; k < size_; ++k, i = next(i)) {
    entries[k] = {values_[i], intervals_[i]};
  }
  std::sort(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(size_));
  std::uint64_t passed = 0;
  std::size_t k = 0;
  while (k + 1 < size_ && (passed += entries[k].second) * 2 <= span_) ++k;
  return Millicores(entries[k].first);
}

double Window::busyShare(Millicores pause) const {
  std::uint64_t busy = 0;
  for (std::size_t k = 0, i = first_; k < size_; ++k, i = next(i)) {
    // By what the container wanted: a second in which a low limit held it back was no pause.
    if (values_[i] > narrow(pause)) busy += intervals_[i];
  }
  return span_ == 0 ? 0 : static_cast<double>(busy) / static_cast<double>(span_);
}

Millicores Window::highestMean() const {
  return highestMeanOf([&](std::size_t i) { return values_[i]; });
}

Millicores Window::highestUsage() const {
  if (guesses_ == 0) return highestMean();
  return highestMeanOf([&](std::size_t i) { return used(i); });
}

template <class Value>
Millicores Window::highestMeanOf(const Value& value) const {
  if (nonzero_ == 0) return Millicores(0);
  std::int64_t highest = 0;
  std::int64_t work = 0;  // of the entries from begin to end, millicores times microseconds
  std::int64_t span = 0;
  std::size_t begin = first_;
  for (std::size_t k = 0, end = first_; k < size_; ++k, end = next(end)) {
    work += std::int64_t{value(end)} * intervals_[end];
    span += intervals_[end];
    while (span - intervals_[begin] >= mean_micros_) {
      work -= std::int64_t{value(begin)} * intervals_[begin];
      span -= intervals_[begin];
      begin = next(begin);
    }
    // A window that is not full yet counts as a whole.
    const bool whole = begin == first_ && k + 1 == size_;
    if (span > 0 && (span >= mean_micros_ || whole)) highest = std::max(highest, work / span);
  }
  return Millicores(highest);
}

}  // namespace mbcas::demand
