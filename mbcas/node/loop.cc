#include "mbcas/node/loop.h"

#include <algorithm>

namespace mbcas::node {
namespace {

// A share of time spent waiting for memory or I/O that keeps a limit from being lowered.
constexpr double kPressed = 0.1;
// How long it is good to know that a stopped container needs nothing.
constexpr Nanos kStoppedLasts = std::chrono::seconds(1);

bool pressed(const std::optional<sense::PressureSignals>& pressure) {
  return pressure && pressure->some > kPressed;
}

}  // namespace

void Loop::configure(const demand::Settings& demand, const control::Settings& law) {
  demand_.configure(demand);
  if (law != law_.settings()) law_ = control::NodeLaw(law, law_.state());
}

void Loop::observe(const Observation& observation) {
  observation_ = observation;
  needs_ = demand_.update(observation.pods);
}

demand::Need Loop::needOf(std::optional<std::size_t> pod, const Container& container) const {
  if (pod && container.signals) return needs_[*pod].containers[*container.signals].need;
  demand::Need need;
  if (container.stopped) {
    need.at = observation_.now;
    need.good_until = observation_.now + kStoppedLasts;
    need.ready = true;
    need.samples = 1;
  }
  return need;
}

// The machine's use less that of the managed containers. Where the machine's use is not known, the
// use of all pods stands in for it.
Millicores Loop::unmanagedUse(std::span<const Participant> participants) const {
  Millicores managed;
  Millicores all;
  for (const sense::PodSignals& pod : observation_.pods) {
    if (pod.cpu.good_until >= observation_.now) all += pod.cpu.usageRate();
  }
  for (const Participant& pod : participants) {
    for (const Container& container : pod.containers) {
      if (!pod.signals || !container.signals) continue;
      const sense::CpuSignals& cpu =
          observation_.pods[*pod.signals].containers[*container.signals].cpu;
      if (cpu.good_until >= observation_.now) managed += cpu.usageRate();
    }
  }
  return std::max(observation_.machine_use.value_or(all) - managed, Millicores(0));
}

const control::NodeDecision& Loop::decide(const NodeFacts& facts,
                                          std::span<const Participant> participants) {
  input_.now = observation_.now;
  input_.capacity = facts.capacity;
  input_.unmanaged_requests = facts.unmanaged_requests;
  input_.pressure_conditions = facts.pressure_conditions;
  input_.unmanaged_use = unmanagedUse(participants);
  input_.pods.resize(participants.size());
  for (std::size_t i = 0; i < participants.size(); ++i) {
    const Participant& pod = participants[i];
    control::Pod& in = input_.pods[i];
    in.id = pod.id;
    in.weight = pod.weight;
    in.floor = pod.floor;
    in.ceiling = pod.ceiling;
    in.start = pod.start;
    const sense::PodSignals* const signals =
        pod.signals ? &observation_.pods[*pod.signals] : nullptr;
    in.memory_or_io_pressure =
        signals != nullptr && (pressed(signals->memory_pressure) || pressed(signals->io_pressure));
    in.contention = signals != nullptr ? signals->contention.value_or(0) : 0;
    in.containers.resize(pod.containers.size());
    for (std::size_t c = 0; c < pod.containers.size(); ++c) {
      const Container& container = pod.containers[c];
      in.containers[c].name = container.name;
      in.containers[c].limit = container.limit;
      in.containers[c].declared = container.declared;
      in.containers[c].request = container.request;
      in.containers[c].need = needOf(pod.signals, container);
    }
  }
  return law_.decide(input_);
}

}  // namespace mbcas::node
