#include "mbcas/node/loop.h"

#include <algorithm>
#include <cmath>

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
    in.factor = pod.factor;
    in.may_lower = pod.may_lower;
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
  assembleMachine(participants);
  return law_.decide(input_);
}

void Loop::assembleMachine(std::span<const Participant> participants) {
  input_.idle.reset();
  input_.divisible = true;
  const sense::MachineSignals* const machine = observation_.machine;
  if (machine == nullptr || !machine->known()) {
    input_.machine.clear();
    return;
  }
  input_.idle = machine->idle;
  input_.capacity -= machine->interrupts + machine->steal;
  places_.assign(observation_.pods.size(), std::nullopt);
  for (std::size_t i = 0; i < participants.size(); ++i) {
    if (participants[i].signals) places_[*participants[i].signals] = i;
  }
  std::size_t found = 0;
  input_.machine.resize(machine->tree.size());
  for (std::size_t c = 0; c < machine->tree.size(); ++c) {
    const sense::CgroupSignals& signals = machine->tree[c];
    control::Cgroup& cgroup = input_.machine[c];
    cgroup.pod.reset();
    cgroup.id = signals.path;
    cgroup.parent = signals.parent;
    cgroup.weight = signals.weight;
    cgroup.cap = signals.cap;
    cgroup.use = signals.usage;
    cgroup.threads = signals.threads;
    cgroup.inner = signals.kind == sense::CgroupSignals::Kind::kInner;
    if (signals.kind == sense::CgroupSignals::Kind::kTasks) {
      // Each task competes for itself; the number of tasks that run at once counts.
      cgroup.id += "/*";
      cgroup.weight *= std::max(1.0, std::ceil(signals.usage.cores()));
    }
    if (signals.kind == sense::CgroupSignals::Kind::kPod && signals.pod) {
      cgroup.pod = places_[*signals.pod];
      found += cgroup.pod ? 1 : 0;
    }
    if (signals.cpus && signals.usage > Millicores(0)) input_.divisible = false;
  }
  // A pod whose cgroup is not in the tree makes the tree useless. The law then decides without a
  // tree.
  if (found != participants.size()) input_.machine.clear();
}

}  // namespace mbcas::node
