// The guards: whether a limit may move to the desired one, how far, and otherwise when. Pure.
//
//   Allowed allowed = guard({.now = now, .last_change = t, .in_force = 500_m, .desired = 100_m},
//                           settings.guards);
//   if (allowed.limit != in_force) set(allowed.limit);
//   if (allowed.held_by == Hold::kCooldown) tryAgainAt(*allowed.again);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/control/settings.h"

namespace mbcas::control {

Millicores roundUp(Millicores limit);  // to whole steps
Millicores roundDown(Millicores limit);

// What keeps a limit from going where it should.
enum class Hold : std::uint8_t {
  kNothing,
  kCooldown,    // too soon after the last change
  kStep,        // part of the way now, the rest later
  kRaiseRate,   // the node has raised enough for this second
  kNotReady,    // an unready pod is not lowered
  kDisruption,  // its disruption budget is used up
  kQuota,       // the quota of its namespace has no room
  kNoData,      // nothing is known of it now
};
std::string_view name(Hold hold);

struct Change {
  MonotonicTime now{};
  std::optional<MonotonicTime> last_change = std::nullopt;  // of the limit in force
  Millicores in_force;
  Millicores desired;
  bool constrained = false;           // follows the market: a pod that yields does not need less
  bool lower_slowly = false;          // scaled by an HPA: decreases half as often
  Hold no_decrease = Hold::kNothing;  // a reason not to lower it at all, for now
};

struct Allowed {
  Millicores limit;  // to be set now; the limit in force if nothing may move
  Hold held_by = Hold::kNothing;
  std::optional<MonotonicTime> again = std::nullopt;  // when to ask again, where time decides

  friend bool operator==(const Allowed&, const Allowed&) = default;
};

Allowed guard(const Change& change, const GuardSettings& settings);

}  // namespace mbcas::control
