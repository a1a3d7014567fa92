// Dividing a whole number of millicores in exact proportion to given parts, by largest remainder.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "mbcas/market/wide.h"

namespace mbcas::market {

template <class Wide>
struct Part {
  Wide weight;       // in; afterwards the remainder of weight * amount / sum of weights
  std::int64_t cpu;  // out
  std::uint32_t pod;
};

// Sets cpu of every part so that they add up to `amount`. `before(a, b)` says whether pod a wins a
// tie against pod b; it is asked only about pods whose remainders are equal and contested.
// Needs total > 0, the sum of the weights, with at least two bits of Wide to spare; amount < 2^41.
template <class Wide, class Before>
void apportion(std::vector<Part<Wide>>& parts, const Wide& total, std::int64_t amount,
               std::vector<std::uint32_t>& contested, const Before& before) {
  const double ratio = static_cast<double>(amount) / toDouble(total);
  std::int64_t left = amount;
  for (Part<Wide>& part : parts) {
    // The quotient of doubles is off by less than 2^-9, so its floor by at most one.
    auto quotient = static_cast<std::int64_t>(toDouble(part.weight) * ratio);
    Wide remainder = part.weight * static_cast<std::uint64_t>(amount) -
                     total * static_cast<std::uint64_t>(quotient);
    if (isNegative(remainder)) {
      --quotient;
      remainder += total;
    } else if (remainder >= total) {
      ++quotient;
      remainder -= total;
    }
    part.cpu = quotient;
    part.weight = remainder;
    left -= quotient;
  }
  if (left == 0) return;

  // The leading digits of the remainders tell nearly all winners from losers; only those that share
  // the digits of the last winner have to be compared in full.
  constexpr int kMostDigits = 12;
  const int digits = std::min(66 - std::countl_zero(std::uint64_t{parts.size()}), kMostDigits);
  const int shift = std::max(bitWidth(total) - digits, 0);
  const auto leading = [&](const Part<Wide>& part) { return lowWord(part.weight >> shift); };
  std::uint32_t histogram[1 << kMostDigits];
  std::fill_n(histogram, 1 << digits, 0u);
  for (const Part<Wide>& part : parts) ++histogram[leading(part)];
  std::uint64_t cut = (std::uint64_t{1} << digits) - 1;
  while (left > histogram[cut]) left -= histogram[cut--];

  contested.clear();
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const std::uint64_t mine = leading(parts[i]);
    if (mine > cut) {
      ++parts[i].cpu;
    } else if (mine == cut) {
      contested.push_back(i);
    }
  }
  const auto winners = contested.begin() + left;
  std::nth_element(contested.begin(), winners, contested.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     if (parts[a].weight != parts[b].weight)
                       return parts[a].weight > parts[b].weight;
                     return before(parts[a].pod, parts[b].pod);
                   });
  for (auto winner = contested.begin(); winner != winners; ++winner) ++parts[*winner].cpu;
}

}  // namespace mbcas::market
