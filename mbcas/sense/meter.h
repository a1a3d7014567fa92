// Differences of counters that only grow. Pure: the caller passes every reading and its time.
#pragma once

#include <cstdint>
#include <optional>

#include "mbcas/base/clock.h"
#include "mbcas/kernel/parse.h"
#include "mbcas/sense/signals.h"

namespace mbcas::sense {

// The counters of one cgroup. Each counter is passed in when it is read. A counter that is read
// less often yields its whole growth at the next reading.
class Meter {
 public:
  // Growth since the last reading; zero at the first reading and after a decrease. A decrease
  // restarts the comparison and is counted in resets().
  Nanos usage(Nanos total) { return grown(usage_, total); }
  kernel::Throttling throttling(const kernel::Throttling& total);
  Nanos local(Nanos total) { return grown(local_, total); }
  Nanos pressure(Nanos total) { return grown(pressure_, total); }

  bool started() const { return usage_.has_value(); }
  std::uint64_t resets() const { return resets_; }

  // Forgets the earlier readings.
  void forget() { *this = Meter(resets_); }

  Meter() = default;

 private:
  explicit Meter(std::uint64_t resets) : resets_(resets) {}
  template <class T>
  T grown(std::optional<T>& last, T total) {
    const std::optional<T> before = std::exchange(last, total);
    if (!before) return T{};
    if (total < *before) {
      ++resets_;
      return T{};
    }
    return total - *before;
  }

  std::optional<Nanos> usage_;
  std::optional<Nanos> local_;
  std::optional<Nanos> pressure_;
  std::optional<kernel::Throttling> throttling_;
  std::uint64_t resets_ = 0;
};

// One counter of CPU time, as use between two readings.
class UsageMeter {
 public:
  // Nothing at the first reading, after a decrease, or when no time has passed.
  std::optional<Millicores> advance(MonotonicTime at, Nanos total);

 private:
  struct Reading {
    MonotonicTime at;
    Nanos total;
  };
  std::optional<Reading> last_;
};

// One pressure file: shares of the wall time between two readings.
class PressureMeter {
 public:
  // Nothing at the first reading, after a decrease, or when no time has passed.
  std::optional<PressureSignals> advance(MonotonicTime at, const kernel::Pressure& total);
  void forget() { last_.reset(); }

 private:
  struct Reading {
    MonotonicTime at;
    kernel::Pressure total;
  };
  std::optional<Reading> last_;
};

// Share of wall time in which some thread waited for a CPU although no quota held it. Throttled
// time sums over CPUs, so it is at least the wall time it explains: what is left is a lower bound.
double contention(const PressureSignals& cpu, Millicores blocked);

}  // namespace mbcas::sense
