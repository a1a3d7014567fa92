// A pod's limit over its containers.
#pragma once

#include <span>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/control/input.h"

namespace mbcas::control {

// The limit at which a container with this need is neither throttled nor cramped.
Millicores neededLimit(const demand::Need& need, const Settings& settings);

// What a free container keeps of its limit whatever it needs: as many whole CPUs as its highest
// use, rounded up. A runtime that has a thread for each CPU of its limit would lose threads that
// were busy, and then use no more than what the lower limit left. Up to one CPU this is nothing: a
// program always has a thread. It is never more than the limit in force, nor than `desired`, the
// limit that was last published: no limit is raised for it.
Millicores keptCpus(const Container& container, Millicores desired);

// What a container will use over tens of seconds, for the market: the median of its use, which a
// short peak does not move, for the time in which it is busy. Otherwise no pod would get what the
// container leaves in its pauses.
Millicores marketUse(const demand::Need& need);

// What a constrained pod may use, as limits of its containers. Containers that use little get all
// of that, and the others share the rest equally; each keeps the shape of its own bursts and
// pauses. So a container that bursts earns nothing for another container of the pod. Not rounded.
std::vector<Millicores> shapedLimits(const Pod& pod, Millicores award);

// In steps of 10m that add up to the limit, rounded up to a step: to each container its request,
// then what it needs beyond it (`needs`, one for each), or in proportion to that where it is not
// enough; what is left goes by the declared limits.
std::vector<Millicores> splitLimit(const Pod& pod, std::span<const Millicores> needs,
                                   Millicores limit);

// Where the containers stand when the pod has come as far as `limit` on its way from the limits
// `in_force` to `target`.
std::vector<Millicores> splitOnTheWay(std::span<const Millicores> in_force,
                                      std::span<const Millicores> target, Millicores limit);

// What a container should have, and between which bounds.
struct BoundedPart {
  Millicores desired;
  Millicores floor;
  Millicores ceiling;
};
// Divides `total` over the containers, each between its floor and ceiling, in proportion to what is
// desired for each, in whole steps. The answer adds up to `total`, rounded up to a step, within the
// sums of floors and ceilings.
std::vector<Millicores> splitWithin(std::span<const BoundedPart> parts, Millicores total);

}  // namespace mbcas::control
