// Units that do not mix by accident. A Millicores is a thousandth of a CPU; a duration is a
// std::chrono::nanoseconds, which the kernel's counters convert to exactly (v1 counts ns, v2 us).
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace mbcas {

using Nanos = std::chrono::nanoseconds;

// CPU in thousandths of a core. Signed, so that differences are values of the same type.
class Millicores {
 public:
  constexpr Millicores() = default;
  constexpr explicit Millicores(std::int64_t count) : count_(count) {}
  constexpr std::int64_t count() const { return count_; }
  constexpr double cores() const { return static_cast<double>(count_) / 1000.0; }

  friend constexpr auto operator<=>(Millicores, Millicores) = default;
  constexpr Millicores& operator+=(Millicores other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Millicores& operator-=(Millicores other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Millicores operator+(Millicores a, Millicores b) { return a += b; }
  friend constexpr Millicores operator-(Millicores a, Millicores b) { return a -= b; }
  friend constexpr Millicores operator-(Millicores a) { return Millicores(-a.count_); }
  friend constexpr Millicores operator*(Millicores a, std::int64_t n) {
    return Millicores(a.count_ * n);
  }

 private:
  std::int64_t count_ = 0;
};

// CPU time spent per wall time, as millicores rounded to nearest. Zero for an empty interval: no
// time has passed, so nothing was used.
constexpr Millicores rate(Nanos cpu_time, Nanos wall) {
  if (wall.count() <= 0) return Millicores(0);
  // 128 bits: a node's CPU time over days, times a thousand, overflows 64.
  const __int128 scaled = static_cast<__int128>(cpu_time.count()) * 1000;
  const __int128 half = wall.count() / 2;
  return Millicores(
      static_cast<std::int64_t>((scaled + (scaled < 0 ? -half : half)) / wall.count()));
}

namespace literals {
consteval Millicores operator""_m(unsigned long long count) {
  return Millicores(static_cast<std::int64_t>(count));
}
}  // namespace literals

}  // namespace mbcas
