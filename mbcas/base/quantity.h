// Kubernetes' resource.Quantity: "500m", "1.5Gi", "2e3". The grammar, the rounding and the
// canonical text are those of its Go implementation, and are tested against a table made by it.
//
//   Result<Quantity> q = Quantity::parse("0.5");
//   q->millicores();   // 500m of CPU
//   q->toString();     // "500m"
//
// Values are exact multiples of 1n (10^-9) up to 1.7 * 10^29, more than any resource can be; where
// the text says more than that, parse() fails and parseSaturating() stops there. Binary suffixes
// stop at 2^63 - 1 as in Go. Finer fractions are rounded away from zero: who asks for a little gets
// a little. Two texts of one value are equal: compare Quantities, never their strings.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"

namespace mbcas {

class Quantity {
 public:
  // The family of suffixes that the value came with and is printed with.
  enum class Format : std::uint8_t {
    kDecimalSi,        // n u m (none) k M G T P E
    kBinarySi,         // Ki Mi Gi Ti Pi Ei
    kDecimalExponent,  // 12e6
  };

  static constexpr std::size_t kMaxText = 256;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Millicores cpu) : nanos_(Int(cpu.count()) * 1'000'000) {}

  static Result<Quantity> parse(std::string_view text);
  // For readers of objects that a server has accepted, however large the amount and however long
  // its text. What comes out may not be what the text says, so it must not be written back.
  static Result<Quantity> parseSaturating(std::string_view text);

  // Whole units and thousandths, rounded away from zero; the nearest 64-bit value where the true
  // one does not fit.
  std::int64_t value() const { return scaled(1'000'000'000); }
  std::int64_t milliValue() const { return scaled(1'000'000); }
  Millicores millicores() const { return Millicores(milliValue()); }

  Format format() const { return format_; }

  // Canonical: no fraction, the largest suffix that loses nothing, the family of format(). Binary
  // values that are fractional or below 1024 are printed in the decimal family.
  std::string toString() const;

  // Addition keeps the family of the left operand, unless that is zero.
  Quantity& operator+=(const Quantity& other);
  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }

  friend constexpr bool operator==(const Quantity& a, const Quantity& b) {
    return a.nanos_ == b.nanos_;
  }
  friend constexpr std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.nanos_ <=> b.nanos_;
  }

 private:
  __extension__ using Int = __int128;

  static Result<Quantity> parse(std::string_view text, bool saturate);
  std::int64_t scaled(std::int64_t unit) const;

  Int nanos_ = 0;
  Format format_ = Format::kDecimalSi;
};

}  // namespace mbcas
