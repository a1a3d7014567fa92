#include "mbcas/sim/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "mbcas/sim/ideal.h"

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

WorkloadSpec spin(int threads) {
  return {.kind = Kind::kSpin, .threads = threads};
}

WorkloadSpec service(double rate, Nanos work) {
  return {.kind = Kind::kService, .threads = 8, .rate = rate, .work = work};
}

Report run(const Scenario& scenario, std::string_view policy) {
  const auto made = makePolicy(policy, scenario.cpus);
  return simulate(scenario, **made);
}

// A service whose limit is far too low, and a job that spins.
Scenario tight() {
  Scenario scenario{.name = "tight", .cpus = 4, .duration = 4min};
  scenario.pods.push_back(pod("web", service(100, 5ms), 200_m, 300_m));
  scenario.pods.push_back(pod("batch", spin(1), 100_m, 400_m));
  return scenario;
}

TEST(Simulation, StaticLimitsHold) {
  const Report report = run(tight(), "static");
  ASSERT_EQ(report.pods.size(), 2u);
  EXPECT_NEAR(report.pods[0].used, 0.3, 0.005);
  EXPECT_NEAR(report.pods[0].offered, 0.5, 0.05);
  EXPECT_NEAR(report.pods[1].used, 0.4, 0.005);
  EXPECT_NEAR(report.pods[1].throttled, 0.6, 0.01);
  EXPECT_EQ(report.changes, 0);
  EXPECT_EQ(report.relief, 240) << "there was CPU for it all the time";
}

TEST(Simulation, WithoutLimitsNobodyIsThrottled) {
  const Report report = run(tight(), "unlimited");
  EXPECT_EQ(report.throttled_free, 0);
  EXPECT_NEAR(report.pods[1].used, 1, 0.001);
  EXPECT_NEAR(report.fairness, 1, 0.01);
  EXPECT_EQ(report.scarce, 0);
  EXPECT_EQ(report.pods[0].last_limit, 0);
}

TEST(Simulation, TwentyPercentASecondStopsAtThreeTimes) {
  const Report report = run(tight(), "twenty-percent");
  EXPECT_NEAR(report.pods[0].highest_limit, 0.9, 0.001);
  EXPECT_GT(report.pods[1].last_limit, 1) << "until it is throttled no more";
  EXPECT_LE(report.pods[1].last_limit, 1.2);
  EXPECT_GT(report.pods[0].used, 0.45);
}

TEST(Simulation, ResponsiveEndsThrottling) {
  const Scenario scenario = tight();
  const Report report = run(scenario, "responsive");
  const Report unlimited = run(scenario, "unlimited");
  EXPECT_LT(report.throttled_free, 0.002);
  EXPECT_LE(report.relief, 5);
  EXPECT_GT(usedBeside(report, unlimited), 0.99);
  EXPECT_LT(*report.p99, 1.1 * *unlimited.p99);
  for (const PodReport& each : report.pods) EXPECT_GE(each.lowest_limit, each.first_limit);
}

TEST(Simulation, PodsOfferTheSameWorkUnderEveryPolicy) {
  const Report a = run(tight(), "static");
  const Report b = run(tight(), "responsive");
  EXPECT_EQ(a.pods[0].offered, b.pods[0].offered);
}

TEST(Simulation, TheSameSeedGivesTheSameReport) {
  Scenario scenario = tight();
  EXPECT_EQ(run(scenario, "responsive"), run(scenario, "responsive"));
  const Report before = run(scenario, "responsive");
  scenario.seed = 2;
  EXPECT_NE(run(scenario, "responsive"), before);
}

TEST(Simulation, ScarcityIsDividedByWeight) {
  Scenario scenario{.name = "scarce", .cpus = 2, .duration = 5min, .settle = 2min};
  scenario.pods.push_back(pod("a", spin(2), 300_m, 1000_m));
  scenario.pods.push_back(pod("b", spin(2), 100_m, 1000_m));
  const Report report = run(scenario, "responsive");
  EXPECT_EQ(report.scarce, 1);
  EXPECT_GT(report.fairness, 0.99);
  EXPECT_GT(report.pods[0].used, 2 * report.pods[1].used);
  // The pods are equally important, so the kernel divides, and no limit has to.
  EXPECT_EQ(report.throttled_constrained, 0);
  for (const PodReport& each : report.pods) EXPECT_GE(each.lowest_limit, each.first_limit);
}

TEST(Simulation, PodsComeAndGoAndRestart) {
  Scenario scenario{.name = "churn", .cpus = 4, .duration = 4min, .settle = 0s};
  scenario.pods.push_back(pod("stays", spin(1), 100_m, 500_m));
  scenario.pods.push_back(pod("visits", spin(1), 100_m, 500_m));
  scenario.pods[0].restarts = {70s, 100s};
  scenario.pods[1].start = 1min;
  scenario.pods[1].end = 2min;
  const auto policy = makePolicy("static", 4);
  Simulation simulation(scenario, **policy);
  bool more = true;
  int seen = 0;
  while (more) {
    more = simulation.step();
    EXPECT_NEAR(simulation.moments()[0].used, 0.5, 0.06);
    EXPECT_NEAR(simulation.moments()[0].throttled, 0.5, 0.06);
    if (simulation.moments()[1].present) ++seen;
  }
  EXPECT_NEAR(seen, 60, 1);
  const Report report = simulation.report();
  EXPECT_NEAR(report.pods[1].used, 0.5, 0.01);
  EXPECT_NEAR(report.pods[0].throttled, 0.5, 0.01);
}

TEST(Simulation, WhatIsUnmanagedIsLeftAlone) {
  Scenario scenario = tight();
  scenario.pods[1].managed = false;
  const Report report = run(scenario, "responsive");
  EXPECT_EQ(report.pods[1].changes, 0);
  EXPECT_NEAR(report.pods[1].used, 0.4, 0.005);
  EXPECT_LT(report.pods[0].throttled, 0.002);
}

// A pod of each class and a process outside, all of which spin on two CPUs.
Scenario everyKind() {
  Scenario scenario{.name = "kinds", .cpus = 2, .duration = 90s, .settle = 30s};
  scenario.pods.push_back(pod("web", spin(2), 300_m, 1500_m));
  scenario.pods.push_back(pod("idle", {.kind = Kind::kIdle}, 300_m, 400_m));
  scenario.pods.push_back(pod("fixed", spin(2), 200_m, 200_m));
  PodSpec hog{.name = "hog", .managed = false};
  hog.containers.push_back({.workload = spin(4)});
  scenario.pods.push_back(hog);
  PodSpec daemon{.name = "daemon", .managed = false, .outside = true};
  daemon.containers.push_back({.workload = spin(2)});
  scenario.pods.push_back(daemon);
  return scenario;
}

TEST(Simulation, CpusAreDividedAsTheKubeletsTreeSays) {
  Scenario scenario = everyKind();
  scenario.pods[0].containers[0].limit = 2000_m;  // of no effect
  const Report report = run(scenario, "static");
  // 2048 for the pods together next to 1024; among the pods 614 (also for the idle one) next to
  // 204 and 2. The Guaranteed pod is held at its limit, which the others divide.
  EXPECT_NEAR(report.pods[4].used, 2 * 1024.0 / 3072, 0.002);
  EXPECT_NEAR(report.pods[2].used, 0.2, 0.002);
  const double rest = 2 * 2048.0 / 3072 - report.pods[2].used;
  EXPECT_NEAR(report.pods[0].used, rest * 614 / 616, 0.003);
  EXPECT_NEAR(report.pods[3].used, rest * 2 / 616, 0.002);
}

TEST(Simulation, TheBurstableSliceWeighsWhatItsPodsRequest) {
  Scenario scenario = everyKind();
  scenario.pods[0].containers[0].limit = 2000_m;
  scenario.pods[1].start = 30s;
  scenario.pods[1].end = 60s;
  const auto policy = makePolicy("static", 2);
  Simulation simulation(scenario, **policy);
  const auto weightAt = [&](Nanos time) {
    while (simulation.now() < time) simulation.step();
    return simulation.node().sliceWeight(1);
  };
  EXPECT_EQ(weightAt(20s), 307);
  EXPECT_EQ(weightAt(50s), 614);
  EXPECT_EQ(weightAt(80s), 307);
}

// Remembers the tree, and decides nothing.
class Watcher final : public Policy {
 public:
  std::string_view name() const override { return "watcher"; }
  std::vector<Move> decide(const NodeView& view) override {
    tree.assign(view.tree.begin(), view.tree.end());
    machine_use = view.machine_use;
    managed.clear();
    for (const PodView& each : view.pods) managed.push_back(each.spec->name);
    return {};
  }
  std::vector<TreeEntry> tree;
  std::vector<std::string> managed;
  Millicores machine_use{};
};

TEST(Simulation, PoliciesSeeTheWholeTree) {
  const Scenario scenario = everyKind();
  Watcher watcher;
  Simulation simulation(scenario, watcher);
  simulation.step();
  ASSERT_EQ(watcher.tree.size(), 8u);
  EXPECT_EQ(watcher.tree[0].interval, 0s) << "nothing to compare with";
  while (simulation.step()) {
  }
  const auto entry = [&](std::string_view path) {
    const auto found = std::ranges::find(watcher.tree, path, &TreeEntry::path);
    EXPECT_NE(found, watcher.tree.end()) << path;
    return found == watcher.tree.end() ? TreeEntry{} : *found;
  };
  const TreeEntry kubepods = entry("/kubepods");
  EXPECT_EQ(kubepods.kind, TreeEntry::Kind::kSlice);
  EXPECT_EQ(kubepods.parent, std::nullopt);
  EXPECT_EQ(kubepods.weight, 2048);
  EXPECT_EQ(kubepods.threads, 9);
  EXPECT_NEAR(kubepods.use().cores(), 4.0 / 3, 0.01);
  EXPECT_EQ(entry("/kubepods/burstable").parent, 0u);
  EXPECT_EQ(entry("/kubepods/burstable").weight, 614);
  EXPECT_EQ(entry("/kubepods/besteffort").weight, 2);
  const TreeEntry web = entry("/kubepods/burstable/podweb");
  EXPECT_EQ(web.kind, TreeEntry::Kind::kPod);
  EXPECT_EQ(watcher.tree[*web.parent].path, "/kubepods/burstable");
  EXPECT_EQ(web.weight, 307);
  EXPECT_EQ(web.cap, 1500_m);
  EXPECT_EQ(web.threads, 2);
  EXPECT_EQ(web.interval, 1s);
  EXPECT_EQ(watcher.managed.at(*web.pod), "web");
  EXPECT_NEAR(web.use().cores(), simulation.moments()[0].used, 0.002);
  const TreeEntry fixed = entry("/kubepods/podfixed");
  EXPECT_EQ(watcher.tree[*fixed.parent].path, "/kubepods");
  EXPECT_EQ(fixed.cap, 200_m);
  const TreeEntry hog = entry("/kubepods/besteffort/podhog");
  EXPECT_EQ(hog.cap, std::nullopt);
  EXPECT_EQ(hog.pod, std::nullopt);
  const TreeEntry daemon = entry("/daemon");
  EXPECT_EQ(daemon.kind, TreeEntry::Kind::kOutside);
  EXPECT_EQ(daemon.parent, std::nullopt);
  EXPECT_EQ(daemon.weight, 1024);
  EXPECT_NEAR(watcher.machine_use.cores(), daemon.use().cores() + kubepods.use().cores(), 0.002);
}

TEST(Simulation, WithoutStatLocalItStillWorks) {
  Scenario scenario = tight();
  scenario.stat_local = false;
  const Report report = run(scenario, "responsive");
  EXPECT_LT(report.throttled_free, 0.005);
}

TEST(Policy, ByName) {
  for (const std::string_view name : policyNames()) {
    const auto policy = makePolicy(name, 4);
    ASSERT_TRUE(policy);
    EXPECT_EQ((*policy)->name(), name);
  }
  EXPECT_EQ(makePolicy("wish", 4).error().message(),
            "no policy \"wish\"; there are unlimited, static, generous, burst, hpa, vpa, "
            "twenty-percent, classic, responsive");
}

TEST(Ideal, DividesByWeightAndCarriesOver) {
  Ideal ideal({{.name = "a", .weight = 3, .most = 2}, {.name = "b", .weight = 1, .most = 2}});
  const std::vector<Ideal::Want> spinning = {{.passing = 2}, {.passing = 2}};
  auto gets = ideal.divide(spinning, 1, 2);
  EXPECT_NEAR(gets[0], 1.5, 1e-5);
  EXPECT_NEAR(gets[1], 0.5, 1e-5);
  EXPECT_TRUE(ideal.scarce());
  // What lasts is done later, what passes is lost.
  const std::vector<Ideal::Want> working = {{.passing = 2}, {.lasting = 1}};
  gets = ideal.divide(working, 1, 2);
  EXPECT_NEAR(gets[1], 0.5, 1e-5);
  const std::vector<Ideal::Want> nothing(2);
  gets = ideal.divide(nothing, 1, 2);
  EXPECT_NEAR(gets[0], 0, 1e-5);
  EXPECT_NEAR(gets[1], 0.5, 1e-5);
  EXPECT_FALSE(ideal.scarce());
}

TEST(Report, JsonAndCsv) {
  Report report{.scenario = "s", .policy = "static", .seed = 1, .seconds = 60};
  report.pods.push_back({.name = "a,\"b\"", .used = 0.25, .p99 = 12.5});
  EXPECT_EQ(toCsv({{report}}).substr(toCsv({{report}}).find('\n') + 1),
            "s,static,\"a,\"\"b\"\"\",0.0000,0.2500,0.0000,0.0000,0,0,0,0,0,0.00,,12.5,0,0\n");
  const std::string json = toJson({{report}});
  EXPECT_NE(json.find("\"p99Milliseconds\":12.5"), std::string::npos);
  EXPECT_EQ(json.find("usedBesideUnlimited"), std::string::npos);
  Report unlimited = report;
  unlimited.policy = "unlimited";
  unlimited.window_use = {4, 1};
  unlimited.window_most = {3, 3};
  report.window_use = {3, 0.5};
  EXPECT_NEAR(usedBeside(report, unlimited), 3.5 / 4, 1e-9);
  EXPECT_NE(toJson(std::vector{unlimited, report}).find("\"usedBesideUnlimited\":0.875"),
            std::string::npos);
}

}  // namespace
}  // namespace mbcas::sim
