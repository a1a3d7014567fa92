// How long jobs took: counts in buckets whose width is 1/64 of their power of two (1.6 %), from
// nanoseconds to centuries.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "mbcas/base/units.h"

namespace mbcas::sim {

class Latencies {
 public:
  void add(Nanos latency) {
    ++counts_[bucket(static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0)))];
    ++total_;
  }
  void add(const Latencies& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
  }
  // Those that came since `earlier`, which is what this was at some time.
  Latencies since(const Latencies& earlier) const {
    Latencies later = *this;
    for (std::size_t i = 0; i < counts_.size(); ++i) later.counts_[i] -= earlier.counts_[i];
    later.total_ -= earlier.total_;
    return later;
  }
  std::uint64_t count() const { return total_; }
  // The distribution: values, ascending, each with the share of all that is not above it.
  std::vector<std::pair<Nanos, double>> cumulative() const {
    std::vector<std::pair<Nanos, double>> shares;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      seen += counts_[i];
      shares.emplace_back(middle(i), static_cast<double>(seen) / static_cast<double>(total_));
    }
    return shares;
  }
  friend bool operator==(const Latencies&, const Latencies&) = default;

  // The middle of the bucket in which the share `p` of all jobs is reached; 0 without jobs.
  Nanos percentile(double p) const {
    const double wanted = p * static_cast<double>(total_);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (counts_[i] > 0 && static_cast<double>(seen) >= wanted) return middle(i);
    }
    return Nanos(0);
  }

 private:
  static constexpr int kBits = 6;
  static std::size_t bucket(std::uint64_t n) {
    if (n < (1U << kBits)) return n;
    const int exponent = static_cast<int>(std::bit_width(n)) - 1 - kBits;
    return (static_cast<std::size_t>(exponent) << kBits) + static_cast<std::size_t>(n >> exponent);
  }
  static Nanos middle(std::size_t bucket) {
    if (bucket < (2U << kBits)) return Nanos(static_cast<std::int64_t>(bucket));
    const std::size_t exponent = (bucket >> kBits) - 1;
    const std::size_t low = (bucket & ((1U << kBits) - 1)) + (1U << kBits);
    return Nanos(static_cast<std::int64_t>((low << exponent) + ((std::size_t{1} << exponent) / 2)));
  }

  std::array<std::uint64_t, (64 - kBits + 1) << kBits> counts_{};
  std::uint64_t total_ = 0;
};

}  // namespace mbcas::sim
