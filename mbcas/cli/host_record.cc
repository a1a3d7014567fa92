#include "mbcas/cli/host_record.h"

#include <algorithm>

#include "mbcas/cli/decision_record.h"
#include "mbcas/control/reason.h"
#include "mbcas/host/show.h"

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
  pod.declared = view.declared;
  pod.applied = limit;
  writeDecision(view.decision, pod);
  if (host::isNew(view)) pod.basis = control::name(control::Basis::kWarmup);
  pod.reason = host::reasonOf(view);
  if (view.begins) {  // there was nothing to decide
    pod.desired = view.declared;
    pod.answer.reset();
    pod.wanted.reset();
  }
  if (view.move.held_by != control::Hold::kNothing) {
    pod.held_by = control::name(view.move.held_by);
  }
  for (const std::string& path : view.decision.bound_for) {
    pod.bound_for.push_back(nameOf(all, path));
  }
  pod.weight = view.weight;
  pod.priority = view.priority;
  pod.bounds->reason = view.bounded_by;
  ContainerRecord& container = pod.containers.emplace_back();
  container.name = view.name;
  container.limit = limit;
  container.declared = view.declared;
  container.request = view.request;
  container.desired = view.decision.desired;
  container.usage = view.usage;
  container.blocked = view.blocked;
  writeNeed(view.need, container);
  return pod;
}

// What is known of the whole machine.
void writeInput(const control::NodeInput& input, NodeRecord& node) {
  const std::vector<std::optional<double>> weights = kernelWeightsOf(input);
  for (std::size_t i = 0; i < input.pods.size(); ++i) {
    const auto pod = std::ranges::find(node.pods, input.pods[i].id, &PodRecord::uid);
    if (pod != node.pods.end()) pod->kernel_weight = weights[i];
  }
  node.others = othersOf(input, node.pods);
}

}  // namespace

NodeRecord recordOf(const host::View& view, const std::string& machine, WallTime now) {
  NodeRecord node{.node = machine, .time = now, .capacity = view.capacity};
  node.market = marketOf(view.node, view.unmanaged_use);
  for (const host::PodView& pod : view.pods) node.pods.push_back(recordOf(view, pod));
  if (view.input != nullptr) writeInput(*view.input, node);
  node.notes = view.notes;
  return node;
}

}  // namespace mbcas::cli
