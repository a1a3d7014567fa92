// Dividing a whole number of millicores in exact proportion to given parts, by largest remainder.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "mbcas/market/wide.h"

namespace mbcas::market {

template <class Wide>
struct Part {
  Wide weight;       // in; afterwards the remainder of weight * amount / sum of weights
  std::int64_t cpu;  // out
  std::uint32_t pod;
  std::uint32_t leading = 0;  // the leading digits of the remainder
};

// A part whose remainder is among those that the last winners come from.
struct Contender {
  std::uint64_t id_bytes;  // eight bytes of its id, as a big-endian number
  std::uint32_t part;
};

// Moves the `winners` contenders with the smallest ids to the front. Ids are far apart in memory
// and begin alike, so the order is by the eight bytes after what is common to all, wherever that
// decides.
template <class IdOf>
void selectSmallestIds(std::span<Contender> contenders, std::ptrdiff_t winners, const IdOf& id_of) {
  std::string_view common = id_of(contenders.front());
  for (const Contender& contender : contenders) {
    const std::string_view id = id_of(contender);
    if (id.starts_with(common)) continue;
    const auto differ = std::mismatch(common.begin(), common.end(), id.begin(), id.end());
    common = common.substr(0, static_cast<std::size_t>(differ.first - common.begin()));
  }
  for (Contender& contender : contenders) {
    const std::string_view rest =
        id_of(contender).substr(common.size(), sizeof(contender.id_bytes));
    char bytes[sizeof(contender.id_bytes)] = {};
    rest.copy(bytes, rest.size());
    std::memcpy(&contender.id_bytes, bytes, sizeof(bytes));
    if constexpr (std::endian::native == std::endian::little) {
      contender.id_bytes = __builtin_bswap64(contender.id_bytes);
    }
  }
  std::nth_element(contenders.begin(), contenders.begin() + winners, contenders.end(),
                   [&](const Contender& a, const Contender& b) {
                     if (a.id_bytes != b.id_bytes) return a.id_bytes < b.id_bytes;
                     const int order = id_of(a).compare(id_of(b));
                     return order != 0 ? order < 0 : a.part < b.part;
                   });
}

// Sets cpu of every part so that they add up to `amount`. Among equal remainders the smaller id,
// id_of(pod), comes first. Needs total > 0, the sum of the weights, with at least two bits of Wide
// to spare; amount < 2^41.
template <class Wide, class IdOf>
void apportion(std::span<Part<Wide>> parts, const Wide& total, std::int64_t amount,
               std::vector<Contender>& contenders, const IdOf& id_of) {
  // The leading digits of the remainders tell nearly all winners from losers; only those that share
  // the digits of the last winner have to be compared in full.
  constexpr int kMostDigits = 12;
  const int digits = std::min(66 - std::countl_zero(std::uint64_t{parts.size()}), kMostDigits);
  const int shift = std::max(bitWidth(total) - digits, 0);
  std::uint32_t histogram[1 << kMostDigits];
  std::fill_n(histogram, 1 << digits, 0u);

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
    part.leading = static_cast<std::uint32_t>(lowWord(remainder >> shift));
    ++histogram[part.leading];
  }
  if (left == 0) return;

  std::uint32_t cut = (1u << digits) - 1;
  while (left > histogram[cut]) left -= histogram[cut--];
  contenders.clear();
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const std::uint32_t mine = parts[i].leading;
    parts[i].cpu += (cut - mine) >> 31;  // 1 if mine > cut: a coin toss that no branch predicts
    if (mine == cut) contenders.push_back({0, i});
  }

  const auto first = contenders.begin();
  const auto last_winner = first + (left - 1);
  const auto remainder = [&](const Contender& contender) -> const Wide& {
    return parts[contender.part].weight;
  };
  // [first, above) have larger remainders than the last winner, [above, below) the same. Usually
  // all are the same: those of pods that bid the same.
  auto above = first;
  auto below = contenders.end();
  if (std::any_of(first, below, [&](const auto& c) { return remainder(c) != remainder(*first); })) {
    std::nth_element(first, last_winner, below,
                     [&](const auto& a, const auto& b) { return remainder(a) > remainder(b); });
    const Wide least = remainder(*last_winner);
    above = std::partition(first, last_winner, [&](const auto& c) { return remainder(c) > least; });
    below =
        std::partition(last_winner, below, [&](const auto& c) { return remainder(c) == least; });
  }
  const auto winners = first + left;
  if (below != winners) {
    selectSmallestIds(std::span(above, below), winners - above,
                      [&](const Contender& c) { return id_of(parts[c.part].pod); });
  }
  for (auto winner = first; winner != winners; ++winner) ++parts[winner->part].cpu;
}

}  // namespace mbcas::market
