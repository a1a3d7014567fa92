#include "mbcas/cli/host_record.h"

#include "mbcas/control/reason.h"
#include "mbcas/demand/need.h"
#include "mbcas/host/show.h"
#include "mbcas/market/json.h"

namespace mbcas::cli {
namespace {

std::string nameOf(const host::View& view, const std::string& path) {
  for (const host::PodView& pod : view.pods) {
    if (pod.path == path) return pod.name;
  }
  return path;
}

PodRecord recordOf(const host::View& all, const host::PodView& view) {
  PodRecord pod{.name_space = "", .pod = view.name, .uid = view.path};
  const std::optional<Millicores> limit = view.begins ? view.declared : view.limit;
  pod.limit = limit;
  pod.usage = view.usage;
  pod.blocked = view.blocked;
  pod.pressure = view.pressure;
  pod.contention = view.contention;
  pod.left_alone = view.left_alone;
  if (!view.left_alone.empty()) return pod;
  const control::PodDecision& decision = view.decision;
  const control::Reason& reason = decision.reason;
  pod.declared = view.declared;
  pod.desired = decision.desired;
  pod.answer = decision.answer;
  pod.wanted = decision.wanted;
  pod.applied = limit;
  pod.urgent = decision.urgent;
  pod.constrained = decision.constrained;
  pod.throttled = decision.throttled;
  pod.basis = control::name(host::isNew(view) ? control::Basis::kWarmup : reason.basis);
  pod.reason = host::reasonOf(view);
  if (view.begins) {  // there was nothing to decide
    pod.desired = view.declared;
    pod.answer.reset();
    pod.wanted.reset();
  }
  if (view.move.held_by != control::Hold::kNothing) {
    pod.held_by = control::name(view.move.held_by);
  }
  if (decision.award > Millicores(0)) pod.award = decision.award;
  if (decision.by_kernel) {
    if (*decision.by_kernel > Millicores(0)) pod.by_kernel = decision.by_kernel;
    pod.help = control::name(decision.help);
    pod.claim = decision.claim;
  }
  for (const std::string& path : decision.bound_for) pod.bound_for.push_back(nameOf(all, path));
  pod.weight = view.weight;
  pod.priority = view.priority;
  pod.bounds = BoundsRecord{
      .managed = true, .floor = reason.floor, .ceiling = reason.ceiling, .reason = view.bounded_by};
  const demand::Need& need = view.need;
  pod.containers.push_back(
      {.name = view.name,
       .limit = limit,
       .declared = view.declared,
       .request = view.request,
       .desired = decision.desired,
       .usage = view.usage,
       .blocked = view.blocked,
       .periods = static_cast<std::int64_t>(need.last.periods),
       .throttled_periods = static_cast<std::int64_t>(need.last.throttled_periods),
       .use = need.use,
       .use_peak = need.use_peak,
       .used_peak = need.used_peak,
       .burst = need.burst,
       .burst_state = std::string(demand::name(need.burst_state)),
       .binding = need.binding,
       .samples = need.samples});
  return pod;
}

}  // namespace

NodeRecord recordOf(const host::View& view, const std::string& machine, WallTime now) {
  NodeRecord node{.node = machine, .time = now, .capacity = view.capacity};
  node.market = {.capacity = view.node.capacity,
                 .whole_machine = view.node.whole_machine,
                 .demand = view.node.demand,
                 .scarce = view.node.scarce,
                 .mode = view.node.mode ? std::string(market::name(*view.node.mode)) : "",
                 .price = view.node.price,
                 .welfare = view.node.welfare,
                 .unmanaged_use = view.unmanaged_use};
  for (const host::PodView& pod : view.pods) node.pods.push_back(recordOf(view, pod));
  node.notes = view.notes;
  return node;
}

}  // namespace mbcas::cli
