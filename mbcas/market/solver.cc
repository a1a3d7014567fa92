#include "mbcas/market/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>

#include "mbcas/market/apportion.h"
#include "mbcas/market/level.h"

namespace mbcas::market {
namespace {

// What a bid or weight counts as.
double effective(double bid) {
  return bid >= kSmallestBid ? bid : 0.0;
}

// A ceiling that no capacity reaches is one like any other, but keeps sums within 64 bits.
std::int64_t effectiveMax(const Pod& pod) {
  return std::min(pod.max.count(), kLargestAmount.count() + 1);
}

// Non-negative, finite and below the largest, in one comparison: so are the bits of such a double,
// and of no other but -0, to which 0 is added.
bool isBid(double bid) {
  return std::bit_cast<std::uint64_t>(bid + 0.0) < std::bit_cast<std::uint64_t>(kLargestBid);
}

// Evaluated for every pod of every problem, and nearly always true.
bool isWellFormed(const Pod& pod) {
  const auto min = static_cast<std::uint64_t>(pod.min.count());
  const auto guarantee = static_cast<std::uint64_t>(pod.guarantee.count());
  return isBid(pod.bid) && isBid(pod.weight) && (pod.min <= pod.max) && (guarantee <= min) &&
         (min <= static_cast<std::uint64_t>(kLargestAmount.count()));
}

Result<void> checkAmount(std::string_view field, Millicores amount) {
  if (amount.count() < 0) return failure(fmt::format("{}: {} is negative", field, amount.count()));
  if (amount > kLargestAmount) {
    return failure(
        fmt::format("{}: {} is above {}", field, amount.count(), kLargestAmount.count()));
  }
  return {};
}

Result<void> checkBid(std::string_view field, double bid) {
  if (bid >= 0 && bid < kLargestBid) return {};
  if (bid < 0) return failure(fmt::format("{}: {} is negative", field, bid));
  if (bid >= kLargestBid) {
    return failure(fmt::format("{}: {} is not below {}", field, bid, kLargestBid));
  }
  return failure(fmt::format("{}: is not a number", field));
}

Result<void> checkPod(const Pod& pod) {
  if (Result<void> ok = checkBid("bid", pod.bid); !ok) return ok;
  if (Result<void> ok = checkBid("weight", pod.weight); !ok) return ok;
  if (Result<void> ok = checkAmount("min", pod.min); !ok) return ok;
  if (Result<void> ok = checkAmount("guarantee", pod.guarantee); !ok) return ok;
  if (pod.max.count() < 0) return failure(fmt::format("max: {} is negative", pod.max.count()));
  if (pod.max < pod.min) {
    return failure(fmt::format("max: {} is below min {}", pod.max.count(), pod.min.count()));
  }
  if (pod.guarantee > pod.min) {
    return failure(
        fmt::format("guarantee: {} is above min {}", pod.guarantee.count(), pod.min.count()));
  }
  return {};
}

Result<void> checkSize(const Problem& problem) {
  if (Result<void> ok = checkAmount("capacity", problem.capacity); !ok) return ok;
  if (problem.pods.size() > kMostPods) {
    return failure(fmt::format("pods: {} of them, more than {}", problem.pods.size(), kMostPods));
  }
  return {};
}

Result<void> checkPods(const Problem& problem) {
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    if (isWellFormed(problem.pods[i])) continue;
    const Result<void> ok = checkPod(problem.pods[i]);
    return failure(fmt::format("pods[{}].{}", i, ok.error().message()));
  }
  return {};
}

}  // namespace

Result<void> validate(const Problem& problem) {
  if (Result<void> ok = checkSize(problem); !ok) return ok;
  if (Result<void> ok = checkPods(problem); !ok) return ok;
  std::unordered_set<std::string_view> ids;
  ids.reserve(problem.pods.size());
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    if (!ids.insert(problem.pods[i].id).second) {
      return failure(fmt::format("pods[{}].id: \"{}\" is repeated", i, problem.pods[i].id));
    }
  }
  return {};
}

struct Solver::Workspace {
  // Pods that compete on the same terms: those that bid, those with a weight only, the others. Each
  // tier gets its mins first and then what the tiers before it cannot use.
  struct Tier {
    std::vector<Buyer> all;  // the first `count` are in use
    std::size_t count = 0;
    std::int64_t min_sum = 0;
    std::int64_t max_sum = 0;
    double smallest_bid = kLargestBid;
    double largest_bid = 0;

    void reset(std::size_t pods) {
      all.resize(std::max(all.size(), pods));
      *this = {.all = std::move(all)};
    }
    std::span<const Buyer> buyers() const { return {all.data(), count}; }
    void add(double bid, Objective objective, const Pod& pod, std::uint32_t index) {
      const std::int64_t min = pod.min.count();
      const std::int64_t max = effectiveMax(pod);
      const std::int64_t base = objective == Objective::kBargaining ? min : 0;
      all[count++] = {bid, base, min - base, max - base, index};
      min_sum += min;
      max_sum += max;
      smallest_bid = std::min(smallest_bid, bid);
      largest_bid = std::max(largest_bid, bid);
    }
  };

  std::array<Tier, 3> tiers;
  std::vector<Breakpoint> breakpoints;
  std::vector<Part<U128>> narrow_parts;
  std::vector<Part<U256>> wide_parts;
  std::vector<Contender> contenders;

  template <class Wide>
  std::vector<Part<Wide>>& partsOf() {
    if constexpr (sizeof(Wide) == sizeof(U128)) {
      return narrow_parts;
    } else {
      return wide_parts;
    }
  }

  // False if a pod is not well formed.
  bool solve(const Problem& problem, Clearing& clearing);
  void shareOverload(const Problem& problem, std::int64_t min_sum, Clearing& clearing);
  // Gives a tier that wants more than `capacity` exactly that much, and returns the price.
  double shareTier(const Problem& problem, const Tier& tier, Basis basis, std::int64_t capacity,
                   Clearing& clearing);
  template <class Wide>
  double shareTier(const Problem& problem, const Tier& tier, BidUnit unit, Basis basis,
                   std::int64_t capacity, Clearing& clearing);
  template <class Wide>
  void divide(const Problem& problem, std::span<Part<Wide>> among, const Wide& total,
              std::int64_t amount) {
    apportion(among, total, amount, contenders,
              [&](std::uint32_t pod) -> std::string_view { return problem.pods[pod].id; });
  }
};

template <class Wide>
double Solver::Workspace::shareTier(const Problem& problem, const Tier& tier, BidUnit unit,
                                    Basis basis, std::int64_t capacity, Clearing& clearing) {
  const Level<Wide> level =
      findLevel<Wide>(tier.buyers(), capacity - tier.min_sum, unit, breakpoints);

  std::vector<Part<Wide>>& parts = partsOf<Wide>();
  parts.resize(std::max(parts.size(), tier.count));
  Part<Wide>* between_end = parts.data();
  Wide bids{0};
  std::int64_t amount = capacity;
  double price_to_leave_min = 0;
  for (const Buyer& buyer : tier.buyers()) {
    const bool at_max = (level.compare(buyer.bid, buyer.most) >= 0) | (buyer.least == buyer.most);
    const bool at_min = !at_max & (level.compare(buyer.bid, buyer.least) <= 0);
    // Which buyers are at a bound is as good as random, so selecting is cheaper than a mispredicted
    // branch.
    const std::int64_t settled = at_max ? buyer.max() : at_min ? buyer.min() : buyer.base;
    const Bound bound = at_max ? Bound::kMax : at_min ? Bound::kMin : Bound::kNone;
    clearing.pods[buyer.pod] = {Millicores(settled), bound, basis};
    amount -= settled;
    const Wide bid = unit.count<Wide>(buyer.bid);
    *between_end = {bid, 0, buyer.pod};
    between_end += bound == Bound::kNone ? 1 : 0;
    bids += bound == Bound::kNone ? bid : Wide(0);
    if (at_min) {
      price_to_leave_min =
          std::max(price_to_leave_min, buyer.bid / static_cast<double>(buyer.least));
    }
  }
  // Every buyer is at a bound: the next millicore would go to the first one to leave its min.
  const std::span between(parts.data(), between_end);
  if (between.empty()) return price_to_leave_min;

  divide(problem, between, bids, amount);
  for (const Part<Wide>& part : between) clearing.pods[part.pod].cpu += Millicores(part.cpu);
  return toDouble(bids) * unit.value() / static_cast<double>(amount);
}

double Solver::Workspace::shareTier(const Problem& problem, const Tier& tier, Basis basis,
                                    std::int64_t capacity, Clearing& clearing) {
  const BidUnit unit(tier.smallest_bid);
  constexpr int kSpareBits = 2;
  return unit.bitsOfSum(tier.largest_bid, tier.count) + kSpareBits <= 128
             ? shareTier<U128>(problem, tier, unit, basis, capacity, clearing)
             : shareTier<U256>(problem, tier, unit, basis, capacity, clearing);
}

void Solver::Workspace::shareOverload(const Problem& problem, std::int64_t min_sum,
                                      Clearing& clearing) {
  std::int64_t guarantee_sum = 0;
  for (const Pod& pod : problem.pods) guarantee_sum += pod.guarantee.count();
  const std::int64_t capacity = problem.capacity.count();
  const bool honoured = guarantee_sum <= capacity;
  const std::int64_t amount = honoured ? capacity - guarantee_sum : capacity;
  const std::int64_t total = honoured ? min_sum - guarantee_sum : guarantee_sum;

  narrow_parts.resize(std::max(narrow_parts.size(), problem.pods.size()));
  const std::span parts(narrow_parts.data(), problem.pods.size());
  for (std::uint32_t i = 0; i < problem.pods.size(); ++i) {
    const std::int64_t guarantee = problem.pods[i].guarantee.count();
    const std::int64_t weight = honoured ? problem.pods[i].min.count() - guarantee : guarantee;
    parts[i] = {static_cast<U128>(weight), 0, i};
  }
  divide(problem, parts, static_cast<U128>(total), amount);
  for (const Part<U128>& part : parts) {
    const Millicores base = honoured ? problem.pods[part.pod].guarantee : Millicores(0);
    clearing.pods[part.pod] = {base + Millicores(part.cpu), Bound::kMin,
                               honoured ? Basis::kFloors : Basis::kGuarantees};
  }
  clearing.mode = Mode::kOverloaded;
  clearing.price = std::nullopt;
  clearing.overload_share = static_cast<double>(amount) / static_cast<double>(total);
  clearing.allocated = problem.capacity;
}

bool Solver::Workspace::solve(const Problem& problem, Clearing& clearing) {
  for (Tier& tier : tiers) tier.reset(problem.pods.size());
  std::int64_t min_sum = 0;
  for (std::uint32_t i = 0; i < problem.pods.size(); ++i) {
    const Pod& pod = problem.pods[i];
    if (!isWellFormed(pod)) return false;
    min_sum += pod.min.count();
    const double bid = effective(pod.bid);
    const double weight = effective(pod.weight);
    if (bid > 0) {
      tiers[0].add(bid, problem.objective, pod, i);
    } else if (weight > 0) {
      tiers[1].add(weight, problem.objective, pod, i);
    } else {
      tiers[2].add(1, problem.objective, pod, i);
    }
  }
  if (min_sum > problem.capacity.count()) {
    shareOverload(problem, min_sum, clearing);
    return true;
  }

  std::int64_t spare = problem.capacity.count() - min_sum;
  constexpr std::array kBases = {Basis::kBid, Basis::kWeight, Basis::kEqual};
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    const Tier& tier = tiers[i];
    const std::int64_t wanted = tier.max_sum - tier.min_sum;
    if (wanted > spare) {
      const double price = shareTier(problem, tier, kBases[i], tier.min_sum + spare, clearing);
      if (i == 0) {
        clearing.mode = Mode::kCongested;
        clearing.price = price;
      } else if (spare > 0) {
        clearing.spare_price = price;
      }
      spare = 0;
    } else {
      for (const Buyer& buyer : tier.buyers()) {
        clearing.pods[buyer.pod] = {Millicores(buyer.max()), Bound::kMax, kBases[i]};
      }
      spare -= wanted;
    }
  }
  clearing.unallocated = Millicores(spare);
  clearing.allocated = problem.capacity - clearing.unallocated;
  return true;
}

Solver::Solver() : workspace_(std::make_unique<Workspace>()) {}
Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

Result<void> Solver::solve(const Problem& problem, Clearing& clearing) {
  if (Result<void> ok = checkSize(problem); !ok) return ok;
  clearing.pods.resize(problem.pods.size());
  clearing = {.pods = std::move(clearing.pods)};
  if (!workspace_->solve(problem, clearing)) return checkPods(problem);
  return {};
}

Result<Clearing> clear(const Problem& problem) {
  if (Result<void> ok = validate(problem); !ok) return failure(std::move(ok).error());
  Clearing clearing;
  Solver solver;
  if (Result<void> ok = solver.solve(problem, clearing); !ok) {
    return failure(std::move(ok).error());
  }
  return clearing;
}

}  // namespace mbcas::market
