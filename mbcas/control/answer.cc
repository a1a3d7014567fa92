#include "mbcas/control/answer.h"

#include <algorithm>
#include <cmath>

#include "mbcas/control/guards.h"
#include "mbcas/control/split.h"

namespace mbcas::control {
namespace {

constexpr Millicores kNegligible(1);  // 1 ms of blocked work in a second

Millicores scaled(Millicores amount, double factor) {
  return Millicores(std::llround(static_cast<double>(amount.count()) * factor));
}

Millicores bounded(const PodView& pod, Millicores limit) {
  return std::clamp(roundUp(limit), pod.floor, pod.ceiling);
}

}  // namespace

Millicores Pod::limit() const {
  Millicores sum;
  for (const Container& container : containers) sum += container.limit;
  return sum;
}

Millicores Pod::declared() const {
  Millicores sum;
  for (const Container& container : containers) sum += container.declared;
  return sum;
}

Millicores Pod::request() const {
  Millicores sum;
  for (const Container& container : containers) sum += container.request;
  return sum;
}

Millicores nodeCapacity(const NodeInput& input, Millicores unmanaged_use,
                        const Settings& settings) {
  Millicores requests;
  for (const Pod& pod : input.pods) requests += pod.request();
  const Millicores unmanaged =
      settings.strict_capacity ? std::max(unmanaged_use, input.unmanaged_requests) : unmanaged_use;
  const Millicores left = scaled(input.capacity, 1 - settings.reserve) - unmanaged;
  return std::max(scaled(left, std::pow(settings.condition_factor, input.pressure_conditions)),
                  requests);
}

PodView viewOf(const Pod& pod, const NodeInput& input, const Settings& settings,
               std::span<const Millicores> desired) {
  PodView view;
  view.fresh = view.warm = !pod.containers.empty();
  view.limit = pod.limit();
  view.declared = pod.declared();
  view.request = std::max(pod.request(), kLimitStep);
  const bool known = desired.size() == pod.containers.size();
  for (std::size_t i = 0; i < pod.containers.size(); ++i) {
    const Container& container = pod.containers[i];
    const demand::Need& need = container.need;
    view.fresh &= need.samples > 0 && need.good_until >= input.now;
    view.warm &= need.ready;
    view.use += marketUse(need);
    view.use_peak += need.use_peak;
    view.burst += need.burst;
    view.present += need.present;
    // A level that was only guessed from waiting threads proves nothing.
    const bool bursty = need.burst_state != demand::BurstState::kGuessed;

    const Millicores needed =
        std::max({neededLimit(need, settings), container.request, kLimitStep});
    const bool throttled = need.blocked > kNegligible;
    view.throttled |= throttled;
    view.cramped |= throttled && needed > scaled(container.limit, 1 + settings.hysteresis);
    view.needed += needed;
    view.proven += std::max({bursty ? need.burst : Millicores(0),
                             scaled(need.used_peak, settings.headroom), container.request});
    const Millicores own =
        settings.reclaim == Reclaim::kAlways ? needed : std::max(needed, container.declared);
    const Millicores kept = isClassic(settings)
                                ? Millicores(0)
                                : keptCpus(container, known ? desired[i] : container.limit);
    view.keeps_cpus |= kept > own;
    view.free += roundUp(std::max(own, kept));
  }
  view.warm |= view.throttled;

  const Millicores node =
      isClassic(settings) ? scaled(input.capacity, 1 - settings.reserve) : input.capacity;
  const Millicores ceiling = pod.ceiling.value_or(std::max(node, roundUp(view.declared)));
  view.ceiling = std::max(roundDown(ceiling), roundUp(view.request));
  // A declared limit between two steps is kept where the ceiling allows it.
  if (ceiling >= view.declared) view.ceiling = std::max(view.ceiling, view.declared);
  const Millicores floor = std::max(pod.floor.value_or(settings.min_cpu), view.request);
  view.floor = std::min(roundUp(floor), view.ceiling);
  view.free = bounded(view, view.free);
  return view;
}

Answer freeAnswer(const PodView& pod, const Settings& settings) {
  Answer answer{.limit = pod.free, .unbounded = pod.needed};
  // Threads that waited under a lower limit and wait no longer are no reason to raise it.
  const Millicores enough = std::max({pod.limit, pod.declared, pod.proven});
  if (!pod.throttled && pod.free > enough) answer.limit = bounded(pod, enough);
  if (pod.needed > pod.ceiling) {
    answer.basis = Basis::kCeiling;
  } else if (settings.reclaim != Reclaim::kAlways && pod.free <= roundUp(pod.declared)) {
    answer.basis = Basis::kDeclared;
  } else if (pod.needed <= pod.floor && pod.free == pod.floor) {
    answer.basis = Basis::kFloor;
  } else if (pod.keeps_cpus) {
    answer.basis = Basis::kWholeCpus;
  } else {
    answer.basis =
        pod.burst >= scaled(pod.use_peak, settings.headroom) ? Basis::kBurst : Basis::kUse;
  }
  return answer;
}

Answer constrainedAnswer(const PodView& pod, Millicores shaped) {
  Answer answer{.constrained = true, .basis = Basis::kConstrained};
  // The limit of a free pod is enough for a constrained pod.
  answer.unbounded = std::min(shaped, pod.needed);
  answer.limit = std::min(bounded(pod, answer.unbounded), pod.free);
  return answer;
}

Answer clearedAnswer(const PodView& pod, Millicores award, const Settings& settings) {
  // Rounded down, so that the sum stays within what was cleared. Only where limits must fit may a
  // pod have less than its floor.
  const Millicores least = settings.strict_capacity ? roundUp(pod.request) : pod.floor;
  const Millicores limit = std::clamp(roundDown(award), least, std::max(pod.ceiling, least));
  return {.limit = limit,
          .unbounded = award,
          .constrained = limit < roundDown(pod.free),
          .basis = Basis::kCleared};
}

}  // namespace mbcas::control
