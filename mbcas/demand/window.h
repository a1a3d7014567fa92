// The recent samples of one container. Fixed size, nothing allocated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"

namespace mbcas::demand {

class Window {
 public:
  static constexpr Nanos kSpan = std::chrono::seconds(30);
  static constexpr Nanos kMean = std::chrono::seconds(5);

  // `guessed_at`: the value is not measured but concluded from waiting threads, under this limit.
  void add(MonotonicTime at, Nanos interval, Millicores usage, Millicores value,
           std::optional<Millicores> guessed_at = std::nullopt);

  // A higher limit has let the load show itself: guesses made under lower ones become `measured`,
  // but not more than they were nor less than what was used then.
  void correctGuesses(Millicores measured, Millicores limit);

  Millicores median() const;
  Millicores highestMean() const;
  std::size_t size() const { return size_; }

 private:
  // Narrow, for there is a window per container: a tick of an hour and two million cores fit.
  struct Entry {
    MonotonicTime at;
    std::uint32_t interval_us;
    std::int32_t usage;  // millicores, as the next two
    std::int32_t value;
    std::int32_t guessed_at;  // -1: measured
  };
  static constexpr std::size_t kCapacity = 64;
  const Entry& entry(std::size_t i) const { return entries_[(first_ + i) % kCapacity]; }
  Entry& entry(std::size_t i) { return entries_[(first_ + i) % kCapacity]; }

  std::array<Entry, kCapacity> entries_{};
  std::size_t first_ = 0;  // the oldest
  std::size_t size_ = 0;
  std::size_t nonzero_ = 0;
  std::size_t guesses_ = 0;
};

}  // namespace mbcas::demand
