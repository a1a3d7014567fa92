#include "mbcas/cli/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/cli/findings.h"
#include "mbcas/cli/words.h"
#include "mbcas/control/help.h"
#include "mbcas/control/reason.h"
#include "mbcas/control/weight.h"
#include "mbcas/demand/need.h"
#include "mbcas/view/text.h"

namespace mbcas::cli {
namespace {

using podallocation::PodAllocation;

constexpr Millicores kNegligible(1);
constexpr double kMuchWaiting = 0.1;  // of the time, before it is worth a word

// The bounds of a pod, whatever their source.
struct Bounds {
  std::optional<Millicores> floor;
  std::optional<Millicores> ceiling;
  std::optional<Millicores> start;
  double weight = 1;  // the cluster's factor
  std::string floor_by;
  std::string ceiling_by;
  std::string reason;
  bool published = false;  // by the controller
};

// "floor: A; ceiling: B" as policy writes it.
void splitReason(Bounds& bounds) {
  constexpr std::string_view kFloor = "floor: ";
  constexpr std::string_view kCeiling = "; ceiling: ";
  const std::string& reason = bounds.reason;
  const std::size_t middle = reason.find(kCeiling);
  if (!reason.starts_with(kFloor) || middle == std::string::npos) return;
  bounds.floor_by = reason.substr(kFloor.size(), middle - kFloor.size());
  bounds.ceiling_by = reason.substr(middle + kCeiling.size());
  bounds.reason.clear();
}

std::optional<Bounds> boundsOf(const Evidence& evidence) {
  Bounds bounds;
  if (evidence.allocation && evidence.allocation->bounds() != nullptr) {
    const PodAllocation::BoundsView& from = *evidence.allocation->bounds();
    bounds = {from.floor, from.ceiling, from.start,           from.weight,
              "",         "",           from.reason.string(), true};
  } else if (evidence.decision && evidence.decision->pod.bounds) {
    const BoundsRecord& from = *evidence.decision->pod.bounds;
    bounds = {from.floor, from.ceiling, from.start, from.weight, "", "", from.reason, true};
  } else if (evidence.verdict && evidence.verdict->policy.managed) {
    const policy::PodPolicy& from = evidence.verdict->policy;
    bounds = {from.floor, from.ceiling, std::nullopt, 1, "", "", from.reason, false};
  } else {
    return std::nullopt;
  }
  splitReason(bounds);
  return bounds;
}

demand::BurstState burstState(std::string_view text) {
  for (const auto state :
       {demand::BurstState::kGuessed, demand::BurstState::kLearned, demand::BurstState::kTrying}) {
    if (demand::name(state) == text) return state;
  }
  return demand::BurstState::kNone;
}

std::string burstRule(demand::BurstState state) {
  switch (state) {
    case demand::BurstState::kNone:
      return "never throttled by a burst";
    case demand::BurstState::kGuessed:
      return "guessed from the threads that waited while the limit bound";
    case demand::BurstState::kLearned:
      return "limit at which its bursts are no longer cut off, learned";
    case demand::BurstState::kTrying:
      break;
  }
  return "a lower level is being tried";
}

// How many threads are busy without a pause, where these and nothing else bound what it uses:
// neither a limit nor the machine with so many millicores.
std::optional<std::int64_t> busyThreads(const ContainerRecord& container, Millicores machine) {
  constexpr std::int64_t kEnoughSamples = 15;
  constexpr Millicores kNoise(50);
  const std::int64_t threads = (container.use.count() + 500) / 1000;
  const Millicores whole = Millicores(1000) * threads;
  const auto near = [&](Millicores use) { return use + kNoise >= whole && use <= whole + kNoise; };
  if (threads == 0 || container.samples < kEnoughSamples) return std::nullopt;
  if (!near(container.use) || !near(container.used_peak) || !near(container.usage)) {
    return std::nullopt;
  }
  if (container.blocked > kNegligible || container.binding) return std::nullopt;
  if (container.limit && *container.limit <= whole + kNoise) return std::nullopt;
  if (machine < whole + Millicores(500)) return std::nullopt;
  return threads;
}

std::string busyText(std::int64_t threads) {
  return threads == 1 ? "one thread is busy" : fmt::format("{} threads are busy", threads);
}

std::string basisRule(const PodRecord& pod) {
  using control::Basis;
  for (int i = 0; i <= static_cast<int>(Basis::kCleared); ++i) {
    const auto basis = static_cast<Basis>(i);
    if (control::name(basis) != pod.basis) continue;
    switch (basis) {
      case Basis::kNoData:
        return "no data, no decision: it keeps its limit";
      case Basis::kWarmup:
        return "too new to judge: it keeps its limit";
      case Basis::kStart:
        return "too new to judge: it starts where others of its workload are";
      case Basis::kDeclared:
        return "free: what it declared covers what it needs";
      case Basis::kUse:
        return "free: 1.25 times its highest 5 s mean";
      case Basis::kBurst:
        return "free: the level at which its bursts are not cut off";
      case Basis::kWholeCpus:
        return "free: lowered to its highest 5 s mean in whole CPUs, so that a runtime that counts "
               "them keeps its threads";
      case Basis::kFloor:
        return "needs less than its floor";
      case Basis::kCeiling:
        return "needs more than its ceiling";
      case Basis::kAward:
        return "raised no further than its award, so that others keep what they have";
      case Basis::kConstrained:
        return "bound: what the market gives it, in the shape of its bursts";
      case Basis::kCleared:
        return "constrained: limits themselves were cleared";
    }
  }
  return pod.basis;
}

std::string ago(WallTime time, WallTime now) {
  return ageText(now - time) + " ago";
}

class Story {
 public:
  explicit Story(const Evidence& evidence) : evidence_(evidence), bounds_(boundsOf(evidence)) {
    if (evidence.decision) record_ = &evidence.decision->pod;
  }

  Explanation tell() {
    headline();
    if (record_ != nullptr && !record_->containers.empty()) {
      kernel();
      if (neededOf(*record_)) needs();
    }
    allowed();
    if (record_ != nullptr && record_->left_alone.empty()) market();
    decision();
    outcome();
    history();
    more();
    return std::move(explanation_);
  }

 private:
  void section(std::string title) { explanation_.sections.push_back({std::move(title), {}}); }
  void step(std::string label, std::string value, std::string rule = "") {
    explanation_.sections.back().steps.push_back(
        {std::move(label), std::move(value), std::move(rule)});
  }

  std::string name() const {
    return evidence_.name_space.empty() ? evidence_.pod
                                        : evidence_.name_space + "/" + evidence_.pod;
  }
  // Why it is left alone; empty: it is not.
  std::string leftAlone() const {
    if (evidence_.allocation && evidence_.allocation->bounds() != nullptr) {
      const PodAllocation::BoundsView& bounds = *evidence_.allocation->bounds();
      return bounds.managed ? "" : bounds.reason.string();
    }
    if (evidence_.verdict)
      return evidence_.verdict->policy.managed ? "" : evidence_.verdict->reason;
    return record_ == nullptr ? "" : record_->left_alone;
  }
  std::optional<Millicores> limit() const {
    if (record_ != nullptr && record_->limit) return record_->limit;
    if (!evidence_.object) return std::nullopt;
    const PodCpu cpu = podCpu(*evidence_.object);
    return cpu.without_limit < cpu.containers ? std::optional(cpu.limit) : std::nullopt;
  }
  std::optional<Millicores> declared() const {
    if (record_ != nullptr && record_->declared) return record_->declared;
    if (evidence_.verdict && evidence_.verdict->policy.managed) {
      return evidence_.verdict->policy.declared();
    }
    return std::nullopt;
  }
  std::optional<Millicores> desired() const {
    if (evidence_.allocation) return evidence_.allocation->desired;
    return record_ == nullptr ? std::nullopt : record_->desired;
  }

  // A pod of `mbcas run`: there is no cluster.
  bool ofHost() const { return evidence_.object == nullptr && evidence_.name_space.empty(); }

  // Limits are free unless a pod that matters more needs the CPU; else limits are cleared.
  bool leastIntervention() const { return evidence_.decision->market.whole_machine; }
  // Waiting for neighbours makes uses that mean nothing.
  std::optional<std::int64_t> threadsThatBind(const ContainerRecord& container) const {
    if (record_->contention.value_or(0) >= kMuchWaiting) return std::nullopt;
    return busyThreads(container, evidence_.decision->market.capacity);
  }
  // Whose CPU it is that a bound pod is kept from: "shop/gold".
  std::string beneficiaries() const {
    return record_->bound_for.empty() ? "a more important pod" : namesText(record_->bound_for);
  }
  std::string intervention() const {
    if (record_->constrained) {
      return leastIntervention() ? ", bound: a more important pod is short of CPU"
             : record_->basis == control::name(control::Basis::kCleared)
                 ? ", constrained: limits share the CPU of the node"
                 : ", constrained: CPU is scarce";
    }
    if (record_->help == control::name(control::Help::Phase::kProbe)) {
      return ", helped on trial: less important pods are bound for it";
    }
    if (record_->help == control::name(control::Help::Phase::kHeld)) {
      return ", helped: less important pods are bound for it";
    }
    return "";
  }

  void headline() {
    std::string text = name();
    if (!evidence_.node.empty()) text += " on " + evidence_.node;
    if (const std::string why = leftAlone(); !why.empty()) {
      text += " is left alone: " + why;
    } else {
      text += limit() ? fmt::format(": limit {}", cpuText(*limit())) : ": no CPU limit";
      if (declared()) text += fmt::format(", declared {}", cpuText(*declared()));
      if (record_ != nullptr) text += intervention();
    }
    explanation_.headline = std::move(text);
  }

  void kernel() {
    const WallTime at = evidence_.decision->time;
    section(fmt::format("What the kernel says ({}{})", evidence_.source,
                        at == evidence_.now ? "" : ", " + ago(at, evidence_.now)));
    for (const ContainerRecord& container : record_->containers) {
      const bool throttled = container.blocked > kNegligible || container.throttled_periods > 0;
      step(container.name,
           fmt::format("{} of {}", cpuText(container.usage),
                       container.limit ? cpuText(*container.limit) : "no limit"),
           throttled
               ? fmt::format("held back {} ms/s by its limit, in {} of {} periods{}",
                             container.blocked.count(), container.throttled_periods,
                             container.periods, container.binding ? "; the limit itself binds" : "")
               : "not throttled");
    }
    if (record_->pressure) {
      step("pressure", percentText(record_->pressure), "of the time some thread waited for a CPU");
    }
    if (record_->contention) {
      step("contention", percentText(record_->contention),
           "of the time, which no limit of its own explains");
    }
  }

  void needs() {
    section("What it needs");
    const bool one = record_->containers.size() == 1;
    for (const ContainerRecord& container : record_->containers) {
      const auto label = [&](const char* what) {
        return one ? std::string(what) : fmt::format("{}: {}", container.name, what);
      };
      const auto state = burstState(container.burst_state);
      step(label("use"), cpuText(container.use), "median of 30 s; the market takes this");
      step(label("peak"), cpuText(container.use_peak),
           container.binding ? "highest mean of 5 s, with what waiting threads could use"
                             : "highest mean of 5 s");
      step(label("burst"), container.burst > Millicores(0) ? cpuText(container.burst) : "none",
           burstRule(state));
      if (const auto threads = threadsThatBind(container)) {
        step(label("threads"), fmt::format("{}", *threads),
             "always busy, under a limit for more: this is all that so many can use");
      }
      step(label("needs"), cpuText(neededOf(container)),
           fmt::format("the largest of burst, 1.25 x peak and request{}",
                       container.request ? fmt::format(" ({})", cpuText(*container.request)) : ""));
    }
    if (!one) {
      step("needs", cpuText(neededOf(*record_)), "all its containers together");
    }
  }

  void allowed() {
    if (!bounds_ || !leftAlone().empty()) return;
    section(!bounds_->published ? "What would be allowed"
            : ofHost()          ? "What is allowed (by its file)"
                                : "What is allowed (by the controller)");
    if (bounds_->floor) step("floor", cpuText(*bounds_->floor), bounds_->floor_by);
    if (bounds_->ceiling) step("ceiling", cpuText(*bounds_->ceiling), bounds_->ceiling_by);
    if (bounds_->start) step("start", cpuText(*bounds_->start), "where others of its workload are");
    if (!bounds_->reason.empty()) step("because", "", bounds_->reason);
    if (record_ != nullptr) {
      std::string rule = fmt::format("request in millicores x {:.3g} for priority {}",
                                     control::priorityFactor(record_->priority), record_->priority);
      if (bounds_->weight != 1)
        rule += fmt::format(" x {:.3g} from the controller", bounds_->weight);
      step("weight", fmt::format("{:.4g}", record_->weight), rule);
    }
    if (evidence_.verdict && evidence_.verdict->policy.mode != policy::Mode::kFull) {
      step("mode", std::string(policy::name(evidence_.verdict->policy.mode)),
           "of its namespace or of the cluster");
    }
  }

  void market() {
    const MarketRecord& market = evidence_.decision->market;
    section(evidence_.node.empty() ? "The market" : "The market of " + evidence_.node);
    if (leastIntervention()) {
      wholeMachine(market);
    } else {
      cleared(market);
    }
    award();
  }

  void wholeMachine(const MarketRecord& market) {
    step("to share", cpuText(market.capacity),
         "all CPUs, less what interrupts and the hypervisor take");
    step("others use", cpuText(market.unmanaged_use),
         "now: everything that is not managed, which competes by its kernel weights");
    step("asked for", cpuText(market.demand), "median of 30 s, all managed pods");
    step("scarce", market.scarce ? "yes" : "no",
         market.scarce ? "some managed pod could use more than its award"
                       : "every managed pod has all that it could use");
    step("price", priceText(market.price),
         market.scarce
             ? "kernel weight x factor per millicore, where a pod could use more than its award"
             : "no pod has to yield");
  }

  void cleared(const MarketRecord& market) {
    step("to share", cpuText(market.capacity),
         fmt::format("what the reserve and {} of other work leave", cpuText(market.unmanaged_use)));
    const double share =
        market.capacity.count() > 0 ? market.demand.cores() / market.capacity.cores() : 0;
    step("asked for", cpuText(market.demand), "median of 30 s, all managed pods");
    step("scarce", market.scarce ? "yes" : "no",
         fmt::format("{:.0f}% is asked for; scarce from 95%, until below 85%", share * 100));
    step("price", priceText(market.price),
         market.scarce ? "per millicore, in units of weight" : "no pod has to yield");
  }

  // What the market gives the pod, and who is bound for it, or for whom it is bound.
  void award() {
    if (record_->award) {
      step("award", cpuText(*record_->award),
           leastIntervention()
               ? "the kernel's division, with the weight of each pod times its factor"
               : "what the market gives it");
    }
    if (record_->by_kernel) {
      step("the kernel", cpuText(*record_->by_kernel), "would give it, if no pod were bound");
    }
    if (!leastIntervention()) return;
    if (record_->constrained) {
      step("bound", "yes", fmt::format("to its award, for {}", beneficiaries()));
    }
    const bool probe = record_->help == control::name(control::Help::Phase::kProbe);
    if (!probe && record_->help != control::name(control::Help::Phase::kHeld)) return;
    step("helped", record_->help,
         probe ? "on trial for 30 s: less important pods are bound for it, if that helps it"
               : "less important pods are bound for it, while the kernel alone gives it less than "
                 "its claim");
    if (record_->claim) {
      step("claim", cpuText(*record_->claim),
           probe ? "on trial it claims all that it can get"
                 : "insurance (a setting, 2 by default) x its use over 30 s");
    }
  }

  void decision() {
    if (record_ == nullptr && !evidence_.allocation) return;
    if (!leftAlone().empty() && !evidence_.allocation) return;
    section("The decision");
    if (record_ != nullptr && record_->answer && record_->left_alone.empty()) {
      step("answer", cpuText(*record_->answer), basisRule(*record_));
    }
    const std::string reason = evidence_.allocation ? evidence_.allocation->reason.string()
                               : record_ != nullptr ? record_->reason
                                                    : "";
    if (desired()) step("desired", cpuText(*desired()), reason);
    if (record_ != nullptr && record_->urgent) {
      step("urgent", "yes", "throttled, and more than 10% below the answer: written at once");
    }
    if (record_ != nullptr && !record_->held_by.empty()) {
      step("held by", record_->held_by, "a guard: the limit moves later, or not all the way yet");
    }
    const std::optional<Millicores> wanted = evidence_.allocation ? evidence_.allocation->wanted
                                             : record_ != nullptr ? record_->wanted
                                                                  : std::nullopt;
    if (wanted && wanted->count() > 0) {
      step("wanted", cpuText(*wanted), "without floor and ceiling, in steps of 10%");
    }
  }

  void outcome() {
    const PodAllocation* const allocation = evidence_.allocation.get();
    if (allocation == nullptr) {
      if (record_ != nullptr && record_->limit && evidence_.object == nullptr) {
        section("What became of it");
        if (const std::string phase = hostPhase(*record_); !phase.empty()) {
          step("phase", phase, phase == "Applied" ? "in force" : "on its way to what is desired");
        }
        step("in force", cpuText(*record_->limit), "as the kernel says");
      }
      return;
    }
    section("What became of it");
    if (allocation->phase != podallocation::Phase::kUnset) {
      step("phase", std::string(podallocation::name(allocation->phase)),
           allocation->status_reason.string());
    } else {
      step("phase", "-", "the controller has not reconciled it");
    }
    if (allocation->applied) {
      step("applied", cpuText(*allocation->applied),
           allocation->last_applied == WallTime{}
               ? "last limit that the kubelet was seen to have actuated"
               : "seen actuated " + ago(allocation->last_applied, evidence_.now));
    }
    if (allocation->observed_desired && *allocation->observed_desired != allocation->desired) {
      step("aims at", cpuText(*allocation->observed_desired), clamped());
    }
    if (limit()) {
      step("in force", cpuText(*limit()),
           record_ != nullptr ? "as the kernel says" : "as the kubelet says");
    }
  }

  std::string clamped() const {
    for (const PodAllocation::ConditionView& condition : evidence_.allocation->conditions) {
      if (condition.type == podallocation::kClamped &&
          condition.status == podallocation::ConditionStatus::kTrue) {
        return condition.message.string();
      }
    }
    return "what was desired, within its bounds";
  }

  void history() {
    if (evidence_.before.empty()) return;
    section("Before");
    for (const Decision& decision : evidence_.before) {
      step(formatRfc3339(decision.time), cpuText(decision.pod.desired), decision.pod.reason);
    }
  }

  void say(std::string text) { explanation_.more.push_back(std::move(text)); }

  void more() {
    if (const std::string why = leftAlone(); !why.empty()) {
      const std::string remedy = evidence_.verdict ? evidence_.verdict->remedy : "";
      say(remedy.empty() ? "nothing can be done to have it managed while that is so"
                         : "to have it managed: " + remedy);
      return;
    }
    if (evidence_.verdict && evidence_.verdict->expected) {
      say(evidence_.verdict->reason + ": wait a few seconds, then run mbcas doctor");
    }
    if (evidence_.verdict && evidence_.verdict->policy.mode == policy::Mode::kRecommend) {
      say("the mode is recommend: nothing is changed until it is raise-only or full");
    }
    if (record_ != nullptr) {
      byBasis();
    } else if (bounds_ && bounds_->ceiling && desired() && *desired() >= *bounds_->ceiling) {
      ceiling();
    } else if (evidence_.allocation) {
      say("its bounds leave it room: it gets more when its agent sees that it needs more");
    }
    if (evidence_.allocation && evidence_.allocation->phase == podallocation::Phase::kFailed) {
      say(fmt::format("the last change failed and is retried: {}",
                      evidence_.allocation->status_reason.view()));
    }
    if (record_ != nullptr && record_->contention.value_or(0) >= kMuchWaiting) {
      say(fmt::format(
          "its threads wait {} of the time for CPUs, which no limit of its own explains: "
          "a higher request, or less load on its node, would help; a higher limit would not",
          percentText(record_->contention)));
    }
  }

  void byBasis() {
    using control::Basis;
    const auto is = [&](Basis basis) { return record_->basis == control::name(basis); };
    if (is(Basis::kNoData)) {
      say(ofHost() ? "its counters must become readable: mbcas doctor --host checks this machine"
                   : "its counters must become readable: read the log of the agent on its node");
    } else if (is(Basis::kWarmup) || is(Basis::kStart)) {
      say("wait: its counters decide after 5 samples, or as soon as it is throttled");
    } else if (is(Basis::kCeiling)) {
      ceiling();
    } else if (leastIntervention() && (record_->constrained || is(Basis::kAward))) {
      say(fmt::format(
          "a larger award: raise its priority or its CPU request, which make its weight "
          "of {:.4g}",
          record_->weight));
      say(record_->constrained
              ? fmt::format("less load on its node: it gets its declared limit back as soon as the "
                            "kernel alone gives {} enough",
                            beneficiaries())
              : "less load on its node: its limit rises as soon as that takes nothing from others");
    } else if (record_->constrained) {
      say(
          fmt::format("a larger share: raise its CPU request or priority, which make its weight of "
                      "{:.4g}",
                      record_->weight));
      if (bounds_ && bounds_->floor) {
        say(fmt::format("a higher floor than {}: annotation mbcas.io/min-cpu",
                        cpuText(*bounds_->floor)));
      }
      say(fmt::format(
          "less scarcity: {} more CPU on its node, or fewer pods that ask for it",
          cpuText(std::max(evidence_.decision->market.demand - evidence_.decision->market.capacity,
                           Millicores(0)))));
    } else if (!moreThreads()) {
      say("nothing holds it back: its limit rises as soon as it is throttled or uses more");
    }
  }

  // True if some container could use more only with more threads.
  bool moreThreads() {
    bool any = false;
    for (const ContainerRecord& container : record_->containers) {
      const auto busy = threadsThatBind(container);
      if (!busy) continue;
      any = true;
      say(
          fmt::format("more threads in {}: {} all the time, and its limit of {} leaves room. A "
                      "higher limit would not help; docs/runtimes.md says what sets the number of "
                      "threads",
                      container.name, busyText(*busy),
                      container.limit ? cpuText(*container.limit) : "its pod"));
    }
    return any;
  }

  void ceiling() {
    say(fmt::format("a higher ceiling than {}{}",
                    bounds_ && bounds_->ceiling ? cpuText(*bounds_->ceiling) : "it has",
                    bounds_ && !bounds_->ceiling_by.empty()
                        ? fmt::format(", which is set by {}", bounds_->ceiling_by)
                        : ""));
  }

  const Evidence& evidence_;
  const std::optional<Bounds> bounds_;
  const PodRecord* record_ = nullptr;
  Explanation explanation_;
};

}  // namespace

Explanation explain(const Evidence& evidence) {
  return Story(evidence).tell();
}

std::string explanationText(const Explanation& explanation, bool colours, std::size_t width) {
  std::size_t label = 0;
  std::size_t value = 0;
  for (const Section& section : explanation.sections) {
    for (const Step& step : section.steps) {
      label = std::max(label, view::width(step.label));
      value = std::max(value, view::width(step.value));
    }
  }
  const std::size_t indent = 2 + label + 2 + value + 2;
  constexpr std::size_t kLeast = 24;  // columns for a rule; with less it has lines of its own
  const bool below = width > 0 && width < indent + kLeast;
  const auto paragraph = [&](const std::string& words, std::size_t by) {
    std::string text;
    for (const std::string& line : view::wrap(words, width > by ? width - by : 0)) {
      text += (text.empty() ? "" : std::string(by, ' ')) + line + "\n";
    }
    return text;
  };
  const auto title = [&](const std::string& words, view::Colour colour) {
    std::string text;
    for (const std::string& line : view::wrap(words, width)) {
      text += view::paint(line, colour, colours) + "\n";
    }
    return text;
  };
  std::string text = title(explanation.headline, view::Colour::kBold);
  for (const Section& section : explanation.sections) {
    text += "\n" + title(section.title, view::Colour::kCyan);
    for (const Step& step : section.steps) {
      text += "  " + view::fit(step.label, label) + "  " + view::fitRight(step.value, value);
      if (step.rule.empty()) {
        text += '\n';
      } else if (below) {
        text += "\n      " + paragraph(step.rule, 6);
      } else {
        text += "  " + paragraph(step.rule, indent);
      }
    }
  }
  if (!explanation.more.empty()) {
    text += "\n" + view::paint("For it to get more", view::Colour::kCyan, colours) + "\n";
    for (const std::string& line : explanation.more) text += "  - " + paragraph(line, 4);
  }
  return text;
}

std::string explanationJson(const Evidence& evidence, const Explanation& explanation) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("namespace").value(evidence.name_space);
  json.key("pod").value(evidence.pod);
  json.key("node").value(evidence.node);
  json.key("summary").value(explanation.headline);
  if (evidence.decision) {
    json.key("source").value(evidence.source);
    json.key("time").value(formatRfc3339(evidence.decision->time));
    json.key("decision");
    writeRecord(json, evidence.decision->pod);
    json.key("market");
    writeRecord(json, evidence.decision->market);
  }
  if (!evidence.trouble.empty()) json.key("trouble").value(evidence.trouble);
  json.key("steps").beginArray();
  for (const Section& section : explanation.sections) {
    for (const Step& step : section.steps) {
      json.beginObject();
      json.key("section").value(section.title);
      json.key("label").value(step.label);
      json.key("value").value(step.value);
      json.key("rule").value(step.rule);
      json.endObject();
    }
  }
  json.endArray().key("more").beginArray();
  for (const std::string& line : explanation.more) json.value(line);
  json.endArray().key("notes").beginArray();
  for (const std::string& note : evidence.notes) json.value(note);
  json.endArray().endObject();
  return out;
}

}  // namespace mbcas::cli
