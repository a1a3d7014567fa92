#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mbcas/resize/resize.h"

namespace mbcas::resize {
namespace {

__extension__ using Wide = __int128;

struct Share {
  std::string_view name;
  std::int64_t weight = 0;
  std::int64_t least = 1;  // steps
  std::int64_t steps = 0;
  Wide remainder = 0;
  bool at_least = false;  // its proportion would be below `least`
};

std::int64_t stepsUp(Millicores cpu) {
  return roundUpToStep(cpu).count() / kStep.count();
}

Result<std::vector<Share>> participants(const kube::Pod& pod, Policy policy,
                                        const std::vector<std::string>& only) {
  for (const std::string& name : only) {
    if (pod.container(name) == nullptr) return failure(fmt::format("no container {}", name));
  }
  std::vector<Share> shares;
  for (const kube::Container& container : pod.containers) {
    const std::optional<Millicores> today =
        policy == Policy::kRequests ? container.requests.cpu() : container.limits.cpu();
    const bool chosen = only.empty()
                            ? today.has_value() && container.role != kube::ContainerRole::kInit
                            : std::ranges::find(only, container.name.view()) != only.end();
    if (!chosen) continue;
    Share share{.name = container.name,
                .weight = std::max<std::int64_t>(1, today.value_or(Millicores(0)).count())};
    if (policy == Policy::kLimits) {
      share.least = stepsUp(container.requests.cpu().value_or(Millicores(0)));
    }
    shares.push_back(share);
  }
  if (shares.empty()) {
    return failure(policy == Policy::kRequests ? "no container has a CPU request"
                                               : "no container has a CPU limit");
  }
  return shares;
}

// In proportion, none below its least: who would be is given just that, and the others divide the
// rest, until nobody is.
void divide(std::vector<Share>& shares, std::int64_t steps) {
  Wide weight = 0;
  for (bool again = true; std::exchange(again, false);) {
    weight = 0;
    for (const Share& share : shares) weight += share.at_least ? 0 : share.weight;
    std::int64_t rest = steps;
    for (const Share& share : shares) rest -= share.at_least ? share.least : 0;
    for (Share& share : shares) {
      if (share.at_least) {
        share.steps = share.least;
        continue;
      }
      const Wide product = Wide{share.weight} * std::max<std::int64_t>(0, rest);
      share.steps = static_cast<std::int64_t>(product / weight);
      share.remainder = product % weight;
      if (share.steps < share.least) share.at_least = again = true;
    }
  }
  std::vector<Share*> by_remainder;
  for (Share& share : shares) {
    steps -= share.steps;
    if (!share.at_least) by_remainder.push_back(&share);
  }
  std::ranges::sort(by_remainder, [](const Share* a, const Share* b) {
    return a->remainder != b->remainder ? a->remainder > b->remainder : a < b;  // then in order
  });
  for (Share* share : by_remainder) {
    if (steps-- <= 0) break;
    ++share->steps;
  }
}

}  // namespace

Millicores roundUpToStep(Millicores cpu) {
  const std::int64_t step = kStep.count();
  const std::int64_t count = std::max<std::int64_t>(1, cpu.count());
  return Millicores((count / step + (count % step == 0 ? 0 : 1)) * step);
}

Result<std::vector<ContainerCpu>> split(const kube::Pod& pod, Millicores total, Policy policy,
                                        const std::vector<std::string>& only) {
  Result<std::vector<Share>> shares = participants(pod, policy, only);
  if (!shares) return failure(std::move(shares).error());
  divide(*shares, stepsUp(total));
  std::vector<ContainerCpu> result;
  for (const Share& share : *shares) {
    const Millicores cpu = kStep * share.steps;
    ContainerCpu container{.name = std::string(share.name)};
    if (policy != Policy::kLimits) container.request = cpu;
    if (policy != Policy::kRequests) container.limit = cpu;
    result.push_back(std::move(container));
  }
  return result;
}

}  // namespace mbcas::resize
