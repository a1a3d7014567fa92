// What must hold for every market, whatever the numbers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "mbcas/market/solver.h"

namespace mbcas::market {
namespace {

constexpr Millicores kOne{1};

Millicores anyAmount(std::int64_t most) {
  return Millicores(*rc::gen::inRange<std::int64_t>(0, most + 1));
}

double anyBid() {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return 0;
    case 1:
      return *rc::gen::inRange(1, 10);
    case 2:
      return *rc::gen::inRange(1, 1'000'000) * 1e-3;
    default:
      return std::pow(10.0, *rc::gen::inRange(-120, 121) * 0.1);
  }
}

Problem anyProblem() {
  Problem problem;
  problem.objective = *rc::gen::element(Objective::kBargaining, Objective::kWelfare);
  const std::int64_t scale = *rc::gen::element<std::int64_t>(10, 1000, 1 << 30);
  const int pods = *rc::gen::inRange(0, 20);
  std::int64_t max_sum = 0;
  for (int i = 0; i < pods; ++i) {
    Pod pod{.id = std::to_string(i), .bid = anyBid(), .weight = anyBid()};
    if (*rc::gen::inRange(0, 3) > 0) pod.min = anyAmount(scale);
    pod.max = pod.min + anyAmount(4 * scale);
    if (*rc::gen::inRange(0, 2) > 0) pod.guarantee = anyAmount(pod.min.count());
    max_sum += pod.max.count();
    problem.pods.push_back(std::move(pod));
  }
  problem.capacity = anyAmount(max_sum + scale);
  return problem;
}

Clearing solved(const Problem& problem) {
  return clear(problem).value();
}

// Where rounding may go either way, a millicore is nothing.
bool noLess(Millicores a, Millicores b) {
  return a + kOne >= b;
}
bool same(Millicores a, Millicores b) {
  return noLess(a, b) && noLess(b, a);
}

std::size_t anyPodOf(const Problem& problem) {
  RC_PRE(!problem.pods.empty());
  return *rc::gen::inRange<std::size_t>(0, problem.pods.size());
}

RC_GTEST_PROP(Market, KeepsCapacityBoundsAndBooks, ()) {
  const Problem problem = anyProblem();
  const Clearing clearing = solved(problem);
  Millicores sum;
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    const Pod& pod = problem.pods[i];
    const Millicores cpu = clearing.pods[i].cpu;
    sum += cpu;
    RC_ASSERT(cpu >= Millicores(0) && cpu <= pod.max);
    if (clearing.mode != Mode::kOverloaded) RC_ASSERT(cpu >= pod.min);
    if (clearing.mode == Mode::kOverloaded) RC_ASSERT(cpu <= pod.min);
  }
  RC_ASSERT(sum == clearing.allocated);
  RC_ASSERT(clearing.allocated + clearing.unallocated == problem.capacity);
  RC_ASSERT(clearing.unallocated >= Millicores(0));
}

RC_GTEST_PROP(Market, WastesNothing, ()) {
  const Problem problem = anyProblem();
  const Clearing clearing = solved(problem);
  Millicores max_sum;
  for (const Pod& pod : problem.pods) max_sum += pod.max;
  RC_ASSERT(clearing.allocated == std::min(problem.capacity, max_sum));
}

RC_GTEST_PROP(Market, HonoursGuaranteesWhenItCan, ()) {
  const Problem problem = anyProblem();
  const Clearing clearing = solved(problem);
  Millicores guarantees;
  for (const Pod& pod : problem.pods) guarantees += pod.guarantee;
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    const Millicores guarantee = problem.pods[i].guarantee;
    RC_ASSERT((clearing.pods[i].cpu >= guarantee) || guarantees > problem.capacity);
  }
}

// The conditions of Karush, Kuhn and Tucker, with the price as the multiplier of the capacity: the
// marginal value bid / (x - f) of a pod between its bounds equals the price, of one at its min is
// at most that, of one at its max at least. Checked on x rounded either way.
RC_GTEST_PROP(Market, IsOptimal, ()) {
  const Problem problem = anyProblem();
  const Clearing clearing = solved(problem);
  if (clearing.mode == Mode::kOverloaded) {
    RC_ASSERT(!clearing.price);
    return;
  }
  const double price = clearing.price.value();
  // Complementary slackness: a price only where nothing is left.
  RC_ASSERT(price >= 0);
  RC_ASSERT((price > 0) == (clearing.mode == Mode::kCongested));
  if (price > 0) RC_ASSERT(clearing.unallocated == Millicores(0));
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    const Pod& pod = problem.pods[i];
    if (clearing.pods[i].basis != Basis::kBid) continue;
    const auto min = static_cast<double>(pod.min.count());
    const auto max = static_cast<double>(pod.max.count());
    const double f = problem.objective == Objective::kBargaining ? min : 0;
    const double wanted = price == 0 ? max : f + pod.bid / price;
    const double doubt = wanted * 1e-12;
    switch (clearing.pods[i].bound) {
      case Bound::kMax:
        RC_ASSERT(wanted + doubt >= max || pod.min == pod.max);
        break;
      case Bound::kMin:
        RC_ASSERT(wanted - doubt <= min);
        break;
      case Bound::kNone:
        RC_ASSERT(std::abs(static_cast<double>(clearing.pods[i].cpu.count()) - wanted) <=
                  1 + doubt);
        break;
    }
  }
}

RC_GTEST_PROP(Market, GrowsWithTheCapacity, ()) {
  const Problem problem = anyProblem();
  Problem larger = problem;
  larger.capacity += anyAmount(*rc::gen::element(1, 100, 100'000));
  const Clearing before = solved(problem);
  const Clearing after = solved(larger);
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    RC_ASSERT(noLess(after.pods[i].cpu, before.pods[i].cpu));
  }
  // The price falls.
  if (before.price && after.price) RC_ASSERT(*after.price <= *before.price * (1 + 1e-12));
}

RC_GTEST_PROP(Market, GrowsWithTheOwnBid, ()) {
  const Problem problem = anyProblem();
  const std::size_t pod = anyPodOf(problem);
  Problem richer = problem;
  richer.pods[pod].bid += anyBid();
  const Clearing before = solved(problem);
  const Clearing after = solved(richer);
  RC_ASSERT(noLess(after.pods[pod].cpu, before.pods[pod].cpu));
}

RC_GTEST_PROP(Market, KnowsNoNames, ()) {
  Problem problem = anyProblem();
  const Clearing before = solved(problem);
  const auto salt = *rc::gen::arbitrary<unsigned>();
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    problem.pods[i].id = std::to_string((i + 1) * (salt | 1u)) + "-" + std::to_string(i);
  }
  const Clearing after = solved(problem);
  // Another name can win or lose a tie for one millicore, nothing else.
  RC_ASSERT(after.mode == before.mode);
  RC_ASSERT(after.price == before.price);
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    RC_ASSERT(after.pods[i].bound == before.pods[i].bound);
    RC_ASSERT(same(after.pods[i].cpu, before.pods[i].cpu));
  }
}

RC_GTEST_PROP(Market, TreatsEqualsEqually, ()) {
  Problem problem = anyProblem();
  const std::size_t pod = anyPodOf(problem);
  problem.pods.push_back(problem.pods[pod]);
  problem.pods.back().id = "twin";
  const Clearing clearing = solved(problem);
  RC_ASSERT(same(clearing.pods[pod].cpu, clearing.pods.back().cpu));
  RC_ASSERT(clearing.pods[pod].bound == clearing.pods.back().bound);
}

RC_GTEST_PROP(Market, DependsNotOnTheOrder, ()) {
  Problem problem = anyProblem();
  const Clearing before = solved(problem);
  std::reverse(problem.pods.begin(), problem.pods.end());
  const auto by = problem.pods.empty() ? 0 : *rc::gen::inRange<std::size_t>(0, problem.pods.size());
  std::rotate(problem.pods.begin(), problem.pods.begin() + static_cast<std::ptrdiff_t>(by),
              problem.pods.end());
  Clearing after = solved(problem);
  std::rotate(after.pods.begin(), after.pods.end() - static_cast<std::ptrdiff_t>(by),
              after.pods.end());
  std::reverse(after.pods.begin(), after.pods.end());
  RC_ASSERT(after == before);
}

// Only the proportions of bids matter. Doubling is exact in doubles, so nothing may change; other
// factors round the bids themselves.
RC_GTEST_PROP(Market, KnowsNoCurrency, ()) {
  const Problem problem = anyProblem();
  const Clearing before = solved(problem);
  Problem scaled = problem;
  const int power = *rc::gen::inRange(-20, 21);
  for (Pod& pod : scaled.pods) pod.bid = std::ldexp(pod.bid, power);
  Clearing after = solved(scaled);
  if (after.price) after.price = std::ldexp(*after.price, -power);
  RC_ASSERT(after == before);

  const double factor = *rc::gen::inRange(1, 10'000) * 0.0037;
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    scaled.pods[i].bid = problem.pods[i].bid * factor;
  }
  after = solved(scaled);
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    RC_ASSERT(same(after.pods[i].cpu, before.pods[i].cpu));
  }
}

// When a pod leaves, it has nothing, and those who stay have no less.
RC_GTEST_PROP(Market, NobodyGainsByBeingRemovedNorLosesByAnothersLeaving, ()) {
  const Problem problem = anyProblem();
  const std::size_t gone = anyPodOf(problem);
  const Clearing before = solved(problem);
  Problem smaller = problem;
  smaller.pods.erase(smaller.pods.begin() + static_cast<std::ptrdiff_t>(gone));
  const Clearing after = solved(smaller);
  RC_ASSERT(before.pods[gone].cpu >= Millicores(0));
  for (std::size_t i = 0; i < smaller.pods.size(); ++i) {
    RC_ASSERT(noLess(after.pods[i].cpu, before.pods[i < gone ? i : i + 1].cpu));
  }
}

// Under the entitlement rule a pod's bid is its weight, its max its need. Claiming to need more
// when it is constrained, that is, below what it claims already, changes nothing at all, for
// anybody.
RC_GTEST_PROP(Market, OverReportingNeedGainsNothingWhileConstrained, ()) {
  Problem problem = anyProblem();
  for (Pod& pod : problem.pods) pod.bid = pod.weight = std::max(pod.weight, 1e-12);
  const std::size_t pod = anyPodOf(problem);
  const Clearing before = solved(problem);
  RC_PRE(before.pods[pod].bound != Bound::kMax);
  problem.pods[pod].max += anyAmount(1'000'000);
  RC_ASSERT(solved(problem) == before);
}

// Nor does splitting into two pods that bid the same together, while mins and maxes split too.
RC_GTEST_PROP(Market, SplittingGainsNothing, ()) {
  Problem problem = anyProblem();
  const std::size_t pod = anyPodOf(problem);
  Pod& whole = problem.pods[pod];
  whole.bid = std::max(whole.bid, 1e-12);
  whole.min = Millicores(whole.min.count() / 2 * 2);
  whole.max = Millicores((whole.max.count() + 1) / 2 * 2);
  whole.guarantee = Millicores(0);
  const Clearing before = solved(problem);
  Pod half = whole;
  half.bid /= 2;
  half.weight /= 2;
  half.min = Millicores(half.min.count() / 2);
  half.max = Millicores(half.max.count() / 2);
  problem.pods[pod] = half;
  half.id = "other half";
  problem.pods.push_back(half);
  const Clearing after = solved(problem);
  const Millicores together = after.pods[pod].cpu + after.pods.back().cpu;
  RC_ASSERT(together <= before.pods[pod].cpu + Millicores(2));
}

}  // namespace
}  // namespace mbcas::market
