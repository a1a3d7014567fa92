// Natural numbers of up to 384 bits, enough for every product and sum of the reference solver; see
// there. Schoolbook arithmetic, nothing clever.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace mbcas::market::reference {

class Natural {
 public:
  constexpr Natural(std::uint64_t value = 0) : words_{value} {}  // NOLINT: numbers convert

  // The double times 2^116, which is whole for every double of at least 2^-64.
  static Natural timesTwoTo116(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t mantissa = (bits & ((1ull << 52) - 1)) | (1ull << 52);
    Natural result = mantissa;
    for (int doublings = static_cast<int>(bits >> 52) - 1075 + 116; doublings > 0; --doublings) {
      result = result + result;
    }
    return result;
  }

  friend Natural operator+(const Natural& a, const Natural& b) {
    Natural sum;
    unsigned __int128 carry = 0;
    for (std::size_t i = 0; i < kWords; ++i) {
      carry += static_cast<unsigned __int128>(a.words_[i]) + b.words_[i];
      sum.words_[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    return sum;
  }

  // Needs a >= b.
  friend Natural operator-(const Natural& a, const Natural& b) {
    Natural difference;
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < kWords; ++i) {
      const unsigned __int128 taken = static_cast<unsigned __int128>(b.words_[i]) + borrow;
      borrow = a.words_[i] < taken ? 1 : 0;
      difference.words_[i] = static_cast<std::uint64_t>(a.words_[i] - taken);
    }
    return difference;
  }

  friend Natural operator*(const Natural& a, const Natural& b) {
    Natural product;
    for (std::size_t i = 0; i < kWords; ++i) {
      unsigned __int128 carry = 0;
      for (std::size_t j = 0; i + j < kWords; ++j) {
        carry += static_cast<unsigned __int128>(a.words_[i]) * b.words_[j] + product.words_[i + j];
        product.words_[i + j] = static_cast<std::uint64_t>(carry);
        carry >>= 64;
      }
    }
    return product;
  }

  friend bool operator==(const Natural&, const Natural&) = default;
  friend std::strong_ordering operator<=>(const Natural& a, const Natural& b) {
    for (std::size_t i = kWords; i-- > 0;) {
      if (a.words_[i] != b.words_[i]) return a.words_[i] <=> b.words_[i];
    }
    return std::strong_ordering::equal;
  }

  double toDouble() const {
    double value = 0;
    for (std::size_t i = kWords; i-- > 0;) {
      value = value * 0x1p64 + static_cast<double>(words_[i]);
    }
    return value;
  }

 private:
  static constexpr std::size_t kWords = 6;
  std::array<std::uint64_t, kWords> words_;  // least significant first
};

}  // namespace mbcas::market::reference
