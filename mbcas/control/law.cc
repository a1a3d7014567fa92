#include "mbcas/control/law.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "mbcas/control/answer.h"
#include "mbcas/control/guards.h"
#include "mbcas/control/split.h"
#include "mbcas/control/weight.h"

namespace mbcas::control {
namespace {

constexpr Nanos kFirstInterval = std::chrono::seconds(1);
constexpr std::size_t kEnoughSamples = 5;  // of the node, before it can be called scarce
// How long a constrained pod may be off by more than half the hysteresis.
constexpr Nanos kOffsetLasts = std::chrono::minutes(1);
// An award this close to the use constrains no pod: the difference is the noise of a median. A
// constrained pod stays constrained until it gets all of its use. With a single border, a pod would
// move back and forth between its award and its declared limit for ever.
constexpr double kAsGoodAsAll = 0.98;
constexpr double kAll = 1.0;
constexpr std::uint32_t kLately = (1U << 30U) - 1;  // of the samples that are remembered
constexpr double kContended = 0.1;
constexpr double kAtLimit = 0.95;

Millicores scaled(Millicores amount, double factor) {
  return Millicores(std::llround(static_cast<double>(amount.count()) * factor));
}

Millicores asLimit(double cores) {
  return Millicores(std::llround(std::min(cores, 1e6) * 1000));
}

bool passed(std::optional<MonotonicTime> since, Nanos interval, MonotonicTime now) {
  return !since || now - *since >= interval;
}

// Steps of 10 % upwards from 10m; stays where it is while that is right to within two of them, so
// that noise at an edge shows nowhere.
Millicores coarse(Millicores wanted, Millicores last) {
  if (wanted <= last && scaled(wanted, 1.21) > last) return last;
  Millicores step = kLimitStep;
  while (step < wanted) step = roundUp(scaled(step, 1.1));
  return step;
}

// The exact answer, before the market gives the last millicores to some of those that are equal: a
// millicore more would take one of them past the hysteresis and not the others.
Millicores awardOf(const market::Pod& pod, const market::Clearing& clearing,
                   const market::Award& award) {
  switch (award.basis) {
    case market::Basis::kBid:
      if (award.bound != market::Bound::kNone || !clearing.price) return award.cpu;
      return pod.min + Millicores(std::llround(pod.bid / *clearing.price));
    case market::Basis::kFloors:
      return pod.guarantee + scaled(pod.min - pod.guarantee, clearing.overload_share);
    case market::Basis::kGuarantees:
      return scaled(pod.guarantee, clearing.overload_share);
    case market::Basis::kWeight:
    case market::Basis::kEqual:
      break;
  }
  return award.cpu;
}

// A decrease that had to be taken back was for a pause, not for a fall of the load: the next pause
// as long passes without one.
void learnPatience(Millicores desired, const Answer& answer, MonotonicTime now, Nanos regret,
                   PodState& state) {
  if (answer.constrained || answer.basis == Basis::kAward) return;
  if (desired < state.desired) {
    if (!state.lowered) state.lowered = state.low_since.value_or(now);
  } else if (state.lowered) {
    const Nanos pause = now - *state.lowered;
    state.patience = pause <= regret ? pause * 2 : Nanos(0);
    state.lowered.reset();
  }
}

// Whether the desired limit is to become the answer now.
class Publishing {
 public:
  Publishing(const Settings& settings, MonotonicTime now) : settings_(settings), now_(now) {}

  // The new desired limit; nothing: it stays.
  std::optional<Millicores> decide(const Pod& pod, const PodView& view, const Answer& answer,
                                   bool scarce, bool begins, PodState& state) const {
    const Millicores desired = state.desired;
    // Help must not come late, and a pod that is no longer bound has waited long enough.
    if (begins && answer.constrained && isLower(answer.limit, desired)) return answer.limit;
    if (!isClassic(settings_) && settings_.reclaim != Reclaim::kAlways && !answer.constrained &&
        desired < std::min(view.declared, view.ceiling) && answer.limit > desired) {
      return answer.limit;
    }
    const bool urgent = isUrgent(view, answer);
    // A pod that waits for memory or I/O would use more CPU if it did not have to wait.
    if (pod.memory_or_io_pressure) state.low_since.reset();
    const std::optional<Millicores> lower =
        pod.memory_or_io_pressure ? std::nullopt : lastingLower(answer, state);
    const bool off = lastingOffset(answer, state);
    if (urgent && answer.limit > scaled(desired, 1 + settings_.hysteresis) &&
        passed(state.desired_since, settings_.guards.raise_cooldown, now_)) {
      return answer.limit;
    }
    // The split over the containers is wrong, even if the sum is right.
    if (urgent && view.cramped && passed(state.published, settings_.write_interval, now_)) {
      return answer.limit;
    }
    // Do no harm: what was taken because of scarcity is given back at once.
    if (isClassic(settings_) && !scarce && !settings_.strict_capacity &&
        settings_.reclaim != Reclaim::kAlways && desired < std::min(view.declared, view.ceiling) &&
        answer.limit > desired) {
      return answer.limit;
    }
    // A floor keeps a limit from being lowered; it takes nothing from others beyond the declared
    // one.
    const Millicores least = settings_.strict_capacity       ? roundUp(view.request)
                             : answer.basis == Basis::kAward ? std::min(view.floor, view.declared)
                                                             : view.floor;
    if (desired < least || desired > view.ceiling) return answer.limit;
    if (!passed(state.published, settings_.write_interval, now_)) return std::nullopt;
    if (answer.limit > scaled(desired, 1 + settings_.hysteresis)) return answer.limit;
    if (off || (answer.constrained && isLower(answer.limit, desired))) return answer.limit;
    return lower;
  }

  bool isUrgent(const PodView& view, const Answer& answer) const {
    return view.throttled && !answer.constrained &&
           (view.cramped || answer.limit > scaled(view.limit, 1 + settings_.hysteresis));
  }

  // False if it stands there already.
  bool moveTo(Millicores desired, std::vector<Millicores> containers, PodState& state) const {
    const bool same_split =
        std::ranges::equal(containers, state.containers, [&](Millicores to, Millicores from) {
          return !isLower(to, from) && to <= scaled(from, 1 + settings_.hysteresis);
        });
    if (desired == state.desired && same_split) return false;
    state.desired = desired;
    state.containers = std::move(containers);
    state.desired_since = state.published = now_;
    state.low_since.reset();
    state.off_since.reset();
    return true;
  }

  // True if the wanted limit has changed and the change is worth a write by itself.
  bool tellWanted(Millicores unbounded, bool told_anyway, PodState& state) const {
    const Millicores wanted = coarse(unbounded, state.wanted);
    if (wanted == state.wanted) return false;
    if (!told_anyway && !passed(state.published, settings_.write_interval, now_)) return false;
    state.wanted = wanted;
    if (!told_anyway) state.published = now_;
    return true;
  }

 private:
  bool isLower(Millicores limit, Millicores desired) const {
    return limit < scaled(desired, 1 - settings_.hysteresis);
  }
  // What a raise takes from other pods is given back to them to the last step.
  bool isLower(const Answer& answer, Millicores desired) const {
    return answer.basis == Basis::kAward ? answer.limit < desired : isLower(answer.limit, desired);
  }

  // Pods that share scarce CPU have what the market gives them now, and not what it gave on the
  // way: half the hysteresis is enough once the difference has lasted.
  bool lastingOffset(const Answer& answer, PodState& state) const {
    const double most = settings_.hysteresis / 2;
    if (!answer.constrained || (answer.limit >= scaled(state.desired, 1 - most) &&
                                answer.limit <= scaled(state.desired, 1 + most))) {
      state.off_since.reset();
      return false;
    }
    if (!state.off_since) state.off_since = now_;
    return now_ - *state.off_since >= kOffsetLasts;
  }

  // The largest need since the need fell below the desired limit, once that has lasted.
  std::optional<Millicores> lastingLower(const Answer& answer, PodState& state) const {
    if (!isLower(answer, state.desired)) {
      state.low_since.reset();
      return std::nullopt;
    }
    if (!state.low_since) {
      state.low_since = now_;
      state.low_most = answer.limit;
    }
    state.low_most = std::max(state.low_most, answer.limit);
    // What was learned about the pod's pauses does not count against other pods.
    const Nanos patience = answer.basis == Basis::kAward
                               ? settings_.lower_lasts
                               : std::max(state.patience, settings_.lower_lasts);
    if (now_ - *state.low_since < patience) return std::nullopt;
    return state.low_most;
  }

  const Settings& settings_;
  MonotonicTime now_;
};

std::vector<Millicores> limitsOf(const Pod& pod, Millicores Container::* limit) {
  std::vector<Millicores> limits(pod.containers.size());
  std::ranges::transform(pod.containers, limits.begin(), limit);
  return limits;
}

}  // namespace

NodeLaw::NodeLaw(const Settings& settings, NodeState state)
    : settings_(settings), state_(std::move(state)) {}
NodeLaw::~NodeLaw() = default;
NodeLaw::NodeLaw(NodeLaw&&) noexcept = default;
NodeLaw& NodeLaw::operator=(NodeLaw&&) noexcept = default;

void NodeLaw::resume(const std::string& id, const PodState& state) {
  if (!state_.pods.try_emplace(id, state).second) return;
  if (state.constrained && state_.demand.size() < kEnoughSamples) state_.scarce = true;
}

const NodeDecision& NodeLaw::decide(const NodeInput& input) {
  views_.clear();
  for (const Pod& pod : input.pods) {
    const auto known = state_.pods.find(pod.id);
    const std::span<const Millicores> desired =
        known == state_.pods.end() ? std::span<const Millicores>() : known->second.containers;
    views_.push_back(viewOf(pod, input, settings_, desired));
  }
  measure(input);
  if (isClassic(settings_)) {
    clear(input);
  } else {
    survey(input);
  }
  decision_.pods.resize(input.pods.size());
  for (std::size_t i = 0; i < input.pods.size(); ++i) decidePod(input, i);
  if (state_.pods.size() > input.pods.size()) forgetOthers(input);
  return decision_;
}

void NodeLaw::forgetOthers(const NodeInput& input) {
  std::set<std::string_view> present;
  for (const Pod& pod : input.pods) present.insert(pod.id);
  std::erase_if(state_.pods, [&](const auto& entry) { return !present.contains(entry.first); });
}

void NodeLaw::measure(const NodeInput& input) {
  const Nanos interval = interval_ = state_.last ? input.now - *state_.last : kFirstInterval;
  state_.last = input.now;
  if (interval > Nanos(0)) {
    Millicores demand;
    for (const PodView& view : views_) demand += view.present;
    state_.demand.add(interval, demand, demand);
    state_.unmanaged.add(interval, input.unmanaged_use, input.unmanaged_use);
  }
  decision_.capacity = nodeCapacity(input, state_.unmanaged.median(), settings_);
  decision_.demand = state_.demand.median();
  const double border = state_.scarce ? settings_.scarce_until : settings_.scarce_from;
  if (state_.demand.size() >= kEnoughSamples) {
    state_.scarce =
        decision_.demand >= scaled(decision_.capacity, border) && decision_.demand > Millicores(0);
  }
  decision_.scarce = state_.scarce;
}

void NodeLaw::clear(const NodeInput& input) {
  decision_.whole_machine = false;
  decision_.mode.reset();
  decision_.price = 0;
  decision_.welfare = 1;
  awards_.clear();
  for (const PodView& view : views_) awards_.push_back(view.use);
  if (!state_.scarce && !settings_.strict_capacity) return;  // pressure bids, and CPU is not scarce

  problem_.capacity = decision_.capacity;
  problem_.pods.resize(views_.size());
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const PodView& view = views_[i];
    const Pod& pod = input.pods[i];
    market::Pod& buyer = problem_.pods[i];
    buyer.id = pod.id;
    buyer.weight = buyer.bid = pod.weight;
    if (settings_.bid_rule == BidRule::kPressure) {
      demand::Need need;
      need.use = view.use;
      for (const Container& container : pod.containers) {
        if (container.need.pressure) {
          need.pressure = std::max(need.pressure.value_or(0), *container.need.pressure);
        }
      }
      buyer.bid = pod.weight * demand::demand(need, view.floor, view.ceiling);
      buyer.max = view.ceiling;
    } else {
      buyer.max = settings_.strict_capacity ? view.free : view.use;
    }
    buyer.min = std::min(view.floor, buyer.max);
    buyer.guarantee = std::min(view.request, buyer.min);
  }
  if (!solver_.solve(problem_, clearing_)) return;  // no answer, no constraint

  decision_.mode = clearing_.mode;
  decision_.price = clearing_.price;
  double weights = 0;
  double logs = 0;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    awards_[i] = awardOf(problem_.pods[i], clearing_, clearing_.pods[i]);
    const auto use = static_cast<double>(views_[i].use.count());
    if (use == 0) continue;
    const double share = std::min(static_cast<double>(awards_[i].count()) / use, 1.0);
    weights += input.pods[i].weight;
    logs += input.pods[i].weight * std::log(std::max(share, 1e-3));
  }
  if (weights > 0) decision_.welfare = std::exp(logs / weights);
}

// As far as is known. A pod that is helped is not given more, and one that uses as much is not
// hungry.
static double threadsOf(const Cgroup& cgroup) {
  if (cgroup.inner || !cgroup.threads) return market::kUncapped;
  return std::max(static_cast<double>(*cgroup.threads), 1.0);
}

// Its place in the tree, without a demand.
static market::CgroupNode placeOf(const Cgroup& cgroup) {
  market::CgroupNode node{.parent = cgroup.parent, .weight = cgroup.weight};
  node.threads = threadsOf(cgroup);
  if (cgroup.cap) node.cap = cgroup.cap->cores();
  return node;
}

static Millicores presentUse(const Pod& pod) {
  Millicores use;
  for (const Container& container : pod.containers) use += container.need.last.usage;
  return use;
}

// Where the machine was not sensed: the pods by their requests, and one consumer for everything
// else.
static std::vector<Cgroup> flatTree(const NodeInput& input) {
  std::vector<Cgroup> tree;
  tree.reserve(input.pods.size() + 1);
  for (std::size_t i = 0; i < input.pods.size(); ++i) {
    tree.push_back({.weight = kernelShares(input.pods[i].request()), .pod = i});
  }
  tree.push_back({.id = "others", .use = input.unmanaged_use});
  return tree;
}

// The use of each consumer of the machine, the kernel's division of the CPU, and the market's.
void NodeLaw::survey(const NodeInput& input) {
  if (input.machine.empty()) flat_ = flatTree(input);
  const std::span<const Cgroup> machine = input.machine.empty() ? flat_ : input.machine;
  findHungry(input, machine);
  describe(input, machine);
  intervene(input);

  decision_.capacity = input.capacity;
  decision_.whole_machine = true;
  decision_.price = 0;
  decision_.mode = market::Mode::kUncongested;
  double weights = 0;
  double logs = 0;
  awards_.clear();
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const Consumer& consumer = consumers_[places_[i]];
    const Outcome& outcome = intervention_.consumers[places_[i]];
    awards_.push_back(asLimit(outcome.award));
    const double most = std::min({consumer.cgroup.demand, consumer.free, input.capacity.cores()});
    if (most <= 0) continue;
    const double share = std::min(outcome.award / most, 1.0);
    weights += input.pods[i].weight;
    logs += input.pods[i].weight * std::log(std::max(share, 1e-3));
    if (share < kAsGoodAsAll && outcome.award > 0) {
      decision_.mode = market::Mode::kCongested;
      decision_.price = std::max(*decision_.price,
                                 consumer.cgroup.weight * consumer.factor / (outcome.award * 1000));
    }
  }
  decision_.welfare = weights > 0 ? std::exp(logs / weights) : 1;
  decision_.scarce = state_.scarce = decision_.mode == market::Mode::kCongested;
}

void NodeLaw::findHungry(const NodeInput& input, std::span<const Cgroup> machine) {
  std::vector<market::CgroupNode> nodes;
  std::vector<double> use;
  double used = 0;
  for (const Cgroup& cgroup : machine) {
    market::CgroupNode& node = nodes.emplace_back(placeOf(cgroup));
    Millicores present = cgroup.inner ? Millicores(0) : cgroup.use;
    if (cgroup.pod) {
      present = presentUse(input.pods[*cgroup.pod]);
      node.cap = views_[*cgroup.pod].limit.cores();
    }
    node.demand = present.cores();
    use.push_back(node.demand);
    used += node.demand;
  }
  const double capacity = input.capacity.cores();
  const double idle = input.idle ? input.idle->cores() : capacity - used;
  const std::vector<bool> found = hungry(capacity, idle, nodes, use);
  for (std::size_t c = 0; c < machine.size(); ++c) {
    const Cgroup& cgroup = machine[c];
    if (cgroup.inner) continue;
    if (!cgroup.pod) {
      ConsumerState& state = state_.consumers[cgroup.id];
      state.seen = true;
      state.hungry = state.hungry << 1U | (found[c] ? 1U : 0U);
      continue;
    }
    const Pod& pod = input.pods[*cgroup.pod];
    PodState& state = state_.pods[pod.id];
    // A pod at its own limit does not show whether neighbours would keep it down too.
    if (use[c] < kAtLimit * nodes[c].cap) state.hungry = state.hungry << 1U | (found[c] ? 1U : 0U);
    if (!views_[*cgroup.pod].fresh) continue;
    // A pod at its own limit is raised first.
    const bool pinned = found[c] && !views_[*cgroup.pod].throttled;
    state.help.add(
        {.at = input.now,
         .use = Millicores(std::llround(use[c] * 1000)),
         .pinned = pinned || (pod.contention >= kContended && found[c]),
         .contention = pod.contention > 0 ? std::optional(pod.contention) : std::nullopt});
  }
}

// The tree with demands, as the market sees it.
void NodeLaw::describe(const NodeInput& input, std::span<const Cgroup> machine) {
  consumers_.assign(machine.size(), {});
  places_.assign(input.pods.size(), 0);
  const auto mostly = [](std::uint32_t hungry) { return std::popcount(hungry & kLately) >= 15; };
  for (std::size_t c = 0; c < machine.size(); ++c) {
    const Cgroup& cgroup = machine[c];
    Consumer& consumer = consumers_[c];
    consumer.cgroup = placeOf(cgroup);
    if (cgroup.inner) continue;
    if (!cgroup.pod) {
      ConsumerState& state = state_.consumers[cgroup.id];
      if (interval_ > Nanos(0)) state.use.add(interval_, cgroup.use, cgroup.use);
      consumer.cgroup.demand =
          mostly(state.hungry) ? market::kUncapped : state.use.median().cores();
      continue;
    }
    const std::size_t i = *cgroup.pod;
    const Pod& pod = input.pods[i];
    const PodView& view = views_[i];
    PodState& state = state_.pods[pod.id];
    places_[i] = c;
    consumer.managed = true;
    consumer.declared = view.declared.cores();
    consumer.free = view.free.cores();
    consumer.request = pod.request().cores();
    consumer.factor = pod.factor;
    consumer.floor = view.floor.cores();
    consumer.may_lower = pod.may_lower && view.fresh && view.warm && input.divisible &&
                         settings_.reclaim != Reclaim::kNever &&
                         view.floor < roundUp(view.declared);
    // Work that waits for a limit of this law's making is no news of what the pod needs: the limit
    // would be raised for it and lowered again in turns.
    if (!state.held || presentUse(pod) < scaled(view.limit, kAtLimit)) {
      state.demand = view.use;
      state.peak = view.use_peak;
    }
    consumer.cgroup.demand = mostly(state.hungry) ? market::kUncapped : state.demand.cores();
    consumer.peak = state.peak.cores();
  }
  for (auto entry = state_.consumers.begin(); entry != state_.consumers.end();) {
    entry =
        std::exchange(entry->second.seen, false) ? std::next(entry) : state_.consumers.erase(entry);
  }
}

void NodeLaw::intervene(const NodeInput& input) {
  const double capacity = input.capacity.cores();
  std::uint64_t participants = 0;
  for (const Pod& pod : input.pods) {
    participants += std::hash<std::string>{}(pod.id) ^ std::hash<double>{}(pod.factor);
  }
  const bool others = std::exchange(state_.participants, participants) != participants;
  bool asks = false;
  for (std::size_t i = 0; i < input.pods.size(); ++i) {
    Help& help = state_.pods[input.pods[i].id].help;
    if (others) help.forgetBackOff();
    const bool may = input.divisible && views_[i].fresh && help.mayProbe();
    asks = asks || may;
    const std::optional<Millicores> claim = help.claim(input.capacity, settings_.insurance);
    if (claim) consumers_[places_[i]].claim = claim->cores();
    if (may) consumers_[places_[i]].claim = capacity;
  }
  if (asks) {
    // A trial begins only if the market has something to give to the pod.
    const Intervention& trial = intervener_.decide(capacity, consumers_, state_.binds);
    for (std::size_t i = 0; i < input.pods.size(); ++i) {
      Help& help = state_.pods[input.pods[i].id].help;
      if (!views_[i].fresh || !help.mayProbe()) continue;
      if (trial.binds && trial.consumers[places_[i]].beneficiary) {
        help.probe();
      } else {
        consumers_[places_[i]].claim.reset();
      }
    }
  }
  // Where the help of a pod ends, the others are released in the same second.
  for (bool ended = true; ended;) {
    ended = false;
    intervention_ = intervener_.decide(capacity, consumers_, state_.binds);
    state_.binds = intervention_.binds;
    for (std::size_t i = 0; i < input.pods.size(); ++i) {
      Help& help = state_.pods[input.pods[i].id].help;
      if (help.phase() == Help::Phase::kNone) continue;
      help.follow(intervention_.consumers[places_[i]].beneficiary, intervention_.binds);
      if (help.phase() != Help::Phase::kNone) continue;
      consumers_[places_[i]].claim.reset();
      ended = true;
    }
  }
}

void NodeLaw::decidePod(const NodeInput& input, std::size_t i) {
  const Pod& pod = input.pods[i];
  const PodView& view = views_[i];
  PodState& state = state_.pods[pod.id];
  PodDecision& decision = decision_.pods[i];
  decision = {};
  decision.limit = view.limit;
  decision.throttled = view.throttled;
  decision.fresh = view.fresh;
  if (state.desired == Millicores(0) || state.declared != view.declared ||
      state.containers.size() != pod.containers.size()) {
    state.desired = view.limit;  // first seen, or another writer set it: start from there
    state.containers = limitsOf(pod, &Container::limit);
    state.declared = view.declared;
    state.low_since.reset();
    decision.publish = true;
  }

  std::vector<Millicores> needs(pod.containers.size());
  for (std::size_t c = 0; c < needs.size(); ++c) {
    const Container& container = pod.containers[c];
    needs[c] = neededLimit(container.need, settings_);
    if (!isClassic(settings_)) {
      needs[c] = std::max(needs[c], keptCpus(container, state.containers[c]));
    }
  }
  const Answer answer = answerFor(pod, i, state, needs);
  decision.answer = answer.limit;
  const bool begins = answer.constrained && !state.constrained;
  decision.constrained = state.constrained = answer.constrained;
  state.held = answer.basis == Basis::kAward;
  decision.help = state.help.phase();
  decision.award = awards_[i];
  if (!isClassic(settings_)) tellIntervention(input, i, decision);
  const Reason reason{.basis = answer.basis,
                      .use = view.use,
                      .use_peak = view.use_peak,
                      .burst = view.burst,
                      .declared = view.declared,
                      .floor = view.floor,
                      .ceiling = view.ceiling,
                      .award = awards_[i],
                      .capacity = decision_.capacity,
                      .price = decision_.price,
                      .weight = pod.weight};
  if (view.fresh) {
    const Publishing publishing(settings_, input.now);
    decision.urgent = view.warm && publishing.isUrgent(view, answer);
    if (const auto desired = publishing.decide(pod, view, answer, state_.scarce, begins, state)) {
      learnPatience(*desired, answer, input.now, settings_.regret, state);
      // The limit in force, where that is what it keeps, may lie between two steps, and so may the
      // declared one.
      const bool between = *desired != roundUp(*desired);
      if (between && *desired == view.limit) {
        decision.publish |= publishing.moveTo(*desired, limitsOf(pod, &Container::limit), state);
      } else if (between && *desired == view.declared) {
        decision.publish |= publishing.moveTo(*desired, limitsOf(pod, &Container::declared), state);
      } else {
        decision.publish |=
            publishing.moveTo(roundUp(*desired), splitLimit(pod, needs, *desired), state);
      }
    }
    // While the pod is too new to judge, its wanted limit is not known.
    if (view.warm) {
      decision.publish |= publishing.tellWanted(answer.unbounded, decision.publish, state);
    }
  }
  // The pod's own reason, as soon as there is one.
  const Basis told = state.reason.basis;
  const bool provisional =
      told == Basis::kNoData || told == Basis::kWarmup || told == Basis::kStart;
  if (decision.publish || (provisional && view.fresh && view.warm)) state.reason = reason;
  decision.desired = state.desired;
  decision.containers = state.containers;
  decision.wanted = state.wanted;
  decision.reason = view.fresh ? state.reason : reason;
}

void NodeLaw::tellIntervention(const NodeInput& input, std::size_t i, PodDecision& decision) const {
  decision.by_kernel = asLimit(intervention_.consumers[places_[i]].by_kernel);
  if (const std::optional<double>& claim = consumers_[places_[i]].claim) {
    decision.claim = asLimit(*claim);
  }
  if (!decision.constrained) return;
  for (std::size_t other = 0; other < input.pods.size(); ++other) {
    if (decision.bound_for.size() == kMostNamed) return;
    if (intervention_.consumers[places_[other]].beneficiary) {
      decision.bound_for.push_back(input.pods[other].id);
    }
  }
}

// `needs` of the containers become those of a constrained pod, if it is one.
Answer NodeLaw::answerFor(const Pod& pod, std::size_t i, const PodState& state,
                          std::vector<Millicores>& needs) const {
  const PodView& view = views_[i];
  const Millicores award = awards_[i];
  if (!view.fresh) return {view.limit, view.limit, state.constrained, Basis::kNoData};
  if (!view.warm) {
    if (!pod.start) {
      // A pod that a predecessor has bound gets its declared limit back before it can be judged.
      const bool gives_back = !isClassic(settings_) && settings_.reclaim != Reclaim::kAlways;
      const Millicores least =
          gives_back ? std::min(roundUp(view.declared), view.ceiling) : Millicores(0);
      return {std::max(view.limit, least), view.limit, false, Basis::kWarmup};
    }
    const Millicores start =
        settings_.reclaim == Reclaim::kAlways ? *pod.start : std::max(*pod.start, view.declared);
    return {std::clamp(roundUp(start), view.floor, view.ceiling), view.limit, false, Basis::kStart};
  }

  Answer answer = freeAnswer(view, settings_);
  if (!isClassic(settings_)) {
    const Outcome& outcome = intervention_.consumers[places_[i]];
    const Millicores most = asLimit(outcome.limit);
    if (outcome.bound) {
      needs = shapedLimits(pod, most);
      answer = constrainedAnswer(view, std::accumulate(needs.begin(), needs.end(), Millicores(0)));
    } else if (most < answer.limit) {
      // Raised no further, so that others keep what they have without MBCAS.
      // Rounded down: on a small node the steps of several pods add up.
      answer.limit = std::max(roundDown(most), std::min(view.declared, answer.limit));
      answer.basis = Basis::kAward;
    }
    return answer;
  }
  const bool cleared = decision_.mode.has_value();
  const bool of_limits = settings_.strict_capacity || settings_.bid_rule == BidRule::kPressure;
  if (cleared && of_limits && (settings_.strict_capacity || award < view.needed)) {
    answer = clearedAnswer(view, award, settings_);
  } else if (cleared && !of_limits &&
             award < scaled(view.use, state.constrained ? kAll : kAsGoodAsAll)) {
    needs = shapedLimits(pod, award);
    answer = constrainedAnswer(view, std::accumulate(needs.begin(), needs.end(), Millicores(0)));
  }
  if (settings_.reclaim == Reclaim::kNever && !settings_.strict_capacity) {
    answer.limit = std::max(answer.limit, std::min(roundUp(view.declared), view.ceiling));
  }
  return answer;
}

}  // namespace mbcas::control
