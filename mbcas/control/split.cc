#include "mbcas/control/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "mbcas/control/guards.h"
#include "mbcas/market/solver.h"

namespace mbcas::control {
namespace {

using Steps = std::int64_t;  // of 10m

Steps stepsOf(Millicores amount) {
  return roundUp(amount).count() / kLimitStep.count();
}

// Adds `steps` to the parts in proportion to the weights, by largest remainder, ties to the first.
// Weights that are all zero count as equal.
void share(Steps steps, std::vector<Steps> weights, std::vector<Steps>& parts) {
  Steps total = std::accumulate(weights.begin(), weights.end(), Steps{0});
  if (total == 0) {
    std::ranges::fill(weights, 1);
    total = static_cast<Steps>(weights.size());
  }
  std::vector<std::pair<Steps, std::size_t>> remainders;
  Steps left = steps;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] += weights[i] * steps / total;
    left -= weights[i] * steps / total;
    remainders.emplace_back(-(weights[i] * steps % total), i);
  }
  std::ranges::sort(remainders);
  for (std::size_t k = 0; k < static_cast<std::size_t>(left); ++k) ++parts[remainders[k].second];
}

std::vector<Steps> beyond(const std::vector<Steps>& wanted, const std::vector<Steps>& had) {
  std::vector<Steps> more(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) more[i] = std::max<Steps>(wanted[i] - had[i], 0);
  return more;
}

Steps sum(const std::vector<Steps>& steps) {
  return std::accumulate(steps.begin(), steps.end(), Steps{0});
}

std::vector<Millicores> asLimits(const std::vector<Steps>& steps) {
  std::vector<Millicores> limits(steps.size());
  std::ranges::transform(steps, limits.begin(), [](Steps n) { return kLimitStep * n; });
  return limits;
}

}  // namespace

Millicores neededLimit(const demand::Need& need, const Settings& settings) {
  const auto room = static_cast<double>(need.use_peak.count()) * settings.headroom;
  return std::max(need.burst, Millicores(std::llround(room)));
}

Millicores keptCpus(const Container& container, Millicores desired) {
  // A thread that is always busy is measured as 1002m now and then, and does not need two CPUs.
  constexpr std::int64_t kNoise = 20;
  const std::int64_t peak = container.need.use_peak.count() - kNoise;
  if (peak <= 1000) return Millicores(0);
  return std::min({container.limit, desired, Millicores((peak + 999) / 1000 * 1000)});
}

Millicores marketUse(const demand::Need& need) {
  return Millicores(std::llround(static_cast<double>(need.use.count()) * need.busy));
}

std::vector<Millicores> shapedLimits(const Pod& pod, Millicores award) {
  std::vector<std::size_t> order(pod.containers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::pair(marketUse(pod.containers[i].need), i); });
  std::vector<Millicores> limits(pod.containers.size());
  Millicores left = award;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Container& container = pod.containers[order[k]];
    const demand::Need& need = container.need;
    const Millicores use = marketUse(need);
    const Millicores share(left.count() / static_cast<std::int64_t>(order.size() - k));
    const Millicores part = std::min(use, share);
    left -= part;
    // A level that was only guessed from waiting threads says nothing about bursts. A container
    // that uses its whole limit for seconds has no bursts. Neither has a container that always runs
    // and waits for a CPU half of the time: what looks like pauses are the turns of others.
    const bool kept_from_running = pod.contention >= 0.5 && need.busy >= 1;
    const bool bursty = need.burst_state != demand::BurstState::kGuessed &&
                        need.used_peak * 100 < container.limit * 95 && !kept_from_running;
    const Millicores top = std::max(need.use, bursty ? need.burst : Millicores(0));
    limits[order[k]] = use == Millicores(0)
                           ? top
                           : Millicores(part.count() * std::max(top, use).count() / use.count());
  }
  return limits;
}

std::vector<Millicores> splitLimit(const Pod& pod, std::span<const Millicores> needs,
                                   Millicores limit) {
  const Steps whole = stepsOf(limit);
  std::vector<Steps> parts;
  std::vector<Steps> wanted;
  std::vector<Steps> declared;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    parts.push_back(stepsOf(std::max(pod.containers[i].request, kLimitStep)));
    wanted.push_back(stepsOf(needs[i]));
    declared.push_back(stepsOf(pod.containers[i].declared));
  }
  if (sum(parts) >= whole) {
    const std::vector<Steps> requests = std::exchange(parts, std::vector<Steps>(parts.size()));
    share(whole, requests, parts);
    return asLimits(parts);
  }
  wanted = beyond(wanted, parts);
  const Steps for_needs = std::min(sum(wanted), whole - sum(parts));
  if (for_needs > 0) share(for_needs, wanted, parts);
  const Steps rest = whole - sum(parts);
  if (rest > 0) share(rest, beyond(declared, parts), parts);
  return asLimits(parts);
}

std::vector<Millicores> splitOnTheWay(std::span<const Millicores> in_force,
                                      std::span<const Millicores> target, Millicores limit) {
  const Millicores from = std::accumulate(in_force.begin(), in_force.end(), Millicores(0));
  const Millicores to = std::accumulate(target.begin(), target.end(), Millicores(0));
  if (limit == to) return {target.begin(), target.end()};
  std::vector<Millicores> limits(in_force.begin(), in_force.end());
  if (limit == from || from == to) return limits;
  // Each container moves by the same share of its own way, and the last one takes what rounding
  // left.
  const double share_of_way = (limit - from).cores() / (to - from).cores();
  Millicores left = limit;
  for (std::size_t i = 0; i + 1 < limits.size(); ++i) {
    const double way = static_cast<double>((target[i] - limits[i]).count()) * share_of_way;
    const Millicores part = roundUp(limits[i] + Millicores(static_cast<std::int64_t>(way)));
    limits[i] = std::max(part, std::min(limits[i], target[i]));
    left -= limits[i];
  }
  limits.back() = std::max(left, std::min(limits.back(), target.back()));
  return limits;
}

std::vector<Millicores> splitWithin(std::span<const BoundedPart> parts, Millicores total) {
  // The market counts in steps here, so that its whole numbers are ours.
  market::Problem problem{.objective = market::Objective::kWelfare};
  Millicores least;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Steps floor = parts[i].floor.count() / kLimitStep.count();
    problem.pods.push_back(
        {.id = std::to_string(i),
         .bid = static_cast<double>(std::max<std::int64_t>(1, parts[i].desired.count())),
         .min = Millicores(floor),
         .max = Millicores(std::max(floor, parts[i].ceiling.count() / kLimitStep.count()))});
    least += Millicores(floor);
  }
  problem.capacity = std::max(least, Millicores(stepsOf(total)));
  const Result<market::Clearing> clearing = market::clear(problem);
  std::vector<Millicores> split;
  split.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    split.push_back(clearing ? clearing->pods[i].cpu * kLimitStep.count() : parts[i].floor);
  }
  return split;
}

}  // namespace mbcas::control
