// Why a limit is what it is: as data, and as a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mbcas/base/units.h"

namespace mbcas::control {

// Why a pod's desired limit is what it is.
enum class Basis : std::uint8_t {
  kNoData,       // counters unreadable or stale: keeps its limit
  kWarmup,       // too new to judge: keeps its limit
  kStart,        // too new to judge: starts where its siblings are
  kDeclared,     // needs no more than it declared
  kUse,          // 1.25 times its use
  kBurst,        // the level at which its bursts are not cut off
  kWholeCpus,    // needs less, and keeps its highest use in whole CPUs
  kFloor,        // needs less than its floor
  kCeiling,      // needs more than its ceiling
  kConstrained,  // bound to its award for a pod that matters more
  kAward,        // raised no further, so that others keep what they have
  kCleared,      // limits themselves were cleared (strict capacity, pressure bids)
};
std::string_view name(Basis basis);

// Every number that a sentence about the decision needs.
struct Reason {
  Basis basis = Basis::kNoData;
  Millicores use;       // median
  Millicores use_peak;  // highest 5 s mean
  Millicores burst;
  Millicores declared;
  Millicores floor;
  Millicores ceiling;
  Millicores award;  // what the market gave it to use; the use where nothing was cleared
  Millicores capacity;
  std::optional<double> price = 0.0;
  double weight = 1;

  friend bool operator==(const Reason&, const Reason&) = default;
};
// At most 256 characters. The sentence changes only with the facts that it states.
std::string sentence(const Reason& reason);

// The price in the sentence of a pod whose limit the market set; nothing: the market set none.
struct SaidPrice {
  std::optional<double> price;  // nothing: overloaded
  friend bool operator==(const SaidPrice&, const SaidPrice&) = default;
};
std::optional<SaidPrice> priceIn(std::string_view sentence);
// The use in the sentence of a pod whose limit follows its use; nothing: the sentence states none.
std::optional<Millicores> useIn(std::string_view sentence);

}  // namespace mbcas::control
