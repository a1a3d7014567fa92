#include "mbcas/market/kernel_division.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "mbcas/market/reference/kernel_division.h"
#include "mbcas/market/reference/random_tree.h"
#include "test/support/count_allocations.h"
#include "test/support/trials.h"

namespace mbcas::market {
namespace {

using reference::Tree;
using reference::TreeGenerator;

constexpr double kHungry = kUncapped;
constexpr double kMicro = 1e-6;
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

using Shares = std::vector<double>;

Shares divided(const Tree& tree) {
  return divideAsKernel(tree.capacity, tree.nodes);
}

std::string print(const Tree& tree, const Shares& shares = {}) {
  std::string text = fmt::format("capacity {}\n", tree.capacity);
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const CgroupNode& node = tree.nodes[i];
    text += fmt::format("{:>3} in {:>2}: weight {} cap {} demand {} threads {}{}\n", i,
                        node.parent ? std::to_string(*node.parent) : "-", node.weight, node.cap,
                        node.demand, node.threads,
                        i < shares.size() ? fmt::format(" -> {:.6f}", shares[i]) : "");
  }
  return text;
}

// Levels of the tree. Each rounds to whole microcores once.
double depthOf(const Tree& tree) {
  std::vector<int> depths;
  for (const CgroupNode& node : tree.nodes)
    depths.push_back(node.parent ? depths[*node.parent] + 1 : 1);
  return *std::ranges::max_element(depths);
}
double roundingOf(const Tree& tree) {
  return (depthOf(tree) + 0.01) * kMicro;
}

bool isInner(const Tree& tree, std::size_t i) {
  return std::ranges::any_of(tree.nodes, [&](const CgroupNode& node) { return node.parent == i; });
}
bool isBelow(const Tree& tree, std::size_t i, std::size_t above) {
  while (i != above && tree.nodes[i].parent) i = *tree.nodes[i].parent;
  return i == above;
}

double ownWant(const CgroupNode& node) {
  return std::min(node.demand, node.threads);
}

// What the subtrees want, within their caps; the last element is the sum of the top level.
Shares wantsOf(const Tree& tree) {
  Shares wants(tree.nodes.size() + 1);
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    const CgroupNode& node = tree.nodes[i];
    wants[i] = std::min(node.cap, wants[i] + ownWant(node));
    wants[node.parent.value_or(tree.nodes.size())] += wants[i];
  }
  return wants;
}

// --- By hand.

TEST(KernelDivision, NothingToDivide) {
  EXPECT_EQ(divideAsKernel(2, {}), Shares{});
  EXPECT_EQ(divided({2, {{}, {.parent = 0}}}), (Shares{0, 0}));
  EXPECT_EQ(divided({0, {{.demand = 1}, {.demand = kHungry}}}), (Shares{0, 0}));
}

TEST(KernelDivision, SiblingsShareByWeight) {
  EXPECT_EQ(divided({2, {{.weight = 3072, .demand = kHungry}, {.weight = 1024, .demand = 2}}}),
            (Shares{1.5, 0.5}));
}

TEST(KernelDivision, WhatOneDoesNotWantTheOthersShare) {
  EXPECT_EQ(divided({2,
                     {{.weight = 8192, .demand = 0.4},
                      {.weight = 3072, .demand = kHungry},
                      {.weight = 1024, .demand = kHungry}}}),
            (Shares{0.4, 1.2, 0.4}));
}

TEST(KernelDivision, CapsAndThreadsBoundDemand) {
  EXPECT_EQ(divided({4,
                     {{.cap = 0.3, .demand = kHungry},
                      {.demand = kHungry, .threads = 1},
                      {.cap = 3, .demand = 2, .threads = 1.5},
                      {.demand = kHungry}}}),
            (Shares{0.3, 1, 1.35, 1.35}));
}

TEST(KernelDivision, TheExampleOfTheHeader) {
  EXPECT_EQ(divided({2,
                     {{.weight = 3072},
                      {.parent = 0, .demand = 0.5},
                      {.parent = 0, .demand = kHungry},
                      {.weight = 1024, .cap = 0.8, .demand = 2}}}),
            (Shares{1.5, 0.5, 1.0, 0.5}));
}

// All BestEffort pods share the weight of their cgroup, however many there are.
TEST(KernelDivision, AWeightCountsOnlyAmongSiblings) {
  EXPECT_EQ(divided({2,
                     {{.weight = 1024},
                      {.weight = 1024, .demand = kHungry},
                      {.parent = 0, .weight = 2, .demand = kHungry},
                      {.parent = 0, .weight = 2, .demand = kHungry},
                      {.parent = 0, .weight = 4, .demand = kHungry}}}),
            (Shares{1, 1, 0.25, 0.25, 0.5}));
}

TEST(KernelDivision, ACapAboveBindsAll) {
  EXPECT_EQ(divided({2,
                     {{.cap = 0.6},
                      {.parent = 0, .cap = 0.5, .demand = kHungry},
                      {.parent = 0, .demand = 0.1},
                      {.parent = 0, .weight = 512, .demand = kHungry},
                      {.demand = kHungry}}}),
            (Shares{0.6, 0.333333, 0.1, 0.166667, 1.4}));
}

TEST(KernelDivision, OwnTasksAreOneMoreSibling) {
  EXPECT_EQ(divided({2,
                     {{.demand = kHungry},
                      {.parent = 0, .weight = 2048, .demand = kHungry},
                      {.parent = 0, .weight = 1024, .demand = kHungry}}}),
            (Shares{2, 1, 0.5}));  // and 0.5 for the tasks
  // Their part is not visible, except in the sum.
  EXPECT_EQ(divided({2, {{.demand = 0.25}, {.parent = 0, .demand = 0.5}}}), (Shares{0.75, 0.5}));
}

TEST(KernelDivision, AmountsBelowAMicrocoreAreRounded) {
  EXPECT_EQ(divided({2, {{.demand = 0.4e-6}, {.demand = 0.6e-6}}}), (Shares{0, kMicro}));
}

// --- What no kernel would report.

TEST(KernelDivision, AWeightThatIsNotAboveZeroIsTheLeast) {
  for (const double weight : {0.0, -5.0, kNotANumber, -kUncapped}) {
    EXPECT_EQ(
        divided({2, {{.weight = weight, .demand = kHungry}, {.weight = 6, .demand = kHungry}}}),
        (Shares{0.5, 1.5}))
        << weight;
  }
}

TEST(KernelDivision, WeightsOfAnySizeAreAccepted) {
  EXPECT_EQ(divided({2, {{.weight = kUncapped, .demand = kHungry}, {.demand = kHungry}}}),
            (Shares{2, 0}));
  EXPECT_EQ(divided({2, {{.weight = 1e-300, .demand = kHungry}, {.demand = kHungry}}}),
            (Shares{0, 2}));
  EXPECT_EQ(divided({3, {{.weight = 0.25, .demand = 3}, {.weight = 0.5, .demand = 3}}}),
            (Shares{1, 2}));
}

TEST(KernelDivision, AmountsBelowZeroAreZeroAndWhatIsNotANumberIsNotThere) {
  const CgroupNode other{.demand = kHungry};
  EXPECT_EQ(divided({2, {{.demand = -1}, other}}), (Shares{0, 2}));
  EXPECT_EQ(divided({2, {{.demand = kNotANumber}, other}}), (Shares{0, 2}));
  EXPECT_EQ(divided({2, {{.cap = -1, .demand = 1}, other}}), (Shares{0, 2}));
  EXPECT_EQ(divided({2, {{.cap = kNotANumber, .demand = 0.7}, other}}), (Shares{0.7, 1.3}));
  EXPECT_EQ(divided({2, {{.demand = 1, .threads = -1}, other}}), (Shares{0, 2}));
  EXPECT_EQ(divided({2, {{.demand = 0.7, .threads = kNotANumber}, other}}), (Shares{0.7, 1.3}));
  EXPECT_EQ(divided({-1, {other}}), Shares{0});
  EXPECT_EQ(divided({kNotANumber, {other}}), Shares{0});
}

TEST(KernelDivision, AMachineWithoutEndIsAMillionCores) {
  const Shares shares = divided({kUncapped, {{.demand = 7}, {.demand = kHungry}}});
  EXPECT_EQ(shares[0], 7);
  EXPECT_NEAR(shares[1], 0x1p40 * kMicro - 7, kMicro);
  EXPECT_EQ(divided({1e300, {{.demand = 1e250}}}), Shares{0x1p40 / 1e6});
}

TEST(KernelDivision, AParentThatIsNotEarlierIsTheMachine) {
  for (const std::size_t parent : {0u, 1u, 7u, std::numeric_limits<unsigned>::max()}) {
    EXPECT_EQ(divided({2, {{.parent = parent, .demand = kHungry}, {.demand = kHungry}}}),
              (Shares{1, 1}))
        << parent;
  }
}

TEST(KernelDivision, AThousandLevels) {
  Tree tree{.capacity = 2};
  for (std::size_t i = 0; i < 1000; ++i) {
    CgroupNode node;
    if (i > 0) node.parent = i - 1;
    tree.nodes.push_back(node);
  }
  tree.nodes.back().demand = 1.5;
  EXPECT_EQ(divided(tree), Shares(1000, 1.5));
}

TEST(KernelDivision, AllocatesNothingOnceWarm) {
  TreeGenerator generate(1);
  std::vector<Tree> trees;
  for (int i = 0; i < 20; ++i) trees.push_back(generate.ordinary(110, 2));
  KernelDivision division;
  for (const Tree& tree : trees) division.divide(tree.capacity, tree.nodes);
  const std::uint64_t before = test::allocationsSoFar();
  for (const Tree& tree : trees) division.divide(tree.capacity, tree.nodes);
  EXPECT_EQ(test::allocationsSoFar(), before);
}

// --- Against the reference. MBCAS_SOAK=1 tries many more.

void compareMany(std::uint64_t seed, int trees, std::size_t most_nodes) {
  TreeGenerator generate(seed);
  KernelDivision division;
  int contended = 0;
  for (int i = 0; i < trees; ++i) {
    const Tree tree = generate.any(most_nodes);
    const std::span<const double> shares = division.divide(tree.capacity, tree.nodes);
    const Shares expected = reference::divideAsKernel(tree.capacity, tree.nodes);
    for (std::size_t node = 0; node < shares.size(); ++node) {
      ASSERT_NEAR(shares[node], expected[node], roundingOf(tree))
          << "seed " << seed << " tree " << i << " node " << node << "\n"
          << print(tree, expected);
    }
    if (wantsOf(tree).back() > tree.capacity) ++contended;
  }
  EXPECT_GT(contended, trees / 5);
  EXPECT_GT(trees - contended, trees / 10);
}

TEST(KernelDivisionDifferential, SmallTrees) {
  compareMany(1, test::trials(6'000, 600'000), 8);
}
TEST(KernelDivisionDifferential, LargerTrees) {
  compareMany(2, test::trials(1'500, 100'000), 40);
}
TEST(KernelDivisionDifferential, NodesOfACluster) {
  TreeGenerator generate(3);
  for (int i = 0; i < test::trials(20, 500); ++i) {
    const Tree tree = generate.ordinary(110, 2);
    const Shares shares = divided(tree);
    const Shares expected = reference::divideAsKernel(tree.capacity, tree.nodes);
    for (std::size_t node = 0; node < shares.size(); ++node) {
      // Requests are rounded to microcores here, each by up to a half.
      ASSERT_NEAR(shares[node], expected[node], 200 * kMicro) << print(tree, expected);
    }
  }
}

// --- What must hold for every tree.

class KernelDivisionProperties : public testing::Test {
 protected:
  // Calls `check` for many trees, and names the first that fails.
  template <class Check>
  void forEachTree(Check check) {
    const int count = test::trials(2'000, 100'000);
    for (int i = 0; i < count; ++i) {
      const Tree tree = generate_.any(20);
      const Shares shares = divided(tree);
      check(tree, shares);
      if (HasFailure()) FAIL() << fmt::format("tree {}: {}", i, print(tree, shares));
    }
  }
  // A node of this tree.
  std::size_t anyOf(const Tree& tree) { return generate_.below(tree.nodes.size()); }

  TreeGenerator generate_{99};
};

TEST_F(KernelDivisionProperties, NothingIsExceededAndSumsAreRight) {
  forEachTree([&](const Tree& tree, const Shares& shares) {
    const Shares wants = wantsOf(tree);
    Shares below(tree.nodes.size() + 1);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      EXPECT_GE(shares[i], 0);
      EXPECT_LE(shares[i], tree.nodes[i].cap);
      EXPECT_LE(shares[i], wants[i] + 1e-9);
      below[tree.nodes[i].parent.value_or(shares.size())] += shares[i];
    }
    for (std::size_t i = 0; i < shares.size(); ++i) {
      EXPECT_LE(below[i], shares[i] + 1e-9);
      EXPECT_LE(shares[i] - below[i], ownWant(tree.nodes[i]) + 1e-9);
    }
    EXPECT_LE(below.back(), tree.capacity + 1e-9);
  });
}

TEST_F(KernelDivisionProperties, WastesNothing) {
  forEachTree([&](const Tree& tree, const Shares& shares) {
    double sum = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) sum += tree.nodes[i].parent ? 0 : shares[i];
    EXPECT_NEAR(sum, std::min(tree.capacity, wantsOf(tree).back()), 1e-9);
  });
}

TEST_F(KernelDivisionProperties, OnlyTheProportionsOfSiblingsWeightsMatter) {
  forEachTree([&](const Tree& tree, const Shares& shares) {
    const std::optional<std::size_t> parent = tree.nodes[anyOf(tree)].parent;
    if (parent && tree.nodes[*parent].demand > 0) return;  // its tasks keep their weight
    for (const double factor : {0x1p-7, 0x1p20, 0.37}) {
      Tree scaled = tree;
      for (CgroupNode& node : scaled.nodes) {
        if (node.parent == parent) node.weight *= factor;
      }
      const Shares after = divided(scaled);
      for (std::size_t i = 0; i < shares.size(); ++i) {
        EXPECT_NEAR(after[i], shares[i], factor == 0.37 ? roundingOf(tree) : 0) << factor;
      }
    }
  });
}

TEST_F(KernelDivisionProperties, MoreDemandGivesNoOtherConsumerMore) {
  forEachTree([&](const Tree& tree, const Shares& shares) {
    const std::size_t one = anyOf(tree);
    if (isInner(tree, one)) return;
    Tree hungrier = tree;
    hungrier.nodes[one].demand += generate_.below(3) == 0 ? kHungry : generate_.amount(2);
    const Shares after = divided(hungrier);
    EXPECT_GE(after[one], shares[one] - roundingOf(tree));
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (isBelow(tree, one, i)) continue;  // itself, and the cgroups that it is in
      EXPECT_LE(after[i], shares[i] + roundingOf(tree)) << i << " when " << one << " wants more";
    }
  });
}

TEST_F(KernelDivisionProperties, AHigherCapNeverLowersItsOwnShare) {
  forEachTree([&](const Tree& tree, const Shares& shares) {
    const std::size_t one = anyOf(tree);
    Tree freer = tree;
    freer.nodes[one].cap += generate_.below(3) == 0 ? kUncapped : generate_.amount(2);
    EXPECT_GE(divided(freer)[one], shares[one] - roundingOf(tree)) << one;
  });
}

TEST_F(KernelDivisionProperties, AHigherWeightNeverLowersItsOwnShare) {
  forEachTree([&](const Tree& tree, const Shares& shares) {
    const std::size_t one = anyOf(tree);
    Tree heavier = tree;
    heavier.nodes[one].weight *= 1 + generate_.amount(10);
    EXPECT_GE(divided(heavier)[one], shares[one] - roundingOf(tree)) << one;
  });
}

TEST_F(KernelDivisionProperties, MoreCapacityGivesNoNodeLess) {
  forEachTree([&](const Tree& tree, const Shares& shares) {
    Tree larger = tree;
    larger.capacity += generate_.amount(4);
    const Shares after = divided(larger);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      EXPECT_GE(after[i], shares[i] - roundingOf(tree)) << i;
    }
  });
}

// Any order in which parents are earlier than their children.
TEST_F(KernelDivisionProperties, TheOrderOfSiblingsDoesNotMatter) {
  std::mt19937_64 random(99);
  forEachTree([&](const Tree& tree, const Shares& shares) {
    std::vector<std::size_t> depths;
    for (const CgroupNode& node : tree.nodes) {
      depths.push_back(node.parent ? depths[*node.parent] + 1 : 0);
    }
    std::vector<std::size_t> order(tree.nodes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::size_t> place(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
    std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(depths[i], place[i]); });
    Tree shuffled{.capacity = tree.capacity};
    for (std::size_t k = 0; k < order.size(); ++k) {
      place[order[k]] = k;
      shuffled.nodes.push_back(tree.nodes[order[k]]);
      if (auto& parent = shuffled.nodes.back().parent) parent = place[*parent];
    }
    const Shares after = divided(shuffled);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      EXPECT_NEAR(after[place[i]], shares[i], roundingOf(tree)) << i;
    }
  });
}

// What a consumer has if every sibling of it and of the cgroups above it is hungry: its
// entitlement. A consumer that wants less has what it wants, whatever the others do.
TEST_F(KernelDivisionProperties, ASatiatedConsumerKeepsItsDemand) {
  forEachTree([&](const Tree& tree, const Shares& shares) {
    const auto count = tree.nodes.size();
    Shares weights(count + 1);
    for (const CgroupNode& node : tree.nodes) weights[node.parent.value_or(count)] += node.weight;
    for (std::size_t i = 0; i < count; ++i) {
      if (tree.nodes[i].demand > 0) weights[i] += kTaskWeight;
    }
    Shares entitled(count);
    for (std::size_t i = 0; i < count; ++i) {
      const CgroupNode& node = tree.nodes[i];
      const double above = node.parent ? entitled[*node.parent] : tree.capacity;
      entitled[i] = std::min(node.cap, above * node.weight / weights[node.parent.value_or(count)]);
      if (isInner(tree, i)) continue;
      const double want = std::min(node.cap, ownWant(node));
      EXPECT_GE(shares[i], std::min(want, entitled[i]) - roundingOf(tree)) << i;
      if (want < entitled[i] - roundingOf(tree)) {
        EXPECT_NEAR(shares[i], want, 1e-9) << i;
      }
    }
  });
}

}  // namespace
}  // namespace mbcas::market
