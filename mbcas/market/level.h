// Where the market clears: the level t = 1/price, in millicores per unit of bid, at which the
// buyers' demands add up to what there is. Found exactly, in linear time, by narrowing down
// breakpoints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "mbcas/market/wide.h"

namespace mbcas::market {

// A pod as the market sees it: it demands base + clamp(bid * t, least, most) at level t.
struct Buyer {
  double bid;
  std::int64_t base;
  std::int64_t least;
  std::int64_t most;
  std::uint32_t pod;

  std::int64_t min() const { return base + least; }
  std::int64_t max() const { return base + most; }
};

// A level as an exact fraction: amount millicores for so many bids.
template <class Wide>
class Level {
 public:
  Level(std::int64_t amount, const Wide& bids, BidUnit unit)
      : amount_(static_cast<std::uint64_t>(amount)),
        bids_(bids),
        unit_(unit),
        guess_(static_cast<double>(amount) / (toDouble(bids) * unit.value())) {}

  // The sign of bid * t - room. Doubles decide unless they are too close: their error is below
  // 2^-50, and where they differ by less than 2^-45 the true difference fits a Wide.
  int compare(double bid, std::int64_t room) const {
    const int sign = compareDoubles(bid * guess_, static_cast<double>(room));
    if (sign != 0) [[likely]]
      return sign;
    return compareExactly(bid, room);
  }
  int compareExactly(double bid, std::int64_t room) const {
    return signOf(
        Wide(unit_.count<Wide>(bid) * amount_ - bids_ * static_cast<std::uint64_t>(room)));
  }
  // A breakpoint room / bid, rounded to a double, below the one is below t for sure, and above the
  // other above it.
  double surelyBelow() const { return guess_ * (1 - kDoubt); }
  double surelyAbove() const { return guess_ * (1 + kDoubt); }
  // The sign of slope * t - rest.
  int compareDemand(const Wide& slope, std::int64_t rest) const {
    if (rest < 0) return 1;
    const int sign = compareDoubles(toDouble(slope) * static_cast<double>(amount_),
                                    static_cast<double>(rest) * toDouble(bids_));
    if (sign != 0) return sign;
    // A sum of rooms has up to 20 bits more than one room.
    return signOf(widen(slope) * amount_ - widen(bids_) * static_cast<std::uint64_t>(rest));
  }

 private:
  static constexpr double kDoubt = 0x1p-46;
  static int compareDoubles(double a, double b) {
    // Without branches, because no predictor could guess them.
    return static_cast<int>(a > b * (1 + kDoubt)) - static_cast<int>(a < b * (1 - kDoubt));
  }
  template <class Difference>
  static int signOf(const Difference& difference) {
    return isNegative(difference) ? -1 : difference == Difference(0) ? 0 : 1;
  }

  std::uint64_t amount_;
  Wide bids_;
  BidUnit unit_;
  double guess_;
};

// A level at which one buyer's demand stops or starts growing. The demand for CPU beyond the mins
// is a sum over breakpoints of plus or minus min(bid * t, room): plus with room = most, where a
// buyer is satiated; minus with room = least, until which it sits on its min anyway.
struct Breakpoint {
  double at;  // about room / bid
  std::uint32_t buyer;
  bool is_floor;
};

// Precondition: some buyer's min and max differ, and the demand beyond the mins at no level is
// `spare` or more only if it can be met, that is, spare lies between 0 and the sum of max - min.
//
// Each round tries one level and learns whether the market clears above or below it, which settles
// every breakpoint on the other side for good. The level tried is the one that would clear the
// market if every open buyer were between its bounds; it settles at least one breakpoint, nearly
// always most of them. Should that go slowly, medians of the open breakpoints are tried in turn,
// which bounds the work by a constant number of passes and a geometric series.
template <class Wide>
Level<Wide> findLevel(std::span<const Buyer> buyers, std::int64_t spare, BidUnit unit,
                      std::vector<Breakpoint>& breakpoints) {
  constexpr int kGuessesBeforeMedians = 12;

  breakpoints.resize(2 * buyers.size());
  Breakpoint* next = breakpoints.data();
  bool has_floors = false;
  Wide slope{0};  // of the demand, as far as it is not settled that a breakpoint lies below t
  for (std::uint32_t i = 0; i < buyers.size(); ++i) {
    const Buyer& buyer = buyers[i];
    if (buyer.least == buyer.most) continue;
    *next++ = {static_cast<double>(buyer.most) / buyer.bid, i, false};
    if (buyer.least > 0) {
      // Neither plus nor minus: on its min until the first breakpoint, and so flat.
      *next++ = {static_cast<double>(buyer.least) / buyer.bid, i, true};
      has_floors = true;
    } else {
      slope += unit.count<Wide>(buyer.bid);
    }
  }
  std::int64_t rest = spare;  // what the part of the demand that still grows has to use up

  const auto room = [&](const Breakpoint& point) {
    const Buyer& buyer = buyers[point.buyer];
    return point.is_floor ? buyer.least : buyer.most;
  };
  const auto passed = [&](const Breakpoint& point, Wide& slope_left, std::int64_t& rest_left) {
    const Wide bid = unit.count<Wide>(buyers[point.buyer].bid);
    if (point.is_floor) {
      slope_left += bid;
      rest_left += room(point);
    } else {
      slope_left -= bid;
      rest_left -= room(point);
    }
  };

  Breakpoint* first = breakpoints.data();
  Breakpoint* last = next;
  for (int round = 0; first != last; ++round) {
    Wide bids = slope;
    std::int64_t amount = rest;
    if (round >= kGuessesBeforeMedians && round % 2 == 0) {
      Breakpoint* const median = first + (last - first) / 2;
      std::nth_element(first, median, last,
                       [](const auto& a, const auto& b) { return a.at < b.at; });
      bids = unit.count<Wide>(buyers[median->buyer].bid);
      amount = room(*median);
    } else if (has_floors) {
      for (const Breakpoint* point = first; point != last; ++point) {
        if (point->is_floor) passed(*point, bids, amount);
      }
    }
    const Level<Wide> level(amount, bids, unit);

    // [first, ahead) lie above the level, [ahead, behind) on it, [behind, last) below.
    const double below = level.surelyBelow();
    const double above = level.surelyAbove();
    Wide slope_here = slope;
    std::int64_t rest_here = rest;
    Breakpoint* ahead = first;
    Breakpoint* behind = last;
    for (Breakpoint* point = first; point != behind;) {
      int sign = point->at > above ? -1 : point->at < below ? 1 : 0;
      if (sign == 0) sign = level.compareExactly(buyers[point->buyer].bid, room(*point));
      if (sign < 0) {
        if (ahead != point) std::swap(*ahead, *point);
        ++ahead;
        ++point;
      } else {
        passed(*point, slope_here, rest_here);
        if (sign == 0) {
          ++point;
        } else {
          std::swap(*point, *--behind);
        }
      }
    }

    const int excess = level.compareDemand(slope_here, rest_here);
    if (excess == 0) return level;
    if (excess < 0) {
      slope = slope_here;
      rest = rest_here;
      last = ahead;
    } else {
      first = behind;
    }
  }
  return Level<Wide>(rest, slope, unit);
}

}  // namespace mbcas::market
