#include "mbcas/control/intervention.h"

#include <algorithm>
#include <cmath>

namespace mbcas::control {
namespace {

constexpr double kNothing = 1e-6;  // a microcore
// Differences between award and division that are worth a limit.
constexpr double kMoreThanAward = 1.02;
constexpr double kLessThanAward = 0.98;
// The promise is computed a little more strictly than it is stated, for what rounding takes.
constexpr double kPromised = 0.985;
constexpr int kHalvings = 12;

constexpr double kIdleFrom = 0.05;  // of the machine: from here on no consumer is hungry
constexpr double kUsesAll = 0.95;   // of what a hungry consumer would get

}  // namespace

template <class Limit, class Weight>
std::vector<double> Intervener::divide(Demand demand, Limit limit, Weight weight) {
  nodes_.resize(consumers_.size());
  for (std::size_t i = 0; i < consumers_.size(); ++i) {
    const Consumer& consumer = consumers_[i];
    nodes_[i] = consumer.cgroup;
    if (!consumer.managed) continue;
    nodes_[i].cap = limit(i);
    nodes_[i].weight = weight(consumer);
    if (demand == Demand::kClaimed && consumer.claim) nodes_[i].demand = *consumer.claim;
    // The use of a pod under its declared limit says little about its use without that limit.
    if (demand == Demand::kRaised && nodes_[i].cap > consumer.declared) {
      nodes_[i].demand = std::max(nodes_[i].demand, consumer.peak);
    }
  }
  const std::span<const double> shares = division_.divide(capacity_, nodes_);
  return {shares.begin(), shares.end()};
}

template <class Limit>
std::vector<double> Intervener::divide(Demand demand, Limit limit) {
  return divide(demand, limit, [](const Consumer& consumer) { return consumer.cgroup.weight; });
}

const Intervention& Intervener::decide(double capacity, std::span<const Consumer> consumers,
                                       bool bound_before) {
  capacity_ = capacity;
  consumers_ = consumers;
  answer_ = {};
  answer_.consumers.resize(consumers.size());
  const auto declared = [&](std::size_t i) { return consumers_[i].declared; };
  const auto free = [&](std::size_t i) { return consumers_[i].free; };
  const auto by_market = [](const Consumer& consumer) {
    return consumer.cgroup.weight * consumer.factor;
  };
  const std::vector<double> plain = divide(Demand::kPresent, declared);
  const std::vector<double> by_kernel = divide(Demand::kClaimed, free);
  const std::vector<double> awards = divide(Demand::kClaimed, free, by_market);
  for (std::size_t i = 0; i < consumers.size(); ++i) {
    const Consumer& consumer = consumers[i];
    Outcome& outcome = answer_.consumers[i];
    outcome.plain = plain[i];
    outcome.by_kernel = by_kernel[i];
    outcome.award = awards[i];
    if (!consumer.managed) continue;
    outcome.award = std::max(awards[i], std::min(consumer.request, consumer.cgroup.demand));
    outcome.limit = consumer.free;
    outcome.beneficiary =
        consumer.claim && by_kernel[i] < kLessThanAward * outcome.award - kNothing;
  }
  bind(bound_before);
  keepPromise();
  return answer_;
}

void Intervener::bind(bool bound_before) {
  std::vector<Outcome>& outcomes = answer_.consumers;
  if (std::ranges::none_of(outcomes, &Outcome::beneficiary)) return;
  const auto above = [&](std::size_t i) {
    return consumers_[i].managed &&
           outcomes[i].by_kernel > kMoreThanAward * outcomes[i].award + kNothing;
  };
  // Not raising a limit is no harm: a pod above its award is raised no further than its award, or
  // than its declared limit.
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (above(i)) {
      outcomes[i].limit =
          std::min(outcomes[i].limit, std::max(consumers_[i].declared, outcomes[i].award));
    }
  }
  const auto held = [&](std::size_t i) {
    const Consumer& consumer = consumers_[i];
    const double least = std::max(consumer.request, std::min(consumer.floor, consumer.declared));
    return std::min(outcomes[i].limit, std::max(outcomes[i].award, least));
  };
  const std::vector<double> before =
      divide(Demand::kClaimed, [&](std::size_t i) { return outcomes[i].limit; });
  const std::vector<double> after = divide(Demand::kClaimed, [&](std::size_t i) {
    return above(i) && consumers_[i].may_lower ? held(i) : outcomes[i].limit;
  });
  double taken = 0;
  double arrived = 0;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (above(i)) taken += before[i] - after[i];
    if (outcomes[i].beneficiary) arrived += after[i] - before[i];
  }
  if (taken <= kNothing) return;
  answer_.arrives = arrived / taken;
  if (answer_.arrives < (bound_before ? kBindsUntil : kBindsFrom)) return;
  answer_.binds = true;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!above(i) || !consumers_[i].may_lower) continue;
    outcomes[i].bound = true;
    outcomes[i].limit = held(i);
  }
}

void Intervener::keepPromise() {
  std::vector<Outcome>& outcomes = answer_.consumers;
  const auto raisedBy = [&](double part) {
    return [&, part](std::size_t i) {
      const double declared = consumers_[i].declared;
      const double limit = outcomes[i].limit;
      return limit <= declared ? limit : declared + part * (limit - declared);
    };
  };
  // Both for the demands of now and for those that raised pods might have. What the market would
  // give then belongs to the latter: otherwise pods that matter equally would keep each other low.
  const std::vector<double> later = divide(
      Demand::kRaised, [&](std::size_t i) { return consumers_[i].free; },
      [](const Consumer& consumer) { return consumer.cgroup.weight * consumer.factor; });
  const auto keeps = [&](auto limit) {
    const std::vector<double> now = divide(Demand::kPresent, limit);
    const std::vector<double> raised = divide(Demand::kRaised, limit);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const double promised =
          std::min({outcomes[i].plain, outcomes[i].award, consumers_[i].cgroup.demand});
      if (now[i] < kPromised * promised - kNothing) return false;
      if (raised[i] < kPromised * std::min(promised, later[i]) - kNothing) return false;
    }
    return true;
  };
  if (keeps(raisedBy(1))) return;
  // A limit above what the pod can use next to the others takes nothing from them. Only the part
  // that it would use counts, so that the answer does not depend on how far above it was.
  const std::vector<double> used = divide(Demand::kPresent, raisedBy(1));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!consumers_[i].managed || outcomes[i].limit <= consumers_[i].declared) continue;
    outcomes[i].limit = std::clamp(used[i], consumers_[i].declared, outcomes[i].limit);
  }
  if (!keeps(raisedBy(0))) {
    // Nothing that MBCAS could do would help: limits are as declared.
    answer_.binds = false;
    answer_.raises = 0;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      outcomes[i].bound = false;
      if (consumers_[i].managed)
        outcomes[i].limit = std::min(consumers_[i].declared, consumers_[i].free);
    }
    return;
  }
  double low = 0;
  double high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (keeps(raisedBy(middle)) ? low : high) = middle;
  }
  answer_.raises = low;
  const auto limit = raisedBy(low);
  std::vector<double> limits(outcomes.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) limits[i] = limit(i);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (consumers_[i].managed) outcomes[i].limit = limits[i];
  }
}

std::vector<bool> hungry(double capacity, double idle, std::span<const market::CgroupNode> nodes,
                         std::span<const double> use) {
  std::vector<bool> hungry(nodes.size(), false);
  if (idle >= kIdleFrom * capacity) return hungry;
  std::vector<market::CgroupNode> asking(nodes.begin(), nodes.end());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    hungry[i] = nodes[i].demand > kNothing;
    if (hungry[i]) asking[i].demand = market::kUncapped;
  }
  // A consumer that uses less than a hungry consumer would get is not hungry, and leaves more to
  // the others. Each round settles at least one.
  market::KernelDivision division;
  for (bool settled = true; settled;) {
    settled = false;
    const std::span<const double> shares = division.divide(capacity, asking);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!hungry[i] || use[i] >= kUsesAll * shares[i]) continue;
      hungry[i] = false;
      asking[i].demand = nodes[i].demand;
      settled = true;
    }
    if (settled) continue;
    // A consumer at its own cap, or with a CPU for each thread, is held back by that and not by the
    // kernel: it might have enough.
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (shares[i] >= kUsesAll * std::min(nodes[i].cap, nodes[i].threads)) hungry[i] = false;
    }
  }
  return hungry;
}

}  // namespace mbcas::control
