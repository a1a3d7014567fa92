#include "mbcas/cli/explain.h"

#include <gtest/gtest.h>

#include "mbcas/base/time.h"
#include "mbcas/policy/fixture_test.h"
#include "test/support/golden.h"

namespace mbcas::cli {
namespace {

using policy::object, policy::P;

WallTime now() {
  return *parseRfc3339("2026-02-01T10:05:02Z");
}

// What an agent says about a pod of the recorded state.
Evidence fromAgent(const std::string& pod) {
  const NodeRecord node = *parseState(test::fileText("test/golden/cli/state.json"));
  const std::string name_space = pod == "proxy-1" ? "kube-system" : "shop";
  return {.name_space = name_space,
          .pod = pod,
          .node = "node-1",
          .decision = Decision{node.node, node.time, node.market, *node.find(name_space, pod)},
          .source = "agent mbcas-agent-x7k2p",
          .now = now()};
}

AllocationPtr allocation(const std::string& status) {
  return object<podallocation::PodAllocation>(
      R"({"metadata":{"namespace":"shop","name":"u1"},"spec":{"namespace":"shop","podName":"web-1",
          "nodeName":"node-1","desiredCPULimit":"900m","wantedCPULimit":"950m",
          "reason":"uses 310m in bursts that are throttled below 880m"},"status":)" +
      status + "}");
}

// The pod as a cluster without anything special judges it.
Evidence fromCluster(const P& pod) {
  Snapshot snapshot;
  snapshot.pods = {pod.make()};
  snapshot.nodes["n1"] = policy::aNode();
  snapshot.namespaces["shop"] = policy::shop();
  return {.name_space = "shop",
          .pod = pod.name,
          .node = "n1",
          .object = snapshot.pods[0],
          .verdict = judge(snapshot, *snapshot.pods[0]),
          .now = now()};
}

void expectText(const std::string& golden, const Evidence& evidence, std::size_t width = 0) {
  test::expectGolden("test/golden/cli/" + golden, explanationText(explain(evidence), false, width));
}

TEST(Explain, FromTheCountersToTheLimit) {
  Evidence evidence = fromAgent("web-1");
  evidence.allocation = allocation(
      R"({"phase":"Pending","observedDesired":"900m","appliedCPULimit":"500m",
          "reason":"the kubelet is at it","lastAppliedTime":"2026-02-01T09:00:00Z",
          "bounds":{"managed":true,"floor":"200m","ceiling":"1500m","start":"800m","weight":1.25,
          "reason":"floor: its request; ceiling: LimitRange default"}})");
  Decision before = *evidence.decision;
  before.time = *parseRfc3339("2026-02-01T09:59:00Z");
  before.pod.desired = Millicores(500);
  before.pod.reason = "declared 500m, which covers its use of 200m";
  evidence.before = {before};
  expectText("explain-free.txt", evidence);
  expectText("explain-free-80.txt", evidence, 80);
  test::expectGolden("test/golden/cli/explain-free.json",
                     explanationJson(evidence, explain(evidence)) + "\n");
}

TEST(Explain, ABoundPod) {
  expectText("explain-bound.txt", fromAgent("batch-1"));
}

TEST(Explain, APodOnTrial) {
  Evidence evidence = fromAgent("web-1");
  evidence.decision->pod.help = "probe";
  evidence.decision->pod.claim = evidence.decision->market.capacity;
  const std::string text = explanationText(explain(evidence), false);
  EXPECT_NE(text.find(", helped on trial: less important pods are bound for it"),
            std::string::npos);
  EXPECT_NE(text.find("on trial it claims all that it can get"), std::string::npos) << text;
}

TEST(Explain, APodThatIsRaisedNoFurther) {
  Evidence evidence = fromAgent("web-1");
  evidence.decision->pod.basis = "award";
  evidence.decision->pod.help = "none";
  const Explanation explanation = explain(evidence);
  EXPECT_EQ(explanation.headline, "shop/web-1 on node-1: limit 500m, declared 500m");
  EXPECT_TRUE(explanation.more.at(0).starts_with("a larger award: ")) << explanation.more.at(0);
}

// As the profile classic decides.
TEST(Explain, APodWhoseLimitWasCleared) {
  Evidence evidence = fromAgent("batch-1");
  MarketRecord& market = evidence.decision->market;
  market.capacity = Millicores(3400);
  market.whole_machine = false;
  market.unmanaged_use = Millicores(200);
  PodRecord& pod = evidence.decision->pod;
  pod.basis = "cleared";
  pod.reason = "limits share 3400m: weight 250 gets it 1180m at price 0.25";
  pod.help.clear();
  pod.by_kernel.reset();
  pod.bound_for.clear();
  expectText("explain-cleared.txt", evidence);
}

TEST(Explain, ANewPod) {
  expectText("explain-new.txt", fromAgent("cache-1"));
}

TEST(Explain, ThePodOfAMachine) {
  Evidence evidence = fromAgent("web-1");
  evidence.name_space.clear();
  evidence.source = "state of node-1";
  evidence.decision->pod.bounds.reset();
  evidence.decision->pod.basis = "ceiling";
  expectText("explain-host.txt", evidence);
}

TEST(Explain, OnlyTheAllocation) {
  Evidence evidence = fromCluster({});
  evidence.allocation = allocation(
      R"({"phase":"Failed","observedDesired":"800m","appliedCPULimit":"500m",
          "reason":"Infeasible: the node has too little","bounds":{"managed":true,"floor":"100m",
          "ceiling":"800m","reason":"floor: the least that any pod has; ceiling: quota shop"},
          "conditions":[{"type":"Clamped","status":"True","reason":"Ceiling",
          "message":"900m was desired, the ceiling is 800m"}]})");
  evidence.verdict->managed = true;
  evidence.verdict->expected = false;
  expectText("explain-allocation.txt", evidence);
}

TEST(Explain, APodThatIsLeftAlone) {
  expectText(
      "explain-guaranteed.txt",
      fromCluster({.containers = {{"main", "500m", "500m", "64Mi", "64Mi"}}, .qos = "Guaranteed"}));
  expectText("explain-excluded.txt", fromAgent("proxy-1"));
  const Explanation finished = explain(fromCluster({.phase = "Succeeded"}));
  EXPECT_EQ(finished.headline, "shop/web-1 on n1 is left alone: it has finished");
  EXPECT_EQ(finished.more.size(), 1u);
}

TEST(Explain, APodThatNobodyHasReportedYet) {
  expectText("explain-not-yet.txt", fromCluster({}));
}

// Whatever is missing, there is something to say, and nothing is made up.
TEST(Explain, AnyEvidenceWillDo) {
  EXPECT_EQ(explain({.pod = "x"}).headline, "x: no CPU limit");
  for (const char* basis : {"no data", "warm-up", "start", "declared", "use", "burst", "floor",
                            "ceiling", "constrained", "cleared", "of another version"}) {
    Evidence evidence = fromAgent("batch-1");
    evidence.decision->pod.basis = basis;
    evidence.decision->pod.bounds.reset();
    EXPECT_FALSE(explain(evidence).more.empty()) << basis;
    evidence.decision->pod.constrained = false;
    EXPECT_FALSE(explain(evidence).more.empty()) << basis;
  }
}

}  // namespace
}  // namespace mbcas::cli
