// What people would use instead, on the model: as their algorithms say, and as they were measured.
#include <gtest/gtest.h>

#include <cmath>

#include "mbcas/sim/policy.h"
#include "mbcas/sim/simulation.h"

namespace mbcas::sim {
namespace {

using namespace literals;
using namespace std::chrono_literals;
using Kind = WorkloadSpec::Kind;

PodSpec pod(std::string name, const WorkloadSpec& workload, Millicores request, Millicores limit) {
  PodSpec spec{.name = std::move(name)};
  spec.containers.push_back({.limit = limit, .request = request, .workload = workload});
  return spec;
}

// One thread that goes from 2 % of a CPU to all of it after a minute: request 100m, limit 200m.
Scenario step() {
  Scenario scenario{.name = "step", .cpus = 2, .duration = 20min, .settle = 0s};
  WorkloadSpec load{.kind = Kind::kPeriodic, .threads = 1, .on = 10ms, .period = 10ms};
  load.profile.shape = Profile::Shape::kSteps;
  load.profile.points = {{0s, 0.02}, {60s, 1}};
  scenario.pods.push_back(pod("one", load, 100_m, 200_m));
  return scenario;
}

// A service that is offered little, then more than its limit, then little again.
Scenario rush(Nanos from, Nanos until, Nanos end) {
  Scenario scenario{.name = "rush", .cpus = 4, .duration = end, .settle = 0s};
  WorkloadSpec load{.kind = Kind::kService, .threads = 4, .rate = 20, .work = 1ms};
  load.profile.shape = Profile::Shape::kSteps;
  load.profile.points = {{0s, 1}, {from, 40}, {until, 1}};
  scenario.pods.push_back(pod("web", load, 200_m, 400_m));
  return scenario;
}

struct Change {
  double at;  // seconds
  Millicores limit;
};
// When the pod's limit changed, and to what.
std::vector<Change> changesOf(const Scenario& scenario, Policy& policy) {
  Simulation simulation(scenario, policy);
  std::vector<Change> changes;
  Millicores last = *scenario.pods[0].containers[0].limit;
  bool more = true;
  while (more) {
    more = simulation.step();
    const Millicores now = simulation.moments()[0].limit.value_or(0_m);
    if (now != last)
      changes.push_back({std::chrono::duration<double>(simulation.now()).count(), now});
    last = now;
  }
  return changes;
}

TEST(Peers, VpaRaisesInStepsAfterMinutes) {
  const auto policy = makeVpa();
  const std::vector<Change> changes = changesOf(step(), *policy);
  ASSERT_GE(changes.size(), 2u);
  // Measured with version 1.8.1: 494m after 206 s, 1174m after 446 s and 568 s.
  EXPECT_EQ(changes[0].limit, 494_m);
  EXPECT_GT(changes[0].at - 60, 120);
  EXPECT_LT(changes[0].at - 60, 330);
  EXPECT_EQ(changes[1].limit, 1174_m);
  EXPECT_GT(changes[1].at - 60, 330);
  EXPECT_LT(changes[1].at - 60, 700);
}

TEST(Peers, VpaWaitsForRequestsToFit) {
  Scenario scenario = step();
  scenario.pods.push_back(pod("large", {.kind = Kind::kIdle}, 1850_m, 1850_m));
  scenario.pods[1].managed = false;
  const auto policy = makeVpa();
  EXPECT_TRUE(changesOf(scenario, *policy).empty());
  scenario.pods[1].end = 10min;
  const auto later = makeVpa();
  const std::vector<Change> changes = changesOf(scenario, *later);
  ASSERT_FALSE(changes.empty());
  EXPECT_GE(changes[0].at, 600);
}

TEST(Peers, HpaAddsReplicasAndTakesThemAwayAfterFiveMinutes) {
  const auto policy = makeHpa();
  const Scenario scenario = rush(65s, 305s, 15min);
  Simulation simulation(scenario, *policy);
  double first = 0;
  double all = 0;
  int most = 1;
  int last = 1;
  bool more = true;
  while (more) {
    more = simulation.step();
    const double now = std::chrono::duration<double>(simulation.now()).count();
    last = simulation.moments()[0].replicas;
    if (first == 0 && last > 1) first = now;
    if (last > most) all = now;
    most = std::max(most, last);
  }
  // Measured: 12.8 s to 32.3 s from the step to a new replica.
  EXPECT_GT(first - 65, 5);
  EXPECT_LT(first - 65, 45);
  EXPECT_LT(all - 65, 120);
  EXPECT_GE(most, 6) << "0.8 cores at 60 % of 200m: 6.7";
  EXPECT_LE(most, 8);
  EXPECT_EQ(last, 1);
  const Report report = simulation.report();
  EXPECT_NEAR(report.pods[0].highest_limit, 0.4 * most, 1e-9);
}

TEST(Peers, ReplicasTogetherAreOfferedWhatOneWouldBe) {
  const Scenario scenario = rush(65s, 305s, 8min);
  const auto hpa = makeHpa();
  const Report scaled = simulate(scenario, *hpa);
  const auto unlimited = makeUnlimited();
  const Report alone = simulate(scenario, *unlimited);
  EXPECT_NEAR(scaled.pods[0].offered, alone.pods[0].offered, 1e-9);
  EXPECT_EQ(scaled.pods[0].jobs + scaled.pods[0].refused,
            alone.pods[0].jobs + alone.pods[0].refused);
  const auto fixed = makeStatic();
  EXPECT_LT(scaled.pods[0].throttled, 0.5 * simulate(scenario, *fixed).pods[0].throttled);
}

TEST(Peers, HpaStartsNoMoreThanFit) {
  Scenario scenario = rush(65s, 600s, 6min);
  scenario.pods.push_back(pod("large", {.kind = Kind::kIdle}, 3300_m, 3300_m));
  const auto policy = makeHpa();
  Simulation simulation(scenario, *policy);
  int most = 0;
  while (simulation.step()) most = std::max(most, simulation.moments()[0].replicas);
  EXPECT_EQ(most, 3);
}

TEST(Peers, HpaLeavesOtherWorkAlone) {
  const auto policy = makeHpa();
  EXPECT_TRUE(changesOf(step(), *policy).empty());
}

TEST(Peers, GenerousIsFourTimesAtMostTheNode) {
  const auto policy = makeGenerous();
  EXPECT_EQ(policy->firstLimit(300_m, 4), 1200_m);
  EXPECT_EQ(policy->firstLimit(1500_m, 4), 4000_m);
  EXPECT_EQ(policy->firstLimit(5000_m, 4), 5000_m);
}

TEST(Peers, BurstForgivesWhatWasSavedBefore) {
  Scenario scenario{.name = "bursts", .cpus = 2, .duration = 2min, .settle = 5s};
  const WorkloadSpec tick{.kind = Kind::kPeriodic, .threads = 1, .on = 35ms, .period = 1s};
  scenario.pods.push_back(pod("tick", tick, 100_m, 200_m));
  const auto fixed = makeStatic();
  const auto burst = makeStaticBurst();
  EXPECT_GT(simulate(scenario, *fixed).pods[0].throttled, 0.05);
  EXPECT_EQ(simulate(scenario, *burst).pods[0].throttled, 0) << "35 ms are less than 20 and 20";
  // But it is no more CPU in the long run.
  scenario.pods[0].containers[0].workload = {.kind = Kind::kSpin, .threads = 1};
  EXPECT_NEAR(simulate(scenario, *burst).pods[0].used, 0.2, 0.001);
}

TEST(Measures, ReservedSlackReactionConvergence) {
  const Scenario scenario = rush(65s, 305s, 6min);
  const auto fixed = makeStatic();
  const Report stays = simulate(scenario, *fixed);
  EXPECT_NEAR(stays.reserved, 0.4, 1e-9);
  EXPECT_NEAR(*slackOf(stays), 1 - stays.used / 0.4, 1e-9);
  ASSERT_EQ(stays.reactions.size(), 1u);
  EXPECT_TRUE(std::isinf(stays.reactions[0]));
  const auto responsive = *makePolicy("responsive", scenario.cpus);
  const Report raised = simulate(scenario, *responsive);
  ASSERT_FALSE(raised.reactions.empty());
  EXPECT_LE(*median(raised.reactions), 3);
  EXPECT_LE(*median(raised.convergences), 10);
  EXPECT_GT(raised.reserved, stays.reserved);
  const auto unlimited = makeUnlimited();
  const Report free = simulate(scenario, *unlimited);
  EXPECT_EQ(slackOf(free), std::nullopt);
  EXPECT_EQ(median(free.reactions), std::nullopt);
}

TEST(Measures, JainTellsWhoGotLess) {
  Scenario scenario{.name = "two", .cpus = 2, .duration = 3min, .settle = 0s};
  scenario.pods.push_back(pod("a", {.kind = Kind::kSpin, .threads = 1}, 100_m, 200_m));
  scenario.pods.push_back(pod("b", {.kind = Kind::kSpin, .threads = 1}, 100_m, 800_m));
  const auto fixed = makeStatic();
  // Shares of 0.22 and 0.89 of 0.9 cores each.
  EXPECT_NEAR(simulate(scenario, *fixed).jain, 1.0 / (2 * (0.04 + 0.64)), 0.01);
  const auto unlimited = makeUnlimited();
  EXPECT_NEAR(simulate(scenario, *unlimited).jain, 1, 1e-9);
}

TEST(Measures, NodesTogether) {
  const Scenario scenario = rush(65s, 305s, 3min);
  Scenario other = scenario;
  other.seed = 2;
  const auto policy = makeStatic();
  const std::vector<Report> nodes = {simulate(scenario, *policy), simulate(other, *policy)};
  const Report all = merged(nodes);
  EXPECT_NEAR(all.used, nodes[0].used + nodes[1].used, 1e-12);
  EXPECT_NEAR(all.reserved, 0.8, 1e-9);
  EXPECT_NEAR(all.fairness, (nodes[0].fairness + nodes[1].fairness) / 2, 1e-12);
  EXPECT_EQ(all.pods.size(), 2u);
  EXPECT_EQ(all.requests.count(), nodes[0].requests.count() + nodes[1].requests.count());
  EXPECT_EQ(all.reactions.size(), 2u);
}

}  // namespace
}  // namespace mbcas::sim
