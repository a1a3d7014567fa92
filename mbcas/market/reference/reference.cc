#include "mbcas/market/reference/reference.h"

#include <algorithm>
#include <functional>

#include "mbcas/market/reference/natural.h"

// Bids are whole multiples of 2^-116 below 2^64, so 180 bits each and at most 200 for a sum over
// 2^20 pods; amounts have at most 41 bits, sums of them 61. No product below has more than 261
// bits.

namespace mbcas::market::reference {
namespace {

Natural natural(Millicores amount) {
  return Natural(static_cast<std::uint64_t>(amount.count()));
}

struct Fraction {
  Natural numerator;
  Natural denominator;

  friend bool operator<(const Fraction& a, const Fraction& b) {
    return a.numerator * b.denominator < b.numerator * a.denominator;
  }
};

// One pod as a buyer at level t = 1/price: it takes clamp(f + bid * t, min, max).
struct Buyer {
  std::size_t pod;
  Natural bid;
  Millicores f;
  Millicores min;
  Millicores max;

  // What it takes, times the denominator of t.
  Natural demand(const Fraction& t) const {
    const Natural wanted = natural(f) * t.denominator + bid * t.numerator;
    return std::clamp(wanted, natural(min) * t.denominator, natural(max) * t.denominator);
  }
  Fraction leavesMinAt() const { return {natural(min - f), bid}; }
  Fraction reachesMaxAt() const { return {natural(max - f), bid}; }
};

// Gives whole[i] + 1 instead of whole[i] to those with the largest fractions, until `amount` is
// used.
struct Rounded {
  std::size_t pod;
  Millicores whole;
  Natural remainder;  // the fraction, times a denominator common to all
};
void roundByLargestRemainder(const Problem& problem, std::vector<Rounded> shares, Millicores amount,
                             Clearing& clearing) {
  std::sort(shares.begin(), shares.end(), [&](const Rounded& a, const Rounded& b) {
    if (a.remainder != b.remainder) return a.remainder > b.remainder;
    return problem.pods[a.pod].id < problem.pods[b.pod].id;
  });
  for (const Rounded& share : shares) amount -= share.whole;
  for (const Rounded& share : shares) {
    const Millicores extra(amount.count() > 0 ? 1 : 0);
    clearing.pods[share.pod].cpu = share.whole + extra;
    amount -= extra;
  }
}

// numerator / denominator, split into its whole part and the remainder.
Rounded split(std::size_t pod, const Natural& numerator, const Natural& denominator) {
  std::uint64_t low = 0;
  std::uint64_t high = 1ull << 42;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (denominator * Natural(middle) <= numerator ? low : high) = middle;
  }
  return {pod, Millicores(static_cast<std::int64_t>(low)), numerator - denominator * Natural(low)};
}

// Divides `capacity` among buyers who together want more. Returns the price.
double share(const Problem& problem, const std::vector<Buyer>& buyers, Millicores capacity,
             Clearing& clearing) {
  // Demand grows with t and is linear between breakpoints. Find the last breakpoint at which it can
  // still be met.
  std::vector<Fraction> breakpoints = {{Natural(0), Natural(1)}};
  for (const Buyer& buyer : buyers) {
    breakpoints.push_back(buyer.leavesMinAt());
    breakpoints.push_back(buyer.reachesMaxAt());
  }
  std::sort(breakpoints.begin(), breakpoints.end());
  const auto canBeMet = [&](const Fraction& t) {
    Natural demand;
    for (const Buyer& buyer : buyers) demand = demand + buyer.demand(t);
    return demand <= natural(capacity) * t.denominator;
  };
  const Fraction start =
      *std::prev(std::partition_point(breakpoints.begin(), breakpoints.end(), canBeMet));

  // From there on, only those between their bounds take more.
  Natural bids;
  Millicores amount = capacity;
  for (const Buyer& buyer : buyers) {
    if (start < buyer.leavesMinAt()) {
      amount -= buyer.min;
    } else if (!(start < buyer.reachesMaxAt())) {
      amount -= buyer.max;
    } else {
      amount -= buyer.f;
      bids = bids + buyer.bid;
    }
  }
  const Fraction t = {natural(amount), bids};

  std::vector<Rounded> shares;
  for (const Buyer& buyer : buyers) {
    const Natural exact = buyer.demand(t);
    shares.push_back(split(buyer.pod, exact, t.denominator));
    clearing.pods[buyer.pod].bound = exact == natural(buyer.max) * t.denominator   ? Bound::kMax
                                     : exact == natural(buyer.min) * t.denominator ? Bound::kMin
                                                                                   : Bound::kNone;
  }
  roundByLargestRemainder(problem, std::move(shares), capacity, clearing);
  return bids.toDouble() * 0x1p-116 / static_cast<double>(amount.count());
}

// Overload: base_i + (top_i - base_i) * s, with the s that uses the capacity up.
void shareOverload(const Problem& problem, const std::function<Millicores(const Pod&)>& base,
                   const std::function<Millicores(const Pod&)>& top, Basis basis,
                   Clearing& clearing) {
  Millicores base_sum;
  Millicores top_sum;
  for (const Pod& pod : problem.pods) {
    base_sum += base(pod);
    top_sum += top(pod);
  }
  const Millicores amount = problem.capacity - base_sum;
  const Millicores range = top_sum - base_sum;
  std::vector<Rounded> shares;
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    const Pod& pod = problem.pods[i];
    const Natural exact =
        natural(base(pod)) * natural(range) + natural(top(pod) - base(pod)) * natural(amount);
    shares.push_back(split(i, exact, natural(range)));
    clearing.pods[i].bound = Bound::kMin;
    clearing.pods[i].basis = basis;
  }
  roundByLargestRemainder(problem, std::move(shares), problem.capacity, clearing);
  clearing.mode = Mode::kOverloaded;
  clearing.price = std::nullopt;
  clearing.overload_share =
      static_cast<double>(amount.count()) / static_cast<double>(range.count());
}

Basis basisOf(const Pod& pod) {
  if (pod.bid >= kSmallestBid) return Basis::kBid;
  if (pod.weight >= kSmallestBid) return Basis::kWeight;
  return Basis::kEqual;
}

double bidOn(const Pod& pod, Basis basis) {
  return basis == Basis::kBid ? pod.bid : basis == Basis::kWeight ? pod.weight : 1.0;
}

}  // namespace

Clearing clear(const Problem& problem) {
  Clearing clearing;
  clearing.pods.resize(problem.pods.size());
  Millicores min_sum;
  Millicores guarantee_sum;
  for (const Pod& pod : problem.pods) {
    min_sum += pod.min;
    guarantee_sum += pod.guarantee;
  }

  const auto zero = [](const Pod&) { return Millicores(0); };
  const auto guarantee = [](const Pod& pod) { return pod.guarantee; };
  const auto min = [](const Pod& pod) { return pod.min; };
  if (guarantee_sum > problem.capacity) {
    shareOverload(problem, zero, guarantee, Basis::kGuarantees, clearing);
  } else if (min_sum > problem.capacity) {
    shareOverload(problem, guarantee, min, Basis::kFloors, clearing);
  } else {
    // Bidders first, then those with a weight, then the rest; the mins of all are set aside.
    Millicores spare = problem.capacity - min_sum;
    for (const Basis basis : {Basis::kBid, Basis::kWeight, Basis::kEqual}) {
      std::vector<Buyer> buyers;
      Millicores tier_min;
      Millicores tier_max;
      for (std::size_t i = 0; i < problem.pods.size(); ++i) {
        const Pod& pod = problem.pods[i];
        if (basisOf(pod) != basis) continue;
        const Millicores f = problem.objective == Objective::kBargaining ? pod.min : Millicores(0);
        const Millicores max = std::min(pod.max, kLargestAmount + Millicores(1));
        buyers.push_back({i, Natural::timesTwoTo116(bidOn(pod, basis)), f, pod.min, max});
        clearing.pods[i] = {max, Bound::kMax, basis};
        tier_min += pod.min;
        tier_max += max;
      }
      const Millicores given = std::min(spare, tier_max - tier_min);
      if (given < tier_max - tier_min) {
        const double price = share(problem, buyers, tier_min + given, clearing);
        if (basis == Basis::kBid) {
          clearing.mode = Mode::kCongested;
          clearing.price = price;
        } else if (given > Millicores(0)) {
          clearing.spare_price = price;
        }
      }
      spare -= given;
    }
    clearing.unallocated = spare;
  }
  clearing.allocated = problem.capacity - clearing.unallocated;
  return clearing;
}

}  // namespace mbcas::market::reference
