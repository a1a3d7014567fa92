#include "mbcas/cli/sim_record.h"

#include <fmt/format.h>

#include "mbcas/cli/decision_record.h"
#include "mbcas/control/weight.h"
#include "mbcas/node/loop.h"

namespace mbcas::cli {
namespace {

// Nothing: a container has none.
std::optional<Millicores> sumOf(std::span<const std::optional<Millicores>> limits) {
  Millicores sum;
  for (const std::optional<Millicores>& limit : limits) {
    if (!limit) return std::nullopt;
    sum += *limit;
  }
  return sum;
}

std::string boundsText(const sim::PodSpec& spec) {
  return fmt::format(
      "floor: {}; ceiling: {}",
      spec.floor ? "min of the scenario" : "the minimum for every pod, or its request",
      spec.ceiling ? "max of the scenario" : "the machine, or what it declares");
}

// What the kernel says of a pod, and what its owner wrote.
PodRecord observed(const sim::PodView& view) {
  const sim::PodSpec& spec = *view.spec;
  const sense::PodSignals& signals = *view.signals;
  PodRecord pod{.name_space = "", .pod = signals.uid, .uid = signals.path};
  pod.limit = pod.applied = sumOf(view.limits);
  pod.usage = signals.cpu.usageRate();
  pod.blocked = signals.cpu.blockedRate();
  if (signals.cpu_pressure) pod.pressure = signals.cpu_pressure->some;
  pod.contention = signals.contention;
  pod.weight = control::weightOf(spec.request(), spec.priority);
  pod.priority = spec.priority;
  pod.ready = view.ready;
  Millicores declared;
  for (std::size_t c = 0; c < spec.containers.size(); ++c) {
    const sim::ContainerSpec& from = spec.containers[c];
    ContainerRecord& container = pod.containers.emplace_back();
    container.name = from.name;
    container.limit = view.limits[c];
    container.declared = from.limit;
    container.request = from.request;
    declared += from.limit.value_or(Millicores(0));
    if (c >= signals.containers.size()) continue;
    container.usage = signals.containers[c].cpu.usageRate();
    container.blocked = signals.containers[c].cpu.blockedRate();
  }
  pod.declared = declared;
  return pod;
}

void writeNeeds(const demand::PodNeed& need, PodRecord& pod) {
  for (std::size_t c = 0; c < std::min(pod.containers.size(), need.containers.size()); ++c) {
    writeNeed(need.containers[c].need, pod.containers[c]);
  }
}

// The decision's containers are those that have a limit.
void writeDesired(const control::PodDecision& decision, PodRecord& pod) {
  std::size_t next = 0;
  for (ContainerRecord& container : pod.containers) {
    if (!container.declared || next == decision.containers.size()) continue;
    container.desired = decision.containers[next++];
  }
}

}  // namespace

std::vector<sim::Move> RecordingPolicy::decide(const sim::NodeView& node) {
  std::vector<sim::Move> moves = policy_->decide(node);
  record_.pods.clear();
  record_.others.clear();
  record_.capacity = Millicores(1000) * static_cast<std::int64_t>(node.cpus);
  record_.market = {.capacity = record_.capacity, .whole_machine = true, .price = 0.0};
  Millicores managed;
  for (const sim::PodView& view : node.pods) {
    record_.pods.push_back(observed(view));
    managed += record_.pods.back().usage;
  }
  const control::NodeDecision* const decision = policy_->decision();
  const node::Loop* const loop = policy_->loop();
  const Millicores unmanaged = std::max(node.machine_use - managed, Millicores(0));
  if (decision == nullptr || loop == nullptr) {
    record_.market.unmanaged_use = unmanaged;
    return moves;
  }
  record_.market = marketOf(*decision, unmanaged);
  const std::vector<std::optional<double>> weights = kernelWeightsOf(loop->input());
  for (std::size_t i = 0; i < node.pods.size(); ++i) {
    PodRecord& pod = record_.pods[i];
    pod.kernel_weight = weights[i];
    writeDecision(decision->pods[i], pod);
    pod.bound_for = decision->pods[i].bound_for;
    pod.bounds->reason = boundsText(*node.pods[i].spec);
    const auto place = static_cast<std::size_t>(node.pods[i].signals - node.signals.data());
    writeNeeds(loop->needs()[place], pod);
    writeDesired(decision->pods[i], pod);
  }
  record_.others = othersOf(loop->input(), record_.pods);
  return moves;
}

}  // namespace mbcas::cli
