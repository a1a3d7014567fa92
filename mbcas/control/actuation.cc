#include "mbcas/control/actuation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "mbcas/control/split.h"

namespace mbcas::control {
namespace {

constexpr Nanos kWaitForRaises = std::chrono::milliseconds(500);
constexpr Nanos kWaitForRoom = std::chrono::seconds(2);

Millicores sum(const std::vector<Millicores>& limits) {
  return std::accumulate(limits.begin(), limits.end(), Millicores(0));
}

// The sum stays and is split in another way: only if a container's limit differs by more than a
// tenth.
bool worthSplitting(const Transition& transition) {
  for (std::size_t i = 0; i < transition.target.size(); ++i) {
    const Millicores from = transition.in_force[i];
    const Millicores to = transition.target[i];
    if (std::max(to - from, from - to).count() * 10 > from.count()) return true;
  }
  return false;
}

Allowed allowedLimit(const Transition& transition, Millicores from, Millicores to,
                     const Settings& settings, ActuationMemory& memory) {
  const MonotonicTime now = transition.now;
  const bool unready = memory.not_ready.counts(!transition.ready, now, settings.not_ready);
  const bool blocked =
      memory.disruption.counts(transition.disruption_blocked, now, settings.not_ready);
  Change change{.now = now,
                .last_change = memory.last_change,
                .in_force = from,
                .desired = to,
                .constrained = settings.reclaim != Reclaim::kAlways && to < transition.declared,
                .lower_slowly = transition.scaled_by_hpa};
  if (blocked) change.no_decrease = Hold::kDisruption;
  if (unready) change.no_decrease = Hold::kNotReady;
  Allowed allowed = guard(change, settings.guards);
  if (allowed.held_by == Hold::kDisruption)
    allowed.again = memory.disruption.ends(settings.not_ready);
  if (allowed.held_by == Hold::kNotReady) allowed.again = memory.not_ready.ends(settings.not_ready);
  if (!transition.may_raise && allowed.limit > from) {
    allowed = {from, Hold::kRaiseRate, now + kWaitForRaises};
  }
  if (transition.room && allowed.limit - from > std::max(*transition.room, Millicores(0))) {
    // As much as the quota leaves, in whole steps.
    allowed = {from + roundDown(std::max(*transition.room, Millicores(0))), Hold::kQuota,
               now + kWaitForRoom};
  }
  return allowed;
}

}  // namespace

bool Excuse::counts(bool claimed, MonotonicTime now, Nanos most) {
  if (!claimed) {
    if (!given_up_) given_up_ = now;
    return false;
  }
  if (given_up_ && now - *given_up_ >= most) since_.reset();
  given_up_.reset();
  if (!since_) since_ = now;
  return now - *since_ < most;
}

Move nextMove(const Transition& transition, const Settings& settings, ActuationMemory& memory) {
  const Millicores from = sum(transition.in_force);
  const Millicores to = sum(transition.target);
  const Allowed allowed = allowedLimit(transition, from, to, settings, memory);
  Move move{.limit = allowed.limit, .held_by = allowed.held_by, .again = allowed.again};
  move.containers = transition.in_force;
  if (allowed.limit != from) {
    move.containers = splitOnTheWay(transition.in_force, transition.target, allowed.limit);
  } else if (to == from && worthSplitting(transition)) {
    const std::optional<MonotonicTime> last = memory.last_change;
    if (!last || transition.now - *last >= settings.guards.cooldown) {
      move.containers = transition.target;
    } else {
      move.held_by = Hold::kCooldown;
      move.again = *last + settings.guards.cooldown;
    }
  }
  move.moves = move.containers != transition.in_force;
  return move;
}

std::vector<Move> NodeActuator::next(const NodeInput& input, const NodeDecision& decision,
                                     const std::vector<Facts>& facts) {
  std::map<std::string, Known, std::less<>> before = std::exchange(pods_, {});
  std::vector<Move> moves;
  moves.reserve(input.pods.size());
  for (std::size_t i = 0; i < input.pods.size(); ++i) {
    const Pod& pod = input.pods[i];
    const PodDecision& decided = decision.pods[i];
    const auto found = before.find(pod.id);
    Known& known = found == before.end() ? pods_[pod.id]
                                         : pods_.insert(before.extract(found)).position->second;
    Transition transition{.now = input.now, .declared = pod.declared()};
    for (const Container& container : pod.containers) {
      transition.in_force.push_back(container.limit);
    }
    const Millicores limit = pod.limit();
    if (known.limit != Millicores(0) && known.limit != limit) {
      known.memory.last_change = limit == known.moved_to ? known.moved : input.now;
    }
    known.limit = limit;
    if (!decided.fresh) {
      moves.push_back(
          {.limit = limit, .containers = transition.in_force, .held_by = Hold::kNoData});
      continue;
    }
    transition.target = decided.containers;
    transition.ready = facts.empty() || facts[i].ready;
    transition.may_raise =
        raises_.hasRoom("", input.capacity, settings_.guards.raise_rate, input.now);
    Move& move = moves.emplace_back(nextMove(transition, settings_, known.memory));
    if (!move.moves) continue;
    raises_.spend("", std::max(move.limit - limit, Millicores(0)), input.now);
    known.moved_to = move.limit;
    known.moved = input.now;
  }
  return moves;
}

}  // namespace mbcas::control
