#include "mbcas/control/intervention.h"

#include <gtest/gtest.h>

#include <numeric>

#include "mbcas/control/dice.h"
#include "test/support/trials.h"

namespace mbcas::control {
namespace {

constexpr double kHungry = market::kUncapped;

// A node as the kubelet makes it: 0 is kubepods, 1 the Burstable slice, 2 the BestEffort slice.
// Processes outside the pods are next to kubepods.
class Tree {
 public:
  static constexpr std::size_t kPods = 0;
  static constexpr std::size_t kBurstable = 1;
  static constexpr std::size_t kBestEffort = 2;

  explicit Tree(double cpus) : cpus_(cpus) {
    consumers_.push_back({.cgroup = {.weight = cpus * 1024}});
    consumers_.push_back({.cgroup = {.parent = kPods, .weight = 2}});
    consumers_.push_back({.cgroup = {.parent = kPods, .weight = 2}});
  }

  std::size_t managed(double request, double declared, double demand, double factor = 1) {
    Consumer pod{.cgroup = {.parent = kBurstable, .weight = shares(request), .demand = demand},
                 .managed = true,
                 .declared = declared,
                 .request = request,
                 .factor = factor};
    pod.free = std::max(declared, 1.25 * std::min(demand, cpus_));
    return add(pod);
  }
  std::size_t unmanaged(std::size_t slice, double weight, double demand,
                        double cap = market::kUncapped) {
    return add({.cgroup = {.parent = slice, .weight = weight, .cap = cap, .demand = demand}});
  }
  std::size_t outside(double demand) { return add({.cgroup = {.weight = 1024, .demand = demand}}); }

  static double shares(double request) { return std::max(2.0, request * 1024); }
  Consumer& operator[](std::size_t i) { return consumers_[i]; }
  std::size_t size() const { return consumers_.size(); }
  double cpus() const { return cpus_; }
  Intervention decide(bool bound_before = false) {
    return intervener_.decide(cpus_, consumers_, bound_before);
  }
  // What the kernel gives each consumer under these limits of managed pods.
  template <class Limit>
  std::vector<double> divide(Limit limit) {
    std::vector<market::CgroupNode> nodes;
    for (std::size_t i = 0; i < consumers_.size(); ++i) {
      nodes.push_back(consumers_[i].cgroup);
      if (consumers_[i].managed) nodes.back().cap = limit(i);
    }
    return market::divideAsKernel(cpus_, nodes);
  }

 private:
  std::size_t add(const Consumer& consumer) {
    consumers_.push_back(consumer);
    if (consumer.cgroup.parent == kBurstable) {
      consumers_[kBurstable].cgroup.weight += consumer.cgroup.weight;
    }
    return consumers_.size() - 1;
  }

  double cpus_;
  std::vector<Consumer> consumers_;
  Intervener intervener_;
};

TEST(Intervention, AHogOfTinyWeightTakesNothingFromAnyPod) {
  Tree node(2);
  const std::size_t a = node.managed(0.3, 0.7, kHungry);
  const std::size_t b = node.managed(0.3, 0.7, kHungry);
  node.unmanaged(Tree::kBestEffort, 2, kHungry);
  const Intervention answer = node.decide();
  EXPECT_FALSE(answer.binds);
  EXPECT_EQ(answer.raises, 1);
  for (const std::size_t pod : {a, b}) EXPECT_GE(answer.consumers[pod].limit, 0.7);
}

TEST(Intervention, EqualPodsAreNeverBound) {
  Tree node(2);
  for (int i = 0; i < 5; ++i) node[node.managed(0.15, 0.6, kHungry)].claim = kHungry;
  const Intervention answer = node.decide();
  EXPECT_FALSE(answer.binds);
  for (std::size_t i = 3; i < node.size(); ++i) {
    EXPECT_NEAR(answer.consumers[i].award, 0.4, 1e-5);
    EXPECT_FALSE(answer.consumers[i].beneficiary);
  }
}

TEST(Intervention, ACeilingLeavesTheRestToTheOthers) {
  Tree node(2);
  const std::size_t small = node.managed(0.1, 1, kHungry);
  node[small].free = 0.2;
  const std::size_t other = node.managed(0.1, 1, kHungry);
  const Intervention answer = node.decide();
  EXPECT_NEAR(answer.consumers[small].award, 0.2, 1e-5);
  EXPECT_NEAR(answer.consumers[other].award, 1.8, 1e-5);
  EXPECT_GE(answer.consumers[other].limit, 1.8);
}

// Gold asks for half a core, silver for 0.3, and two hogs take what they get.
struct Gold {
  Tree node{2};
  std::size_t gold = node.managed(0.2, 1, 0.5, 4);
  std::size_t silver = node.managed(0.2, 1, 0.3);
  std::size_t hog = node.managed(0.2, 2, kHungry, 0.5);
  std::size_t other_hog = node.managed(0.2, 2, kHungry, 0.5);
};

TEST(Intervention, WithoutAClaimNoPodIsBound) {
  Gold world;
  EXPECT_FALSE(world.node.decide().binds);
}

TEST(Intervention, AClaimIsMetByThosePodsThatMatterLess) {
  Gold world;
  world.node[world.gold].claim = 0.9;
  const Intervention answer = world.node.decide();
  EXPECT_TRUE(answer.binds);
  EXPECT_NEAR(answer.arrives, 1, 0.01);
  EXPECT_NEAR(answer.consumers[world.gold].award, 0.9, 1e-5);
  for (const std::size_t hog : {world.hog, world.other_hog}) {
    EXPECT_TRUE(answer.consumers[hog].bound);
    EXPECT_NEAR(answer.consumers[hog].limit, 0.4, 1e-3);
  }
  EXPECT_FALSE(answer.consumers[world.silver].bound);
}

TEST(Intervention, WhatAnUnmanagedNeighbourWouldTakeIsNotFreed) {
  Gold world;
  world.node[world.gold].claim = 0.9;
  // An unmanaged pod of large weight takes most of what the hogs leave.
  world.node.unmanaged(Tree::kBurstable, Tree::shares(2), kHungry);
  EXPECT_FALSE(world.node.decide().binds);
}

TEST(Intervention, APodThatMayNotBeLoweredCountsAsUnmanaged) {
  Gold world;
  world.node[world.gold].claim = 0.9;
  world.node[world.hog].may_lower = world.node[world.other_hog].may_lower = false;
  const Intervention answer = world.node.decide();
  EXPECT_FALSE(answer.binds);
  EXPECT_LE(answer.consumers[world.hog].limit, 2) << "but it is raised no further";
}

TEST(Intervention, BindingEndsLaterThanItBegins) {
  for (int weight = 1; weight < 200; ++weight) {
    Gold world;
    world.node[world.gold].claim = 0.9;
    world.node.unmanaged(Tree::kBurstable, 2.0 * weight, kHungry);
    const Intervention fresh = world.node.decide(false);
    const Intervention kept = world.node.decide(true);
    ASSERT_EQ(fresh.binds, fresh.arrives >= Intervener::kBindsFrom) << weight;
    ASSERT_EQ(kept.binds, kept.arrives >= Intervener::kBindsUntil) << weight;
  }
}

// A node of any kind. Some managed pods claim more than they use, as pods do that are helped.
Tree randomNode(Dice& dice, bool equal) {
  const auto cpus = dice.oneOf<double>({2, 4, 16, 64});
  Tree node(cpus);
  const std::int64_t pods = dice.between(2, 20);
  for (std::int64_t i = 0; i < pods; ++i) {
    const double request =
        dice.oneOf({0.01, 0.05, 0.1, 0.2, 0.5, 1.0}) * dice.oneOf<double>({1, 1, cpus / 4});
    const double demand = dice.oneOf<double>({0.01, 0.1, 0.3, 1, 2, cpus}) *
                          static_cast<double>(dice.between(50, 100)) / 100;
    switch (dice.between(0, 7)) {
      case 0:
        node.unmanaged(Tree::kBurstable, Tree::shares(request), demand);
        break;
      case 1:
        node.unmanaged(Tree::kBurstable, Tree::shares(request), demand, 3 * request);
        break;
      case 2:
        node.unmanaged(Tree::kBestEffort, 2, demand);
        break;
      case 3:
        node.unmanaged(Tree::kPods, Tree::shares(request), demand, request);
        break;
      default: {
        const double declared = request * dice.oneOf({1.5, 2.0, 4.0, 10.0});
        Consumer& pod = node[node.managed(request, declared, demand)];
        pod.may_lower = dice.chance(90);
        if (equal) {
          if (dice.chance(50)) pod.claim = dice.chance(50) ? cpus : 2 * demand;
          break;
        }
        pod.factor = dice.oneOf({1.0, 1.0, 0.5, 2.0, 4.0});
        if (dice.chance(20)) {
          pod.free = std::min(pod.free, std::max(request, declared * dice.oneOf({0.5, 1.0, 2.0})));
        }
        if (pod.factor > 1 && dice.chance(70)) pod.claim = dice.chance(30) ? cpus : 2 * demand;
      }
    }
  }
  node.outside(dice.oneOf<double>({0.05, 0.5, cpus}));
  return node;
}

TEST(Intervention, KeepsThePromiseOnRandomNodes) {
  const auto nodes = test::trials<std::uint64_t>(6'000, 100'000);
  std::uint64_t binding = 0;
  std::uint64_t in_part = 0;
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const bool equal = seed % 3 == 0;
    Tree node = randomNode(dice, equal);
    const Intervention answer = node.decide(dice.chance(50));
    const std::vector<double> given =
        node.divide([&](std::size_t i) { return answer.consumers[i].limit; });
    for (std::size_t i = 0; i < node.size(); ++i) {
      const Outcome& outcome = answer.consumers[i];
      const double promised = std::min({outcome.plain, outcome.award, node[i].cgroup.demand});
      ASSERT_GE(given[i], 0.98 * promised - 1e-5) << "consumer " << i;
      if (!node[i].managed) continue;
      ASSERT_LE(outcome.limit, node[i].free + 1e-9);
      if (outcome.bound) {
        ASSERT_TRUE(node[i].may_lower);
        ASSERT_GE(outcome.limit, std::min(node[i].request, node[i].free) - 1e-9);
      } else {
        ASSERT_GE(outcome.limit, std::min(node[i].declared, node[i].free) - 1e-9);
      }
    }
    if (equal) {
      ASSERT_FALSE(answer.binds);
      // With equal factors the machine is used as it would be without limits.
      const std::vector<double> unlimited =
          node.divide([&](std::size_t i) { return std::max(node[i].free, node.cpus()); });
      const auto top = [&](const std::vector<double>& shares) {
        double sum = 0;
        for (std::size_t i = 0; i < node.size(); ++i) {
          if (!node[i].cgroup.parent) sum += shares[i];
        }
        return sum;
      };
      ASSERT_GE(top(given), 0.99 * top(unlimited));
    }
    binding += answer.binds ? 1 : 0;
    in_part += answer.raises < 1 ? 1 : 0;
  }
  // The test would show nothing if nothing was ever done.
  EXPECT_GE(binding, nodes / 50);
  EXPECT_GE(in_part, 1u);
  RecordProperty("binding", static_cast<int>(binding));
  RecordProperty("in_part", static_cast<int>(in_part));
}

TEST(Hungry, IsWhatUseExplains) {
  // Two pods of equal weight and a system process on 2 CPUs. One pod takes all that it gets.
  const std::vector<market::CgroupNode> nodes{
      {.demand = 0.3}, {.demand = 1.5}, {.weight = 1024, .demand = 0.2}};
  EXPECT_EQ(hungry(2, 0, nodes, std::vector{0.3, 1.5, 0.2}),
            (std::vector<bool>{false, true, false}));
  EXPECT_EQ(hungry(2, 0.2, nodes, std::vector{0.3, 1.3, 0.2}),
            (std::vector<bool>{false, false, false}))
      << "there is CPU left";
}

TEST(Hungry, APodAtItsLimitIsNot) {
  const std::vector<market::CgroupNode> nodes{{.cap = 0.5, .demand = 0.8}, {.demand = 1.5}};
  EXPECT_EQ(hungry(2, 0, nodes, std::vector{0.5, 1.5}), (std::vector<bool>{false, true}));
}

// A consumer that takes whatever it gets is found, and one that has all it wants is not, whatever
// the tree.
TEST(Hungry, FindsThemOnRandomNodes) {
  const auto nodes = test::trials<std::uint64_t>(2'000, 20'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    Tree tree = randomNode(dice, false);
    std::vector<market::CgroupNode> truth;
    for (std::size_t i = 0; i < tree.size(); ++i) {
      truth.push_back(tree[i].cgroup);
      if (tree[i].cgroup.demand > 0 && dice.chance(30)) truth.back().demand = kHungry;
    }
    const std::vector<double> use = market::divideAsKernel(tree.cpus(), truth);
    double idle = tree.cpus();
    std::vector<market::CgroupNode> seen = truth;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      if (!truth[i].parent) idle -= use[i];
      if (truth[i].demand > 0) seen[i].demand = use[i];
    }
    const std::vector<bool> found = hungry(tree.cpus(), idle, seen, use);
    for (std::size_t i = 0; i < truth.size(); ++i) {
      // Those that take whatever they get, and those that the kernel, and not a cap of their own,
      // gives less than they want.
      const bool held_back =
          truth[i].demand > 0 && use[i] < 0.9 * std::min(truth[i].demand, truth[i].cap);
      if (held_back && idle < 0.01 * tree.cpus()) {
        ASSERT_TRUE(found[i]) << "consumer " << i;
      }
    }
  }
}

}  // namespace
}  // namespace mbcas::control
