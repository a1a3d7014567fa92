#include "mbcas/base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace mbcas {
namespace {

__extension__ using Int = __int128;
__extension__ using Natural = unsigned __int128;

constexpr Int kMaxNanos = static_cast<Int>(~Natural(0) >> 1);
constexpr Int kNanosPerUnit = 1'000'000'000;
constexpr Int kMaxBinaryNanos = std::numeric_limits<std::int64_t>::max() * kNanosPerUnit;

struct Suffix {
  std::string_view text;
  int exponent;
};
constexpr std::array<Suffix, 10> kDecimal = {{{"n", -9},
                                              {"u", -6},
                                              {"m", -3},
                                              {"", 0},
                                              {"k", 3},
                                              {"M", 6},
                                              {"G", 9},
                                              {"T", 12},
                                              {"P", 15},
                                              {"E", 18}}};
constexpr std::array<Suffix, 6> kBinary = {
    {{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}}};

struct Scale {
  Quantity::Format format;
  std::int64_t exponent;  // of ten, or of two for kBinarySi
};

std::optional<Scale> parseSuffix(std::string_view text) {
  const auto named = [&](const Suffix& suffix) { return suffix.text == text; };
  if (const auto* it = std::ranges::find_if(kDecimal, named); it != kDecimal.end()) {
    return Scale{Quantity::Format::kDecimalSi, it->exponent};
  }
  if (const auto* it = std::ranges::find_if(kBinary, named); it != kBinary.end()) {
    return Scale{Quantity::Format::kBinarySi, it->exponent};
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(1);
  if (text[0] == '+') {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int32_t exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Scale{Quantity::Format::kDecimalExponent, exponent};
}

// The whole number written in `digits`, times `factor`, divided by 10^places, rounded up. Nothing
// if that exceeds kMaxNanos. Long multiplication from the last digit, so that no intermediate value
// is ever rounded or overflows: factor is below 2^91, so digit * factor + carry is below 2^95.
std::optional<Int> multiplyAndDivide(std::string_view digits, Natural factor, std::int64_t places) {
  constexpr std::int64_t kNegligible = 64;  // digits x factor / 10^places is then below one
  const auto count = static_cast<std::int64_t>(digits.size());
  if (places > count + kNegligible) return 1;

  Natural carry = 0;
  bool inexact = false;
  Natural result = 0;
  Natural unit = 1;
  bool unit_overflows = false;
  const auto emit = [&](std::int64_t position, Natural digit) {
    if (position < places) {
      inexact |= digit != 0;
      return true;
    }
    Natural part = 0;
    if (digit != 0 && (unit_overflows || __builtin_mul_overflow(digit, unit, &part) ||
                       __builtin_add_overflow(result, part, &result))) {
      return false;
    }
    unit_overflows |= __builtin_mul_overflow(unit, Natural(10), &unit);
    return true;
  };
  // A negative number of places: zeros to the right of the digits. More than 40 is out of range.
  if (places < -40) return std::nullopt;
  std::int64_t position = 0;
  for (; places < 0; ++places) {
    if (!emit(0, 0)) return std::nullopt;
  }
  for (; position < count || position < places || carry != 0; ++position) {
    if (position < count) {
      const char digit = digits[static_cast<std::size_t>(count - 1 - position)];
      carry += static_cast<unsigned>(digit - '0') * factor;
    }
    if (!emit(position, carry % 10)) return std::nullopt;
    carry /= 10;
  }
  if (inexact) ++result;
  if (result > static_cast<Natural>(kMaxNanos)) return std::nullopt;
  return static_cast<Int>(result);
}

std::string_view takeDigits(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

std::string toText(Int number) {
  return fmt::format("{}", number);
}

}  // namespace

Result<Quantity> Quantity::parse(std::string_view text) {
  return parse(text, false);
}

Result<Quantity> Quantity::parseSaturating(std::string_view text) {
  return parse(text, true);
}

Result<Quantity> Quantity::parse(std::string_view text, bool saturate) {
  const auto bad = [&](std::string_view why) {
    return failure(fmt::format("not a quantity: \"{}\": {}", text.substr(0, 64), why));
  };
  if (text.empty()) return bad("it is empty");
  if (text.size() > kMaxText && !saturate) return bad("it is too long");

  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  std::string digits(takeDigits(rest));
  std::size_t fraction = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    const std::string_view decimals = takeDigits(rest);
    digits += decimals;
    fraction = decimals.size();
  }
  const std::optional<Scale> scale = parseSuffix(rest);
  if (!scale) return bad("unknown suffix");
  // Go reads a text without digits ("m", "+", ".") as zero on its fast path and refuses it on the
  // other. A server may have stored one, so the same texts are accepted here.
  const bool fast =
      scale->format == Format::kBinarySi ? scale->exponent <= 40 : scale->exponent >= -9;
  if (digits.empty() && !fast) return bad("it has no digits");

  digits.erase(0, digits.find_first_not_of('0'));
  Quantity result;
  result.format_ = scale->format;
  if (digits.empty()) return result;

  const bool binary = scale->format == Format::kBinarySi;
  const Natural factor = static_cast<Natural>(kNanosPerUnit)
                         << (binary ? static_cast<int>(scale->exponent) : 0);
  const std::int64_t places =
      static_cast<std::int64_t>(fraction) - (binary ? std::int64_t{0} : scale->exponent);
  std::optional<Int> nanos = multiplyAndDivide(digits, factor, places);
  if (binary) {
    nanos = std::min(nanos.value_or(kMaxNanos), kMaxBinaryNanos);
    if (*nanos < kNanosPerUnit) result.format_ = Format::kDecimalSi;
  }
  if (!nanos && saturate) nanos = kMaxNanos;
  if (!nanos) return bad("it is too large");
  result.nanos_ = negative ? -*nanos : *nanos;
  return result;
}

std::int64_t Quantity::scaled(std::int64_t unit) const {
  Int quotient = nanos_ / unit;
  if (nanos_ % unit != 0) quotient += nanos_ < 0 ? -1 : 1;
  return static_cast<std::int64_t>(std::clamp<Int>(quotient,
                                                   std::numeric_limits<std::int64_t>::min(),
                                                   std::numeric_limits<std::int64_t>::max()));
}

std::string Quantity::toString() const {
  if (nanos_ == 0) return "0";
  const Int magnitude = nanos_ < 0 ? -nanos_ : nanos_;
  if (format_ == Format::kBinarySi && magnitude % kNanosPerUnit == 0 &&
      magnitude >= 1024 * kNanosPerUnit) {
    Int mantissa = nanos_ / kNanosPerUnit;
    std::string_view suffix;
    for (std::size_t i = 0; i < kBinary.size() && mantissa % 1024 == 0; ++i) {
      mantissa /= 1024;
      suffix = kBinary[i].text;
    }
    return toText(mantissa).append(suffix);
  }
  Int mantissa = nanos_;
  int exponent = -9;
  while (mantissa % 1000 == 0 && (format_ == Format::kDecimalExponent || exponent < 18)) {
    mantissa /= 1000;
    exponent += 3;
  }
  if (format_ == Format::kDecimalExponent) {
    return exponent == 0 ? toText(mantissa) : fmt::format("{}e{}", toText(mantissa), exponent);
  }
  const auto suffix = static_cast<std::size_t>((exponent + 9) / 3);
  return toText(mantissa).append(kDecimal[suffix].text);
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (nanos_ == 0) format_ = other.format_;
  // Saturates: the sum of two sizes that large has no meaning, but must not become negative.
  if (__builtin_add_overflow(nanos_, other.nanos_, &nanos_)) {
    nanos_ = other.nanos_ < 0 ? -kMaxNanos : kMaxNanos;
  }
  return *this;
}

}  // namespace mbcas
