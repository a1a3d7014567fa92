// Random numbers that are the same on every machine, compiler and library for the same seed.
#pragma once

#include <cmath>
#include <cstdint>

namespace mbcas::sim {

// splitmix64 (public domain, S. Vigna): small state, passes BigCrush, any seed is good.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

  // Another sequence, for the n-th part of something: what one part draws changes no other.
  Random fork(std::uint64_t n) const {
    return Random(Random(state_ + n * 0x632be59bd9b4e019).next());
  }

 private:
  std::uint64_t state_;
};

}  // namespace mbcas::sim
