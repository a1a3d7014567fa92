#include "mbcas/cli/decision_record.h"

#include <algorithm>
#include <string_view>

#include "mbcas/control/help.h"
#include "mbcas/control/reason.h"
#include "mbcas/market/json.h"

namespace mbcas::cli {
namespace {

std::vector<double> flatWeights(const std::vector<control::Cgroup>& machine) {
  std::vector<double> below(machine.size(), 0);  // sums over the children
  for (const control::Cgroup& cgroup : machine) {
    if (cgroup.parent) below[*cgroup.parent] += cgroup.weight;
  }
  std::vector<double> weights;  // parents come before their children
  weights.reserve(machine.size());
  for (const control::Cgroup& cgroup : machine) {
    weights.push_back(cgroup.parent
                          ? weights[*cgroup.parent] * cgroup.weight / below[*cgroup.parent]
                          : cgroup.weight);
  }
  return weights;
}

}  // namespace

void writeDecision(const control::PodDecision& decision, PodRecord& pod) {
  const control::Reason& reason = decision.reason;
  pod.desired = decision.desired;
  pod.answer = decision.answer;
  pod.wanted = decision.wanted;
  pod.urgent = decision.urgent;
  pod.constrained = decision.constrained;
  pod.throttled = decision.throttled;
  pod.basis = control::name(reason.basis);
  pod.reason = control::sentence(reason);
  if (decision.award > Millicores(0)) pod.award = decision.award;
  if (decision.by_kernel) {
    if (*decision.by_kernel > Millicores(0)) pod.by_kernel = decision.by_kernel;
    pod.help = control::name(decision.help);
    pod.claim = decision.claim;
  }
  pod.bounds = BoundsRecord{.managed = true, .floor = reason.floor, .ceiling = reason.ceiling};
}

void writeNeed(const demand::Need& need, ContainerRecord& container) {
  container.periods = static_cast<std::int64_t>(need.last.periods);
  container.throttled_periods = static_cast<std::int64_t>(need.last.throttled_periods);
  container.use = need.use;
  container.use_peak = need.use_peak;
  container.used_peak = need.used_peak;
  container.burst = need.burst;
  container.burst_state = std::string(demand::name(need.burst_state));
  container.binding = need.binding;
  container.samples = need.samples;
}

MarketRecord marketOf(const control::NodeDecision& decision, Millicores unmanaged_use) {
  return {.capacity = decision.capacity,
          .whole_machine = decision.whole_machine,
          .demand = decision.demand,
          .scarce = decision.scarce,
          .mode = decision.mode ? std::string(market::name(*decision.mode)) : "",
          .price = decision.price,
          .welfare = decision.welfare,
          .unmanaged_use = unmanaged_use};
}

std::vector<std::optional<double>> kernelWeightsOf(const control::NodeInput& input) {
  std::vector<std::optional<double>> weights(input.pods.size());
  const std::vector<double> flat = flatWeights(input.machine);
  for (std::size_t c = 0; c < input.machine.size(); ++c) {
    const std::optional<std::size_t> pod = input.machine[c].pod;
    if (pod && *pod < weights.size()) weights[*pod] = flat[c];
  }
  return weights;
}

std::vector<OtherRecord> othersOf(const control::NodeInput& input,
                                  const std::vector<PodRecord>& pods) {
  std::vector<OtherRecord> others;
  const std::vector<double> weights = flatWeights(input.machine);
  for (std::size_t c = 0; c < input.machine.size(); ++c) {
    const control::Cgroup& cgroup = input.machine[c];
    if (cgroup.inner || cgroup.pod || cgroup.use < Millicores(1)) continue;
    if (std::ranges::find(pods, cgroup.id, &PodRecord::uid) != pods.end()) continue;
    others.push_back({cgroup.id, cgroup.use, weights[c]});
  }
  std::ranges::sort(others, [](const OtherRecord& a, const OtherRecord& b) {
    return a.usage != b.usage ? a.usage > b.usage : a.name < b.name;
  });
  if (others.size() > kMostOthers) others.resize(kMostOthers);
  return others;
}

}  // namespace mbcas::cli
