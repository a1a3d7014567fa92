#include "mbcas/sim/node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "mbcas/demand/demand.h"
#include "mbcas/sense/sampler.h"
#include "mbcas/sim/files.h"

namespace mbcas::sim {
namespace {

using namespace literals;
using namespace std::chrono_literals;
using Kind = WorkloadSpec::Kind;

// One pod of one container, limited at both levels.
int addPod(Node& node, const std::string& name, const WorkloadSpec& spec,
           std::optional<Millicores> limit, double weight = 1) {
  const int pod = node.addPod(name, weight);
  node.addContainer(pod, {}, makeWorkload(spec, Random(7).fork(static_cast<std::uint64_t>(pod))));
  node.setLimit(pod, {{limit}}, limit);
  return pod;
}

// What a cgroup did over ten seconds, in cores, after a second to settle.
struct Rates {
  double usage;
  double blocked;
  double some;
  double full;
};
Rates ratesOf(Node& node, int pod) {
  const Nanos start = node.now() + 1s;
  node.advanceTo(start);
  const Counters before = node.counters(pod, 0);
  node.advanceTo(start + 10s);
  const Counters after = node.counters(pod, 0);
  const auto rate = [](Nanos a, Nanos b) { return static_cast<double>((b - a).count()) / 1e10; };
  return {rate(before.usage, after.usage), rate(before.local, after.local),
          rate(before.pressure.some, after.pressure.some),
          rate(*before.pressure.full, *after.pressure.full)};
}

WorkloadSpec spin(int threads) {
  return {.kind = Kind::kSpin, .threads = threads};
}
WorkloadSpec periodic(int threads, Nanos on, Nanos period) {
  return {.kind = Kind::kPeriodic, .threads = threads, .on = on, .period = period};
}

TEST(Node, OneSpinnerIsHeldAtItsQuota) {
  Node node({.cpus = 2});
  const int pod = addPod(node, "a", spin(1), 200_m);
  const Rates rates = ratesOf(node, pod);
  EXPECT_NEAR(rates.usage, 0.2, 0.001);
  EXPECT_NEAR(rates.blocked, 0.8, 0.001);
  EXPECT_NEAR(rates.some, 0.8, 0.001);
  EXPECT_NEAR(rates.full, 0.8, 0.001);
}

TEST(Node, ThrottledTimeSumsOverCpus) {
  Node node({.cpus = 2});
  const int pod = addPod(node, "a", spin(4), 500_m);
  const Rates rates = ratesOf(node, pod);
  EXPECT_NEAR(rates.usage, 0.5, 0.001);
  EXPECT_NEAR(rates.blocked, 1.5, 0.001);
  EXPECT_NEAR(rates.some, 1.0, 0.001) << "four threads on two CPUs: two always wait";
}

TEST(Node, NoLimitNoThrottling) {
  Node node({.cpus = 2});
  const int pod = addPod(node, "a", spin(4), std::nullopt);
  const Rates rates = ratesOf(node, pod);
  EXPECT_NEAR(rates.usage, 2.0, 0.001);
  EXPECT_EQ(rates.blocked, 0);
  EXPECT_EQ(node.counters(pod, 0).throttling.periods, 0u) << "counters stand still without a quota";
}

TEST(Node, WorkBelowTheQuotaIsNotThrottled) {
  Node node({.cpus = 2});
  const int pod = addPod(node, "a", periodic(2, 15ms, 100ms), 400_m);
  const Rates rates = ratesOf(node, pod);
  EXPECT_NEAR(rates.usage, 0.3, 0.001);
  EXPECT_EQ(rates.blocked, 0);
  EXPECT_GT(node.counters(pod, 0).throttling.periods, 100u);
}

// 30 ms of work each 100 ms under 20 ms: a backlog, the thread wants to run all the time.
TEST(Node, ABacklogIsAlwaysRunnable) {
  Node node({.cpus = 2});
  const int pod = addPod(node, "a", periodic(1, 30ms, 100ms), 200_m);
  const Rates rates = ratesOf(node, pod);
  EXPECT_NEAR(rates.usage, 0.2, 0.005);
  EXPECT_NEAR(rates.blocked, 0.8, 0.03);
}

// 50 ms each second under 200m: 20 ms run, then 80 wait (less what the phase gives), twice.
TEST(Node, ABurstIsCutOff) {
  Node node({.cpus = 2});
  const int pod = addPod(node, "a", periodic(1, 50ms, 1s), 200_m);
  const Rates rates = ratesOf(node, pod);
  EXPECT_NEAR(rates.usage, 0.05, 0.001);
  EXPECT_GT(rates.blocked, 0.08);
  EXPECT_LT(rates.blocked, 0.18);
}

TEST(Node, ThePodsQuotaHoldsItsContainers) {
  Node node({.cpus = 2});
  const int pod = node.addPod("a", 1);
  node.addContainer(pod, {.name = "x"}, makeWorkload(spin(1), Random(1)));
  node.addContainer(pod, {.name = "y"}, makeWorkload(spin(1), Random(1)));
  node.setLimit(pod, {{300_m, 300_m}}, 400_m);
  node.advanceTo(10s);
  EXPECT_NEAR(static_cast<double>(node.podCounters(pod).usage.count()), 4e9, 4e7);
  for (int c = 0; c < 2; ++c) {
    // But for the first periods, which begin at different times.
    EXPECT_LE(node.counters(pod, c).throttling.throttled_periods, 3u);
    EXPECT_NEAR(static_cast<double>(node.counters(pod, c).local.count()), 8e9, 8e7);
  }
  EXPECT_NEAR(static_cast<double>(node.podCounters(pod).throttling.time.count()), 16e9, 16e7);
}

TEST(Node, CpusAreSharedByWeight) {
  Node node({.cpus = 2});
  const int heavy = addPod(node, "heavy", spin(2), std::nullopt, 300);
  const int light = addPod(node, "light", spin(2), std::nullopt, 100);
  const int small = addPod(node, "small", periodic(1, 1ms, 10ms), std::nullopt, 100);
  node.advanceTo(10s);
  // The small one has a right to 0.4 CPUs and takes 0.1 in time; the rest is divided 3 to 1.
  EXPECT_NEAR(static_cast<double>(node.counters(small, 0).usage.count()), 1e9, 1e7);
  EXPECT_NEAR(static_cast<double>(node.counters(heavy, 0).usage.count()), 1.9e10 * 0.75, 3e8);
  EXPECT_NEAR(static_cast<double>(node.counters(light, 0).usage.count()), 1.9e10 * 0.25, 3e8);
}

TEST(Node, OneThreadUsesOneCpu) {
  Node node({.cpus = 2});
  const int heavy = addPod(node, "heavy", spin(1), std::nullopt, 1000);
  const int light = addPod(node, "light", spin(4), std::nullopt, 10);
  node.advanceTo(10s);
  EXPECT_NEAR(static_cast<double>(node.counters(heavy, 0).usage.count()), 1e10, 1);
  EXPECT_NEAR(static_cast<double>(node.counters(light, 0).usage.count()), 1e10, 1);
}

// Slices above the pods, each with what it should get of the CPUs.
class Slices : public testing::Test {
 protected:
  int spinning(Node& node, const std::string& name, double weight, std::optional<int> slice,
               int threads, std::optional<Millicores> limit = {}) {
    const int pod = node.addPod(name, weight, slice);
    node.addContainer(pod, {}, makeWorkload(spin(threads), Random(1)));
    node.setLimit(pod, {{limit}}, limit);
    return pod;
  }
  // Cores, on average since the start.
  static double use(const Node& node, int pod) {
    return static_cast<double>(node.podCounters(pod).usage.count()) /
           static_cast<double>(node.now().count());
  }
  static double sliceUse(const Node& node, int slice) {
    return static_cast<double>(node.sliceUsage(slice).count()) /
           static_cast<double>(node.now().count());
  }
};

// Two pods of 300m (307 shares each, together 614 for the slice) and all BestEffort pods (2).
TEST_F(Slices, ABestEffortHogGetsNextToNothing) {
  Node node({.cpus = 2});
  const int kubepods = node.addSlice("kubepods", 2048);
  const int burstable = node.addSlice("burstable", 614, kubepods);
  const int best_effort = node.addSlice("besteffort", 2, kubepods);
  const int a = spinning(node, "a", 307, burstable, 2);
  const int b = spinning(node, "b", 307, burstable, 2);
  const int hog = spinning(node, "hog", 2, best_effort, 4);
  node.advanceTo(10s);
  EXPECT_NEAR(use(node, hog), 2 * 2.0 / 616, 1e-6);
  EXPECT_NEAR(use(node, a), 614.0 / 616, 1e-6);
  EXPECT_NEAR(use(node, b), 614.0 / 616, 1e-6);
  EXPECT_NEAR(sliceUse(node, burstable), 2 * 614.0 / 616, 1e-6);
  EXPECT_NEAR(sliceUse(node, kubepods), 2, 1e-6);
}

TEST_F(Slices, BestEffortPodsShareTheirSlice) {
  Node node({.cpus = 2});
  const int kubepods = node.addSlice("kubepods", 2048);
  const int burstable = node.addSlice("burstable", 614, kubepods);
  const int best_effort = node.addSlice("besteffort", 2, kubepods);
  // One thread cannot use more than one CPU, so the rest is for the hogs.
  const int a = spinning(node, "a", 614, burstable, 1);
  const int first = spinning(node, "first", 2, best_effort, 4);
  const int second = spinning(node, "second", 2, best_effort, 1);
  node.advanceTo(10s);
  EXPECT_NEAR(use(node, a), 1, 1e-6);
  EXPECT_NEAR(use(node, first), 0.5, 1e-6);
  EXPECT_NEAR(use(node, second), 0.5, 1e-6);
}

TEST_F(Slices, AProcessOutsideCompetesWithAllPodsTogether) {
  Node node({.cpus = 2});
  const int kubepods = node.addSlice("kubepods", 2048);
  const int burstable = node.addSlice("burstable", 300, kubepods);
  const int system = node.addSlice("system.slice", 1024);
  const int a = spinning(node, "a", 100, burstable, 2);
  const int b = spinning(node, "b", 200, burstable, 2);
  const int daemon = spinning(node, "daemon", 1024, system, 2);
  node.advanceTo(10s);
  EXPECT_NEAR(use(node, daemon), 2.0 / 3, 1e-6);
  EXPECT_NEAR(use(node, a), 4.0 / 9, 1e-6);
  EXPECT_NEAR(use(node, b), 8.0 / 9, 1e-6);
  EXPECT_NEAR(sliceUse(node, system), 2.0 / 3, 1e-6);
}

TEST_F(Slices, RequestsOfIdlePodsCountForTheirNeighbours) {
  Node node({.cpus = 1});
  const int kubepods = node.addSlice("kubepods", 1024);
  // 100 of the pod that runs, 300 of the pod that does not.
  const int burstable = node.addSlice("burstable", 400, kubepods);
  const int guaranteed = spinning(node, "guaranteed", 100, kubepods, 1);
  const int busy = spinning(node, "busy", 100, burstable, 1);
  const int idle = node.addPod("idle", 300, burstable);
  node.addContainer(idle, {}, makeWorkload({.kind = Kind::kIdle}, Random(1)));
  node.advanceTo(10s);
  EXPECT_NEAR(use(node, busy), 0.8, 1e-6) << "the slice has 400 next to 100";
  EXPECT_NEAR(use(node, guaranteed), 0.2, 1e-6);
}

TEST_F(Slices, ANewWeightTakesEffectAtOnce) {
  Node node({.cpus = 1});
  const int left = node.addSlice("left", 100);
  const int right = node.addSlice("right", 100);
  const int a = spinning(node, "a", 5, left, 1);
  const int b = spinning(node, "b", 7, right, 1);
  node.advanceTo(10s);
  EXPECT_NEAR(use(node, a), 0.5, 1e-6);
  node.setSliceWeight(left, 300);
  EXPECT_EQ(node.sliceWeight(left), 300);
  node.advanceTo(20s);
  EXPECT_NEAR(use(node, a), 0.625, 1e-6);
  EXPECT_NEAR(use(node, b), 0.375, 1e-6);
}

// What a limit takes from a pod goes to its neighbours in the slice, not out of the slice.
TEST_F(Slices, WhatALimitLeavesStaysInTheSlice) {
  Node node({.cpus = 2});
  const int left = node.addSlice("left", 100);
  const int right = node.addSlice("right", 100);
  const int limited = spinning(node, "limited", 100, left, 1, 100_m);
  const int neighbour = spinning(node, "neighbour", 100, left, 2);
  const int other = spinning(node, "other", 100, right, 2);
  node.advanceTo(100s);
  EXPECT_NEAR(use(node, limited), 0.1, 1e-3);
  EXPECT_NEAR(use(node, neighbour), 0.9, 1e-3);
  EXPECT_NEAR(use(node, other), 1, 1e-6);
}

TEST_F(Slices, APodThatIsGoneStillCountsInTheUsageOfItsSlice) {
  Node node({.cpus = 1});
  const int kubepods = node.addSlice("kubepods", 1024);
  const int burstable = node.addSlice("burstable", 2, kubepods);
  const int pod = spinning(node, "a", 2, burstable, 1);
  EXPECT_EQ(node.podSlice(pod), burstable);
  EXPECT_EQ(node.sliceParent(burstable), kubepods);
  EXPECT_EQ(node.sliceParent(kubepods), std::nullopt);
  node.advanceTo(3s);
  node.removePod(pod);
  node.advanceTo(5s);
  EXPECT_EQ(node.sliceUsage(kubepods), 3s);
}

// Weighted max-min from the top down, written as simply as possible.
struct Branch {
  double weight = 1;
  double cap = 0;
  std::vector<std::size_t> children{};
};
void pour(const std::vector<Branch>& tree, std::size_t at, double total, std::vector<double>& got) {
  got[at] = total;
  std::vector<std::size_t> open = tree[at].children;
  while (!open.empty()) {
    double weights = 0;
    for (const std::size_t child : open) weights += tree[child].weight;
    const double level = total / weights;
    const auto full = std::ranges::find_if(open, [&](std::size_t child) {
      return tree[child].cap <= tree[child].weight * level + 1e-12;
    });
    if (full == open.end()) {
      for (const std::size_t child : open) pour(tree, child, tree[child].weight * level, got);
      return;
    }
    pour(tree, *full, tree[*full].cap, got);
    total -= tree[*full].cap;
    open.erase(full);
  }
}

TEST_F(Slices, RandomTreesAreDividedAsTheyShouldBe) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const unsigned cpus = 1 + static_cast<unsigned>(random.next() % 8);
    Node node({.cpus = cpus, .seed = seed});
    std::vector<Branch> tree(1);
    std::vector<std::size_t> places;  // of the slices
    const auto slices = static_cast<int>(random.next() % 6);
    const auto anywhere = [&](int below) {
      const int at = static_cast<int>(random.next() % static_cast<std::uint64_t>(below + 1)) - 1;
      return at < 0 ? std::optional<int>() : std::optional(at);
    };
    const auto add = [&](std::optional<int> parent, double weight) {
      const std::size_t above = parent ? places[static_cast<std::size_t>(*parent)] : 0;
      tree[above].children.push_back(tree.size());
      tree.push_back({.weight = weight});
      return tree.size() - 1;
    };
    for (int i = 0; i < slices; ++i) {
      const std::optional<int> parent = anywhere(i);
      const double weight = 1 + static_cast<double>(random.next() % 1000);
      node.addSlice("s" + std::to_string(i), weight, parent);
      places.push_back(add(parent, weight));
    }
    std::vector<std::size_t> pods;
    for (int i = 0; i < 6; ++i) {
      const std::optional<int> slice = anywhere(slices);
      const double weight = 1 + static_cast<double>(random.next() % 1000);
      const int threads = 1 + static_cast<int>(random.next() % 4);
      spinning(node, "p" + std::to_string(i), weight, slice, threads);
      pods.push_back(add(slice, weight));
      tree[pods.back()].cap = std::min<double>(threads, cpus);
    }
    for (std::size_t at = tree.size(); at-- > 0;) {  // children come after their parents
      for (const std::size_t child : tree[at].children) tree[at].cap += tree[child].cap;
    }
    std::vector<double> got(tree.size());
    pour(tree, 0, std::min<double>(cpus, tree[0].cap), got);
    node.advanceTo(1s);
    for (std::size_t i = 0; i < pods.size(); ++i) {
      ASSERT_NEAR(use(node, static_cast<int>(i)), got[pods[i]], 1e-6) << "seed " << seed;
    }
    for (int i = 0; i < slices; ++i) {
      ASSERT_NEAR(sliceUse(node, i), got[places[static_cast<std::size_t>(i)]], 1e-6);
    }
  }
}

TEST(Node, ALimitChangesAtOnce) {
  Node node({.cpus = 2});
  const int pod = addPod(node, "a", spin(1), 100_m);
  node.advanceTo(5050ms);
  const Nanos before = node.counters(pod, 0).usage;
  node.setLimit(pod, {{1000_m}}, 1000_m);
  node.advanceTo(6050ms);
  EXPECT_EQ(node.counters(pod, 0).usage - before, 1s) << "not even the rest of the period is lost";
}

TEST(Node, ARestartedContainerStartsFromZero) {
  Node node({.cpus = 2});
  const int pod = addPod(node, "a", spin(1), 500_m);
  node.advanceTo(10s);
  const std::uint64_t old = node.containerCgroup(pod, 0);
  node.restartContainer(pod, 0);
  EXPECT_NE(node.containerCgroup(pod, 0), old);
  EXPECT_EQ(node.counters(pod, 0).usage, 0s);
  EXPECT_GT(node.podCounters(pod).usage, 4s);
  const Rates rates = ratesOf(node, pod);
  EXPECT_NEAR(rates.usage, 0.5, 0.001);
}

TEST(Node, ServiceAnswersWithItsWorkWhenThereIsRoom) {
  Node node({.cpus = 4});
  const WorkloadSpec spec{.kind = Kind::kService,
                          .threads = 4,
                          .rate = 10,
                          .work = 5ms,
                          .sizes = WorkloadSpec::Sizes::kFixed};
  const int pod = addPod(node, "a", spec, std::nullopt);
  node.advanceTo(1000s);
  const Latencies& latencies = node.workload(pod, 0).latencies();
  EXPECT_NEAR(static_cast<double>(latencies.count()), 10000, 300);
  EXPECT_NEAR(static_cast<double>(latencies.percentile(0.5).count()), 5e6, 1e5);
  EXPECT_NEAR(static_cast<double>(node.counters(pod, 0).usage.count()), 50e9, 1.5e9);
}

// M/M/1: the time in the system is exponential with mean 1 / (mu - lambda).
TEST(Node, OneServerQueueHasItsKnownLatency) {
  Node node({.cpus = 1});
  const WorkloadSpec spec{.kind = Kind::kService, .threads = 1, .rate = 50, .work = 10ms};
  const int pod = addPod(node, "a", spec, std::nullopt);
  node.advanceTo(20000s);
  const Latencies& latencies = node.workload(pod, 0).latencies();
  EXPECT_NEAR(static_cast<double>(latencies.percentile(0.5).count()), 20e6 * 0.693, 4e5);
  EXPECT_NEAR(static_cast<double>(latencies.percentile(0.99).count()), 20e6 * 4.605, 4e6);
}

TEST(Node, NobodyUsesMoreThanThereIs) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const unsigned cpus = 1 + static_cast<unsigned>(random.next() % 4);
    Node node({.cpus = cpus, .seed = seed});
    std::vector<Millicores> limits;
    for (int i = 0; i < 6; ++i) {
      const WorkloadSpec specs[] = {
          spin(1 + static_cast<int>(random.next() % 4)),
          periodic(2, Nanos(1ms) * static_cast<std::int64_t>(1 + random.next() % 20), 30ms),
          {.kind = Kind::kService, .threads = 3, .rate = 40, .work = 8ms},
          {.kind = Kind::kBursty, .threads = 2, .on = 40ms, .period = 300ms}};
      limits.emplace_back(static_cast<std::int64_t>(50 + random.next() % 1500));
      addPod(node, std::to_string(i), specs[random.next() % 4], limits.back(),
             1 + static_cast<double>(random.next() % 9));
    }
    std::vector<Nanos> before(limits.size());
    for (int second = 1; second <= 20; ++second) {
      node.advanceTo(std::chrono::seconds(second));
      Nanos all{0};
      for (std::size_t i = 0; i < limits.size(); ++i) {
        const Counters counters = node.counters(static_cast<int>(i), 0);
        const Nanos used = counters.usage - std::exchange(before[i], counters.usage);
        all += used;
        // The periods of a second, and one that straddles its ends.
        EXPECT_LE(used, Nanos(limits[i].count() * 1100'000) + 1us);
        const double offered = node.workload(static_cast<int>(i), 0).offered(node.now());
        EXPECT_LE(static_cast<double>(counters.usage.count()), offered * 1.5 + 1e8);
      }
      EXPECT_LE(all, std::chrono::seconds(cpus) + 1us);
    }
  }
}

TEST(Node, TheSameSeedGivesTheSameCourse) {
  const auto course = [](std::uint64_t seed) {
    Node node({.cpus = 2, .seed = seed});
    for (int i = 0; i < 5; ++i) {
      addPod(node, std::to_string(i),
             {.kind = Kind::kService, .threads = 2, .rate = 30, .work = 10ms}, 300_m);
    }
    node.advanceTo(60s);
    std::vector<Nanos> all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(node.counters(i, 0).usage);
      all.push_back(node.counters(i, 0).local);
    }
    return all;
  };
  EXPECT_EQ(course(1), course(1));
  EXPECT_NE(course(1), course(2));
}

// How time is cut into steps changes nothing.
TEST(Node, StepsDoNotMatter) {
  const auto course = [](Nanos step) {
    Node node({.cpus = 2});
    const int a =
        addPod(node, "a", {.kind = Kind::kService, .threads = 2, .rate = 30, .work = 10ms}, 300_m);
    const int b = addPod(node, "b", spin(3), 900_m);
    for (Nanos at{0}; at <= 30s; at += step) node.advanceTo(at);
    node.advanceTo(30s);
    return std::array{node.counters(a, 0).usage, node.counters(a, 0).local,
                      node.counters(b, 0).usage, node.counters(b, 0).local};
  };
  const auto coarse = course(30s);
  const auto fine = course(7ms);
  for (std::size_t i = 0; i < coarse.size(); ++i) {
    EXPECT_LE(std::abs((coarse[i] - fine[i]).count()), 100'000) << i;
  }
}

TEST(ModelFiles, TheSamplerReadsThem) {
  Node node({.cpus = 2});
  addPod(node, "a", spin(1), 200_m);
  addPod(node, "b", periodic(1, 10ms, 100ms), 500_m);
  SimulatedClock clock;
  sense::Sampler sampler(std::make_unique<ModelFiles>(node, ModelFiles::Options{}), clock, {});
  demand::Demand demand({.cpus = 2});
  std::span<const demand::PodNeed> needs;
  for (int second = 1; second <= 10; ++second) {
    node.advanceTo(std::chrono::seconds(second));
    clock.advance(1s);
    needs = demand.update(sampler.tick());
  }
  ASSERT_EQ(needs.size(), 2u);
  const auto signals = sampler.signals();
  EXPECT_EQ(signals[0].uid, "a");
  EXPECT_NEAR(signals[0].cpu.usageRate().cores(), 0.2, 0.01);
  EXPECT_NEAR(signals[0].containers[0].cpu.blockedRate().cores(), 0.8, 0.01);
  EXPECT_EQ(signals[0].containers[0].cpu.blocked_source, sense::BlockedSource::kLocal);
  EXPECT_EQ(signals[0].containers[0].threads, 1u);
  EXPECT_EQ(needs[0].total.use, 1000_m) << "usage and what was blocked";
  EXPECT_EQ(needs[1].total.use, 100_m);
  EXPECT_EQ(sampler.counters().failures, 0u);

  node.removePod(0);
  node.restartContainer(1, 0);
  for (int second = 11; second <= 13; ++second) {
    node.advanceTo(std::chrono::seconds(second));
    clock.advance(1s);
    needs = demand.update(sampler.tick());
  }
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(sampler.counters().pods_ended, 1u);
  EXPECT_EQ(sampler.counters().containers_started, 3u);
  EXPECT_EQ(sampler.counters().resets, 0u);
}

TEST(ModelFiles, WithoutLocalTheLargerLevelCounts) {
  Node node({.cpus = 2});
  addPod(node, "a", spin(1), 200_m);
  SimulatedClock clock;
  sense::Sampler sampler(
      std::make_unique<ModelFiles>(node, ModelFiles::Options{.stat_local = false}), clock, {});
  for (int second = 1; second <= 5; ++second) {
    node.advanceTo(std::chrono::seconds(second));
    clock.advance(1s);
    sampler.tick();
  }
  const sense::CpuSignals& cpu = sampler.signals()[0].containers[0].cpu;
  EXPECT_NEAR(cpu.blockedRate().cores(), 0.8, 0.02);
  EXPECT_NE(cpu.blocked_source, sense::BlockedSource::kLocal);
}

}  // namespace
}  // namespace mbcas::sim
