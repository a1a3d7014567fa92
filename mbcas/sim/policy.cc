#include "mbcas/sim/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "mbcas/control/law.h"
#include "mbcas/control/weight.h"
#include "mbcas/demand/demand.h"

namespace mbcas::sim {
namespace {

class Unlimited final : public Policy {
 public:
  std::string_view name() const override { return "unlimited"; }
  bool limits() const override { return false; }
  std::vector<Move> decide(const NodeView&) override { return {}; }
};

class Static final : public Policy {
 public:
  std::string_view name() const override { return "static"; }
  std::vector<Move> decide(const NodeView&) override { return {}; }
};

class TwentyPercent final : public Policy {
 public:
  std::string_view name() const override { return "twenty-percent"; }
  bool writesCgroups() const override { return true; }

  std::vector<Move> decide(const NodeView& node) override {
    constexpr double kUp = 1.2;
    constexpr double kDown = 0.8;
    constexpr std::int64_t kMostTimes = 3;
    const double load = meanLoad(node);
    const bool overload = load >= 0.5;
    const bool cooling = load >= 0.45;
    std::vector<Move> moves;
    for (std::size_t i = 0; i < node.pods.size(); ++i) {
      const PodView& pod = node.pods[i];
      Move move{i, {pod.limits.begin(), pod.limits.end()}};
      for (std::size_t c = 0; c < pod.limits.size(); ++c) {
        const std::optional<Millicores> declared = pod.spec->containers[c].limit;
        if (!declared) continue;
        const bool throttled = pod.signals->containers[c].cpu.throttled();
        const double factor = overload ? kDown : throttled && !cooling ? kUp : 1;
        const Millicores wanted(std::llround(static_cast<double>(pod.limits[c]->count()) * factor));
        move.containers[c] = std::clamp(wanted, *declared, *declared * kMostTimes);
      }
      if (!std::ranges::equal(move.containers, pod.limits)) moves.push_back(std::move(move));
    }
    return moves;
  }

 private:
  // Share of the node's CPUs in use, over five samples.
  double meanLoad(const NodeView& node) {
    double used = 0;
    for (const sense::PodSignals& pod : node.signals) used += pod.cpu.usageRate().cores();
    loads_.push_back(used / node.cpus);
    if (loads_.size() > 5) loads_.pop_front();
    double sum = 0;
    for (const double load : loads_) sum += load;
    return sum / static_cast<double>(loads_.size());
  }

  std::deque<double> loads_;
};

// The pipeline of a node, and nothing else: signals, needs, law.
class Mbcas final : public Policy {
 public:
  Mbcas(std::string_view name, const control::Settings& settings, demand::Kind kind, unsigned cpus)
      : name_(name), demand_({.kind = kind, .cpus = cpus}), law_(settings) {}

  std::string_view name() const override { return name_; }

  std::vector<Move> decide(const NodeView& node) override {
    const std::span<const demand::PodNeed> needs = demand_.update(node.signals);
    control::NodeInput input;
    input.now = node.now;
    input.capacity = Millicores(static_cast<std::int64_t>(node.cpus) * 1000);
    input.unmanaged_use = node.unmanaged_use;
    input.unmanaged_requests = node.unmanaged_requests;
    for (const PodView& pod : node.pods) input.pods.push_back(inputOf(pod, node, needs));
    const control::NodeDecision& decision = law_.decide(input);
    std::vector<Move> moves;
    for (std::size_t i = 0; i < node.pods.size(); ++i) {
      if (!decision.pods[i].moves) continue;
      const PodView& pod = node.pods[i];
      Move move{i, {pod.limits.begin(), pod.limits.end()}};
      std::size_t next = 0;
      for (std::optional<Millicores>& limit : move.containers) {
        if (limit) limit = decision.pods[i].move_containers[next++];
      }
      moves.push_back(std::move(move));
    }
    return moves;
  }

 private:
  static control::Pod inputOf(const PodView& view, const NodeView& node,
                              std::span<const demand::PodNeed> needs) {
    const PodSpec& spec = *view.spec;
    const demand::PodNeed& need = needs[static_cast<std::size_t>(view.signals - &node.signals[0])];
    control::Pod pod;
    pod.id = spec.name;
    pod.weight = control::weightOf(spec.request(), spec.priority);
    pod.floor = spec.floor;
    pod.ceiling = spec.ceiling;
    pod.ready = view.ready;
    pod.contention = view.signals->contention.value_or(0);
    for (std::size_t c = 0; c < spec.containers.size(); ++c) {
      const ContainerSpec& container = spec.containers[c];
      if (!container.limit) continue;
      pod.containers.push_back({.name = container.name,
                                .need = need.containers[c].need,
                                .limit = *view.limits[c],
                                .declared = *container.limit,
                                .request = container.request});
    }
    return pod;
  }

  std::string name_;
  demand::Demand demand_;
  control::NodeLaw law_;
};

constexpr std::array<std::string_view, 5> kNames = {"unlimited", "static", "twenty-percent",
                                                    "classic", "responsive"};

}  // namespace

std::unique_ptr<Policy> makeUnlimited() {
  return std::make_unique<Unlimited>();
}
std::unique_ptr<Policy> makeStatic() {
  return std::make_unique<Static>();
}
std::unique_ptr<Policy> makeTwentyPercent() {
  return std::make_unique<TwentyPercent>();
}
std::unique_ptr<Policy> makeMbcas(std::string_view name, const control::Settings& settings,
                                  demand::Kind estimator, unsigned cpus) {
  return std::make_unique<Mbcas>(name, settings, estimator, cpus);
}

std::span<const std::string_view> policyNames() {
  return kNames;
}

Result<std::unique_ptr<Policy>> makePolicy(std::string_view name, unsigned cpus) {
  if (name == "unlimited") return makeUnlimited();
  if (name == "static") return makeStatic();
  if (name == "twenty-percent") return makeTwentyPercent();
  const Result<control::Profile> profile = control::parseProfile(name);
  if (!profile) {
    return failure(fmt::format("no policy \"{}\"; there are {}", name, fmt::join(kNames, ", ")));
  }
  const bool classic = *profile == control::Profile::kClassic;
  return makeMbcas(name, control::settingsOf(*profile),
                   classic ? demand::Kind::kClassic : demand::Kind::kResponsive, cpus);
}

}  // namespace mbcas::sim
