#include "mbcas/sim/random_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>

#include "mbcas/sim/random.h"
#include "mbcas/sim/simulation.h"

namespace mbcas::sim {
namespace {

using std::chrono::milliseconds;
using Kind = WorkloadSpec::Kind;

constexpr Millicores kLeast{10};       // limit
constexpr double kMostRequests = 100;  // a second: more would only take longer to simulate
constexpr int kQueue = 50;             // so that a backlog passes in seconds

Nanos nanos(double seconds) {
  return Nanos(std::llround(seconds * 1e9));
}

class Maker {
 public:
  Maker(std::uint64_t seed, const RandomNodeOptions& options)
      : options_(options), random_(Random(seed).fork(0x6e6f6465)) {
    scenario_.name = fmt::format("random-{}", seed);
    scenario_.seed = seed;
    scenario_.duration = options.duration;
    scenario_.cpus = static_cast<unsigned>(one<4>({2, 4, 16, 64}));
  }

  Scenario make() {
    constexpr std::array<std::string_view, 8> kKinds = {"managed",    "managed",    "managed",
                                                        "managed",    "no-limit",   "opted-out",
                                                        "guaranteed", "best-effort"};
    changing_ = chance(0.5);
    left_ = Millicores(static_cast<std::int64_t>(scenario_.cpus) * 950);
    const std::size_t pods = 2 + random_.next() % 19;
    for (std::size_t i = 0; i < pods; ++i) {
      // The first is managed: a node without managed pods has nothing to decide.
      const std::string_view kind = i == 0 ? kKinds[0] : kKinds[random_.next() % kKinds.size()];
      scenario_.pods.push_back(pod(kind, i));
    }
    if (chance(0.5)) {
      PodSpec system{.name = "system", .managed = false, .outside = true};
      system.containers.push_back({.workload = load(one<3>({0.05, 0.5, cpus()}))});
      scenario_.pods.push_back(std::move(system));
    }
    return std::move(scenario_);
  }

 private:
  double cpus() const { return scenario_.cpus; }
  bool chance(double share) { return random_.uniform() < share; }
  template <std::size_t N>
  double one(const std::array<double, N>& of) {
    return of[random_.next() % N];
  }

  PodSpec pod(std::string_view kind, std::size_t number) {
    PodSpec spec{.name = fmt::format("{}-{}", kind, number)};
    spec.managed = kind == "managed";
    const double demand = one<6>({0.01, 0.1, 0.3, 1, 2, cpus()}) * random_.uniform(0.5, 1);
    ContainerSpec container{.workload = load(demand)};
    if (kind != "best-effort") container.request = request();
    if (kind == "guaranteed") container.limit = container.request;
    if (kind == "opted-out") container.limit = container.request * 3;
    if (kind == "managed") {
      const double factor = one<4>({1.5, 2, 4, 10});
      container.limit =
          Millicores(std::llround(static_cast<double>(container.request.count()) * factor));
    }
    spec.containers.push_back(std::move(container));
    if (spec.managed) choose(spec);
    return spec;
  }

  // What the scheduler would still find room for.
  Millicores request() {
    const double cores = one<6>({0.01, 0.05, 0.1, 0.2, 0.5, 1}) * one<3>({1, 1, cpus() / 4});
    const Millicores wanted(std::llround(cores * 1000));
    const Millicores got = std::max(std::min(wanted, Millicores(left_.count() / 2)), kLeast);
    left_ -= got;
    return got;
  }

  // What a managed pod's author and the cluster's say about its importance and limits.
  void choose(PodSpec& spec) {
    const ContainerSpec& container = spec.containers.front();
    if (chance(0.1)) spec.ready_after.reset();
    if (options_.equal) return;
    // Factors of 1, 1, 0.5, 2 and 4.
    spec.priority = static_cast<std::int64_t>(one<5>({0, 0, -1000, 3000, 7000}));
    const auto limit = static_cast<double>(container.limit->count());
    if (chance(0.2)) {
      const Millicores ceiling(std::llround(limit * one<3>({0.5, 1, 2})));
      spec.ceiling = std::max({ceiling, container.request, kLeast});
    }
    if (chance(0.2)) {
      const auto least = static_cast<double>(container.request.count());
      const Millicores floor(std::llround(random_.uniform(least, limit)));
      spec.floor = std::min(floor, spec.ceiling.value_or(floor));
    }
  }

  // So many cores, wanted in one of several ways.
  WorkloadSpec load(double cores) {
    WorkloadSpec spec;
    const double way = random_.uniform();
    const int least = std::max(1, static_cast<int>(std::ceil(cores)));
    const int threads = std::min(least * (1 + static_cast<int>(random_.next() % 3)), kMostThreads);
    if (way < 0.35) {
      spec = {.kind = Kind::kSpin, .threads = chance(0.5) ? least : threads};
    } else if (way < 0.6) {
      const double period = one<4>({0.05, 0.1, 0.2, 1});
      spec = {.kind = Kind::kPeriodic,
              .threads = threads,
              .on = nanos(cores * period / threads),
              .period = nanos(period)};
    } else if (way < 0.9) {
      const double work = std::max(one<3>({0.005, 0.02, 0.05}), cores / kMostRequests);
      spec = {.kind = Kind::kService,
              .threads = std::min(2 * least, kMostThreads),
              .rate = cores / work,
              .work = nanos(work),
              .queue = kQueue};
    } else {
      const double period = one<2>({0.5, 2});
      spec = {.kind = Kind::kBursty,
              .threads = threads,
              .on = nanos(cores * period / threads),
              .period = nanos(period),
              .queue = kQueue};
    }
    if (changing_ && chance(0.4)) spec.profile = steps(spec.kind);
    return spec;
  }

  Profile steps(Kind kind) {
    // Threads that spin are as many as there are, so their load is only ever less.
    const auto factor = [&] { return one<4>({0, 0.25, 1, kind == Kind::kSpin ? 0.5 : 2}); };
    Profile profile{.shape = Profile::Shape::kSteps};
    profile.points.push_back({Nanos(0), factor()});
    if (chance(0.3)) profile.points.push_back({options_.duration / 6, factor()});
    const Nanos last = options_.duration / 3;
    profile.points.push_back({chance(0.7) ? last : options_.duration / 2, 1});
    return profile;
  }

  RandomNodeOptions options_;
  Random random_;
  Scenario scenario_;
  Millicores left_;        // of the node, for requests
  bool changing_ = false;  // some loads change
};

}  // namespace

Scenario randomNode(std::uint64_t seed, const RandomNodeOptions& options) {
  return Maker(seed, options).make();
}

double Outcome::used() const {
  double total = 0;
  for (const Pod& pod : pods) total += pod.used;
  return total;
}

Outcome run(const Scenario& scenario, Policy& policy, Nanos last) {
  Outcome outcome;
  outcome.pods.resize(scenario.pods.size());
  Simulation simulation(scenario, policy);
  double seconds = 0;
  bool more = true;
  while (more) {
    const Nanos from = simulation.now();
    more = simulation.step();
    const double passed = std::chrono::duration<double>(simulation.now() - from).count();
    const bool counts = from >= scenario.duration - last;
    if (counts) seconds += passed;
    if (counts) outcome.probing += policy.probing() * passed;
    for (std::size_t i = 0; i < outcome.pods.size(); ++i) {
      Outcome::Pod& pod = outcome.pods[i];
      const Simulation::Moment& moment = simulation.moments()[i];
      if (moment.present && from > Nanos(0) && moment.limit != pod.limit) ++pod.changes;
      pod.limit = moment.limit;
      if (moment.limit) pod.lowest = std::min(pod.lowest.value_or(*moment.limit), *moment.limit);
      if (!counts) continue;
      pod.used += moment.used * passed;
      pod.offered += moment.offered * passed;
    }
  }
  outcome.probing /= std::max(seconds, 1e-9);
  for (Outcome::Pod& pod : outcome.pods) {
    pod.used /= std::max(seconds, 1e-9);
    pod.offered /= std::max(seconds, 1e-9);
  }
  return outcome;
}

Outcome runPlain(const Scenario& scenario, Nanos last) {
  const std::unique_ptr<Policy> policy = makeStatic();
  return run(scenario, *policy, last);
}

}  // namespace mbcas::sim
