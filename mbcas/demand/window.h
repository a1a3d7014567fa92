// The recent samples of one container. Fixed size, nothing allocated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mbcas/base/units.h"

namespace mbcas::demand {

class Window {
 public:
  static constexpr Nanos kSpan = std::chrono::seconds(30);
  static constexpr Nanos kMean = std::chrono::seconds(5);

  // How long samples are remembered (at most 64 of them), and over which time the highest mean is
  // taken.
  Window() : Window(kSpan, kMean) {}
  Window(Nanos span, Nanos mean)
      : most_micros_(static_cast<std::uint64_t>(span.count() / 1000)),
        mean_micros_(mean.count() / 1000) {}

  // `guessed_at`: the value is not measured but concluded from waiting threads, under this limit.
  void add(Nanos interval, Millicores usage, Millicores value,
           std::optional<Millicores> guessed_at = std::nullopt);

  // A higher limit has shown the real load. Guesses made under lower limits become `measured`, but
  // not more than they were, nor less than what was used at the time.
  void correctGuesses(Millicores measured, Millicores limit);

  Millicores median() const;  // by time
  // Share of the time in which more than `pause` was wanted, guesses included.
  double busyShare(Millicores pause) const;
  Millicores highestMean() const;
  Millicores highestUsage() const;  // the same of what was used, guesses apart
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kCapacity = 64;
  static std::size_t next(std::size_t i) { return (i + 1) % kCapacity; }
  bool guessed(std::size_t i) const { return ((guesses_ >> i) & 1) != 0; }
  std::int32_t used(std::size_t i) const { return guessed(i) ? usages_[i] : values_[i]; }
  void dropOldest();
  Millicores medianByTime() const;
  template <class Value>
  Millicores highestMeanOf(const Value& value) const;

  // There is one window per container, and it is cold in the cache at every tick. The fields that
  // each tick reads therefore lie together and are narrow (millicores and microseconds); the rest
  // is touched only where there are guesses.
  std::array<std::int32_t, kCapacity> values_{};
  std::array<std::uint32_t, kCapacity> intervals_{};
  std::uint64_t most_micros_;
  std::int64_t mean_micros_;
  std::uint64_t span_ = 0;  // sum of the intervals
  std::size_t first_ = 0;   // the oldest
  std::size_t size_ = 0;
  std::size_t nonzero_ = 0;
  std::uint64_t guesses_ = 0;  // a bit for each entry
  std::array<std::int32_t, kCapacity> usages_{};
  std::array<std::int32_t, kCapacity> guessed_at_{};
};

}  // namespace mbcas::demand
