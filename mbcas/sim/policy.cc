#include "mbcas/sim/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mbcas/control/law.h"
#include "mbcas/control/weight.h"
#include "mbcas/demand/demand.h"

namespace mbcas::sim {
namespace {

// The pipeline of a node, and nothing else: signals, needs, law.
class Mbcas final : public Policy {
 public:
  Mbcas(std::string_view name, const control::Settings& law, const demand::Settings& estimator)
      : name_(name), demand_(estimator), law_(law) {}

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
