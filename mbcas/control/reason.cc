#include "mbcas/control/reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace mbcas::control {
namespace {

constexpr std::string_view kAtPrice = " at price ";
constexpr std::string_view kOverloaded = " (overloaded)";
constexpr std::string_view kUses = "uses ";
constexpr std::string_view kCovers = ", which covers its use of ";

std::string m(Millicores amount) {
  return fmt::format("{}m", amount.count());
}

// At an infinite price the floors are all that can be had, which is the border of overload.
std::string atPrice(const Reason& reason) {
  return reason.price && std::isfinite(*reason.price)
             ? fmt::format("{}{:.3g}", kAtPrice, *reason.price)
             : std::string(kOverloaded);
}

}  // namespace

std::string_view name(Basis basis) {
  switch (basis) {
    case Basis::kNoData:
      return "no data";
    case Basis::kWarmup:
      return "warm-up";
    case Basis::kStart:
      return "start";
    case Basis::kDeclared:
      return "declared";
    case Basis::kUse:
      return "use";
    case Basis::kBurst:
      return "burst";
    case Basis::kWholeCpus:
      return "whole CPUs";
    case Basis::kFloor:
      return "floor";
    case Basis::kCeiling:
      return "ceiling";
    case Basis::kConstrained:
      return "constrained";
    case Basis::kAward:
      return "award";
    case Basis::kCleared:
      break;
  }
  return "cleared";
}

std::string sentence(const Reason& reason) {
  switch (reason.basis) {
    case Basis::kNoData:
      return "its counters cannot be read, so it keeps its limit";
    case Basis::kWarmup:
      return "too new to judge, so it keeps its limit";
    case Basis::kStart:
      return "too new to judge, so it starts where others of its workload are";
    case Basis::kDeclared:
      return fmt::format("declared {}{}{}", m(reason.declared), kCovers, m(reason.use_peak));
    case Basis::kUse:
      return fmt::format("{}{} (at most {} over 5 s), with headroom", kUses, m(reason.use),
                         m(reason.use_peak));
    case Basis::kBurst:
      return fmt::format("{}{} in bursts that are throttled below {}", kUses, m(reason.use),
                         m(reason.burst));
    case Basis::kWholeCpus:
      return fmt::format("used up to {} over 5 s, and keeps that in whole CPUs for its threads",
                         m(reason.use_peak));
    case Basis::kFloor:
      return fmt::format("{}{}, less than its floor of {}", kUses, m(reason.use), m(reason.floor));
    case Basis::kCeiling:
      return fmt::format("needs {}, more than its ceiling of {}",
                         m(std::max(reason.burst, reason.use_peak)), m(reason.ceiling));
    case Basis::kConstrained:
      return fmt::format(
          "a pod that matters more is short of CPU: of the {} it could use, weight {:.4g} gets it "
          "{} of {}{}",
          m(reason.use), reason.weight, m(reason.award), m(reason.capacity), atPrice(reason));
    case Basis::kAward:
      return fmt::format("raised no further than its award of {}, so that others keep theirs",
                         m(reason.award));
    case Basis::kCleared:
      break;
  }
  return fmt::format("limits share {}: weight {:.4g} gets it {}{}", m(reason.capacity),
                     reason.weight, m(reason.award), atPrice(reason));
}

std::optional<SaidPrice> priceIn(std::string_view sentence) {
  if (sentence.ends_with(kOverloaded)) return SaidPrice{};
  const std::size_t at = sentence.rfind(kAtPrice);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = sentence.data() + at + kAtPrice.size();
  const char* const end = sentence.data() + sentence.size();
  double price = 0;
  const auto [stop, error] = std::from_chars(begin, end, price);
  if (error != std::errc{} || stop != end || !std::isfinite(price) || price < 0) {
    return std::nullopt;
  }
  return SaidPrice{price};
}

std::optional<Millicores> useIn(std::string_view sentence) {
  if (sentence.starts_with(kUses)) {
    sentence.remove_prefix(kUses.size());
  } else if (const std::size_t at = sentence.find(kCovers); at != std::string_view::npos) {
    sentence.remove_prefix(at + kCovers.size());
  } else {
    return std::nullopt;
  }
  std::int64_t use = 0;
  const char* const begin = sentence.data();
  const char* const end = begin + sentence.size();
  const auto [stop, error] = std::from_chars(begin, end, use);
  if (error != std::errc{} || stop == end || *stop != 'm' || use < 0) return std::nullopt;
  return Millicores(use);
}

}  // namespace mbcas::control
