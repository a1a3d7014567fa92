// Exact sums of doubles: each bid is an integer multiple of one common unit, held in 128 bits where
// the bids of a problem are within a factor of 2^50 or so, else in 256. Arithmetic wraps; callers
// rely on a difference being exact whenever its true value fits.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>

namespace mbcas::market {

using U128 = unsigned __int128;

struct U256 {
  U128 high = 0;
  U128 low = 0;

  U256() = default;
  constexpr explicit U256(U128 value) : low(value) {}
  constexpr U256(U128 high_half, U128 low_half) : high(high_half), low(low_half) {}

  constexpr U256& operator+=(const U256& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
    return *this;
  }
  constexpr U256& operator-=(const U256& other) {
    high -= other.high + (low < other.low ? 1 : 0);
    low -= other.low;
    return *this;
  }
  friend constexpr U256 operator-(U256 a, const U256& b) { return a -= b; }
  friend constexpr U256 operator+(U256 a, const U256& b) { return a += b; }
  friend constexpr U256 operator*(const U256& a, std::uint64_t factor) {
    const U128 first = static_cast<U128>(static_cast<std::uint64_t>(a.low)) * factor;
    const U128 second = (a.low >> 64) * factor + (first >> 64);
    return {a.high * factor + (second >> 64), (second << 64) | static_cast<std::uint64_t>(first)};
  }
  friend constexpr U256 operator<<(const U256& a, int shift) {
    if (shift == 0) return a;
    if (shift >= 128) return {a.low << (shift - 128), 0};
    return {(a.high << shift) | (a.low >> (128 - shift)), a.low << shift};
  }
  friend constexpr U256 operator>>(const U256& a, int shift) {
    if (shift == 0) return a;
    if (shift >= 128) return {0, a.high >> (shift - 128)};
    return {a.high >> shift, (a.low >> shift) | (a.high << (128 - shift))};
  }
  // Ordered by high, then low.
  friend constexpr auto operator<=>(const U256&, const U256&) = default;
};

constexpr std::uint64_t lowWord(U128 value) {
  return static_cast<std::uint64_t>(value);
}
constexpr std::uint64_t lowWord(const U256& value) {
  return static_cast<std::uint64_t>(value.low);
}

constexpr bool isNegative(U128 difference) {
  return (difference >> 127) != 0;
}
constexpr bool isNegative(const U256& difference) {
  return isNegative(difference.high);
}

constexpr int bitWidth(U128 value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? 128 - std::countl_zero(high)
                   : 64 - std::countl_zero(static_cast<std::uint64_t>(value));
}
constexpr int bitWidth(const U256& value) {
  return value.high != 0 ? 128 + bitWidth(value.high) : bitWidth(value.low);
}

// Within 2^-51 of the value, and exact for one with at most 53 significant bits.
constexpr double toDouble(U128 value) {
  return static_cast<double>(static_cast<std::uint64_t>(value >> 64)) * 0x1p64 +
         static_cast<double>(static_cast<std::uint64_t>(value));
}
constexpr double toDouble(const U256& value) {
  return toDouble(value.high) * 0x1p128 + toDouble(value.low);
}

constexpr U256 widen(U128 value) {
  return U256(value);
}
constexpr U256 widen(const U256& value) {
  return value;
}

// The unit in which the bids of one market are whole: the last binary digit of the smallest.
class BidUnit {
 public:
  explicit BidUnit(double smallest) : exponent_(exponentOf(smallest)) {}

  template <class Wide>
  Wide count(double bid) const {
    const std::uint64_t mantissa = (std::bit_cast<std::uint64_t>(bid) & kMantissa) | kImplicitOne;
    return Wide(mantissa) << (exponentOf(bid) - exponent_);
  }

  double value() const {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent_ - kMantissaBits)
                                 << kMantissaBits);
  }

  // Bits that a sum of `count` bids, the largest of them `largest`, may need.
  int bitsOfSum(double largest, std::uint64_t count) const {
    return exponentOf(largest) - exponent_ + kMantissaBits + 1 + (64 - std::countl_zero(count));
  }

 private:
  static constexpr int kMantissaBits = 52;
  static constexpr std::uint64_t kImplicitOne = std::uint64_t{1} << kMantissaBits;
  static constexpr std::uint64_t kMantissa = kImplicitOne - 1;
  static int exponentOf(double bid) {
    return static_cast<int>(std::bit_cast<std::uint64_t>(bid) >> kMantissaBits);
  }
  int exponent_;
};

}  // namespace mbcas::market
