// The controller against a real kube-apiserver: what it does in each situation, with its own
// account, rights and admission policies.
#include <fstream>

#include "mbcas/control/guards.h"
#include "mbcas/controller/startup.h"
#include "mbcas/policy/quota.h"
#include "test/integration/controller_fixture.h"
#include "test/support/fault_proxy.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;

class ControllerApiTest : public ControllerTest {
 protected:
  // A raise of pod p from 200m to 500m, which the node does not do; and then would.
  void expectTakenBackAndTriedAgain(const Pod& pod) {
    EXPECT_TRUE(eventually([&] {
      const auto now = allocation(pod);
      return now && now->phase == Phase::kFailed && now->applied == 200_m;
    })) << describe(pod);
    EXPECT_TRUE(eventually([&] { return get("p")->container("main")->limits.cpu() == 200_m; }))
        << "the spec is as it was";
    kubelet->behave(FakeKubelet::Behaviour::kApply, "p");
    expectApplied(pod, 500_m);  // tried again, by itself
  }
};

TEST_F(ControllerApiTest, RaisesAndLowers) {
  const auto pod = makePod("p");
  startEngine();
  desire(*pod, 200_m);
  expectApplied(*pod, 200_m);
  EXPECT_EQ(annotation("p"), "") << "nothing was changed yet";
  const auto first = allocation(*pod);
  ASSERT_NE(first->bounds(), nullptr);
  EXPECT_TRUE(first->bounds()->managed);
  EXPECT_EQ(first->bounds()->floor, 110_m) << "equal to its request it would be Guaranteed";
  EXPECT_EQ(first->bounds()->ceiling, 8000_m);

  desire(*pod, 500_m);
  expectApplied(*pod, 500_m);
  expectAnnotation("p", R"({"main":{"request":"100m","limit":"200m"}})");
  EXPECT_TRUE(eventually([&] { return hasEvent(*pod, "CPULimitRaised"); }));

  desire(*pod, 200_m);
  expectApplied(*pod, 200_m);
  EXPECT_EQ(sent("p"), (std::vector<std::string>{"500m", "340m", "230m", "200m"}))
      << describe(*pod);
  EXPECT_EQ(kubelet->actuated("p"), 4);
  EXPECT_TRUE(eventually([&] { return hasEvent(*pod, "CPULimitLowered"); }));
  EXPECT_EQ(refusals(), 0);
  EXPECT_EQ(get("p")->container("main")->requests.cpu(), 100_m) << "requests are never touched";
  EXPECT_TRUE(logged(fmt::format(
      "resize {}/p on node-1 from 200m to 500m (manage): Accepted; a test wants it\n", ns)))
      << log;
  EXPECT_TRUE(logged(fmt::format("resize {}/p on node-1 from 230m to 200m (manage)", ns))) << log;
}

TEST_F(ControllerApiTest, ALowerLimitWaitsForTheCooldown) {
  const auto pod = makePod("p", "100m", "400m");
  startEngine({{"cooldown", "1h"}});
  desire(*pod, 500_m);
  expectApplied(*pod, 500_m);
  desire(*pod, 450_m);
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*pod);
    return now->phase == Phase::kPending && now->observed_desired == 450_m &&
           now->applied == 500_m &&
           now->status_reason.view().find("cooldown") != std::string_view::npos;
  })) << describe(*pod);
  desire(*pod, 600_m);  // raises do not wait
  expectApplied(*pod, 600_m);
}

TEST_F(ControllerApiTest, SharesOutOverContainersAndASidecar) {
  const auto pod = createPod(R"({"metadata":{"name":"p"},"spec":{"nodeName":"node-1",
    "initContainers":[{"name":"setup","image":"x","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"50m"}}},
    {"name":"proxy","image":"x","restartPolicy":"Always","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"100m"}}}],
    "containers":[{"name":"main","image":"x","resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"300m"}}},
    {"name":"free","image":"x","resources":{"requests":{"cpu":"10m"}}}]}})");
  ASSERT_TRUE(pod);
  ASSERT_TRUE(eventually([&] { return get("p")->phase == kube::PodPhase::kRunning; }));
  startEngine();
  desire(*pod, 800_m);
  EXPECT_TRUE(eventually([&] { return appliedIs(*pod, 800_m); })) << describe(*pod);
  EXPECT_EQ(limitOf("p", "main"), 600_m);
  EXPECT_EQ(limitOf("p", "proxy"), 200_m);
  EXPECT_FALSE(get("p")->container("free")->limits.cpu()) << "adding a limit cannot be undone";
  desire(*pod, 800_m, std::nullopt, {{"main", 400_m}, {"proxy", 400_m}});
  EXPECT_TRUE(eventually([&] { return limitOf("p", "proxy") == 400_m; })) << describe(*pod);
  annotate("p", "mbcas.io/managed", "false");
  EXPECT_TRUE(eventually([&] {
    return limitOf("p", "main") == 300_m && limitOf("p", "proxy") == 100_m &&
           annotation("p").empty();
  })) << describe(*pod);
}

TEST_F(ControllerApiTest, ClampsToALimitRange) {
  ASSERT_TRUE(admin->create<kube::LimitRange>(
      ns, R"({"metadata":{"name":"r"},"spec":{"limits":[{"type":"Container","max":{"cpu":"400m"},
      "maxLimitRequestRatio":{"cpu":"3"}}]}})"));
  const auto pod = makePod("p", "100m", "200m");
  startEngine();
  desire(*pod, 3000_m);
  expectApplied(*pod, 300_m);
  const auto now = allocation(*pod);
  ASSERT_EQ(now->conditions.size(), 1u);
  EXPECT_EQ(now->conditions[0].type, "Clamped");
  EXPECT_NE(now->bounds()->reason.view().find("LimitRange r"), std::string_view::npos);
  EXPECT_EQ(refusals(), 0) << describe(*pod);
}

TEST_F(ControllerApiTest, SharesAQuotaWithoutEverBeingRefused) {
  ASSERT_TRUE(admin->create<kube::ResourceQuota>(
      ns, R"({"metadata":{"name":"q"},"spec":{"hard":{"limits.cpu":"2"}}})"));
  // There is no quota controller here: its part is ours, to count anew what was let go.
  const auto count = [&] {
    const auto pods = admin->list<Pod>({.name_space = ns});
    if (!pods) return;
    Millicores used;
    for (const auto& pod : pods->items) used += policy::countedLimit(*pod);
    (void)admin->patch<kube::ResourceQuota>(
        ns, "q", kube::PatchType::kMerge,
        fmt::format(R"({{"status":{{"hard":{{"limits.cpu":"2"}},"used":{{"limits.cpu":"{}m"}}}}}})",
                    used.count()),
        {.subresource = "status"});
  };
  count();
  std::vector<std::shared_ptr<const Pod>> pods;
  for (const char* name : {"a", "b", "c"}) pods.push_back(makePod(name, "100m", "200m"));
  const std::jthread quota_controller([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      count();
      std::this_thread::sleep_for(300ms);
    }
  });
  startEngine();
  for (const auto& pod : pods) desire(*pod, 2000_m, 2000_m);
  // 2000m less 200m of headroom, among three alike.
  for (const auto& pod : pods) {
    EXPECT_TRUE(eventually([&] {
      const auto now = allocation(*pod);
      return now && now->phase == Phase::kClamped && now->applied == 600_m;
    })) << describe(*pod);
  }
  // One needs less: the others get it, after it has let go.
  desire(*pods[0], 200_m, 200_m);
  EXPECT_TRUE(eventually([&] { return limitOf("a") <= 200_m; })) << describe(*pods[0]);
  EXPECT_TRUE(eventually([&] { return limitOf("b") == 800_m && limitOf("c") == 800_m; }))
      << describe(*pods[1]);
  EXPECT_EQ(refusals(), 0) << describe(*pods[1]);
}

TEST_F(ControllerApiTest, WhatTheNodeCannotDoIsTakenBack) {
  const auto pod = makePod("p");
  kubelet->behave(FakeKubelet::Behaviour::kRefuse, "p");
  startEngine();
  desire(*pod, 500_m);
  expectTakenBackAndTriedAgain(*pod);
  EXPECT_TRUE(logged(fmt::format("resize of {}/p failed on node node-1: ", ns))) << log;
  EXPECT_TRUE(logged("(revert): Accepted")) << log;
}

// What the server refuses is an error in the log, with what the server said.
TEST_F(ControllerApiTest, ARefusedResizeIsLogged) {
  const auto pod = makePod("p");
  kubectl(
      "patch clusterrole mbcas-controller --type json -p "
      R"('[{"op":"test","path":"/rules/3/resources","value":["pods/resize"]},)"
      R"({"op":"replace","path":"/rules/3/resources","value":["pods/nothing"]}]')");
  startEngine();
  desire(*pod, 500_m);
  EXPECT_TRUE(eventually([&] {
    return logged(fmt::format("resize {}/p on node-1 from 200m to 500m (manage): Rejected; ", ns));
  })) << log;
  kubectl("apply -k config/rbac");
  expectApplied(*pod, 500_m);  // tried again, by itself
}

// An HPA reports its status four times a minute, and other kinds do likewise: none of that is a
// reason to look at the pods of the namespace.
TEST_F(ControllerApiTest, AStatusThatBoundsDoNotDependOnTouchesNoPod) {
  const auto hpa = admin->create<kube::HorizontalPodAutoscaler>(
      ns, R"({"metadata":{"name":"h"},"spec":{"maxReplicas":5,"scaleTargetRef":{
      "apiVersion":"apps/v1","kind":"Deployment","name":"web"},"metrics":[{"type":"Resource",
      "resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":160}}}]}})");
  ASSERT_TRUE(hpa) << hpa.error().describe();
  ASSERT_TRUE(admin->create<kube::LimitRange>(
      ns,
      R"({"metadata":{"name":"r"},"spec":{"limits":[{"type":"Container","max":{"cpu":"4"}}]}})"));
  ASSERT_TRUE(admin->create<kube::PodDisruptionBudget>(
      ns, R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{}}})"));
  ASSERT_TRUE(admin->create<kube::ResourceQuota>(
      ns, R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"100"}}})"));
  constexpr int kPods = 10;
  constexpr int kChanges = 10;
  std::vector<std::shared_ptr<const Pod>> pods;
  for (int i = 0; i < kPods; ++i) pods.push_back(makePod("p" + std::to_string(i), "200m", "500m"));
  startEngine();
  for (const auto& pod : pods) desire(*pod, 600_m);
  for (const auto& pod : pods) expectApplied(*pod, 600_m);
  const auto looks = [&] { return metric("controller_runtime_reconcile_total"); };
  const auto settled = [&] {
    for (double before = -1;;) {
      const double now = looks();
      if (now == before) return now;
      before = now;
      std::this_thread::sleep_for(2s);
    }
  };
  const double before = settled();
  const auto patched = [](const auto& answer) {
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().describe());
  };
  for (int i = 1; i <= kChanges; ++i) {
    patched(admin->patch<kube::HorizontalPodAutoscaler>(
        ns, "h", kube::PatchType::kMerge,
        fmt::format(R"({{"status":{{"currentReplicas":{},"desiredReplicas":2}}}})", i),
        {.subresource = "status"}));
    patched(admin->patch<kube::PodDisruptionBudget>(
        ns, "b", kube::PatchType::kMerge,
        fmt::format(R"({{"status":{{"currentHealthy":{0},"desiredHealthy":1,"expectedPods":{0},
                    "disruptionsAllowed":0,"observedGeneration":1}}}})",
                    i),
        {.subresource = "status"}));
    patched(admin->patch<kube::ResourceQuota>(
        ns, "q", kube::PatchType::kMerge,
        fmt::format(R"({{"status":{{"used":{{"pods":"{}"}}}}}})", i), {.subresource = "status"}));
    const std::string label = fmt::format(R"({{"metadata":{{"labels":{{"stamp":"{}"}}}}}})", i);
    patched(admin->patch<kube::LimitRange>(ns, "r", kube::PatchType::kMerge, label));
    patched(admin->patch<kube::Namespace>("", ns, kube::PatchType::kMerge, label));
  }
  // A change that matters, to see that all of them have been noticed.
  patched(admin->patch<kube::HorizontalPodAutoscaler>(
      ns, "h", kube::PatchType::kMerge,
      R"({"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{
      "type":"Utilization","averageUtilization":150}}}]}})"));
  EXPECT_TRUE(eventually([&] { return looks() >= before + kPods; }));
  const double looked = settled() - before;
  fmt::print("{} looks at {} pods for {} changes that do not matter and one that does\n", looked,
             kPods, kChanges * 5);
  EXPECT_LT(looked, 3 * kPods);
}

// Reading the quotas of a namespace hangs: one worker waits for that, and no other.
TEST_F(ControllerApiTest, ANamespaceWhoseQuotasHangHoldsUpNoOther) {
  FaultProxy proxy(port());
  std::atomic<bool> hangs = true;
  proxy.hold([&, path = fmt::format("GET /api/v1/namespaces/{}/resourcequotas", ns)](
                 std::string_view line) { return hangs && line.starts_with(path); });
  engine_server = proxy.url();
  ASSERT_TRUE(admin->create<kube::ResourceQuota>(
      ns, R"({"metadata":{"name":"q"},"spec":{"hard":{"limits.cpu":"100"}}})"));
  std::vector<std::shared_ptr<const Pod>> stuck;
  for (int i = 0; i < 12; ++i) stuck.push_back(makePod("p" + std::to_string(i)));
  std::string held = ns;
  ns += "-other";
  ASSERT_TRUE(
      admin->create<kube::Namespace>("", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", ns)));
  const auto other = makePod("other");
  startEngine();
  std::swap(ns, held);
  for (const auto& pod : stuck) desire(*pod, 500_m);
  EXPECT_TRUE(eventually([&] { return proxy.held() > 0; }));
  std::swap(ns, held);
  desire(*other, 500_m);
  // Well before the reading times out.
  EXPECT_TRUE(eventually([&] { return appliedIs(*other, 500_m); }, 40s)) << describe(*other);
  EXPECT_EQ(proxy.held(), 1) << "in the namespace that hangs";
  hangs = false;
  removeAll<PodAllocation>();
  removeAll<Pod>();
  std::swap(ns, held);
  for (const auto& pod : stuck) expectApplied(*pod, 500_m);
}

TEST_F(ControllerApiTest, AnAllocationOfAnotherNodeIsRemovedAndDoesNotCount) {
  const auto pod = makePod("p");
  startEngine();
  const podallocation::Spec forged{.name_space = ns,
                                   .pod_name = "p",
                                   .node = "elsewhere",
                                   .desired = 5000_m,
                                   .wanted = 9'000'000_m,
                                   .reason = "forged"};
  const std::string uid = pod->meta.uid.string();
  ASSERT_TRUE(admin->apply<PodAllocation>(ns, uid, podallocation::applySpec({"p", uid}, forged),
                                          {.field_manager = "forger"}));
  EXPECT_TRUE(eventually([&] { return allocation(*pod) == nullptr; })) << describe(*pod);
  EXPECT_TRUE(eventually([&] { return hasEvent(*pod, "ForeignAllocation"); }));
  EXPECT_TRUE(
      logged(fmt::format("{}/p: removed a PodAllocation that was written for node elsewhere, "
                         "while the pod runs on node-1",
                         ns)))
      << log;
  EXPECT_TRUE(sent("p").empty());
  EXPECT_EQ(annotation("p"), "");
  desire(*pod, 500_m);  // the agent of its node
  expectApplied(*pod, 500_m);
}

TEST_F(ControllerApiTest, IsReadyWhileItsWatchesKeepUp) {
  behind_after = 1s;
  FaultProxy proxy(port());
  engine_server = proxy.url();
  startEngine();
  EXPECT_TRUE(eventually([&] { return engine->ready().has_value(); }));
  proxy.plan([](int) { return Fault{.kind = Fault::Kind::kRefuse}; });
  proxy.cutAll();
  EXPECT_TRUE(eventually([&] {
    const Result<void> ready = engine->ready();
    return !ready && ready.error().message().find("Pod is not followed: ") != std::string::npos;
  }));
  EXPECT_TRUE(engine->live()) << "a restart would not help";
  stopEngine();
}

// A look that does not end makes the controller unfit, until it ends.
TEST_F(ControllerApiTest, WorkThatIsStuckIsNoticed) {
  const auto pod = makePod("p");
  std::atomic<bool> stuck = true;
  after_step = [&](controller::Step step) {
    while (step == controller::Step::kDecided && stuck) std::this_thread::sleep_for(10ms);
  };
  stuck_after = 8s;  // the agents are looked at every 5 s
  startEngine();
  EXPECT_TRUE(engine->live());
  desire(*pod, 500_m);
  EXPECT_TRUE(eventually([&] {
    const Result<void> live = engine->live();
    return !live && live.error().message().starts_with("the reconciliation of a pod has taken");
  }));
  stuck = false;
  EXPECT_TRUE(eventually([&] { return engine->live().has_value(); }));
  expectApplied(*pod, 500_m);
}

// Deferred: the node has no room now. After half a minute the controller takes it back, and tries
// again later by itself.
TEST_F(ControllerApiTest, WhatTheNodePutsOffForLongIsTakenBackToo) {
  const auto pod = makePod("p");
  kubelet->behave(FakeKubelet::Behaviour::kDefer, "p");
  startEngine();
  desire(*pod, 500_m);
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*pod);
    return now && now->phase == Phase::kPending && now->applied != 500_m;
  })) << describe(*pod);
  expectTakenBackAndTriedAgain(*pod);
}

TEST_F(ControllerApiTest, AGuaranteedPodIsLeftAloneUnlessItAsks) {
  const auto pod = makePod("p", "200m", "200m");
  ASSERT_EQ(get("p")->qos, kube::QosClass::kGuaranteed);
  startEngine();
  desire(*pod, 700_m);
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*pod);
    return now && now->bounds() != nullptr && !now->bounds()->managed &&
           now->bounds()->reason.view().find("Guaranteed") != std::string_view::npos;
  })) << describe(*pod);
  EXPECT_TRUE(sent("p").empty());
  annotate("p", "mbcas.io/manage-guaranteed", "true");
  expectApplied(*pod, 700_m);
  const auto now = get("p");
  EXPECT_EQ(now->qos, kube::QosClass::kGuaranteed);
  EXPECT_EQ(now->container("main")->requests.cpu(), 700_m) << "request and limit move together";
  annotate("p", "mbcas.io/manage-guaranteed", "");
  EXPECT_TRUE(eventually([&] {
    const auto later = get("p");
    return later->container("main")->requests.cpu() == 200_m &&
           later->container("main")->limits.cpu() == 200_m && annotation("p").empty();
  })) << describe(*pod);
}

constexpr const char* kOfWeb =
    R"(,"labels":{"app":"web","pod-template-hash":"h1"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-h1","uid":"r","controller":true}])";

TEST_F(ControllerApiTest, AnAutoscalersPodsStayWhereItCanSeeThem) {
  const auto hpa = admin->create<kube::HorizontalPodAutoscaler>(
      ns, R"({"metadata":{"name":"h"},"spec":{"maxReplicas":5,"scaleTargetRef":{
      "apiVersion":"apps/v1","kind":"Deployment","name":"web"},"metrics":[{"type":"Resource",
      "resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":160}}}]}})");
  ASSERT_TRUE(hpa) << hpa.error().describe();
  const auto pod = makePod("p", "200m", "800m", kOfWeb);
  const auto other = makePod("other", "200m", "800m");
  // Where limits are trimmed to what pods need. Elsewhere they are not lowered for that.
  startEngine({{"reclaim", "always"}});
  desire(*pod, 200_m);
  desire(*other, 250_m);
  // 200m x 160 % x 1.25.
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*pod);
    return now && now->bounds() != nullptr && now->bounds()->floor == 400_m &&
           now->bounds()->reason.view().find("HorizontalPodAutoscaler h") != std::string_view::npos;
  })) << describe(*pod);
  expectApplied(*pod, 400_m);
  expectApplied(*other, 250_m);
}

TEST_F(ControllerApiTest, ADisruptionBudgetInNeedHoldsDecreasesBack) {
  const auto budget = admin->create<kube::PodDisruptionBudget>(
      ns, R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{
      "app":"web"}}}})");
  ASSERT_TRUE(budget) << budget.error().describe();
  const auto health = [&](int healthy) {
    const auto told = admin->patch<kube::PodDisruptionBudget>(
        ns, "b", kube::PatchType::kMerge,
        fmt::format(R"({{"status":{{"currentHealthy":{},"desiredHealthy":1,"expectedPods":1,
                    "disruptionsAllowed":0,"observedGeneration":1}}}})",
                    healthy),
        {.subresource = "status"});
    ASSERT_TRUE(told) << told.error().describe();
  };
  health(0);
  const auto pod = makePod("p", "100m", "800m", kOfWeb);
  startEngine();
  desire(*pod, 600_m);
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*pod);
    return now && now->phase == Phase::kPending &&
           now->status_reason.view().find(control::name(control::Hold::kDisruption)) !=
               std::string_view::npos;
  })) << describe(*pod);
  EXPECT_EQ(limitOf("p"), 800_m);
  health(1);
  expectApplied(*pod, 600_m);
}

TEST_F(ControllerApiTest, APodOfAnActiveVpaIsLeftAlone) {
  // What the VPA project installs, as far as the API server minds.
  const std::string crd = ::testing::TempDir() + "vpa-crd.yaml";
  std::ofstream(crd) << R"(apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: verticalpodautoscalers.autoscaling.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: autoscaling.k8s.io
  scope: Namespaced
  names: {plural: verticalpodautoscalers, singular: verticalpodautoscaler, kind: VerticalPodAutoscaler}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
)";
  kubectl("apply -f " + crd);
  awaitServed<kube::VerticalPodAutoscaler>();
  const auto vpa = [&](const std::string& mode) {
    const auto written = admin->apply<kube::VerticalPodAutoscaler>(
        ns, "v",
        fmt::format(R"({{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler",
        "metadata":{{"name":"v"}},"spec":{{"targetRef":{{"apiVersion":"apps/v1",
        "kind":"Deployment","name":"web"}},"updatePolicy":{{"updateMode":"{}"}}}}}})",
                    mode),
        {.field_manager = "test"});
    ASSERT_TRUE(written) << written.error().describe();
  };
  vpa("Off");  // only recommends: nobody's business
  const auto pod = makePod("p", "100m", "200m", kOfWeb);
  startEngine();
  desire(*pod, 700_m);
  expectApplied(*pod, 700_m);
  vpa("InPlaceOrRecreate");
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*pod);
    return limitOf("p") == 200_m && !now->bounds()->managed &&
           now->bounds()->reason.view().find("VerticalPodAutoscaler v") != std::string_view::npos;
  })) << describe(*pod);
  ASSERT_TRUE(admin->remove<kube::VerticalPodAutoscaler>(ns, "v"));
  expectApplied(*pod, 700_m);
}

TEST_F(ControllerApiTest, FairnessHelpsThePodOnTheScarceNode) {
  const auto poor = makePod("poor", "100m", "200m");
  const auto rich = makePod("rich", "100m", "200m");
  startEngine({{"fairness", "namespace"}});
  desire(*poor, 200_m, 800_m);
  desire(*rich, 800_m, 800_m);
  expectApplied(*poor, 200_m);
  expectApplied(*rich, 800_m);
  // Weighed at most every 15 s, when one of the group is looked at.
  int touches = 0;
  const auto weight = [&](const Pod& pod) {
    const auto now = allocation(pod);
    return now && now->bounds() != nullptr ? now->bounds()->weight : 1;
  };
  EXPECT_TRUE(eventually([&] {
    if (++touches % 100 == 0) annotate("poor", "test/touch", std::to_string(touches));
    return weight(*poor) > 1 && weight(*poor) <= 2 && weight(*rich) < 1 && weight(*rich) >= 0.5;
  })) << describe(*poor)
      << describe(*rich);
}

TEST_F(ControllerApiTest, OptingOutRestoresExactly) {
  const auto pod = makePod("p", "100m", "205m");
  startEngine();
  desire(*pod, 900_m);
  expectApplied(*pod, 900_m);
  annotate("p", "mbcas.io/managed", "false");
  EXPECT_TRUE(eventually([&] { return limitOf("p") == 205_m && annotation("p").empty(); }))
      << describe(*pod);
  EXPECT_TRUE(eventually([&] { return hasEvent(*pod, "Restored"); }));
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*pod);
    return !now->bounds()->managed && now->phase == Phase::kLeftAlone;
  })) << describe(*pod);
  annotate("p", "mbcas.io/managed", "");
  expectApplied(*pod, 900_m);  // and back again
}

TEST_F(ControllerApiTest, EveryWayOfLettingGo) {
  const auto pod = makePod("p");
  startEngine();
  const auto raised = [&] {
    desire(*pod, 900_m);
    expectApplied(*pod, 900_m);
  };
  const auto restored = [&](const char* how) {
    // The allocation, too: what it said before it may still say for a moment.
    EXPECT_TRUE(eventually([&] {
      return limitOf("p") == 200_m && annotation("p").empty() && !appliedIs(*pod, 900_m);
    })) << how
        << describe(*pod);
  };
  const auto label = [&](const std::string& mode) {
    ASSERT_TRUE(admin->patch<kube::Namespace>(
        "", ns, kube::PatchType::kMerge,
        fmt::format(R"({{"metadata":{{"labels":{{"mbcas.io/mode":{}}}}}}})", mode)));
  };
  raised();
  label("\"off\"");
  restored("mode off");
  label("null");
  expectApplied(*pod, 900_m);
  label("\"recommend\"");
  restored("mode recommend");
  EXPECT_TRUE(eventually([&] {
    return allocation(*pod)->status_reason == "mode recommend: would be set to 900m";
  })) << describe(*pod);
  label("null");
  expectApplied(*pod, 900_m);
  const auto pause = [&](const std::string& value) {
    ASSERT_TRUE(
        admin->patch<kube::ConfigMap>(kSystem, "mbcas", kube::PatchType::kMerge,
                                      fmt::format(R"({{"data":{{"paused":"{}"}}}})", value)));
  };
  pause("true");
  restored("paused");
  pause("nonsense");  // not taken over
  pause("false");
  expectApplied(*pod, 900_m);
  // The allocation is deleted while nobody looks.
  stopEngine();
  ASSERT_TRUE(admin->remove<PodAllocation>(ns, pod->meta.uid));
  startEngine();
  restored("allocation deleted");
}

TEST_F(ControllerApiTest, TheInitialModeHoldsUntilOneIsSet) {
  const auto mode = [&] {
    const auto map = admin->get<kube::ConfigMap>(kSystem, "mbcas");
    return map ? std::string(kube::find((*map)->data, "mode").value_or("")) : "no ConfigMap";
  };
  const auto set = [&](const std::string& value) {
    ASSERT_TRUE(admin->patch<kube::ConfigMap>(kSystem, "mbcas", kube::PatchType::kMerge,
                                              fmt::format(R"({{"data":{{"mode":{}}}}})", value)));
  };
  const auto pod = makePod("p");
  initial_settings = {{"mode", "recommend"}};
  startEngine();
  desire(*pod, 900_m);
  EXPECT_TRUE(eventually([&] {
    return allocation(*pod)->status_reason == "mode recommend: would be set to 900m";
  })) << describe(*pod);
  EXPECT_EQ(mode(), "recommend");
  set("\"full\"");
  expectApplied(*pod, 900_m);
  // Another leader leaves the mode as it was set.
  stopEngine();
  startEngine();
  desire(*pod, 1200_m);
  expectApplied(*pod, 1200_m);
  EXPECT_EQ(mode(), "full");
  // Without a mode of its own the initial one holds again, at once and for the next leader.
  set("null");
  EXPECT_TRUE(eventually([&] { return limitOf("p") == 200_m; })) << describe(*pod);
  stopEngine();
  startEngine();
  EXPECT_TRUE(eventually([&] { return mode() == "recommend"; })) << mode();
}

TEST_F(ControllerApiTest, SomebodyElsesLimitBecomesTheDeclaredOne) {
  const auto pod = makePod("p");
  startEngine();
  desire(*pod, 900_m);
  expectApplied(*pod, 900_m);
  ASSERT_TRUE(admin->patch<Pod>(
      ns, "p", kube::PatchType::kStrategic,
      R"({"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"600m"}}}]}})",
      {.subresource = "resize", .field_manager = "somebody"}));
  EXPECT_TRUE(eventually([&] { return hasEvent(*pod, "DeclaredChanged"); })) << describe(*pod);
  expectApplied(*pod, 900_m);  // still what the agent desires
  expectAnnotation("p", R"({"main":{"request":"100m","limit":"600m"}})");
  annotate("p", "mbcas.io/managed", "false");
  EXPECT_TRUE(eventually([&] { return limitOf("p") == 600_m; })) << describe(*pod);
}

TEST_F(ControllerApiTest, ADryRunChangesNothing) {
  const auto pod = makePod("p");
  startEngine({}, true);
  desire(*pod, 900_m);
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*pod);
    return now && now->status_reason == "dry run: would be set to 900m";
  })) << describe(*pod);
  EXPECT_EQ(limitOf("p"), 200_m);
  EXPECT_EQ(annotation("p"), "");
}

TEST_F(ControllerApiTest, BadObjectsAreToldAndHarmNobody) {
  const auto good = makePod("good");
  const auto guaranteed = createPod(podBody("g", "200m", "200m", R"("nodeName":"node-1",)"));
  startEngine();
  const auto write = [&](const std::string& name, const podallocation::Spec& spec) {
    return admin->apply<PodAllocation>(
        ns, name, podallocation::applySpec({spec.pod_name, name}, spec), {.field_manager = "bad"});
  };
  const auto failed = [&](const std::string& name, const std::string& why) {
    return eventually([&] {
      const auto now = admin->get<PodAllocation>(ns, name);
      return now && (*now)->phase == Phase::kFailed &&
             (*now)->status_reason.view().find(why) != std::string_view::npos;
    });
  };
  podallocation::Spec spec{.name_space = ns, .pod_name = "nobody", .node = kNode, .desired = 500_m};
  ASSERT_TRUE(write("00000000-0000-0000-0000-000000000001", spec));
  EXPECT_TRUE(failed("00000000-0000-0000-0000-000000000001", "no pod nobody"));
  spec.pod_name = "good";
  ASSERT_TRUE(write("00000000-0000-0000-0000-000000000002", spec));
  EXPECT_TRUE(failed("00000000-0000-0000-0000-000000000002", "UID"));
  EXPECT_FALSE(admin->apply<PodAllocation>(
      ns, "x",
      R"({"apiVersion":"allocation.mbcas.io/v1alpha1","kind":"PodAllocation","metadata":{
      "name":"x"},"spec":{"namespace":")" +
          ns + R"(","podName":"good","desiredCPULimit":"-5"}})",
      {.field_manager = "bad"}))
      << "refused by the schema";
  // A Guaranteed pod is left alone, and its allocation says why.
  desire(*guaranteed, 900_m);
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*guaranteed);
    return now && now->bounds() != nullptr && !now->bounds()->managed &&
           now->bounds()->reason.view().find("Guaranteed") != std::string_view::npos;
  })) << describe(*guaranteed);
  // An absurd wish is clamped; other pods go on.
  const auto greedy = makePod("greedy");
  desire(*greedy, 9'999'000_m);
  expectApplied(*greedy, 8000_m);
  EXPECT_EQ(limitOf("good"), 200_m);
  EXPECT_EQ(limitOf("g"), 200_m);
}

TEST_F(ControllerApiTest, ThreeRequestsADecision) {
  std::vector<std::shared_ptr<const Pod>> pods;
  for (int i = 0; i < 5; ++i) pods.push_back(makePod("p" + std::to_string(i)));
  startEngine();
  const auto all = [&](Millicores cpu) {
    for (const auto& pod : pods) desire(*pod, cpu);
    for (const auto& pod : pods) expectApplied(*pod, cpu);
  };
  // Writes, as the server answered them. Events are sent in the background: wait until they are.
  const auto writes = [&] {
    const auto count = [&] {
      int sum = 0;
      const std::string text = metrics->text();
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        at = end + 1;
        if (!line.starts_with("rest_client_requests_total{")) continue;
        if (line.find("\"GET\"") != std::string::npos) continue;
        sum += std::stoi(line.substr(line.rfind(' ') + 1));
      }
      return sum;
    };
    for (int before = -1;;) {
      const int now = count();
      if (now == before) return now;
      before = now;
      std::this_thread::sleep_for(3s);
    }
  };
  all(300_m);  // the first keeps the original, too
  const int before = writes();
  for (const Millicores cpu : {400_m, 500_m, 600_m, 700_m}) all(cpu);
  const int spent = writes() - before;
  // Resize, status and event; where the kubelet takes more than 3 s, as on a busy machine, one
  // status more says that it is pending.
  fmt::print("{} writes for 20 decisions\n", spent);
  EXPECT_LE(spent, 20 * 4);
  EXPECT_GE(spent, 20 * 3);
}

TEST_F(ControllerApiTest, ANewPodStartsAtItsSiblingsLevel) {
  // Siblings teach once they are half a minute old, so this needs patience.
  const auto old = makePod("old", "100m", "200m", kOfWeb);
  startEngine();
  desire(*old, 900_m);
  expectApplied(*old, 900_m);
  // All pods of the workload go; its level is remembered.
  ASSERT_TRUE(admin->remove<Pod>(ns, "old", {.grace_seconds = 0}));
  ASSERT_TRUE(admin->remove<PodAllocation>(ns, old->meta.uid));
  const auto young = makePod("young", "100m", "200m", kOfWeb);
  desire(*young, 200_m);
  EXPECT_TRUE(eventually([&] {
    const auto now = allocation(*young);
    return now && now->bounds() != nullptr && now->bounds()->start == 900_m;
  })) << describe(*young);
}

TEST_F(ControllerApiTest, ASilentAgentsPodsGetTheirLimitsBack) {
  // Renews its Lease until it is stopped.
  const auto agent = [&] {
    return std::jthread([&](const std::stop_token& stop) {
      static int renewals = 0;
      while (!stop.stop_requested()) {
        (void)admin->apply<kube::Lease>(
            kSystem, "mbcas-agent-node-1",
            fmt::format(
                R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{
                "name":"mbcas-agent-node-1"}},"spec":{{"holderIdentity":"agent",
                "renewTime":"2026-01-01T00:00:00.{:06}Z"}}}})",
                ++renewals),
            {.field_manager = "agent"});
        std::this_thread::sleep_for(1s);
      }
    });
  };
  // Of a node whose agent never says anything.
  makeNode("node-2", "1");
  const auto low = makePod("low", "100m", "400m");
  const auto high = makePod("high", "100m", "400m");
  std::jthread speaking = agent();
  startEngine({{"silence", "20s"}});
  desire(*low, 300_m);
  desire(*high, 700_m);
  expectApplied(*low, 300_m);
  expectApplied(*high, 700_m);
  EXPECT_TRUE(eventually([&] { return hasEvent(*low, "CPULimitLowered"); }))
      << "told even where the first status comes after the resize";
  EXPECT_TRUE(eventually([&] { return metric("mbcas_silent_agents") == 1; })) << log;
  EXPECT_TRUE(logged("the agent of node node-2 is silent")) << log;

  // While etcd does not answer no agent can be heard, although the API server answers /version. Nor
  // is an agent silent that has not yet renewed its Lease in the moments after that: agents come
  // back after a while, each after its own.
  speaking = {};
  ASSERT_TRUE(plane->command("pause etcd"));
  std::this_thread::sleep_for(25s);  // longer than an agent may be silent
  ASSERT_TRUE(plane->command("resume etcd"));
  std::this_thread::sleep_for(7s);  // the agents are looked at every 5 s
  speaking = agent();
  EXPECT_EQ(metric("mbcas_silent_agents"), 1) << "an outage ends no silence, and begins none";

  ASSERT_TRUE(admin->remove<kube::Node>("", "node-2"));
  EXPECT_TRUE(eventually([&] { return metric("mbcas_silent_agents") == 0; })) << log;
  EXPECT_TRUE(logged("the controller no longer waits for the agent of node node-2")) << log;

  EXPECT_FALSE(logged("the agent of node node-1 is silent")) << log;
  EXPECT_EQ(limitOf("low"), 300_m);

  speaking = {};  // and a silence after the outage is noticed
  EXPECT_TRUE(eventually([&] { return limitOf("low") == 400_m && !appliedIs(*low, 300_m); }))
      << describe(*low);
  EXPECT_EQ(limitOf("high"), 700_m) << "never lowered";
  speaking = agent();  // it speaks again, and is listened to
  expectApplied(*low, 300_m);
}

TEST_F(ControllerApiTest, SaysWhatIsMissingAtTheStart) {
  EXPECT_TRUE(controller::checkCluster(*admin, kSystem, false));
  kube::Client allowed(loop, controllerConfig(), clock);
  const Result<void> good = controller::checkCluster(allowed, kSystem, false);
  EXPECT_TRUE(good) << good.error().message();
  kube::ClientConfig other = config;
  other.impersonate.user = "stranger";
  kube::Client stranger(loop, other, clock);
  const Result<void> bad = controller::checkCluster(stranger, kSystem, false);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message().find("patch pods/resize"), std::string::npos)
      << bad.error().message();
  EXPECT_NE(bad.error().message().find("config/rbac"), std::string::npos);
}

}  // namespace
}  // namespace mbcas::test
