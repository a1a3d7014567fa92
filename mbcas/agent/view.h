// What the agent saw and decided at one tick: for the decision log, the state dump and tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/control/law.h"
#include "mbcas/demand/need.h"
#include "mbcas/podallocation/pod_allocation.h"
#include "mbcas/sense/signals.h"

namespace mbcas::agent {

struct ContainerView {
  std::string name{};
  demand::Need need{};  // need.last has the numbers it came from
  Millicores limit;     // in force, by the kernel
  Millicores declared;
  Millicores request;
  Millicores desired;
};

struct PodView {
  std::string name_space{};
  std::string name{};
  std::string uid{};
  std::string left_alone{};  // why nothing is decided for it; empty: it is managed
  Millicores usage;
  Millicores blocked;                    // throttled time per wall time
  std::optional<double> cpu_pressure{};  // shares of wall time, 0 to 1
  std::optional<double> contention{};
  double weight = 1;
  std::int64_t priority = 0;
  bool ready = true;
  Millicores limit;  // in force: sum over the managed containers
  Millicores declared;
  Millicores applied;  // what the controller last saw actuated; 0: nothing
  std::optional<podallocation::Bounds> bounds{};  // as the controller published them
  std::vector<ContainerView> containers{};        // managed ones
  control::PodDecision decision{};                // of managed pods
};

struct View {
  MonotonicTime at{};
  WallTime wall{};
  std::string node_name{};
  Millicores capacity;  // of the machine
  Millicores unmanaged_use;
  control::NodeDecision node{};      // its `pods` are in PodView::decision
  std::vector<PodView> pods{};       // every pod of the node, managed or not, by namespace and name
  std::vector<std::string> notes{};  // the last ones of Outcome::notes, newest last
  sense::SenseCounters sense{};
};

// One pod's decision as one JSON object, without a line end: the decision log, which `mbcas
// explain` reads, and an element of the state. docs/agent.md lists the fields.
std::string decisionJson(const View& view, const PodView& pod);

// The whole state as one JSON object: {"node":...,"time":...,"capacity":...,...,"pods":[...]}.
std::string stateJson(const View& view);

}  // namespace mbcas::agent
