#include "mbcas/sim/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mbcas/control/actuation.h"
#include "mbcas/control/weight.h"
#include "mbcas/node/loop.h"

namespace mbcas::sim {
namespace {

// The loop of a node, and its actuation without a cluster in between.
class Mbcas final : public Policy {
 public:
  Mbcas(std::string_view name, const control::Settings& law, const demand::Settings& estimator)
      : name_(name), loop_(estimator, law), actuator_(law) {}

  std::string_view name() const override { return name_; }

  std::vector<Move> decide(const NodeView& node) override {
    describeMachine(node);
    loop_.observe({.now = node.now,
                   .pods = node.signals,
                   .machine_use = node.machine_use,
                   .machine = &machine_});
    std::vector<node::Participant> participants;
    std::vector<control::NodeActuator::Facts> facts;
    for (const PodView& pod : node.pods) {
      participants.push_back(participantOf(pod, node));
      facts.push_back({.ready = pod.ready});
    }
    const control::NodeDecision& decision =
        loop_.decide({.capacity = Millicores(1000) * static_cast<std::int64_t>(node.cpus),
                      .unmanaged_requests = node.unmanaged_requests},
                     participants);
    decision_ = &decision;
    probing_ = static_cast<int>(std::ranges::count(decision.pods, control::Help::Phase::kProbe,
                                                   &control::PodDecision::help));
    const std::vector<control::Move> allowed = actuator_.next(loop_.input(), decision, facts);
    std::vector<Move> moves;
    for (std::size_t i = 0; i < node.pods.size(); ++i) {
      if (!allowed[i].moves) continue;
      const PodView& pod = node.pods[i];
      Move move{i, {pod.limits.begin(), pod.limits.end()}};
      std::size_t next = 0;
      for (std::optional<Millicores>& limit : move.containers) {
        if (limit) limit = allowed[i].containers[next++];
      }
      moves.push_back(std::move(move));
    }
    return moves;
  }
  int probing() const override { return probing_; }
  const control::NodeDecision* decision() const override { return decision_; }
  const node::Loop* loop() const override { return &loop_; }

 private:
  static node::Participant participantOf(const PodView& view, const NodeView& node) {
    const PodSpec& spec = *view.spec;
    node::Participant pod{.id = spec.name,
                          .signals = static_cast<std::size_t>(view.signals - &node.signals[0]),
                          .weight = control::weightOf(spec.request(), spec.priority),
                          .factor = control::priorityFactor(spec.priority),
                          .may_lower = view.ready,
                          .floor = spec.floor,
                          .ceiling = spec.ceiling};
    for (std::size_t c = 0; c < spec.containers.size(); ++c) {
      const ContainerSpec& container = spec.containers[c];
      if (!container.limit) continue;
      pod.containers.push_back({.name = container.name,
                                .signals = c,
                                .limit = *view.limits[c],
                                .declared = *container.limit,
                                .request = container.request});
    }
    return pod;
  }

  // What a sampler of the whole machine would say.
  void describeMachine(const NodeView& node) {
    machine_ = {};
    machine_.at = node.now;
    machine_.cpus = node.cpus;
    machine_.usage = node.machine_use;
    machine_.idle = Millicores(1000) * static_cast<std::int64_t>(node.cpus) - node.machine_use;
    for (const TreeEntry& entry : node.tree) {
      machine_.interval = std::max(machine_.interval, entry.interval);
      sense::CgroupSignals& cgroup = machine_.tree.emplace_back();
      cgroup.path = entry.path;
      cgroup.parent = entry.parent;
      cgroup.weight = entry.weight;
      cgroup.cap = entry.cap;
      cgroup.usage = entry.use();
      cgroup.threads = static_cast<std::uint64_t>(entry.threads);
      cgroup.kind = entry.kind == TreeEntry::Kind::kSlice ? sense::CgroupSignals::Kind::kInner
                                                          : sense::CgroupSignals::Kind::kOther;
      if (!entry.pod) continue;
      cgroup.kind = sense::CgroupSignals::Kind::kPod;
      cgroup.pod = static_cast<std::size_t>(node.pods[*entry.pod].signals - &node.signals[0]);
    }
  }

  std::string name_;
  sense::MachineSignals machine_;
  node::Loop loop_;
  control::NodeActuator actuator_;
  int probing_ = 0;
  const control::NodeDecision* decision_ = nullptr;
};

constexpr std::array<std::string_view, 9> kNames = {"unlimited",      "static",  "generous",
                                                    "burst",          "hpa",     "vpa",
                                                    "twenty-percent", "classic", "responsive"};

}  // namespace

std::optional<Millicores> Policy::firstLimit(Millicores declared, unsigned) const {
  return declared;
}

std::unique_ptr<Policy> makeMbcas(std::string_view name, const control::Settings& law,
                                  const demand::Settings& estimator) {
  return std::make_unique<Mbcas>(name, law, estimator);
}

std::span<const std::string_view> policyNames() {
  return kNames;
}

Result<std::unique_ptr<Policy>> makePolicy(std::string_view name, unsigned cpus) {
  if (name == "unlimited") return makeUnlimited();
  if (name == "static") return makeStatic();
  if (name == "generous") return makeGenerous();
  if (name == "burst") return makeStaticBurst();
  if (name == "hpa") return makeHpa();
  if (name == "vpa") return makeVpa();
  if (name == "twenty-percent") return makeTwentyPercent();
  const Result<control::Profile> profile = control::parseProfile(name);
  if (!profile) {
    return failure(fmt::format("no policy \"{}\"; there are {}", name, fmt::join(kNames, ", ")));
  }
  const bool classic = *profile == control::Profile::kClassic;
  return makeMbcas(
      name, control::settingsOf(*profile),
      {.kind = classic ? demand::Kind::kClassic : demand::Kind::kResponsive, .cpus = cpus});
}

}  // namespace mbcas::sim
