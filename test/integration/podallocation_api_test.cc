// The definition of PodAllocation and the admission policies of config/, on a real kube-apiserver.
#include "mbcas/podallocation/pod_allocation.h"

#include <algorithm>
#include <cstdlib>
#include <source_location>
#include <utility>

#include "mbcas/podallocation/original_resources.h"
#include "test/integration/kube_fixture.h"

namespace mbcas::test {
namespace {

using namespace kube;
using namespace literals;
using namespace podallocation;

class PodAllocationApiTest : public KubeTest {
 protected:
  static constexpr const char* kSystem = "mbcas-system";
  static constexpr const char* kNodeKey = "authentication.kubernetes.io/node-name";

  void SetUp() override {
    KubeTest::SetUp();
    if (IsSkipped() || HasFatalFailure() || std::exchange(installed, true)) return;
    kubectl("create namespace mbcas-system");
    for (const char* name : {"mbcas-agent", "mbcas-controller"}) {
      kubectl(fmt::format("create serviceaccount -n mbcas-system {}", name));
      // Whatever a role may allow, only the policies stand in the way here.
      kubectl(
          fmt::format("create clusterrolebinding {0} --clusterrole=cluster-admin "
                      "--serviceaccount=mbcas-system:{0}",
                      name));
    }
    kubectl("apply -k config/crd");
    awaitServed<PodAllocation>();
    kubectl("apply -k config/policy");
    kubectl("apply -f config/rbac/restore_role.yaml");
    // A policy counts a moment after it was made: each must refuse what it is there to refuse.
    createPod(podBody("probe"));
    const std::string probe = R"({"metadata":{"labels":{"a":"b"}}})";
    ASSERT_TRUE(eventually([&] {
      Spec elsewhere = spec("probe");
      elsewhere.name_space = "elsewhere";
      const bool by_namespace = refused(create(*admin, "a", elsewhere), "is not the namespace");
      const bool by_node = refused(write(*agent(""), "b", spec("probe")), "not bound to a node");
      const bool by_controller = refused(
          controller()->patch<Pod>(ns, "probe", PatchType::kMerge, probe, {.dry_run = true}),
          "changes no labels");
      return by_namespace && by_node && by_controller;
    }));
  }

  void kubectl(const std::string& arguments) const {
    const std::string command = fmt::format("{} --kubeconfig {} {} >/dev/null", plane->kubectl(),
                                            plane->kubeconfig(), arguments);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(concurrency-mt-unsafe)
  }

  std::unique_ptr<Client> as(const std::string& user, const std::string& group,
                             const std::string& node = "") {
    ClientConfig other = config;
    other.impersonate.user = user;
    other.impersonate.groups = {"system:authenticated", group};
    if (!node.empty()) other.impersonate.extra[kNodeKey] = {node};
    return std::make_unique<Client>(loop, other, clock);
  }
  std::unique_ptr<Client> account(const std::string& name, const std::string& node = "") {
    return as(fmt::format("system:serviceaccount:{}:{}", kSystem, name), "system:serviceaccounts",
              node);
  }
  std::unique_ptr<Client> agent(const std::string& node) { return account("mbcas-agent", node); }
  std::unique_ptr<Client> controller() { return account("mbcas-controller"); }

  Spec spec(const std::string& pod, const std::string& node = "node-1") const {
    return {.name_space = ns,
            .pod_name = pod,
            .node = node,
            .desired = 500_m,
            .containers = {{"main", 500_m}},
            .wanted = 1000_m,
            .reason = "a test"};
  }
  using Written = ApiResult<std::shared_ptr<const PodAllocation>>;
  Written write(Client& client, const std::string& uid, const Spec& wanted,
                const WriteOptions& options = {.field_manager = kAgentManager}) {
    return client.apply<PodAllocation>(ns, uid, applySpec({wanted.pod_name, uid}, wanted), options);
  }
  Written create(Client& client, const std::string& uid, const Spec& wanted) {
    // The path has the namespace of the test, whatever the body says.
    std::string body = applySpec({wanted.pod_name, uid}, wanted);
    const std::string where = fmt::format(R"("namespace":"{}","labels")", wanted.name_space);
    body.replace(body.find(where), where.size(), fmt::format(R"("namespace":"{}","labels")", ns));
    return client.create<PodAllocation>(ns, body);
  }
  Written patch(const std::string& name, const std::string& body, const std::string& part = "") {
    return admin->patch<PodAllocation>(ns, name, PatchType::kMerge, body, {.subresource = part});
  }
  template <class T>
  static bool refused(const ApiResult<T>& result, std::string_view why) {
    return !result && result.error().code >= 403 && result.error().code <= 422 &&
           result.error().message.find(why) != std::string::npos;
  }
  template <class T>
  static void expectRefused(const ApiResult<T>& result, std::string_view why,
                            std::source_location at = std::source_location::current()) {
    EXPECT_TRUE(refused(result, why))
        << "line " << at.line() << ": " << (result ? "accepted" : result.error().describe());
  }
  template <class T>
  static void expectTaken(const ApiResult<T>& result,
                          std::source_location at = std::source_location::current()) {
    EXPECT_TRUE(result) << "line " << at.line() << ": " << result.error().describe();
  }

  static inline bool installed = false;
};

TEST_F(PodAllocationApiTest, WhatIsWrittenIsRead) {
  const auto written = write(*admin, "uid-1", spec("p"));
  ASSERT_TRUE(written) << written.error().describe();
  EXPECT_EQ((*written)->specValue(), spec("p"));
  EXPECT_EQ((*written)->meta.owners[0].uid, "uid-1");
  EXPECT_EQ(find((*written)->meta.labels, kNodeLabel), "node-1");

  Status status{.phase = Phase::kApplied,
                .observed_generation = 1,
                .observed_desired = 500_m,
                .applied = 500_m,
                .reason = "in force",
                .last_applied = WallTime(std::chrono::seconds(1'700'000'000)),
                .last_attempt = WallTime(std::chrono::seconds(1'700'000'001)),
                .bounds = Bounds{.managed = true,
                                 .floor = 100_m,
                                 .ceiling = 4000_m,
                                 .start = 200_m,
                                 .weight = 1.25,
                                 .reason = "LimitRange r"}};
  status.setCondition({.type = std::string(kClamped),
                       .status = ConditionStatus::kFalse,
                       .reason = "WithinBounds",
                       .observed_generation = 1,
                       .last_transition = WallTime(std::chrono::seconds(1'700'000'000))});
  const WriteOptions to_status{.subresource = "status", .field_manager = kControllerManager};
  const auto with_status =
      admin->apply<PodAllocation>(ns, "uid-1", applyStatus((*written)->meta, status), to_status);
  ASSERT_TRUE(with_status) << with_status.error().describe();
  EXPECT_EQ((*with_status)->statusValue(), status);
  EXPECT_EQ((*with_status)->specValue(), spec("p"));
  EXPECT_EQ((*with_status)->meta.generation, 1) << "status does not count";

  // Neither writer drops what the other wrote, and each drops what it no longer says.
  Spec less = spec("p");
  less.containers.clear();
  less.wanted.reset();
  less.desired = 600_m;
  const auto again = write(*admin, "uid-1", less);
  ASSERT_TRUE(again) << again.error().describe();
  EXPECT_EQ((*again)->specValue(), less);
  EXPECT_EQ((*again)->statusValue(), status);
  EXPECT_EQ((*again)->meta.generation, 2);

  ASSERT_TRUE(admin->remove<PodAllocation>(ns, "uid-1"));
  const auto gone =
      admin->apply<PodAllocation>(ns, "uid-1", applyStatus((*again)->meta, status), to_status);
  ASSERT_FALSE(gone) << "a status alone makes no object";
  EXPECT_TRUE(gone.error().notFound()) << gone.error().describe();
}

TEST_F(PodAllocationApiTest, SchemaRefusesNonsense) {
  ASSERT_TRUE(write(*admin, "a", spec("p")));
  const auto desired = [&](const std::string& json) {
    return patch("a", R"({"spec":{"desiredCPULimit":)" + json + "}}");
  };
  for (const char* good : {R"("1m")", R"("500m")", R"("2.5")", R"("10000")", "2", R"("0.001")",
                           R"("10000.000")", R"("10000000m")", R"("0.05")", "10000"}) {
    expectTaken(desired(good));
  }
  for (const char* bad :
       {R"("0")",         R"("0m")",   "0",           "-1",         R"("-500m")",
        R"("10001")",     R"("1e3")",  R"("5k")",     R"("1Ki")",   R"("5n")",
        R"("")",          R"("much")", "null",        "1.5",        "99999999999",
        R"(" 1")",        "[]",        R"("0.0001")", R"("0.000")", R"("10000.5")",
        R"("10000001m")", "10001"}) {
    expectRefused(desired(bad), "desiredCPULimit");
  }
  expectRefused(patch("a", R"({"spec":{"wantedCPULimit":"-1"}})"), "wantedCPULimit");
  expectRefused(patch("a", R"({"spec":{"containers":[{"name":"a","desiredCPULimit":"0"}]}})"),
                "spec.containers[0].desiredCPULimit");
  expectRefused(patch("a", R"({"spec":{"containers":[{"name":"a","desiredCPULimit":"1"},
                                {"name":"a","desiredCPULimit":"1"}]}})"),
                "Duplicate value");
  expectRefused(patch("a", R"({"spec":{"containers":[{"name":"a"}]}})"), "desiredCPULimit");
  expectRefused(patch("a", R"({"spec":{"podName":"q"}})"), "podName cannot be changed");
  expectRefused(patch("a", R"({"spec":{"podName":null}})"), "podName");
  expectRefused(patch("a", R"({"spec":{"namespace":"q"}})"), "namespace cannot be changed");
  expectRefused(patch("a", R"({"spec":{"nodeName":"q"}})"), "nodeName cannot be changed");
  expectRefused(patch("a", R"({"spec":{"nodeName":null}})"), "nodeName cannot be changed");
  expectRefused(patch("a", fmt::format(R"({{"spec":{{"reason":"{:x<257}"}}}})", "")), "reason");
  const auto created = [&](const std::string& more) {
    return admin->create<PodAllocation>(ns, R"({"apiVersion":"allocation.mbcas.io/v1alpha1",
      "kind":"PodAllocation","metadata":{"name":"b"})" +
                                                more + "}");
  };
  expectRefused(created(""), "spec");
  expectRefused(created(fmt::format(R"(,"spec":{{"namespace":"{}","podName":"p"}})", ns)),
                "desiredCPULimit");
  expectTaken(created(
      fmt::format(R"(,"spec":{{"namespace":"{}","podName":"p","desiredCPULimit":1}})", ns)));
}

TEST_F(PodAllocationApiTest, SchemaHoldsStatusToItsWord) {
  ASSERT_TRUE(write(*admin, "a", spec("p")));
  const auto status = [&](const std::string& members) {
    return patch("a", R"({"status":)" + members + "}", "status");
  };
  expectRefused(status(R"({"phase":"Applied"})"), "Applied means");
  expectRefused(status(R"({"phase":"Applied","appliedCPULimit":"500m"})"), "Applied means");
  expectRefused(status(R"({"phase":"Applied","appliedCPULimit":"500m","observedDesired":"600m"})"),
                "Applied means");
  expectRefused(status(R"({"phase":"Clamped","appliedCPULimit":"500m","observedDesired":"600m"})"),
                "so does Clamped");
  expectRefused(status(R"({"phase":"Done"})"), "phase");
  expectRefused(status(R"({"appliedCPULimit":"-1"})"), "appliedCPULimit");
  expectRefused(status(R"({"bounds":{"floor":"1"}})"), "managed");
  expectRefused(status(R"({"bounds":{"managed":true,"weight":-1}})"), "weight");
  expectRefused(status(R"({"bounds":{"managed":true,"floor":"-1"}})"), "floor");
  expectRefused(status(R"({"conditions":[{"type":"Clamped","status":"Maybe"}]})"), "status");
  expectTaken(status(R"({"phase":"Applied","appliedCPULimit":"0.5","observedDesired":"500m"})"));
  expectTaken(status(R"({"phase":"Pending","observedDesired":"600m"})"));
  expectTaken(status(R"({"phase":"Failed"})"));
  expectTaken(status(R"({"phase":"LeftAlone"})"));
  expectTaken(
      status(R"({"phase":"Recommended","appliedCPULimit":"500m","observedDesired":"700m"})"));
  expectTaken(status(R"({"phase":"Clamped","appliedCPULimit":"600m","observedDesired":"0.6"})"));
  // Later decisions are not held against an older status.
  expectTaken(status(R"({"phase":"Applied","appliedCPULimit":"0.5","observedDesired":"500m"})"));
  expectTaken(patch("a", R"({"spec":{"desiredCPULimit":"900m"}})"));
}

TEST_F(PodAllocationApiTest, SpeaksOfItsOwnNamespaceOnly) {
  Spec elsewhere = spec("p");
  elsewhere.name_space = "elsewhere";
  expectRefused(create(*admin, "a", elsewhere), "is not the namespace of the object");
  expectTaken(create(*admin, "a", spec("p")));
}

TEST_F(PodAllocationApiTest, AnAgentWritesForItsOwnNodeOnly) {
  const auto first = agent("node-1");
  const auto second = agent("node-2");
  const auto unbound = agent("");
  expectTaken(write(*first, "a", spec("p", "node-1")));
  expectTaken(write(*first, "a", [&] {
    Spec more = spec("p", "node-1");
    more.desired = 700_m;
    return more;
  }()));
  expectRefused(write(*first, "b", spec("p", "node-2")), "not the node of this agent, node-1");
  expectRefused(write(*second, "a", spec("p", "node-1")), "belongs to another node than node-2");
  expectRefused(write(*unbound, "c", spec("p", "node-1")), "not bound to a node");
  Spec elsewhere = spec("p", "node-1");
  elsewhere.name_space = "elsewhere";
  expectRefused(create(*first, "d", elsewhere), "is not the namespace of the object");

  // Nor by a detour: label, owner, finalizer, status, deletion.
  const auto change = [&](Client& client, const std::string& body, const std::string& part = "") {
    return client.patch<PodAllocation>(ns, "a", PatchType::kMerge, body, {.subresource = part});
  };
  expectRefused(change(*first, R"({"metadata":{"labels":{"mbcas.io/node":"node-2"}}})"),
                "label mbcas.io/node");
  expectRefused(change(*first, R"({"metadata":{"labels":null}})"), "label mbcas.io/node");
  expectRefused(change(*first, R"({"metadata":{"ownerReferences":null}})"), "owned by it");
  expectRefused(change(*first, R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod",
                                   "name":"p","uid":"other"}]}})"),
                "owned by it");
  expectRefused(change(*first, R"({"metadata":{"finalizers":["example.com/stay"]}})"),
                "no finalizers");
  expectRefused(change(*first, R"({"status":{"phase":"Failed"}})", "status"),
                "an agent writes only spec");

  // Nor may it fill the controller's memory. What other people added does not stand in its way.
  expectRefused(change(*first, R"({"metadata":{"annotations":{"much":"text"}}})"),
                "adds no annotations");
  expectRefused(change(*first, R"({"metadata":{"labels":{"much":"text"}}})"), "no label but");
  expectRefused(write(*first, fmt::format("{:x<64}", ""), spec("p", "node-1")), "63 characters");
  expectTaken(change(*admin, R"({"metadata":{"annotations":{"note":"x"},"labels":{"team":"y"}}})"));
  expectTaken(write(*first, "a", [&] {
    Spec more = spec("p", "node-1");
    more.desired = 800_m;
    return more;
  }()));
  expectRefused(change(*first, R"({"metadata":{"annotations":{"note":"changed"}}})"),
                "adds no annotations");

  expectRefused(second->remove<PodAllocation>(ns, "a"), "belongs to another node");
  expectTaken(first->remove<PodAllocation>(ns, "a"));

  // Others are not bound.
  expectTaken(write(*admin, "e", spec("p", "node-9")));
  expectTaken(controller()->apply<PodAllocation>(
      ns, "e", applyStatus((*admin->get<PodAllocation>(ns, "e"))->meta, {.phase = Phase::kPending}),
      {.subresource = "status", .field_manager = kControllerManager}));
}

// What the API server itself says of a token that is bound to a pod on a node.
TEST_F(PodAllocationApiTest, ARealTokenIsBoundToItsNode) {
  ASSERT_TRUE(admin->create<Node>("", R"({"metadata":{"name":"node-real"}})"));
  const auto pod = admin->create<Pod>(
      kSystem,
      R"({"metadata":{"name":"agent"},"spec":{"serviceAccountName":"mbcas-agent","nodeName":"node-real",
      "automountServiceAccountToken":false,"containers":[{"name":"main","image":"x"}]}})");
  ASSERT_TRUE(pod) << pod.error().describe();
  Call call{.method = "POST",
            .path = fmt::format("/api/v1/namespaces/{}/serviceaccounts/mbcas-agent/token", kSystem),
            .body = fmt::format(
                R"({{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{{
                "boundObjectRef":{{"apiVersion":"v1","kind":"Pod","name":"agent","uid":"{}"}}}}}})",
                (*pod)->meta.uid.view())};
  ApiResult<std::string> token = admin->perform(call);
  ASSERT_TRUE(token) << token.error().describe();
  ClientConfig bound = config;
  JsonParser parser;
  ASSERT_TRUE(parser.parse(*token, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor status) {
      if (key != "status") return;
      status.members([&](std::string_view name, JsonCursor value) {
        if (name == "token") bound.token = value.text();
      });
    });
  }));
  ASSERT_FALSE(bound.token.empty());
  Client real(loop, bound, clock);
  expectTaken(write(real, "a", spec("p", "node-real")));
  expectRefused(write(real, "b", spec("p", "node-1")), "not the node of this agent, node-real");
}

TEST_F(PodAllocationApiTest, TheControllerChangesOneAnnotationAndResizes) {
  ASSERT_TRUE(admin->create<Node>("", R"({"metadata":{"name":"n1"},"status":{
      "allocatable":{"cpu":"8","memory":"8Gi"}}})"));
  const auto pod =
      createPod(podBody("p", "100m", "200m",
                        R"("nodeName":"n1","initContainers":[{"name":"side","image":"x",
                        "restartPolicy":"Always","resources":{"requests":{"memory":"64Mi"},
                        "limits":{"cpu":"20m","memory":"64Mi"}}}],)",
                        R"(,"labels":{"app":"x"},"annotations":{"note":"mine"})"));
  const auto client = controller();
  const auto change = [&](const std::string& body, const std::string& part = "") {
    return client->patch<Pod>(ns, "p", PatchType::kStrategic, body, {.subresource = part});
  };
  const auto annotated =
      client->patch<Pod>(ns, "p", PatchType::kMerge, annotateOriginal(*pod, currentCpu(*pod)), {});
  ASSERT_TRUE(annotated) << annotated.error().describe();
  const auto original = parseOriginal(*find((*annotated)->meta.annotations, kOriginalResources));
  ASSERT_TRUE(original) << original.error().message();
  EXPECT_EQ(std::ranges::count(*original, OriginalCpu{"main", 100_m, 200_m}), 1);
  EXPECT_EQ(
      client->patch<Pod>(ns, "p", PatchType::kMerge, annotateOriginal(*pod, currentCpu(*pod)), {})
          .error()
          .code,
      409)
      << "the pod has changed since it was read";
  // From 1.36 on admission wants to know the node, and learns of it a moment later.
  EXPECT_TRUE(eventually([&] {
    return change(
               R"({"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"300m"}}}]}})",
               "resize")
        .has_value();
  }));

  // A resize changes CPU: neither memory of a container or of a sidecar, nor both at once.
  const auto resources = [](const std::string& part, const std::string& name,
                            const std::string& values) {
    return fmt::format(R"({{"spec":{{"{}":[{{"name":"{}","resources":{}}}]}}}})", part, name,
                       values);
  };
  expectTaken(change(resources("containers", "main", R"({"requests":{"cpu":"150m"}})"), "resize"));
  expectTaken(change(resources("initContainers", "side", R"({"limits":{"cpu":"30m"}})"), "resize"));
  for (const char* const more :
       {R"({"limits":{"memory":"128Mi"}})", R"({"limits":{"cpu":"400m","memory":"128Mi"}})",
        R"({"requests":{"memory":"32Mi"}})"}) {
    expectRefused(change(resources("containers", "main", more), "resize"), "changes only CPU");
    expectRefused(change(resources("initContainers", "side", more), "resize"), "changes only CPU");
    expectTaken(admin->patch<Pod>(ns, "p", PatchType::kStrategic,
                                  resources("containers", "main", more),
                                  {.subresource = "resize", .dry_run = true}));
  }

  expectRefused(change(R"({"metadata":{"annotations":{"mbcas.io/original-resources":"{}"}}})"),
                "never rewritten");
  expectRefused(change(R"({"metadata":{"annotations":{"note":"yours"}}})"), "only mbcas.io");
  expectRefused(change(R"({"metadata":{"annotations":{"note":null}}})"), "only mbcas.io");
  expectRefused(change(R"({"metadata":{"annotations":{"more":"x"}}})"), "only mbcas.io");
  expectRefused(change(R"({"metadata":{"labels":{"app":"y"}}})"), "no labels");
  expectRefused(change(R"({"metadata":{"finalizers":["example.com/stay"]}})"), "finalizers");
  expectRefused(change(R"({"spec":{"containers":[{"name":"main","image":"evil"}]}})"),
                "only through pods/resize");
  expectRefused(change(R"({"status":{"phase":"Failed"}})", "status"), "neither creates");
  expectRefused(client->create<Pod>(ns, podBody("q")), "neither creates");
  expectRefused(client->remove<Pod>(ns, "p"), "neither creates");
  expectRefused(
      client->perform({.method = "POST",
                       .path = Pod::kind().path(ns, "p", "eviction"),
                       .body = fmt::format(R"({{"apiVersion":"policy/v1","kind":"Eviction",
                               "metadata":{{"name":"p","namespace":"{}"}}}})",
                                           ns)}),
      "neither creates");

  expectTaken(change(R"({"metadata":{"annotations":{"mbcas.io/original-resources":null}}})"));
  expectTaken(
      admin->patch<Pod>(ns, "p", PatchType::kMerge, R"({"metadata":{"labels":{"app":"y"}}})"));
  expectTaken(admin->remove<Pod>(ns, "p", {.grace_seconds = 0}));
}

// What a tenant can write is no authority: the role `edit` may patch pods, but not resize them.
TEST_F(PodAllocationApiTest, OnlyWhoMayRestoreChangesTheWayBack) {
  // The controller manager would put these together to the roles `edit` and `admin`.
  const auto bind = [&](const std::string& user, const std::string& role, const std::string& as) {
    kubectl(
        fmt::format("create rolebinding -n {} {} --clusterrole={} --user={}", ns, as, role, user));
  };
  bind("tenant", "system:aggregate-to-edit", "tenant-edits");
  bind("owner", "system:aggregate-to-edit", "owner-edits");
  bind("owner", "system:aggregate-to-admin", "owner-administers");
  bind("jane", "mbcas-restore", "jane-restores");
  const auto tenant = as("tenant", "tenants");
  const auto owner = as("owner", "tenants");
  const auto jane = as("jane", "people");
  const auto node = as("system:node:n2", "system:nodes");
  const auto annotation = [](const std::string& value) {
    return R"({"metadata":{"annotations":{"mbcas.io/original-resources":)" + value + "}}}";
  };
  const auto change = [&](Client& client, const std::string& pod, const std::string& body,
                          const std::string& part = "") {
    return client.patch<Pod>(ns, pod, PatchType::kMerge, body, {.subresource = part});
  };
  const std::string forged = annotation(R"("{\"main\":{\"request\":\"64\",\"limit\":\"64\"}}")");
  const std::string other = R"({"metadata":{"annotations":{"mbcas.io/managed":"false"}}})";

  // Pods start whatever a template says.
  const auto copied =
      tenant->create<Pod>(ns, podBody("copied", "100m", "200m", "",
                                      R"(,"annotations":{"mbcas.io/original-resources":"{}"})"));
  expectTaken(copied);
  const auto pod = createPod(podBody("p", "100m", "200m", R"("nodeName":"n2",)"));
  // Roles count a moment after they were bound.
  EXPECT_TRUE(eventually([&] {
    return change(*tenant, "p", other) && change(*owner, "p", other) && change(*jane, "p", other);
  }));
  EXPECT_TRUE(
      eventually([&] { return refused(change(*tenant, "p", forged), "is kept by MBCAS"); }));

  // No one else adds it, takes it away or changes it; not by a detour either.
  for (Client* const client : {tenant.get(), owner.get()}) {
    expectRefused(change(*client, "p", forged), "may not restore podallocations");
    expectRefused(change(*client, "p", annotation(R"("")")), "may not restore podallocations");
  }
  expectRefused(change(*node, "p", forged, "status"), "may not restore podallocations");
  expectTaken(controller()->patch<Pod>(
      ns, "p", PatchType::kMerge,
      annotateOriginal(**admin->get<Pod>(ns, "p"), {{"main", 100_m, 200_m}}), {}));
  for (Client* const client : {tenant.get(), owner.get()}) {
    expectRefused(change(*client, "p", forged), "may not restore podallocations");
    expectRefused(change(*client, "p", annotation("null")), "may not restore podallocations");
    expectRefused(change(*client, "copied", annotation("null")), "may not restore podallocations");
    expectRefused(change(*client, "p", R"({"metadata":{"annotations":null}})"),
                  "may not restore podallocations");
  }
  expectRefused(change(*node, "p", annotation("null"), "status"), "may not restore podallocations");
  const std::string before((*admin->get<Pod>(ns, "p"))->meta.resource_version.view());

  // Everything else goes on: other keys, the kubelet's reports, a debugging container.
  expectTaken(change(*tenant, "p", R"({"metadata":{"annotations":{"mbcas.io/managed":null}}})"));
  expectTaken(change(*node, "p", R"({"status":{"phase":"Running"}})", "status"));
  expectTaken(
      admin->patch<Pod>(ns, "p", PatchType::kStrategic,
                        R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"x"}]}})",
                        {.subresource = "ephemeralcontainers"}));
  EXPECT_NE((*admin->get<Pod>(ns, "p"))->meta.resource_version, before);

  // Who may restore may, in that namespace only; so may a cluster-admin.
  expectTaken(change(*jane, "p", annotation("null")));
  expectTaken(change(*admin, "p", forged));
  expectTaken(change(*admin, "p", annotation("null")));
}

}  // namespace
}  // namespace mbcas::test
