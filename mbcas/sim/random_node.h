// Random nodes for closed loops: a scenario for every seed, with pods of every kind.
//
//   const Scenario scenario = randomNode(7);
//   const Outcome plain = runPlain(scenario);      // Kubernetes with the declared limits
//   const auto policy = makePolicy("responsive", scenario.cpus);
//   const Outcome ours = run(scenario, **policy);
//   EXPECT_GE(ours.pods[0].used, 0.98 * plain.pods[0].used);
//
// A node has 2, 4, 16 or 64 CPUs and 2 to 20 pods, of which about half are managed. Requests fit on
// the node, as the scheduler sees to it; limits and demands need not. Loads change at most twice,
// and for the last time halfway through. The name of a pod begins with its kind:
//
//   managed      request, higher limit, priority, sometimes a floor, a ceiling, or never ready
//   no-limit     request only
//   opted-out    request and higher limit, not managed
//   guaranteed   request equal to the limit
//   best-effort  neither
//   system       a process outside kubepods
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/sim/policy.h"
#include "mbcas/sim/scenario.h"

namespace mbcas::sim {

struct RandomNodeOptions {
  bool equal = false;  // all pods are equally important, without floors and ceilings
  Nanos duration = std::chrono::seconds(180);
};

// The same scenario for the same seed and options, on every machine.
Scenario randomNode(std::uint64_t seed, const RandomNodeOptions& options = {});

// What happened to each pod of a scenario in the last part of it.
struct Outcome {
  struct Pod {
    double used = 0;     // cores, on average
    double offered = 0;  // likewise, whether done or not; a spinning thread offers one core
    std::optional<Millicores> limit{};   // in force at the end
    int changes = 0;                     // of the limit, since the start
    std::optional<Millicores> lowest{};  // limit, since the start
  };
  std::vector<Pod> pods{};  // in the order of the scenario
  double probing = 0;       // managed pods on trial at a time, on average; see Policy::probing()

  double used() const;
};
Outcome run(const Scenario& scenario, Policy& policy, Nanos last = std::chrono::seconds(30));
// Plain Kubernetes: policy `static`.
Outcome runPlain(const Scenario& scenario, Nanos last = std::chrono::seconds(30));

}  // namespace mbcas::sim
