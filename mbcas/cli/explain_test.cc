#include "mbcas/cli/explain.h"

#include <gtest/gtest.h>

#include <functional>

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
          "reason":"the kubelet is applying the resize","lastAppliedTime":"2026-02-01T09:00:00Z",
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

// A program with one busy thread, as a JVM that counted its CPUs under a lower limit.
Evidence oneBusyThread() {
  Evidence evidence = fromAgent("web-1");
  PodRecord& pod = evidence.decision->pod;
  pod.basis = "use";
  pod.help = "none";
  pod.contention.reset();
  pod.containers.resize(1);
  ContainerRecord& server = pod.containers[0];
  server.limit = pod.limit = Millicores(1250);
  server.usage = Millicores(998);
  server.use = Millicores(999);
  server.use_peak = server.used_peak = Millicores(1002);
  server.blocked = Millicores(0);
  server.throttled_periods = 0;
  server.burst = Millicores(0);
  server.binding = false;
  server.samples = 30;
  return evidence;
}

TEST(Explain, APodWhoseThreadsBindIt) {
  const Evidence evidence = oneBusyThread();
  const Explanation explanation = explain(evidence);
  EXPECT_EQ(
      explanation.more.at(0),
      "more threads in server: one thread is busy all the time, and its limit of 1250m leaves "
      "room. A higher limit would not help; docs/runtimes.md says what sets the number of "
      "threads");
  EXPECT_NE(explanationText(explanation, false).find("always busy, under a limit for more"),
            std::string::npos);
}

TEST(Explain, WholeCpusThatSomethingElseBinds) {
  const auto threadsBind = [](const std::function<void(Evidence&, ContainerRecord&)>& change) {
    Evidence evidence = oneBusyThread();
    change(evidence, evidence.decision->pod.containers[0]);
    return explanationText(explain(evidence), false).find("always busy") != std::string::npos;
  };
  EXPECT_TRUE(threadsBind([](Evidence&, ContainerRecord&) {}));
  EXPECT_TRUE(threadsBind([](Evidence&, ContainerRecord& c) { c.limit.reset(); }));
  EXPECT_FALSE(threadsBind([](Evidence&, ContainerRecord& c) { c.limit = Millicores(1000); }))
      << "the limit does";
  EXPECT_FALSE(threadsBind([](Evidence&, ContainerRecord& c) { c.blocked = Millicores(200); }))
      << "the limit does, or did until now";
  EXPECT_FALSE(threadsBind([](Evidence&, ContainerRecord& c) { c.use = Millicores(600); }))
      << "it has pauses";
  EXPECT_FALSE(threadsBind([](Evidence&, ContainerRecord& c) { c.used_peak = Millicores(1400); }))
      << "it has used more";
  EXPECT_FALSE(threadsBind([](Evidence&, ContainerRecord& c) { c.samples = 5; })) << "too new";
  EXPECT_FALSE(threadsBind([](Evidence& e, ContainerRecord&) {
    e.decision->market.capacity = Millicores(1000);
  })) << "the machine does";
  EXPECT_FALSE(threadsBind([](Evidence& e, ContainerRecord&) { e.decision->pod.contention = 0.4; }))
      << "neighbours do";
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
          "ceiling":"800m","reason":"floor: the minimum for every pod; ceiling: quota shop"},
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
  EXPECT_EQ(finished.headline, "shop/web-1 on n1 is left alone: the pod has finished");
  EXPECT_EQ(finished.more.size(), 1u);
}

TEST(Explain, APodThatNobodyHasReportedYet) {
  expectText("explain-not-yet.txt", fromCluster({}));
}

// Whatever is missing, there is something to say, and nothing is made up.
TEST(Explain, AnyEvidenceWillDo) {
  EXPECT_EQ(explain({.pod = "x"}).headline, "x: no CPU limit");
  for (const char* basis : {"no data", "warm-up", "start", "declared", "use", "burst", "whole CPUs",
                            "floor", "ceiling", "constrained", "cleared", "of another version"}) {
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
