#include "mbcas/policy/bounds.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mbcas/policy/fixture_test.h"
#include "mbcas/policy/workload.h"

namespace mbcas::policy {
namespace {

using namespace literals;

PodPolicy judge(const P& pod, const NamespaceObjects& objects = shop(),
                const Settings& settings = {}) {
  return judgePod(*pod.make(), nullptr, objects, aNode().get(), settings);
}

std::shared_ptr<const kube::LimitRange> range(const std::string& item) {
  return object<kube::LimitRange>(fmt::format(
      R"({{"metadata":{{"name":"lr","namespace":"shop"}},"spec":{{"limits":[{}]}}}})", item));
}

constexpr const char* kOwnedByDeployment =
    R"("labels":{"app":"web","pod-template-hash":"abc12"},"ownerReferences":[{"kind":"ReplicaSet",
       "name":"web-abc12","uid":"r","controller":true}],)";

// In which limits are trimmed to what pods need, so that floors count.
Settings classic() {
  Settings settings;
  settings.law = control::settingsOf(control::Profile::kClassic);
  return settings;
}

TEST(Bounds, OfAPlainBurstablePod) {
  const PodPolicy policy = judge({});
  EXPECT_TRUE(policy.managed);
  EXPECT_EQ(policy.floor, 100_m);
  EXPECT_EQ(policy.ceiling, 4000_m) << "all of the node's 4 cores";
  EXPECT_EQ(judge({}, shop(), classic()).ceiling, 3600_m) << "less the reserve of a tenth";
  EXPECT_EQ(policy.declared(), 500_m);
  EXPECT_EQ(policy.limit(), 500_m);
  EXPECT_EQ(policy.mode, Mode::kFull);
  EXPECT_FALSE(policy.disruption_blocked);
  EXPECT_EQ(policy.reason, "floor: the minimum for every pod; ceiling: node n1");
}

TEST(Bounds, FloorIsTheRequest) {
  EXPECT_EQ(judge({.containers = {{.request = "250m"}}}).floor, 250_m);
  EXPECT_EQ(judge({.containers = {{.request = "251m"}}}).floor, 260_m);
  EXPECT_EQ(judge({.containers = {{.request = "10m"}}}).floor, 100_m);
}

TEST(Bounds, ABurstablePodMustNotBecomeGuaranteed) {
  const P pod{.containers = {{.request = "300m", .memory_request = "128Mi"}}};
  EXPECT_EQ(judge(pod).floor, 310_m);
  // Memory keeps it Burstable: the request will do.
  EXPECT_EQ(judge({.containers = {{.request = "300m"}}}).floor, 300_m);
  // So does another container without a memory limit.
  EXPECT_EQ(judge({.containers = {{.request = "300m", .memory_request = "128Mi"},
                                  {.name = "side", .limit = "", .memory_limit = ""}}})
                .floor,
            300_m);
}

// A pod with this limit in its spec and this text in its annotation.
P annotated(const std::string& limit, const std::string& request_there,
            const std::string& limit_there, int generation) {
  return {.containers = {{.limit = limit}},
          .meta = fmt::format(
              R"("annotations":{{"mbcas.io/original-resources":
                 "{{\"main\":{{\"request\":\"{}\",\"limit\":\"{}\"}}}}"}},)",
              request_there, limit_there),
          .generation = generation};
}

std::shared_ptr<const podallocation::PodAllocation> recorded(const std::string& original) {
  return object<podallocation::PodAllocation>(fmt::format(
      R"({{"metadata":{{"name":"u1","namespace":"shop"}},"spec":{{}},
          "status":{{"original":[{}]}}}})",
      original));
}

TEST(Bounds, DeclaredComesFromTheStatusOfTheAllocation) {
  const auto allocation = recorded(R"({"name":"main","request":"100m","limit":"800m"})");
  // A tenant may have forged or removed the annotation: the status counts.
  for (const P& pod : {annotated("300m", "64", "64", 2), P{.containers = {{.limit = "300m"}}}}) {
    const PodPolicy policy = judgePod(*pod.make(), allocation.get(), shop(), aNode().get(), {});
    EXPECT_EQ(policy.declared(), 800_m);
    EXPECT_EQ(policy.limit(), 300_m);
    EXPECT_EQ(policy.request(), 100_m);
    EXPECT_EQ(policy.ceiling, 4000_m);
    EXPECT_EQ(policy.original, (std::vector<podallocation::OriginalCpu>{{"main", 100_m, 800_m}}));
  }
}

TEST(Bounds, TheAnnotationIsTheWayBackWhenTheStatusIsLost) {
  const PodPolicy policy = judge(annotated("300m", "100m", "800m", 2));
  EXPECT_EQ(policy.declared(), 800_m);
  EXPECT_EQ(policy.original, (std::vector<podallocation::OriginalCpu>{{"main", 100_m, 800_m}}));
  const PodPolicy broken = judge(
      {.meta = R"("annotations":{"mbcas.io/original-resources":"rubbish"},)", .generation = 2});
  EXPECT_FALSE(broken.managed);
  EXPECT_FALSE(broken.let_go) << "what to restore is unknown";
}

TEST(Bounds, AnAnnotationIsNoAuthority) {
  // Neither a request nor a limit beyond the node.
  const PodPolicy forged = judge(annotated("300m", "64", "64", 2));
  EXPECT_EQ(forged.declared(), 4000_m) << "the node's allocatable CPU";
  EXPECT_EQ(forged.request(), 100_m) << "the spec's";
  EXPECT_EQ(forged.ceiling, judge({.containers = {{.limit = "4"}}}).ceiling)
      << "no more than for a pod that declares the whole node";
  // A LimitRange bounds it as it would have bounded the pod.
  NamespaceObjects objects = shop();
  objects.ranges = {range(R"({"type":"Container","max":{"cpu":"600m"}})")};
  EXPECT_EQ(judge(annotated("300m", "64", "64", 2), objects).declared(), 600_m);
  // A pod whose spec never changed has nothing to be given back.
  EXPECT_TRUE(judge(annotated("300m", "64", "64", 1)).original.empty());
  EXPECT_EQ(judge(annotated("300m", "64", "64", 1)).declared(), 300_m);
  // Guaranteed: request and limit alike.
  P guaranteed = annotated("300m", "64", "64", 2);
  guaranteed.qos = "Guaranteed";
  guaranteed.containers[0].request = "300m";
  guaranteed.meta.insert(guaranteed.meta.find("{") + 1, R"("mbcas.io/manage-guaranteed":"true",)");
  EXPECT_EQ(judge(guaranteed).request(), 4000_m);
}

TEST(Bounds, AFloorThatATenantSetsEndsAtTheDeclaredLimit) {
  const P greedy{.meta = R"("annotations":{"mbcas.io/min-cpu":"64"},)"};
  EXPECT_EQ(judge(greedy, shop(), classic()).floor, 500_m);
  EXPECT_EQ(judge(greedy).floor, 100_m) << "and protects no pod that is bound for another";
  NamespaceObjects objects = shop();
  objects.hpas = {object<kube::HorizontalPodAutoscaler>(
      R"({"metadata":{"name":"h","namespace":"shop"},"spec":{"scaleTargetRef":{"kind":"Deployment",
          "name":"web"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{
          "type":"AverageValue","averageValue":"64"}}}]}})")};
  EXPECT_EQ(judge({.meta = kOwnedByDeployment}, objects, classic()).floor, 500_m);
  EXPECT_EQ(judge({.meta = kOwnedByDeployment}, objects).floor, 100_m);
}

TEST(LeftAlone, AGuaranteedPodThatAnHpaScalesOnUtilization) {
  P pod{.containers = {{.request = "500m", .memory_request = "128Mi"}}, .qos = "Guaranteed"};
  pod.meta =
      std::string(kOwnedByDeployment) + R"("annotations":{"mbcas.io/manage-guaranteed":"true"},)";
  const auto scaled = [&](const std::string& target) {
    NamespaceObjects objects = shop();
    objects.hpas = {object<kube::HorizontalPodAutoscaler>(fmt::format(
        R"({{"metadata":{{"name":"h","namespace":"shop"}},"spec":{{"scaleTargetRef":{{
            "kind":"Deployment","name":"web"}},"metrics":[{{"type":"Resource","resource":{{
            "name":"cpu","target":{{{}}}}}}}]}}}})",
        target))};
    return judge(pod, objects);
  };
  EXPECT_TRUE(judge(pod).managed);
  const PodPolicy by_share = scaled(R"("type":"Utilization","averageUtilization":50)");
  EXPECT_FALSE(by_share.managed);
  EXPECT_TRUE(by_share.let_go);
  EXPECT_TRUE(by_share.reason.contains("HorizontalPodAutoscaler h")) << by_share.reason;
  EXPECT_TRUE(scaled(R"("type":"AverageValue","averageValue":"200m")").managed);
}

TEST(LeftAlone, WhatNoAllocationCanSay) {
  EXPECT_FALSE(judge({.containers = {{.limit = "10001"}}}).managed);
  EXPECT_FALSE(judge({.containers = {{.request = "1e6", .limit = "1e6"}}}).managed);
  EXPECT_TRUE(judge({.containers = {{.limit = "10000"}}}).managed);
  EXPECT_FALSE(judge({.containers = std::vector<C>(101)}).managed);
}

TEST(Bounds, APodThatDeclaresMoreThanItsNodeKeepsIt) {
  EXPECT_EQ(judge({.containers = {{.limit = "8"}}}).ceiling, 8000_m);
}

TEST(Bounds, ContainerRange) {
  NamespaceObjects objects = shop();
  objects.ranges = {range(R"({"type":"Container","min":{"cpu":"150m"},"max":{"cpu":"2"}})")};
  const PodPolicy policy = judge({}, objects);
  EXPECT_EQ(policy.floor, 150_m);
  EXPECT_EQ(policy.ceiling, 2000_m);
  EXPECT_NE(policy.reason.find("ceiling: LimitRange lr"), std::string::npos) << policy.reason;
  // Two containers: the maximum is of each.
  const P two{.containers = {{}, {.name = "side"}}};
  EXPECT_EQ(judge(two, objects).ceiling, 4000_m);
  EXPECT_EQ(judge(two, objects).floor, 300_m);
}

TEST(Bounds, ContainerRatio) {
  NamespaceObjects objects = shop();
  objects.ranges = {range(R"({"type":"Container","maxLimitRequestRatio":{"cpu":"6"}})")};
  EXPECT_EQ(judge({}, objects).ceiling, 600_m);
}

TEST(Bounds, PodRange) {
  NamespaceObjects objects = shop();
  objects.ranges = {range(
      R"({"type":"Pod","min":{"cpu":"400m"},"max":{"cpu":"1"},"maxLimitRequestRatio":{"cpu":"4"}})")};
  // The unmanaged container's 200m are not ours to give; the ratio is of the whole pod.
  const P pod{
      .containers = {
          {}, {.name = "fixed", .limit = "200m", .more = R"("resizePolicy":[{"resourceName":"cpu",
                                         "restartPolicy":"RestartContainer"}],)"}}};
  const PodPolicy policy = judge(pod, objects);
  EXPECT_EQ(policy.containers.size(), 1u);
  EXPECT_EQ(policy.floor, 200_m);
  EXPECT_EQ(policy.ceiling, 600_m);
}

TEST(Bounds, NoRoomUnderTheRange) {
  NamespaceObjects objects = shop();
  objects.ranges = {range(R"({"type":"Container","max":{"cpu":"155m"}})")};
  const PodPolicy policy = judge({.containers = {{.request = "155m", .limit = "155m"}}}, objects);
  EXPECT_FALSE(policy.managed);
  EXPECT_NE(policy.reason.find("no room"), std::string::npos) << policy.reason;
}

TEST(Bounds, Annotations) {
  const PodPolicy policy =
      judge({.meta = R"("annotations":{"mbcas.io/min-cpu":"300m","mbcas.io/max-cpu":"1.5"},)"},
            shop(), classic());
  EXPECT_EQ(policy.floor, 300_m);
  EXPECT_EQ(policy.ceiling, 1500_m);
  // Nonsense says nothing; a ceiling below the floor wins, but not over the request.
  EXPECT_EQ(judge({.meta = R"("annotations":{"mbcas.io/min-cpu":"lots"},)"}).floor, 100_m);
  const PodPolicy crossed =
      judge({.containers = {{.request = "200m"}},
             .meta = R"("annotations":{"mbcas.io/min-cpu":"900m","mbcas.io/max-cpu":"50m"},)"});
  EXPECT_EQ(crossed.floor, 200_m);
  EXPECT_EQ(crossed.ceiling, 200_m);
}

TEST(Bounds, HpaKeepsItsSignal) {
  NamespaceObjects objects = shop();
  objects.hpas = {object<kube::HorizontalPodAutoscaler>(
      R"({"metadata":{"name":"web","namespace":"shop"},"spec":{"scaleTargetRef":{"kind":"Deployment",
      "name":"web"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{
      "type":"Utilization","averageUtilization":80}}}]}})")};
  const PodPolicy policy =
      judge({.containers = {{.request = "400m"}}, .meta = kOwnedByDeployment}, objects);
  EXPECT_EQ(policy.floor, 400_m) << "400m x 0.8 x 1.25";
  EXPECT_TRUE(policy.scaled_by_hpa);
  const PodPolicy tight =
      judge({.containers = {{.request = "300m"}}, .meta = kOwnedByDeployment}, objects);
  EXPECT_EQ(tight.floor, 300_m);
  EXPECT_FALSE(judge({}, objects).scaled_by_hpa) << "not its pod";

  objects.hpas = {object<kube::HorizontalPodAutoscaler>(
      R"({"metadata":{"name":"web","namespace":"shop"},"spec":{"scaleTargetRef":{"kind":"Deployment",
      "name":"web"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{
      "type":"AverageValue","averageValue":"800m"}}}]}})")};
  const P pod{.containers = {{.limit = "2"}}, .meta = kOwnedByDeployment};
  EXPECT_EQ(judge(pod, objects, classic()).floor, 1000_m);
}

TEST(Bounds, DisruptionBudget) {
  NamespaceObjects objects = shop();
  const auto budget = [](int healthy) {
    return object<kube::PodDisruptionBudget>(fmt::format(
        R"({{"metadata":{{"name":"b","namespace":"shop"}},"spec":{{"selector":{{"matchLabels":
        {{"app":"web"}}}}}},"status":{{"currentHealthy":{},"desiredHealthy":2}}}})",
        healthy));
  };
  objects.budgets = {budget(1)};
  EXPECT_TRUE(judge({.meta = kOwnedByDeployment}, objects).disruption_blocked);
  EXPECT_FALSE(judge({}, objects).disruption_blocked) << "another pod";
  objects.budgets = {budget(2)};
  EXPECT_FALSE(judge({.meta = kOwnedByDeployment}, objects).disruption_blocked);
}

TEST(Bounds, GuaranteedWithItsAnnotation) {
  P pod{.containers = {{.request = "500m", .memory_request = "128Mi"}}, .qos = "Guaranteed"};
  EXPECT_FALSE(judge(pod).managed);
  pod.meta = R"("annotations":{"mbcas.io/manage-guaranteed":"true"},)";
  const PodPolicy policy = judge(pod);
  EXPECT_TRUE(policy.managed);
  EXPECT_TRUE(policy.requests_follow);
  EXPECT_EQ(policy.floor, 100_m);
}

TEST(Bounds, RaiseOnlyKeepsWhatWasDeclared) {
  EXPECT_EQ(judge({}, shop(R"("labels":{"mbcas.io/mode":"raise-only"},)")).floor, 500_m);
}

// Each with a reason that names it.
struct AloneCase {
  const char* name;
  P pod;
  NamespaceObjects objects = shop();
  const char* says;
  bool let_go = true;
};
TEST(LeftAlone, EachReason) {
  const std::string vpa =
      R"({"metadata":{"name":"v","namespace":"shop"},"spec":{"targetRef":{"kind":"Deployment",
      "name":"web"},"updatePolicy":{"updateMode":"Auto"}}})";
  NamespaceObjects with_vpa = shop();
  with_vpa.vpas = {object<kube::VerticalPodAutoscaler>(vpa)};
  NamespaceObjects terminating = shop();
  terminating.name_space =
      object<kube::Namespace>(R"({"metadata":{"name":"shop"},"status":{"phase":"Terminating"}})");
  P best_effort{
      .containers = {{.request = "", .limit = "", .memory_request = "", .memory_limit = ""}},
      .qos = "BestEffort"};
  const std::vector<AloneCase> cases = {
      {"annotation",
       {.meta = R"("annotations":{"mbcas.io/managed":"false"},)"},
       shop(),
       "on the pod"},
      {"label", {.meta = R"("labels":{"mbcas.io/managed":"false"},)"}, shop(), "on the pod"},
      {"namespace annotation",
       {},
       shop(R"("annotations":{"mbcas.io/managed":"false"},)"),
       "on the namespace"},
      {"namespace label",
       {},
       shop(R"("labels":{"mbcas.io/managed":"false"},)"),
       "on the namespace"},
      {"mode off", {}, shop(R"("labels":{"mbcas.io/mode":"off"},)"), "mode is off"},
      {"unknown mode", {}, shop(R"("labels":{"mbcas.io/mode":"reccomend"},)"), "mode is off"},
      {"namespace unknown", {}, {}, "not known", false},
      {"namespace ends", {}, terminating, "being deleted", false},
      {"deleted",
       {.meta = R"("deletionTimestamp":"2026-01-01T00:00:00Z",)"},
       shop(),
       "being deleted",
       false},
      {"finished", {.phase = "Succeeded"}, shop(), "finished", false},
      {"mirror",
       {.meta = R"("annotations":{"kubernetes.io/config.mirror":"x"},)"},
       shop(),
       "static pod",
       false},
      {"windows", {.spec = R"("os":{"name":"windows"},)"}, shop(), "Windows", false},
      {"pod-level",
       {.spec = R"("resources":{"limits":{"cpu":"1"}},)"},
       shop(),
       "at pod level",
       false},
      {"a limit beyond counting", {.containers = {{.limit = "1e30"}}}, shop(), "counted", false},
      {"a sidecar's memory beyond counting",
       {.containers = {{}, {.name = "proxy", .memory_limit = "1e30"}}},
       shop(),
       "counted",
       false},
      {"best effort", best_effort, shop(), "BestEffort"},
      {"guaranteed", {.qos = "Guaranteed"}, shop(), "Guaranteed"},
      {"vpa", {.meta = kOwnedByDeployment}, with_vpa, "VerticalPodAutoscaler v"},
      {"no limit", {.containers = {{.limit = ""}}}, shop(), "no CPU limit"},
      {"restarts",
       {.containers = {{.more = R"("resizePolicy":[{"resourceName":"cpu",
                                   "restartPolicy":"RestartContainer"}],)"}}},
       shop(),
       "restarted"},
  };
  for (const AloneCase& c : cases) {
    SCOPED_TRACE(c.name);
    const PodPolicy policy = judge(c.pod, c.objects);
    EXPECT_FALSE(policy.managed);
    EXPECT_EQ(policy.let_go, c.let_go);
    EXPECT_NE(policy.reason.find(c.says), std::string::npos) << policy.reason;
  }
}

TEST(LeftAlone, ExcludedNamespacesAndPause) {
  Settings settings;
  settings.excluded_namespaces = {"shop"};
  EXPECT_NE(judge({}, shop(), settings).reason.find("excluded"), std::string::npos);
  Settings paused;
  paused.paused = true;
  EXPECT_EQ(judge({}, shop(R"("labels":{"mbcas.io/mode":"full"},)"), paused).reason,
            "MBCAS is paused");
}

TEST(LeftAlone, UnknownNodeIsNoReasonToRestore) {
  const PodPolicy policy = judgePod(*P{}.make(), nullptr, shop(), nullptr, {});
  EXPECT_FALSE(policy.managed);
  EXPECT_FALSE(policy.let_go);
}

TEST(LeftAlone, OnlyContainersWithALimitAreManaged) {
  const PodPolicy policy =
      judge({.containers = {{}, {.name = "free", .limit = ""}, {.name = "other", .limit = "1"}}});
  ASSERT_EQ(policy.containers.size(), 2u);
  EXPECT_EQ(policy.containers[1].name, "other");
}

TEST(Modes, NamespaceOverCluster) {
  Settings settings;
  settings.mode = Mode::kRecommend;
  EXPECT_EQ(effectiveMode(*shop().name_space, settings), Mode::kRecommend);
  EXPECT_EQ(effectiveMode(*shop(R"("labels":{"mbcas.io/mode":"full"},)").name_space, settings),
            Mode::kFull);
}

TEST(Workload, OfADeploymentItsReplicaSetAndOthers) {
  EXPECT_EQ(workloadOf(*P{.meta = kOwnedByDeployment}.make()), (Workload{"Deployment", "web"}));
  EXPECT_EQ(workloadOf(*P{}.make()), std::nullopt);
  const P stateful{
      .meta =
          R"("ownerReferences":[{"kind":"StatefulSet","name":"db","uid":"s","controller":true}],)"};
  EXPECT_EQ(workloadOf(*stateful.make()), (Workload{"StatefulSet", "db"}));
  const P bare_set{
      .meta =
          R"("ownerReferences":[{"kind":"ReplicaSet","name":"rs-1","uid":"s","controller":true}],)"};
  EXPECT_EQ(workloadOf(*bare_set.make()), (Workload{"ReplicaSet", "rs-1"}));
}

TEST(LowerCeiling, NeverBelowTheRequest) {
  PodPolicy policy = judge({.containers = {{.request = "250m"}}});
  lowerCeiling(policy, 400_m, "ResourceQuota q");
  EXPECT_EQ(policy.ceiling, 400_m);
  EXPECT_NE(policy.reason.find("ceiling: ResourceQuota q"), std::string::npos);
  lowerCeiling(policy, 5_m, "ResourceQuota q");
  EXPECT_EQ(policy.ceiling, 250_m);
  EXPECT_EQ(policy.floor, 250_m);
}

RC_GTEST_PROP(Bounds, AlwaysConsistent, ()) {
  const auto cpu = [] { return std::to_string(*rc::gen::inRange(1, 4000)) + "m"; };
  P pod;
  pod.containers.clear();
  const int count = *rc::gen::inRange(1, 4);
  for (int i = 0; i < count; ++i) {
    const int limit = *rc::gen::inRange(1, 4000);
    const int request = *rc::gen::inRange(1, limit + 1);
    pod.containers.push_back({.name = "c" + std::to_string(i),
                              .request = std::to_string(request) + "m",
                              .limit = std::to_string(limit) + "m"});
  }
  NamespaceObjects objects = shop();
  if (*rc::gen::arbitrary<bool>()) {
    objects.ranges = {
        range(fmt::format(R"({{"type":"{}","min":{{"cpu":"{}"}},"max":{{"cpu":"{}"}}}})",
                          *rc::gen::element<std::string>("Container", "Pod"), cpu(), cpu()))};
  }
  pod.meta = fmt::format(R"("annotations":{{"mbcas.io/min-cpu":"{}","mbcas.io/max-cpu":"{}"}},)",
                         cpu(), cpu());
  const PodPolicy policy = judge(pod, objects);
  RC_ASSERT(!policy.reason.empty());
  if (!policy.managed) return;
  RC_ASSERT(policy.floor <= policy.ceiling);
  RC_ASSERT(policy.floor.count() % 10 == 0);
  RC_ASSERT(policy.ceiling.count() % 10 == 0);
  RC_ASSERT(policy.floor >= policy.request());
}

}  // namespace
}  // namespace mbcas::policy
