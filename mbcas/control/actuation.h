// From the limits that a pod should have to the limits that are written next: guards, excuses, the
// node's raise budget, room in a quota, and the split over containers. The controller, host mode,
// the simulator and the tests of the law all move limits by these rules.
//
//   Move move = nextMove({.now = now, .in_force = {500_m}, .target = {100_m}, .declared = 800_m},
//                        settings, memory);
//   if (move.moves) write(move.containers), memory.last_change = now;
//   if (move.again) askAgainAt(*move.again);
//
// Pure, apart from the memory that the caller keeps for each pod.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/control/guards.h"
#include "mbcas/control/law.h"
#include "mbcas/control/raise_budget.h"
#include "mbcas/control/settings.h"

namespace mbcas::control {

// A reason not to lower a limit that its pod's owner controls, such as staying unready. It counts
// for a limited time, and again only after the pod has done without it for as long. Otherwise an
// owner could keep CPU by claiming the excuse now and then.
class Excuse {
 public:
  // Whether the excuse counts now.
  bool counts(bool claimed, MonotonicTime now, Nanos most);
  // When the excuse will stop counting, once claimed.
  MonotonicTime ends(Nanos most) const { return since_.value_or(MonotonicTime{}) + most; }

 private:
  std::optional<MonotonicTime> since_{};     // claimed since
  std::optional<MonotonicTime> given_up_{};  // not claimed since
};

// A pod on its way from the limits in force to other ones.
struct Transition {
  MonotonicTime now{};
  std::vector<Millicores> in_force{};  // of each container
  std::vector<Millicores> target{};    // likewise, within the pod's bounds
  Millicores declared;                 // of the pod
  bool ready = true;
  bool disruption_blocked = false;   // too few of its siblings are healthy to lower its limit
  bool scaled_by_hpa = false;        // lowered half as often
  bool may_raise = true;             // false: its node has raised enough for now
  std::optional<Millicores> room{};  // how much more the quotas allow; nothing: no quota
};

// What is remembered of a pod between two moves.
struct ActuationMemory {
  std::optional<MonotonicTime> last_change{};  // of the limit in force; the caller sets it
  Excuse not_ready{};
  Excuse disruption{};
};

struct Move {
  Millicores limit;                      // the sum of `containers`
  std::vector<Millicores> containers{};  // the limits in force if nothing may move
  bool moves = false;                    // they differ from the limits in force
  Hold held_by = Hold::kNothing;         // why the limit does not go all the way
  std::optional<MonotonicTime> again{};  // when to ask again, where time decides

  friend bool operator==(const Move&, const Move&) = default;
};

Move nextMove(const Transition& transition, const Settings& settings, ActuationMemory& memory);

// The moves of a whole node, for a writer on the same machine: host mode and the simulator.
class NodeActuator {
 public:
  explicit NodeActuator(const Settings& settings) : settings_(settings) {}

  struct Facts {
    bool ready = true;
  };
  // Once for each decision; the moves are in the order of the input, and count as written. `facts`
  // may be empty, or has one entry for each pod.
  std::vector<Move> next(const NodeInput& input, const NodeDecision& decision,
                         const std::vector<Facts>& facts = {});

 private:
  struct Known {
    ActuationMemory memory{};
    Millicores limit;  // last seen in force
    Millicores moved_to;
    MonotonicTime moved{};
  };

  Settings settings_;
  RaiseBudget raises_;
  std::map<std::string, Known, std::less<>> pods_;
};

}  // namespace mbcas::control
