#include "mbcas/cli/sim_record.h"

#include <gtest/gtest.h>

#include "mbcas/sim/simulation.h"

namespace mbcas::cli {
namespace {

using namespace literals;

constexpr const char* kScenario = R"(name: three
cpus: 2
duration: 90s
pods:
  - name: gold
    request: 200m
    limit: 1500m
    priority: 7000
    workload: {kind: spin, threads: 2}
  - name: batch
    request: 200m
    limit: 1500m
    workload: {kind: spin, threads: 2}
  - name: hog
    managed: false
    workload: {kind: spin, threads: 2}
)";

NodeRecord lastOf(std::string_view policy_name) {
  const Result<sim::Scenario> scenario = sim::parseScenario(kScenario);
  EXPECT_TRUE(scenario) << scenario.error().message();
  RecordingPolicy policy(*sim::makePolicy(policy_name, scenario->cpus));
  sim::Simulation simulation(*scenario, policy);
  while (simulation.step()) {
  }
  return policy.record();
}

TEST(SimRecord, HasWhatAnAgentWouldSay) {
  const NodeRecord node = lastOf("responsive");
  EXPECT_EQ(node.capacity, 2000_m);
  EXPECT_TRUE(node.market.scarce);
  EXPECT_GT(node.market.price.value_or(0), 0);
  ASSERT_EQ(node.pods.size(), 2u);
  const PodRecord* const gold = node.find("", "gold");
  ASSERT_NE(gold, nullptr);
  EXPECT_EQ(gold->declared, 1500_m);
  EXPECT_EQ(gold->priority, 7000);
  EXPECT_GT(gold->usage, 500_m);
  EXPECT_NE(gold->help, "none");
  ASSERT_EQ(gold->containers.size(), 1u);
  EXPECT_GT(gold->containers[0].samples, 5);
  EXPECT_EQ(gold->containers[0].request, 200_m);
  const PodRecord* const batch = node.find("", "batch");
  ASSERT_NE(batch, nullptr);
  EXPECT_TRUE(batch->constrained);
  ASSERT_TRUE(batch->kernel_weight);
  EXPECT_EQ(batch->kernel_weight, gold->kernel_weight);  // they have the same request
  EXPECT_EQ(batch->bound_for, std::vector<std::string>{"gold"});
  EXPECT_LT(*batch->award, *gold->award);
  ASSERT_TRUE(batch->bounds);
  EXPECT_EQ(batch->bounds->reason,
            "floor: the minimum for every pod, or its request; ceiling: the machine, or what it "
            "declares");
  ASSERT_EQ(node.others.size(), 1u);
  EXPECT_NE(node.others[0].name.find("hog"), std::string::npos);
  EXPECT_GT(node.others[0].usage, 0_m);
  EXPECT_EQ(parseState(stateJson(node)), node);
}

// A policy without a market: what is seen, and no decision.
TEST(SimRecord, OfAnotherPolicyHasNoDecision) {
  const NodeRecord node = lastOf("static");
  ASSERT_EQ(node.pods.size(), 2u);
  EXPECT_EQ(node.pods[0].limit, 1500_m);
  EXPECT_GT(node.pods[0].usage, 0_m);
  EXPECT_FALSE(node.pods[0].award);
  EXPECT_FALSE(node.pods[0].desired);
  EXPECT_GT(node.market.unmanaged_use, 0_m);
}

}  // namespace
}  // namespace mbcas::cli
