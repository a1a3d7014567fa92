#include "mbcas/controller/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mbcas/base/backoff.h"
#include "mbcas/control/split.h"
#include "mbcas/controller/restore.h"

namespace mbcas::controller {
namespace {

using control::Hold;
using podallocation::OriginalCpu;
using podallocation::Phase;
using podallocation::Status;
using policy::Mode;
using policy::PodPolicy;
using resize::Verdict;

// A kubelet needs about a second. Only what takes longer is worth a status of its own.
constexpr Nanos kWorthSaying = std::chrono::seconds(3);
constexpr Nanos kSlowKubelet = std::chrono::seconds(30);
constexpr Nanos kDeferredPatience = std::chrono::seconds(30);
constexpr Nanos kWaitForRoom = std::chrono::seconds(2);

std::string text(Millicores cpu) {
  return fmt::format("{}m", cpu.count());
}

WallTime wholeSeconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

// The limits in force of these containers together; of all that have one if none are named.
std::optional<Millicores> actuated(const kube::Pod& pod, const PodPolicy& policy) {
  Millicores sum;
  bool any = false;
  for (const kube::Container& container : pod.containers) {
    if (container.role == kube::ContainerRole::kInit) continue;
    const bool counts = policy.managed
                            ? std::any_of(policy.containers.begin(), policy.containers.end(),
                                          [&](const auto& managed) {
                                            return managed.name == container.name.view();
                                          })
                            : container.limits.cpu().has_value();
    if (!counts) continue;
    const kube::ContainerStatus* const status = pod.status(container.name);
    if (status == nullptr || !status->limits.cpu()) return std::nullopt;
    sum += *status->limits.cpu();
    any = true;
  }
  // The schema of the status takes nine digits.
  if (!any || sum.count() > 999'999'999) return std::nullopt;
  return sum;
}

// What the spec says and the kubelet has not done yet: a resize, whoever sent it.
resize::Request unfinished(const kube::Pod& pod) {
  resize::Request request;
  for (const kube::Container& container : pod.containers) {
    const kube::ContainerStatus* const status = pod.status(container.name);
    if (container.role == kube::ContainerRole::kInit || status == nullptr || !status->running) {
      continue;
    }
    if (!status->has_resources || container.limits.cpu() == status->limits.cpu()) continue;
    request.containers.push_back({container.name.string(), std::nullopt, container.limits.cpu()});
  }
  return request;
}

// Back to what the kubelet last did.
resize::Request revertRequest(const kube::Pod& pod) {
  resize::Request request;
  for (const kube::Container& container : pod.containers) {
    const kube::ContainerStatus* const status = pod.status(container.name);
    if (container.role == kube::ContainerRole::kInit || status == nullptr) continue;
    resize::ContainerCpu change{.name = container.name.string()};
    if (status->limits.cpu() && status->limits.cpu() != container.limits.cpu()) {
      change.limit = status->limits.cpu();
    }
    if (status->requests.cpu() && status->requests.cpu() != container.requests.cpu()) {
      change.request = status->requests.cpu();
    }
    if (change.limit || change.request) request.containers.push_back(std::move(change));
  }
  return request;
}

Millicores totalAfter(const kube::Pod& pod, const PodPolicy& policy,
                      const resize::Request& request) {
  Millicores total;
  for (const kube::Container& container : pod.containers) {
    const bool counts =
        !policy.managed ||
        std::any_of(policy.containers.begin(), policy.containers.end(),
                    [&](const auto& managed) { return managed.name == container.name.view(); });
    if (container.role == kube::ContainerRole::kInit || !counts) continue;
    std::optional<Millicores> limit = container.limits.cpu();
    for (const resize::ContainerCpu& change : request.containers) {
      if (change.name == container.name.view() && change.limit) limit = change.limit;
    }
    total += limit.value_or(Millicores(0));
  }
  return total;
}

class Decider {
 public:
  Decider(const Situation& situation, PodMemory& memory)
      : s_(situation), pod_(*situation.pod), policy_(situation.policy), memory_(memory) {}

  Decision decide() {
    begin();
    // The agent desires more than the declared limit as soon as the pod's cgroups show that it
    // runs, which is up to a second before the kubelet says so.
    const bool raised_early =
        policy_.managed && s_.allocation != nullptr && s_.allocation->desired > policy_.limit();
    const bool unstarted =
        pod_.phase != kube::PodPhase::kRunning && !raised_early && !memory_.attempt;
    if (pod_.meta.generation < memory_.generation) {
      // The cache has not caught up with what we wrote.
      decision_.status.reset();
      decision_.again = std::chrono::seconds(1);
    } else if (pod_.meta.beingDeleted() || pod_.terminal()) {
      leaveAlone("the pod has ended");
    } else if (unstarted && policy_.managed) {
      say(Phase::kPending, specTotal(), "waits for the pod to run");
      unclamp();
    } else if (unstarted) {
      leaveAlone(policy_.reason);
    } else if (!follow()) {
      act();
    }
    finish();
    return std::move(decision_);
  }

 private:
  void begin() {
    if (s_.allocation == nullptr) return;
    Status status = s_.allocation->statusValue();
    const std::optional<podallocation::Bounds> before = status.bounds;
    status.bounds = publishedBounds(policy_, s_.start, s_.weight, before ? &*before : nullptr);
    status.observed_generation = s_.allocation->meta.generation;
    status.original = policy_.original;
    decision_.status = std::move(status);
  }

  void finish() {
    if (!decision_.status) return;
    Status& status = *decision_.status;
    const std::optional<Millicores> now = actuated(pod_, policy_);
    // While an attempt is under way the status speaks of the limit before it.
    if (now && status.applied != now && !memory_.attempt) {
      if (status.applied || changed()) status.last_applied = wholeSeconds(s_.wall);
      status.applied = now;
    }
    // The invariants, whatever came before: Applied means that what is desired is in force, Clamped
    // that what the bounds leave of it is. A status that was true of an older decision is not yet
    // true of this one.
    const bool in_force = status.observed_desired == status.applied;
    const bool as_desired = status.applied == s_.allocation->desired;
    if ((status.phase == Phase::kApplied && !(in_force && as_desired)) ||
        (status.phase == Phase::kClamped && !in_force)) {
      status.phase = Phase::kPending;
      status.reason = "on its way";
    }
  }

  void say(Phase phase, std::optional<Millicores> observed, std::string reason) {
    if (!decision_.status) return;
    decision_.status->phase = phase;
    if (observed) decision_.status->observed_desired = observed;
    decision_.status->reason = std::move(reason);
  }

  // The pod keeps the limit that it has, whatever is desired.
  void leaveAlone(std::string reason) {
    say(Phase::kLeftAlone, actuated(pod_, policy_).value_or(specTotal()), std::move(reason));
    unclamp();
  }

  // Whether we have changed the pod, or are about to.
  bool changed() const { return !policy_.original.empty(); }

  bool recorded() const { return s_.allocation != nullptr && !s_.allocation->original.empty(); }

  Millicores specTotal() const {
    return policy_.managed ? policy_.limit() : totalAfter(pod_, policy_, {});
  }

  void unclamp() {
    if (!decision_.status || decision_.status->condition(podallocation::kClamped) == nullptr)
      return;
    setClamped(false, "WithinBounds", "");
  }

  void setClamped(bool clamped, std::string reason, std::string message) {
    decision_.status->setCondition({.type = std::string(podallocation::kClamped),
                                    .status = clamped ? podallocation::ConditionStatus::kTrue
                                                      : podallocation::ConditionStatus::kFalse,
                                    .reason = std::move(reason),
                                    .message = std::move(message),
                                    .last_transition = wholeSeconds(s_.wall)});
  }

  // A resize under way. True: nothing else is to be done now.
  bool follow() {
    if (!memory_.attempt) {
      const resize::Request pending = unfinished(pod_);
      if (pending.containers.empty()) {
        memory_.others_since.reset();
        return false;
      }
      if (!changed()) return waitForOthers(pending);
      if (!specIsOurs(policy_.original)) return true;
      // A predecessor of this process sent it.
      memory_.attempt = resize::adopt(pod_, pending);
      memory_.attempt_since = s_.now;
      memory_.reverting = false;
    }
    const resize::Outcome outcome = resize::judge(pod_, *memory_.attempt);
    const Nanos since = s_.now - memory_.attempt_since;
    switch (outcome.verdict) {
      case Verdict::kDone:
        memory_.attempt.reset();
        memory_.actuation.last_change = s_.now;
        if (!memory_.reverting) memory_.failures = 0;
        memory_.reverting = false;
        return false;
      case Verdict::kInfeasible:
        return giveUp(outcome.message);
      case Verdict::kDeferred:
        if (since >= kDeferredPatience) return giveUp(outcome.message);
        break;
      case Verdict::kAccepted:
        break;
      default:  // superseded, gone
        memory_.attempt.reset();
        return false;
    }
    if (since < kWorthSaying) {
      // One status for a whole decision: its end will write it.
      decision_.status.reset();
    } else if (!memory_.reverting) {
      say(Phase::kPending, std::nullopt,
          since >= kSlowKubelet ? "the kubelet has not finished the resize: " + outcome.message
                                : "the kubelet is resizing the pod");
    }
    decision_.again = since < kWorthSaying ? kWorthSaying - since : kSlowKubelet;
    return true;
  }

  // Another writer's resize is pending. It is not ours to take back, and ours would override it.
  bool waitForOthers(const resize::Request& pending) {
    if (!memory_.others_since) memory_.others_since = s_.now;
    if (!policy_.managed) {
      leaveAlone("left alone: " + policy_.reason);
    } else if (const Nanos since = s_.now - *memory_.others_since; since < kWorthSaying) {
      decision_.status.reset();
      decision_.again = kWorthSaying - since;
    } else {
      say(Phase::kPending, specTotal(),
          "waits for a resize that MBCAS did not send: " +
              resize::judge(pod_, resize::adopt(pod_, pending)).message);
    }
    return true;
  }

  // The node cannot do what we sent. Back to what it last did, and another try later.
  bool giveUp(const std::string& why) {
    const resize::Request back = revertRequest(pod_);
    const Millicores wanted = specTotal();
    memory_.attempt.reset();
    // Where the pod is not ours to manage any more, what it declared is the way back.
    if (!manages()) return false;
    fail(wanted, why);
    if (back.containers.empty() || s_.dry_run) return false;
    send(back, Purpose::kRevert);
    return true;
  }

  void fail(Millicores target, std::string why) {
    ++memory_.failures;
    memory_.failed_target = target;
    memory_.retry_at = s_.now + backoff(memory_.failures, 0);
    memory_.failure = std::move(why);
    say(Phase::kFailed, target, memory_.failure);
    if (decision_.status) decision_.status->last_attempt = wholeSeconds(s_.wall);
    decision_.again = memory_.retry_at - s_.now;
  }

  // Whether a target that failed has to wait. A smaller one is another matter.
  bool backingOff(Millicores target) {
    if (memory_.failures == 0 || s_.now >= memory_.retry_at) return false;
    if (target < memory_.failed_target) return false;
    say(Phase::kFailed, target, memory_.failure);
    decision_.again = memory_.retry_at - s_.now;
    return true;
  }

  void send(resize::Request request, Purpose purpose) {
    decision_.act = Act::kResize;
    decision_.purpose = purpose;
    decision_.from = totalAfter(pod_, policy_, {});
    decision_.to = totalAfter(pod_, policy_, request);
    decision_.request = std::move(request);
  }

  bool letsGo() const {
    return (!policy_.managed && policy_.let_go) ||
           (policy_.managed && policy_.mode == Mode::kRecommend) ||
           (s_.allocation == nullptr && (policy_.managed || policy_.let_go));
  }

  bool manages() const { return policy_.managed && s_.allocation != nullptr && !letsGo(); }

  void act() {
    if (changed() && !specIsOurs(policy_.original)) return;
    if (letsGo()) {
      if (changed()) return restore(policy_.original);
      if (!policy_.managed || s_.allocation == nullptr)
        return leaveAlone("left alone: " + policy_.reason);
      return recommend("mode recommend");
    }
    if (!manages()) return leaveAlone("left alone: " + policy_.reason);
    if (s_.agent_silent) return giveBack(policy_.original);
    manage();
    // The pod has no copy of its way back: it was resized for the first time, or someone removed
    // the annotation. The copy waits until nothing else is to be done. The kubelet takes a second
    // for every version of a pod, so an annotation before a resize would delay the resize by as
    // much; and what counts, the status, is already written.
    if (decision_.act == Act::kNothing && recorded() && !hasOriginal(pod_) && !s_.dry_run) {
      decision_.act = Act::kKeepOriginal;
    }
  }

  void forget(Purpose purpose) {
    decision_.act = Act::kForgetOriginal;
    decision_.purpose = purpose;
    if (decision_.status) decision_.status->original.clear();
  }

  // Whether the limits in the spec are the original ones or what we wrote. If not, another writer
  // has spoken, and that is respected as what the pod declares from now on.
  bool specIsOurs(const std::vector<OriginalCpu>& original) {
    const std::vector<OriginalCpu> current = podallocation::currentCpu(pod_);
    // After a restart: what the status speaks of is ours.
    if (!memory_.ours && s_.allocation != nullptr &&
        (s_.allocation->applied == specTotal() ||
         (s_.allocation->phase != Phase::kRecommended &&
          s_.allocation->observed_desired == specTotal()))) {
      memory_.ours = current;
    }
    std::vector<OriginalCpu> mine;  // changed by us, among containers that others changed too
    bool ours = true;
    for (const OriginalCpu& cpu : current) {
      const auto same = [&](const std::vector<OriginalCpu>& list) {
        return std::any_of(list.begin(), list.end(), [&](const OriginalCpu& other) {
          return other.container == cpu.container && other.limit == cpu.limit;
        });
      };
      if (same(original)) continue;
      const bool written = memory_.ours && same(*memory_.ours);
      ours = ours && written;
      if (!written) continue;
      for (const OriginalCpu& before : original) {
        if (before.container == cpu.container) mine.push_back(before);
      }
    }
    if (ours) return true;
    if (memory_.asked != pod_.meta.generation) {
      decision_.act = Act::kAskWho;
      return false;
    }
    decision_.purpose = Purpose::kYield;
    if (s_.dry_run) {
      leaveAlone("dry run: another writer has changed the limits");
    } else if (mine.empty()) {
      forget(Purpose::kYield);
    } else {
      send(restoreRequest(pod_, mine), Purpose::kYield);
    }
    return false;
  }

  void restore(const std::vector<OriginalCpu>& original) {
    resize::Request back = restoreRequest(pod_, original);
    const std::string why = s_.allocation == nullptr ? "its PodAllocation is gone"
                            : policy_.managed        ? "mode recommend"
                                                     : policy_.reason;
    if (s_.dry_run) return leaveAlone("dry run: would be restored: " + why);
    if (back.containers.empty()) {
      leaveAlone("as declared: " + why);
      return forget(Purpose::kRestore);
    }
    const Millicores target = totalAfter(pod_, policy_, back);
    if (backingOff(target) || noRoom(target - totalAfter(pod_, policy_, {}), target)) return;
    send(std::move(back), Purpose::kRestore);
  }

  void giveBack(const std::vector<OriginalCpu>& original) {
    const std::string why = fmt::format("the agent of node {} is silent", pod_.node.view());
    resize::Request back = giveBackRequest(pod_, original);
    if (back.containers.empty()) return leaveAlone(why);
    if (s_.dry_run) return leaveAlone("dry run: would be given back its limit: " + why);
    const Millicores target = totalAfter(pod_, policy_, back);
    if (backingOff(target) || noRoom(target - policy_.limit(), target)) return;
    send(std::move(back), Purpose::kGiveBack);
  }

  bool noRoom(Millicores raise, Millicores target) {
    if (!s_.room || raise <= Millicores(0) || raise <= *s_.room) return false;
    say(Phase::kPending, target, "waits for room in the quota of its namespace");
    decision_.again = kWaitForRoom;
    return true;
  }

  // What the agent desires, within the bounds.
  Millicores target() {
    // A declared limit between two steps stays as it is until something else is desired.
    const Millicores desired = s_.allocation->desired == policy_.limit()
                                   ? policy_.limit()
                                   : resize::roundUpToStep(s_.allocation->desired);
    const Millicores clamped = std::clamp(desired, policy_.floor, policy_.ceiling);
    if (clamped == s_.allocation->desired) {
      unclamp();
    } else if (clamped == desired) {
      setClamped(true, "RoundedUp",
                 fmt::format("desired {} is rounded up to {}", text(s_.allocation->desired),
                             text(clamped)));
    } else {
      const bool above = desired > policy_.ceiling;
      setClamped(true, above ? "AboveCeiling" : "BelowFloor",
                 fmt::format("desired {} is {} {} ({})", text(desired),
                             above ? "above the ceiling" : "below the floor",
                             text(above ? policy_.ceiling : policy_.floor), policy_.reason));
    }
    return clamped;
  }

  void recommend(std::string_view why) {
    const Millicores wanted = target();
    say(Phase::kRecommended, wanted,
        fmt::format("{}: would be {} {}", why, wanted == policy_.limit() ? "left at" : "set to",
                    text(wanted)));
  }

  void manage() {
    const podallocation::PodAllocation& allocation = *s_.allocation;
    if (!allocation.node.empty() && allocation.node != pod_.node) {
      return say(Phase::kFailed, std::nullopt,
                 fmt::format("decided on node {}, but the pod runs on {}", allocation.node.view(),
                             pod_.node.view()));
    }
    if (s_.dry_run) return recommend("dry run");
    const Millicores wanted = target();
    if (backingOff(wanted)) return;

    const Millicores in_force = policy_.limit();
    memory_.actuation.last_change = lastChange();
    const control::Move move = control::nextMove(transitionTo(wanted), s_.law, memory_.actuation);
    if (move.again) decision_.again = std::max(Nanos(0), *move.again - s_.now);
    resize::Request request;
    for (std::size_t i = 0; i < move.containers.size(); ++i) {
      const policy::ManagedContainer& container = policy_.containers[i];
      const Millicores limit = move.containers[i];
      if (limit == container.limit) continue;
      request.containers.push_back(
          {container.name, policy_.requests_follow ? std::optional(limit) : std::nullopt, limit});
    }
    if (request.containers.empty()) {
      if (wanted == in_force) return applied(wanted);
      return say(Phase::kPending, wanted, waiting(wanted, move.held_by));
    }
    if (!recorded()) {
      say(Phase::kPending, wanted, "is about to be resized");
      decision_.act = Act::kRecordOriginal;
      decision_.status->original = changed() ? policy_.original : podallocation::currentCpu(pod_);
      return;
    }
    if (const auto rejection = resize::check(pod_, request))
      return fail(wanted, rejection->message);
    // Said only if it is not the whole way: the end of the resize will say the rest.
    if (move.limit != wanted) say(Phase::kPending, wanted, waiting(wanted, move.held_by));
    send(std::move(request), Purpose::kManage);
  }

  control::Transition transitionTo(Millicores wanted) const {
    control::Transition transition{.now = s_.now,
                                   .declared = policy_.declared(),
                                   .ready = pod_.ready,
                                   .disruption_blocked = policy_.disruption_blocked,
                                   .scaled_by_hpa = policy_.scaled_by_hpa,
                                   .may_raise = s_.may_raise,
                                   .room = s_.room};
    for (const policy::ManagedContainer& container : policy_.containers) {
      transition.in_force.push_back(container.limit);
    }
    transition.target = splitOf(wanted);
    return transition;
  }

  void applied(Millicores wanted) {
    const std::optional<Millicores> now = actuated(pod_, policy_);
    if (now != wanted) return say(Phase::kPending, wanted, "waits for the kubelet");
    const podallocation::Condition* const clamped =
        decision_.status->condition(podallocation::kClamped);
    if (wanted == s_.allocation->desired || clamped == nullptr) {
      return say(Phase::kApplied, wanted, s_.allocation->reason.string());
    }
    say(Phase::kClamped, wanted, clamped->message);
  }

  static std::string waiting(Millicores wanted, Hold hold) {
    if (hold == Hold::kQuota) return "waits for room in the quota of its namespace";
    return fmt::format("on its way to {}; the rest waits ({})", text(wanted), control::name(hold));
  }

  std::optional<MonotonicTime> lastChange() const {
    if (memory_.actuation.last_change) return memory_.actuation.last_change;
    if (s_.allocation == nullptr || s_.allocation->last_applied == WallTime{}) return std::nullopt;
    // Of a predecessor. Its clock may differ from ours: never in the future, and if long ago, no
    // matter how long.
    const Nanos ago =
        std::clamp<Nanos>(s_.wall - s_.allocation->last_applied, Nanos(0), std::chrono::hours(1));
    return s_.now - ago;
  }

  // What each container should have of the total. An allocation that does not name them all says
  // nothing about the split.
  std::vector<Millicores> splitOf(Millicores total) const {
    std::vector<control::BoundedPart> parts;
    bool complete = true;
    for (const policy::ManagedContainer& container : policy_.containers) {
      control::BoundedPart& part =
          parts.emplace_back(container.limit, container.floor, container.ceiling);
      bool found = false;
      for (const auto& wanted : s_.allocation->containers) {
        if (wanted.name.view() != container.name) continue;
        part.desired = wanted.desired;
        found = true;
      }
      complete = complete && found;
    }
    for (std::size_t i = 0; i < parts.size() && !complete; ++i) {
      parts[i].desired = policy_.containers[i].limit;
    }
    if (!complete && total == policy_.limit()) {
      std::vector<Millicores> as_they_are;
      as_they_are.reserve(parts.size());
      for (const control::BoundedPart& part : parts) as_they_are.push_back(part.desired);
      return as_they_are;
    }
    return control::splitWithin(parts, total);
  }

  const Situation& s_;
  const kube::Pod& pod_;
  const PodPolicy& policy_;
  PodMemory& memory_;
  Decision decision_;
};

bool near(std::optional<Millicores> a, std::optional<Millicores> b) {
  if (!a || !b) return a == b;
  const std::int64_t difference = std::abs(a->count() - b->count());
  return difference * 10 <= std::max<std::int64_t>(a->count(), 1);
}

}  // namespace

std::string_view name(Purpose purpose) {
  switch (purpose) {
    case Purpose::kManage:
      return "manage";
    case Purpose::kRevert:
      return "revert";
    case Purpose::kRestore:
      return "restore";
    case Purpose::kGiveBack:
      return "give-back";
    case Purpose::kYield:
      break;
  }
  return "yield";
}

Decision decide(const Situation& situation, PodMemory& memory) {
  return Decider(situation, memory).decide();
}

void remember(const kube::Pod& pod, const Decision& decision, const resize::Outcome& outcome,
              MonotonicTime now, double chance, PodMemory& memory) {
  if (outcome.verdict == Verdict::kAccepted && outcome.attempt) {
    memory.attempt = *outcome.attempt;
    memory.attempt_since = now;
    memory.generation = outcome.attempt->generation;
    memory.reverting = decision.purpose == Purpose::kRevert;
    memory.actuation.last_change = now;
    memory.ours = podallocation::currentCpu(pod);
    for (OriginalCpu& cpu : *memory.ours) {
      for (const resize::ContainerCpu& change : decision.request.containers) {
        if (change.name != cpu.container) continue;
        if (change.limit) cpu.limit = change.limit;
        if (change.request) cpu.request = change.request;
      }
    }
    return;
  }
  // Decided on what is no longer so: the newer version of the pod will be looked at.
  if (outcome.verdict == Verdict::kSuperseded) return;
  ++memory.failures;
  memory.failed_target = decision.to;
  memory.retry_at =
      now + std::max(backoff(memory.failures, chance), outcome.retry_after.value_or(Nanos(0)));
  memory.failure = outcome.message;
}

podallocation::Bounds publishedBounds(const PodPolicy& policy, std::optional<Millicores> start,
                                      double weight, const podallocation::Bounds* before) {
  podallocation::Bounds bounds{
      .managed = policy.managed, .weight = weight, .reason = policy.reason};
  if (!policy.managed) return bounds;
  bounds.floor = policy.floor;
  bounds.ceiling = policy.ceiling;
  bounds.start = start;
  if (before == nullptr || !before->managed) return bounds;
  bounds.start = before->start;  // where it began does not change
  if (near(before->floor, bounds.floor) && near(before->ceiling, bounds.ceiling) &&
      before->reason == bounds.reason) {
    bounds.floor = before->floor;
    bounds.ceiling = before->ceiling;
  }
  return bounds;
}

}  // namespace mbcas::controller
