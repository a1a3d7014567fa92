// The loop of one node: from the kernel's signals to the limits that its pods should have. The
// agent, host mode and the simulator all run this loop. They differ in where pods come from and in
// how a limit is written.
//
//   Loop loop(demand_settings, law_settings);
//   every second:
//     loop.observe({.now = now, .pods = sampler.tick(), .machine_use = use});
//     const control::NodeDecision& decision = loop.decide({.capacity = 4000_m}, participants);
//
// No I/O, threads or clock. A tick in which the participants stay the same allocates nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/control/law.h"
#include "mbcas/demand/demand.h"
#include "mbcas/sense/machine.h"
#include "mbcas/sense/signals.h"

namespace mbcas::node {

// What was sensed at one moment.
struct Observation {
  MonotonicTime now{};
  std::span<const sense::PodSignals> pods{};       // valid until the next observation
  std::optional<Millicores> machine_use{};         // of everything; nothing: not known
  const sense::MachineSignals* machine = nullptr;  // of the same moment; null: not sensed
};

struct Container {
  std::string name{};
  std::optional<std::size_t> signals{};  // index among its pod's signals
  bool stopped = false;  // it has no cgroup because it does not run: it needs nothing
  Millicores limit;      // in force
  Millicores declared;
  Millicores request;
};

// A managed pod.
struct Participant {
  std::string id{};
  std::optional<std::size_t> signals{};  // index among the observed pods
  std::vector<Container> containers{};   // those that have a limit
  double weight = 1;
  double factor = 1;  // how important it is
  bool may_lower = true;
  std::optional<Millicores> floor{};
  std::optional<Millicores> ceiling{};
  std::optional<Millicores> start{};
};

struct NodeFacts {
  Millicores capacity;            // of the machine
  Millicores unmanaged_requests;  // counts in strict mode
  int pressure_conditions = 0;
};

class Loop {
 public:
  Loop(const demand::Settings& demand, const control::Settings& law) : demand_(demand), law_(law) {}

  // Takes effect at once. What was learned stays.
  void configure(const demand::Settings& demand, const control::Settings& law);

  void observe(const Observation& observation);
  // Valid until the next call.
  const control::NodeDecision& decide(const NodeFacts& facts,
                                      std::span<const Participant> participants);

  // Of the observed pods, in their order.
  std::span<const demand::PodNeed> needs() const { return needs_; }
  // Of a container of the observed pod with this index.
  demand::Need needOf(std::optional<std::size_t> pod, const Container& container) const;
  const control::NodeInput& input() const { return input_; }  // of the last decision

  // See NodeLaw::resume() and Demand::resume().
  void resume(const std::string& id, const control::PodState& state) { law_.resume(id, state); }
  void resumeNeed(std::uint64_t cgroup, Millicores limit) {
    demand_.resume(cgroup, limit, observation_.now);
  }
  bool knows(const std::string& id) const { return law_.state().pods.contains(id); }

 private:
  Millicores unmanagedUse(std::span<const Participant> participants) const;
  void assembleMachine(std::span<const Participant> participants);

  demand::Demand demand_;
  control::NodeLaw law_;
  Observation observation_{};
  std::span<const demand::PodNeed> needs_{};
  control::NodeInput input_{};
  std::vector<std::optional<std::size_t>> places_{};  // of the observed pods, as participants
};

}  // namespace mbcas::node
