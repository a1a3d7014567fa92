// The limit that one pod should have, from what it needs and what the market gives it: the formulas
// of docs/control.md, without time.
#pragma once

#include <span>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/control/input.h"
#include "mbcas/control/reason.h"
#include "mbcas/control/settings.h"

namespace mbcas::control {

// C: capacity less the reserve, less what unmanaged processes use (and, in strict mode, request),
// times a factor for every pressure condition; never less than the requests of the managed pods.
Millicores nodeCapacity(const NodeInput& input, Millicores unmanaged_use, const Settings& settings);

// A pod at one moment: sums over its containers, and its bounds in whole steps.
struct PodView {
  bool fresh = false;   // decisions may use its numbers
  bool warm = false;    // and there are enough samples
  Millicores use;       // the use that the market takes, see marketUse()
  Millicores use_peak;  // highest 5 s mean
  Millicores burst;
  Millicores present;  // usage and, while the limit binds, blocked work
  bool throttled = false;
  bool cramped = false;  // a container is throttled and well below what it needs

  Millicores limit;  // in force
  Millicores declared;
  Millicores request;
  Millicores floor;  // request <= floor <= ceiling
  Millicores ceiling;
  Millicores needed;        // limit at which it is neither throttled nor cramped; no bound applied
  Millicores proven;        // the part of it that was measured and not guessed from waiting threads
  Millicores free;          // limit it has while nothing constrains it; within its bounds
  bool keeps_cpus = false;  // that is more than it needs, see keptCpus()
};
// `desired`: what was last published for each container; nothing: never anything.
PodView viewOf(const Pod& pod, const NodeInput& input, const Settings& settings,
               std::span<const Millicores> desired = {});

struct Answer {
  Millicores limit;      // in whole steps, within the pod's bounds
  Millicores unbounded;  // the same without floor and ceiling
  bool constrained = false;
  Basis basis = Basis::kDeclared;
};
Answer freeAnswer(const PodView& pod, const Settings& settings);
// `shaped`: the limit at which it uses as much as the market gives it; see shapedLimits().
Answer constrainedAnswer(const PodView& pod, Millicores shaped);
// `award`: the limit itself, as cleared.
Answer clearedAnswer(const PodView& pod, Millicores award, const Settings& settings);

}  // namespace mbcas::control
