// The control law of one node: from what its pods need to the limits they should have, and when to
// move there.
//
//   NodeLaw law(settingsOf(Profile::kResponsive));
//   every second:
//     const NodeDecision& decision = law.decide(input);
//     for (i) if (decision.pods[i].move.limit != input.pods[i].limit())
//     set(decision.pods[i].move.limit)
//
// An agent publishes `desired` whenever `publish` is set, and the controller guards it; whoever
// writes limits on the same machine (host mode, simulation) sets `move.limit`, which has passed the
// same guards.
//
// Pure: no I/O, no clock, no randomness. The same inputs give the same decisions, and all that is
// remembered between them is a NodeState, which can be saved and restored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/control/guards.h"
#include "mbcas/control/settings.h"
#include "mbcas/demand/need.h"
#include "mbcas/demand/window.h"
#include "mbcas/market/solver.h"

namespace mbcas::control {

// A container that has a CPU limit; those without one are not managed.
struct Container {
  std::string name{};
  demand::Need need{};
  Millicores limit;     // in force
  Millicores declared;  // what its owner wrote
  Millicores request;

  friend bool operator==(const Container&, const Container&) = default;
};

struct Pod {
  std::string id{};
  std::vector<Container> containers{};
  double weight = 1;  // see weight.h

  // Bounds of the whole pod. No floor: the larger of min_cpu and the request. No ceiling: the
  // node's capacity less the reserve, or the declared limit where that is more.
  std::optional<Millicores> floor{};
  std::optional<Millicores> ceiling{};
  std::optional<Millicores> start{};  // where a new pod of a known workload begins

  Mode mode = Mode::kFull;
  bool ready = true;
  bool scaled_by_hpa = false;       // lowered half as often
  bool disruption_blocked = false;  // PDB: too few healthy pods to lower one
  bool memory_or_io_pressure = false;

  Millicores limit() const;  // sums over the containers
  Millicores declared() const;
  Millicores request() const;
  friend bool operator==(const Pod&, const Pod&) = default;
};

struct NodeInput {
  MonotonicTime now{};
  Millicores capacity;            // of the machine
  Millicores unmanaged_use;       // measured, of everything that is not in `pods`
  Millicores unmanaged_requests;  // counts in strict mode
  int pressure_conditions = 0;    // how many of MemoryPressure, DiskPressure, PIDPressure
  std::vector<Pod> pods{};        // managed ones, ids unique

  friend bool operator==(const NodeInput&, const NodeInput&) = default;
};

// Why a pod's desired limit is what it is.
enum class Basis : std::uint8_t {
  kNoData,       // counters unreadable or stale: keeps its limit
  kWarmup,       // too new to judge: keeps its limit
  kStart,        // too new to judge: starts where its siblings are
  kDeclared,     // needs no more than it declared
  kUse,          // 1.25 times its use
  kBurst,        // the level at which its bursts are not cut off
  kFloor,        // needs less than its floor
  kCeiling,      // needs more than its ceiling
  kConstrained,  // CPU is scarce: the market's answer
  kCleared,      // limits themselves were cleared (strict capacity, pressure bids)
};
std::string_view name(Basis basis);

// Every number that a sentence about the decision needs.
struct Reason {
  Basis basis = Basis::kNoData;
  Millicores use;       // median
  Millicores use_peak;  // highest 5 s mean
  Millicores burst;
  Millicores declared;
  Millicores floor;
  Millicores ceiling;
  Millicores award;  // what the market gave it to use; its use where nothing was cleared
  Millicores capacity;
  std::optional<double> price = 0.0;
  double weight = 1;

  friend bool operator==(const Reason&, const Reason&) = default;
};
// At most 256 characters, changes only with what it tells.
std::string sentence(const Reason& reason);

struct PodDecision {
  Millicores answer;         // of this very tick, unfiltered
  Millicores desired;        // what is published: moves only past hysteresis, in its own time
  Millicores wanted;         // without floor and ceiling, in steps of 10 %
  bool publish = false;      // desired or wanted changed at this tick
  bool urgent = false;       // throttled, and the answer is well above the limit in force
  bool constrained = false;  // gets less than it could use
  Allowed move;              // where the limit may go now
  std::vector<Millicores> containers{};  // of `desired`, in the order of the input
  Reason reason;                         // of `desired`

  friend bool operator==(const PodDecision&, const PodDecision&) = default;
};

struct NodeDecision {
  Millicores capacity;  // C: what managed pods may use together
  Millicores demand;    // median of their usage and blocked work
  bool scarce = false;
  std::optional<market::Mode> mode{};  // of the clearing, where one took place
  std::optional<double> price = 0.0;
  double welfare = 1;  // weighted geometric mean of what each may use over what it could
  std::vector<PodDecision> pods{};  // in the order of the input

  friend bool operator==(const NodeDecision&, const NodeDecision&) = default;
};

// What the law remembers of a pod.
struct PodState {
  Millicores desired;  // last published; 0: never
  Millicores wanted;
  Reason reason;
  std::optional<MonotonicTime> published{};
  Millicores limit;  // last seen in force
  std::optional<MonotonicTime> limit_changed{};
  std::optional<MonotonicTime> not_ready_since{};
  std::optional<MonotonicTime> low_since{};  // the answer has been below desired since
  Millicores low_most;                       // the highest it was since
  bool constrained = false;
};

struct NodeState {
  demand::Window demand{};  // usage and blocked work of all pods
  demand::Window unmanaged{};
  std::optional<MonotonicTime> last{};
  bool scarce = false;
  std::map<std::string, PodState, std::less<>> pods{};
};

// C: capacity less the reserve, less what unmanaged processes use (and, in strict mode, request),
// times a factor for every pressure condition; never less than the requests of the managed pods.
Millicores nodeCapacity(const NodeInput& input, Millicores unmanaged_use, const Settings& settings);

// A pod's limit over its containers, in steps of 10m that add up to it: to each its request, then
// what is left in proportion to what each needs beyond it.
std::vector<Millicores> splitLimit(const Pod& pod, Millicores limit, const Settings& settings);

class NodeLaw {
 public:
  explicit NodeLaw(const Settings& settings, NodeState state = {});

  // Once per sample. The reference is good until the next call.
  const NodeDecision& decide(const NodeInput& input);

  const Settings& settings() const { return settings_; }
  const NodeState& state() const { return state_; }

 private:
  Settings settings_;
  NodeState state_;
  NodeDecision decision_;
  market::Solver solver_;
  market::Problem problem_;
  market::Clearing clearing_;
};

}  // namespace mbcas::control
