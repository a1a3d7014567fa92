#include "mbcas/market/hierarchy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mbcas::market {
namespace {

constexpr Millicores kThousand{1000};

std::vector<std::int64_t> cpus(const ClusterClearing& clearing) {
  std::vector<std::int64_t> result;
  for (const auto& pod : clearing.pods) result.push_back(pod.cpu.count());
  return result;
}

TEST(Hierarchy, OnePassWhenNoQuotaBinds) {
  const Cluster cluster{.nodes = {kThousand, kThousand},
                        .quotas = {Millicores(2000)},
                        .pods = {{{.id = "a"}, 0, 0}, {{.id = "b"}, 0, {}}, {{.id = "c"}, 1, 0}}};
  const ClusterClearing clearing = clear(cluster).value();
  EXPECT_EQ(cpus(clearing), (std::vector<std::int64_t>{500, 500, 1000}));
  EXPECT_EQ(clearing.passes, 1u);
  EXPECT_TRUE(clearing.settled);
  EXPECT_EQ(clearing.pods[0].limit, Limit::kNode);
  EXPECT_EQ(clearing.quotas[0].mode, Mode::kUncongested);
}

TEST(Hierarchy, ASecondPassHandsOutWhatAQuotaTook) {
  const Cluster cluster{.nodes = {kThousand, kThousand},
                        .quotas = {Millicores(600)},
                        .pods = {{{.id = "a"}, 0, 0}, {{.id = "b"}, 0, {}}, {{.id = "c"}, 1, 0}}};
  const ClusterClearing once = clear(cluster, 1).value();
  EXPECT_EQ(cpus(once), (std::vector<std::int64_t>{300, 500, 300}));
  EXPECT_FALSE(once.settled);
  const ClusterClearing clearing = clear(cluster).value();
  EXPECT_EQ(cpus(clearing), (std::vector<std::int64_t>{300, 700, 300}));
  EXPECT_EQ(clearing.passes, 2u);
  EXPECT_EQ(clearing.pods[0].limit, Limit::kQuota);
  EXPECT_EQ(clearing.pods[1].limit, Limit::kNode);
  EXPECT_EQ(clearing.quotas[0].mode, Mode::kCongested);
}

// Each quota has a pod on node k and one on node k + 1, twice as large. The first quota takes 100m
// from its second pod; its neighbour there takes them, so that the next quota takes 100m from its
// second pod, and so on.
TEST(Hierarchy, MayNeedAsManyPassesAsQuotasAndOneMore) {
  for (std::size_t quotas = 1; quotas <= 6; ++quotas) {
    Cluster cluster{.nodes = {Millicores(500)}};
    for (std::size_t k = 0; k < quotas; ++k) {
      const Millicores share = Millicores(500) * (std::int64_t{1} << k);
      cluster.nodes.push_back(share * 4);
      cluster.quotas.push_back(share * 3 - Millicores(k == 0 ? 100 : 0));
      cluster.pods.push_back({{.id = "left-" + std::to_string(k)}, k, k});
      cluster.pods.push_back({{.id = "right-" + std::to_string(k)}, k + 1, k});
    }
    cluster.pods.push_back({{.id = "last"}, quotas, {}});
    const ClusterClearing clearing = clear(cluster).value();
    EXPECT_EQ(clearing.passes, quotas + 1);
    EXPECT_EQ(clearing.pods.back().cpu,
              Millicores(1000) * (std::int64_t{1} << (quotas - 1)) + Millicores(100));
  }
}

TEST(Hierarchy, OverloadedQuotaGoesBelowTheMin) {
  const Cluster cluster{.nodes = {kThousand, kThousand},
                        .quotas = {Millicores(500)},
                        .pods = {{{.id = "a", .min = Millicores(400)}, 0, 0},
                                 {{.id = "b", .min = Millicores(400)}, 1, 0}}};
  const ClusterClearing clearing = clear(cluster).value();
  EXPECT_EQ(cpus(clearing), (std::vector<std::int64_t>{250, 250}));
  EXPECT_EQ(clearing.quotas[0].mode, Mode::kOverloaded);
}

// Three mins of 600m on a node of 1000m give 333m each. One of them may have 300m of its quota, and
// has them: the rest, not all three, shares what there is.
TEST(Hierarchy, OverloadedNodeWithAQuota) {
  const Millicores min(600);
  const Cluster cluster{.nodes = {kThousand},
                        .quotas = {Millicores(300)},
                        .pods = {{{.id = "a", .min = min}, 0, 0},
                                 {{.id = "b", .min = min}, 0, {}},
                                 {{.id = "c", .min = min}, 0, {}}}};
  const ClusterClearing clearing = clear(cluster).value();
  EXPECT_EQ(cpus(clearing), (std::vector<std::int64_t>{300, 350, 350}));
  EXPECT_EQ(clearing.nodes[0].mode, Mode::kOverloaded);
}

TEST(Hierarchy, RefusesPlacesThatDoNotExist) {
  Cluster cluster{.nodes = {kThousand}, .pods = {{{.id = "a"}, 1, {}}}};
  EXPECT_EQ(clear(cluster).error().message(), "pods[0].node: there is no node 1");
  cluster.pods[0] = {{.id = "a"}, 0, 0};
  EXPECT_EQ(clear(cluster).error().message(), "pods[0].quota: there is no quota 0");
  cluster.pods = {{{.id = "a"}, 0, {}}, {{.id = "a"}, 0, {}}};
  EXPECT_EQ(clear(cluster).error().message(), "pods[1].id: \"a\" is repeated");
  cluster.pods.pop_back();
  cluster.nodes[0] = Millicores(-1);
  EXPECT_EQ(clear(cluster).error().message(), "node 0: capacity: -1 is negative");
}

Cluster anyCluster() {
  Cluster cluster;
  cluster.objective = *rc::gen::element(Objective::kBargaining, Objective::kWelfare);
  const auto nodes = *rc::gen::inRange<std::size_t>(1, 5);
  const auto quotas = *rc::gen::inRange<std::size_t>(0, 5);
  const auto amount = [](std::int64_t most) {
    return Millicores(*rc::gen::inRange<std::int64_t>(0, most + 1));
  };
  for (std::size_t i = 0; i < nodes; ++i) cluster.nodes.push_back(amount(4000));
  for (std::size_t i = 0; i < quotas; ++i) cluster.quotas.push_back(amount(4000));
  const auto pods = *rc::gen::inRange<std::size_t>(0, 30);
  for (std::size_t i = 0; i < pods; ++i) {
    PlacedPod placed;
    placed.pod.id = std::to_string(i);
    placed.pod.bid = *rc::gen::inRange(0, 10);
    placed.pod.min = amount(200);
    placed.pod.max = placed.pod.min + amount(2000);
    placed.pod.guarantee = Millicores(placed.pod.min.count() / 2);
    placed.node = *rc::gen::inRange<std::size_t>(0, nodes);
    if (quotas > 0 && *rc::gen::inRange(0, 4) > 0) {
      placed.quota = *rc::gen::inRange<std::size_t>(0, quotas);
    }
    cluster.pods.push_back(std::move(placed));
  }
  return cluster;
}

struct Sums {
  std::vector<Millicores> nodes;
  std::vector<Millicores> quotas;
};
Sums sumsOf(const Cluster& cluster, const ClusterClearing& clearing) {
  Sums sums{std::vector<Millicores>(cluster.nodes.size()),
            std::vector<Millicores>(cluster.quotas.size())};
  for (std::size_t i = 0; i < cluster.pods.size(); ++i) {
    sums.nodes[cluster.pods[i].node] += clearing.pods[i].cpu;
    if (cluster.pods[i].quota) sums.quotas[*cluster.pods[i].quota] += clearing.pods[i].cpu;
  }
  return sums;
}

RC_GTEST_PROP(Hierarchy, NeverExceedsANodeOrAQuotaAfterAnyPass, ()) {
  const Cluster cluster = anyCluster();
  const ClusterClearing whole = clear(cluster).value();
  RC_ASSERT(whole.settled);
  RC_ASSERT(whole.passes <= cluster.quotas.size() + 1);
  for (std::size_t passes = 1; passes <= whole.passes; ++passes) {
    const ClusterClearing clearing = clear(cluster, passes).value();
    const Sums sums = sumsOf(cluster, clearing);
    for (std::size_t i = 0; i < sums.nodes.size(); ++i)
      RC_ASSERT(sums.nodes[i] <= cluster.nodes[i]);
    for (std::size_t i = 0; i < sums.quotas.size(); ++i) {
      RC_ASSERT(sums.quotas[i] <= cluster.quotas[i]);
    }
  }
}

RC_GTEST_PROP(Hierarchy, LeavesNothingThatAPodCouldUse, ()) {
  const Cluster cluster = anyCluster();
  const ClusterClearing clearing = clear(cluster).value();
  const Sums sums = sumsOf(cluster, clearing);
  const Millicores rounding(static_cast<std::int64_t>(cluster.pods.size()));
  for (std::size_t i = 0; i < cluster.pods.size(); ++i) {
    const PlacedPod& placed = cluster.pods[i];
    const bool has_max = clearing.pods[i].cpu == placed.pod.max;
    const bool node_full = sums.nodes[placed.node] + rounding >= cluster.nodes[placed.node];
    const bool quota_full =
        placed.quota && sums.quotas[*placed.quota] + rounding >= cluster.quotas[*placed.quota];
    RC_ASSERT(has_max || node_full || quota_full);
    RC_ASSERT((clearing.pods[i].limit == Limit::kItsMax) == has_max);
    if (clearing.pods[i].limit == Limit::kQuota) RC_ASSERT(quota_full);
    if (clearing.pods[i].limit == Limit::kNode) RC_ASSERT(node_full);
  }
}

RC_GTEST_PROP(Hierarchy, WithoutQuotasEveryNodeIsItsOwnMarket, ()) {
  Cluster cluster = anyCluster();
  for (PlacedPod& placed : cluster.pods) placed.quota.reset();
  const ClusterClearing clearing = clear(cluster).value();
  for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
    Problem problem{.capacity = cluster.nodes[node], .objective = cluster.objective};
    std::vector<Millicores> here;
    for (std::size_t i = 0; i < cluster.pods.size(); ++i) {
      if (cluster.pods[i].node != node) continue;
      problem.pods.push_back(cluster.pods[i].pod);
      here.push_back(clearing.pods[i].cpu);
    }
    const Clearing alone = clear(problem).value();
    for (std::size_t i = 0; i < here.size(); ++i) RC_ASSERT(alone.pods[i].cpu == here[i]);
  }
}

}  // namespace
}  // namespace mbcas::market
