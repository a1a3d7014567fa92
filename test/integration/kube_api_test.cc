// Every verb and kind of the client against a real kube-apiserver, and every way in which it
// refuses to resize a pod.
#include "mbcas/base/json_writer.h"
#include "mbcas/kube/events.h"
#include "test/integration/kube_fixture.h"
#include "test/support/pod_text.h"

namespace mbcas::test {
namespace {

using namespace kube;
using namespace literals;

class KubeApiTest : public KubeTest {
 protected:
  static void SetUpTestSuite() {
    planeOptions().users = {"nobody"};
    KubeTest::SetUpTestSuite();
  }

  // "422 ...: message" of a resize that must fail.
  std::string resizeError(const std::string& pod, const std::string& patch,
                          PatchType type = PatchType::kStrategic) {
    const auto result = admin->patch<Pod>(ns, pod, type, patch, {.subresource = "resize"});
    return result ? "accepted" : result.error().describe();
  }
  static std::string cpu(const std::string& request, const std::string& limit,
                         const std::string& container = "main") {
    std::string resources;
    if (!request.empty()) resources += fmt::format(R"("requests":{{"cpu":"{}"}})", request);
    if (!request.empty() && !limit.empty()) resources += ",";
    if (!limit.empty()) resources += fmt::format(R"("limits":{{"cpu":"{}"}})", limit);
    return fmt::format(R"({{"spec":{{"containers":[{{"name":"{}","resources":{{{}}}}}]}}}})",
                       container, resources);
  }
  int minor() { return admin->version().value_or(ServerVersion{}).minor; }
  // What a kubelet would write: the container runs, with or without resources in its status.
  void run(const std::string& pod, const std::string& resources) {
    const auto done = admin->patch<Pod>(
        ns, pod, PatchType::kStrategic,
        R"({"status":{"phase":"Running","containerStatuses":[{"name":"main","image":"x","imageID":"x",
        "ready":true,"restartCount":0,"containerID":"containerd://1",)" +
            resources + R"("state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}})",
        {.subresource = "status"});
    ASSERT_TRUE(done) << done.error().describe();
  }
};

TEST_F(KubeApiTest, KnowsWhereItIs) {
  const auto version = admin->version();
  ASSERT_TRUE(version) << version.error().describe();
  EXPECT_EQ(version->major, 1);
  EXPECT_GE(version->minor, 33);
  EXPECT_TRUE(admin->require("v1", "pods/resize"));
  EXPECT_TRUE(admin->require("coordination.k8s.io/v1", "leases"));
  const Result<void> missing = admin->require("v1", "pods/teleport");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find(version->git_version), std::string::npos);
  EXPECT_FALSE(admin->require("nonsense.example.com/v1", "things"));
}

TEST_F(KubeApiTest, VerifiesTheServer) {
  config.ca = {};
  Client untrusting(loop, config, clock);
  const auto result = untrusting.get<Namespace>("", ns);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, ApiError::kConnect) << result.error().describe();
  EXPECT_EQ(result.error().describe().find(config.token), std::string::npos);
  config.insecure = true;
  EXPECT_TRUE(Client(loop, config, clock).get<Namespace>("", ns));
}

TEST_F(KubeApiTest, ConnectsUnderAnotherServerName) {
  config.tls_server_name = "kubernetes.default.svc";
  const auto result = Client(loop, config, clock).get<Namespace>("", ns);
  EXPECT_TRUE(result) << result.error().describe();
  config.tls_server_name = "wrong.example.com";
  EXPECT_FALSE(Client(loop, config, clock).get<Namespace>("", ns));
}

TEST_F(KubeApiTest, AsksWhatItMay) {
  const AccessQuestion question{.verb = "patch", .resource = "pods", .subresource = "resize"};
  EXPECT_TRUE(admin->mayI(question)->allowed);
  config.token = plane->userTokens().at("nobody");
  Client nobody(loop, config, clock);
  const auto answer = nobody.mayI(question);
  ASSERT_TRUE(answer) << answer.error().describe();
  EXPECT_FALSE(answer->allowed);
  const auto refused = nobody.get<Pod>(ns, "p");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 403);
  EXPECT_EQ(refused.error().reason, "Forbidden");
  config.token = "not-a-token";
  EXPECT_EQ(Client(loop, config, clock).get<Pod>(ns, "p").error().code, 401);
}

TEST_F(KubeApiTest, AsksForManyPermissionsAtOnce) {
  const std::vector<AccessQuestion> questions = {
      {.verb = "patch", .resource = "pods", .subresource = "resize"},
      {.verb = "list", .group = "apps", .resource = "deployments"},
      {.verb = "create",
       .group = "authorization.k8s.io",
       .resource = "selfsubjectaccessreviews"},  // everybody may
  };
  const auto of_admin = admin->mayNot(questions, ns);
  ASSERT_TRUE(of_admin) << of_admin.error().describe();
  EXPECT_TRUE(of_admin->empty());
  config.token = plane->userTokens().at("nobody");
  const auto of_nobody = Client(loop, config, clock).mayNot(questions, ns);
  ASSERT_TRUE(of_nobody) << of_nobody.error().describe();
  ASSERT_EQ(of_nobody->size(), 2u);
  EXPECT_EQ(of_nobody->front().subresource, "resize");
}

TEST_F(KubeApiTest, Impersonates) {
  config.impersonate.user = "nobody";
  EXPECT_FALSE(Client(loop, config, clock).mayI({.verb = "get", .resource = "pods"})->allowed);
  config.impersonate.groups = {"system:masters"};
  EXPECT_TRUE(Client(loop, config, clock).mayI({.verb = "get", .resource = "pods"})->allowed);
}

TEST_F(KubeApiTest, EveryVerb) {
  // create, get
  const auto created = admin->create<ConfigMap>(ns, configMapBody("c", "1"));
  ASSERT_TRUE(created) << created.error().describe();
  EXPECT_EQ(find((*created)->data, "v"), "1");
  const auto again = admin->create<ConfigMap>(ns, configMapBody("c", "1"));
  ASSERT_FALSE(again);
  EXPECT_TRUE(again.error().alreadyExists());
  EXPECT_TRUE(admin->get<ConfigMap>(ns, "missing").error().notFound());

  // update, and its conflict
  const auto body = [&](std::string_view version, const std::string& value) {
    return fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c",
      "resourceVersion":"{}"}},"data":{{"v":"{}"}}}})",
                       version, value);
  };
  const auto updated =
      admin->update<ConfigMap>(ns, "c", body((*created)->meta.resource_version, "2"));
  ASSERT_TRUE(updated) << updated.error().describe();
  const auto stale =
      admin->update<ConfigMap>(ns, "c", body((*created)->meta.resource_version, "3"));
  ASSERT_FALSE(stale);
  EXPECT_TRUE(stale.error().conflict());
  EXPECT_FALSE(stale.error().applyConflict());

  // patch: merge, JSON, strategic; dry run
  EXPECT_TRUE(admin->patch<ConfigMap>(ns, "c", PatchType::kMerge, R"({"data":{"w":"1"}})"));
  EXPECT_TRUE(admin->patch<ConfigMap>(ns, "c", PatchType::kJson,
                                      R"([{"op":"replace","path":"/data/w","value":"2"}])"));
  EXPECT_TRUE(admin->patch<ConfigMap>(ns, "c", PatchType::kStrategic, R"({"data":{"v":"9"}})",
                                      {.dry_run = true}));
  const auto now = admin->get<ConfigMap>(ns, "c");
  EXPECT_EQ(find((*now)->data, "v"), "2");
  EXPECT_EQ(find((*now)->data, "w"), "2");

  // list, with selectors and in pages
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(admin->create<ConfigMap>(
        ns, fmt::format(R"({{"metadata":{{"name":"p{0}","labels":{{"n":"{0}"}}}}}})", i)));
  }
  const auto pages = admin->list<ConfigMap>({.name_space = ns, .label_selector = "n", .page = 2});
  ASSERT_TRUE(pages) << pages.error().describe();
  EXPECT_EQ(pages->items.size(), 7u);
  EXPECT_FALSE(pages->resource_version.empty());
  EXPECT_EQ(admin->list<ConfigMap>({.name_space = ns, .field_selector = "metadata.name=p3"})
                ->items.size(),
            1u);
  EXPECT_EQ(admin->list<ConfigMap>({.field_selector = "no.such=field"}).error().code, 400);

  // delete, guarded by uid
  const auto wrong = admin->remove<ConfigMap>(ns, "c", {.uid = "other"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, 409);
  EXPECT_TRUE(admin->remove<ConfigMap>(ns, "c", {.uid = (*now)->meta.uid.string()}));
  EXPECT_TRUE(admin->remove<ConfigMap>(ns, "c").error().notFound());
}

TEST_F(KubeApiTest, EveryKind) {
  const auto meta = [](const std::string& name) {
    return fmt::format(R"("metadata":{{"name":"{}"}})", name);
  };
  const auto node =
      admin->create<Node>("", "{" + meta("node-" + ns) + R"(,"spec":{"unschedulable":true}})");
  ASSERT_TRUE(node) << node.error().describe();
  const auto ready = admin->patch<Node>(
      "", "node-" + ns, PatchType::kStrategic,
      R"({"status":{"capacity":{"cpu":"4","memory":"1Gi"},"allocatable":{"cpu":"3500m"},
      "conditions":[{"type":"Ready","status":"True"}]}})",
      {.subresource = "status"});
  ASSERT_TRUE(ready) << ready.error().describe();
  EXPECT_TRUE((*ready)->ready && (*ready)->unschedulable);
  EXPECT_EQ((*ready)->allocatable.cpu(), 3500_m);

  const auto lease = admin->create<Lease>(
      ns,
      "{" + meta("l") +
          R"(,"spec":{"holderIdentity":"me","leaseDurationSeconds":5,"renewTime":"2026-01-01T00:00:00.123456Z"}})");
  ASSERT_TRUE(lease) << lease.error().describe();
  EXPECT_EQ((*lease)->holder, "me");

  const auto range = admin->create<LimitRange>(
      ns,
      "{" + meta("r") +
          R"(,"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"cpu":"10m"}}]}})");
  ASSERT_TRUE(range) << range.error().describe();
  EXPECT_EQ((*range)->limits[0].max.cpu(), 2000_m);
  EXPECT_EQ((*range)->limits[0].min.cpu(), 10_m);

  const auto quota = admin->create<ResourceQuota>(
      ns, "{" + meta("q") + R"(,"spec":{"hard":{"limits.cpu":"1500m"}}})");
  ASSERT_TRUE(quota) << quota.error().describe();
  EXPECT_EQ(find((*quota)->hard, "limits.cpu"), "1500m");

  const auto hpa = admin->create<HorizontalPodAutoscaler>(
      ns,
      "{" + meta("h") + R"(,"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment",
      "name":"web"},"maxReplicas":5,"metrics":[{"type":"Resource","resource":{"name":"cpu",
      "target":{"type":"Utilization","averageUtilization":70}}}]}})");
  ASSERT_TRUE(hpa) << hpa.error().describe();
  EXPECT_EQ((*hpa)->target.name, "web");
  EXPECT_EQ((*hpa)->metrics[0].average_utilization, 70);

  const auto pdb = admin->create<PodDisruptionBudget>(
      ns,
      "{" + meta("b") + R"(,"spec":{"minAvailable":"50%","selector":{"matchLabels":{"a":"b"}}}})");
  ASSERT_TRUE(pdb) << pdb.error().describe();
  EXPECT_TRUE((*pdb)->selector.present);

  EXPECT_EQ((*admin->get<Namespace>("", ns))->phase, "Active");
  EXPECT_EQ(admin->list<Lease>({.name_space = ns})->items.size(), 1u);

  const auto pod = createPod(podBody("p", "100m", "200m", R"("nodeName":"n1",)"));
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->qos, QosClass::kBurstable);
  EXPECT_EQ(pod->meta.generation, 1);
  EXPECT_EQ(
      admin->list<Pod>({.name_space = ns, .field_selector = "spec.nodeName=n1"})->items.size(), 1u);
}

// The VPA is a custom resource: known only where its definition is installed.
TEST_F(KubeApiTest, CustomResources) {
  struct Definition : Object {
    using Object::Object;
    static const Kind& kind() {
      static const Kind kKind =
          makeKind<Definition>({.group = "apiextensions.k8s.io",
                                .version = "v1",
                                .plural = "customresourcedefinitions",
                                .name = "CustomResourceDefinition",
                                .namespaced = false},
                               [](Definition&, std::string_view, JsonCursor) {});
      return kKind;
    }
  };
  const auto defined = admin->create<Definition>("", R"({"apiVersion":"apiextensions.k8s.io/v1",
    "kind":"CustomResourceDefinition","metadata":{"name":"verticalpodautoscalers.autoscaling.k8s.io",
    "annotations":{"api-approved.kubernetes.io":"unapproved, for a test"}},
    "spec":{"group":"autoscaling.k8s.io","scope":"Namespaced","names":{"plural":"verticalpodautoscalers",
    "kind":"VerticalPodAutoscaler"},"versions":[{"name":"v1","served":true,"storage":true,"schema":
    {"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})");
  ASSERT_TRUE(defined) << defined.error().describe();
  ASSERT_TRUE(eventually([&] {
    return admin->require("autoscaling.k8s.io/v1", "verticalpodautoscalers").has_value();
  }));
  const std::string body = R"({"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler",
    "metadata":{"name":"v"},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},
    "updatePolicy":{"updateMode":"InPlaceOrRecreate"}}})";
  std::string error;
  ASSERT_TRUE(eventually([&] {
    const auto created = admin->create<VerticalPodAutoscaler>(ns, body);
    if (!created) error = created.error().describe();
    return created || created.error().alreadyExists();
  })) << error;
  const auto vpa = admin->get<VerticalPodAutoscaler>(ns, "v");
  ASSERT_TRUE(vpa) << vpa.error().describe();
  EXPECT_EQ((*vpa)->target.name, "d");
  EXPECT_TRUE((*vpa)->activeOnCpu("main"));
}

// What the server writes as protobuf and as JSON decodes to the same pods.
TEST_F(KubeApiTest, BothEncodingsGiveTheSamePods) {
  createPod(podBody("plain"));
  run("plain", R"("resources":{"requests":{"cpu":"100m"}},"allocatedResources":{"cpu":"100m"},)");
  createPod(podBody(
      "full", "0.1", "1500m",
      R"("nodeName":"n1","restartPolicy":"OnFailure","initContainers":[{"name":"init","image":"x"},
      {"name":"side","image":"x","restartPolicy":"Always","resources":{"limits":{"cpu":"1"}}}],)",
      R"(,"labels":{"a":"b","empty":""},"annotations":{"x/y":"\u00e9 \"q\"","mbcas.io/z":"1"},
      "finalizers":["example.com/hold"],"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet",
      "name":"r","uid":"u1","controller":true},{"apiVersion":"v1","kind":"Node","name":"n","uid":"u2"}])"));
  ASSERT_TRUE(admin->patch<Pod>(
      ns, "full", PatchType::kStrategic,
      R"({"status":{"phase":"Running","qosClass":"Burstable","conditions":[{"type":"Ready","status":"True"},
      {"type":"PodResizePending","status":"True","reason":"Deferred","message":"m"},
      {"type":"PodResizeInProgress","status":"True","reason":"Error"}],"initContainerStatuses":[
      {"name":"side","image":"x","imageID":"x","ready":true,"restartCount":2,"containerID":"c://1",
      "state":{"terminated":{"exitCode":1}}}]}})",
      {.subresource = "status"}));
  createPod(podBody("windows", "1", "2", R"("os":{"name":"windows"},)"));
  createPod(podBody("critical", "1", "1", R"("priorityClassName":"system-node-critical",)"));
  createPod(podBody("mirror", "1", "2", R"("nodeName":"n1",)",
                    R"(,"annotations":{"kubernetes.io/config.mirror":"x"})"));
  createPod(podBody("leaving", "1", "2", R"("nodeName":"n1",)"));
  ASSERT_TRUE(admin->remove<Pod>(ns, "leaving", {.grace_seconds = 600}));

  const auto texts = [&](const Kind& kind) {
    std::vector<std::string> pods;
    const auto version = admin->listObjects(
        kind, {.name_space = ns, .page = 2},
        [&](const ObjectPtr& pod) { pods.push_back(textOf(static_cast<const Pod&>(*pod))); });
    EXPECT_TRUE(version) << version.error().describe();
    return pods;
  };
  Kind json = Pod::kind();
  json.protobuf = nullptr;
  const std::vector<std::string> expected = texts(json);
  EXPECT_EQ(expected.size(), 6u);
  EXPECT_EQ(texts(Pod::kind()), expected);

  // A refusal comes in the same encoding.
  const auto refused = admin->list<Pod>({.field_selector = "no.such=field"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 400);
  EXPECT_EQ(refused.error().reason, "BadRequest");
}

TEST_F(KubeApiTest, AppliesAndReportsConflicts) {
  const std::string mine =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1","b":"1"}})";
  ASSERT_TRUE(admin->apply<ConfigMap>(ns, "c", mine, {.field_manager = "me"}));
  const std::string theirs =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"2"}})";
  const auto conflict = admin->apply<ConfigMap>(ns, "c", theirs, {.field_manager = "you"});
  ASSERT_FALSE(conflict);
  EXPECT_TRUE(conflict.error().applyConflict()) << conflict.error().describe();
  EXPECT_EQ(conflict.error().causes[0].field, ".data.a");
  EXPECT_NE(conflict.error().causes[0].message.find("me"), std::string::npos);
  const auto forced =
      admin->apply<ConfigMap>(ns, "c", theirs, {.field_manager = "you", .force = true});
  ASSERT_TRUE(forced) << forced.error().describe();
  EXPECT_EQ(find((*forced)->data, "a"), "2");
  EXPECT_EQ(find((*forced)->data, "b"), "1");
  // What a manager no longer applies, and nobody else manages, goes away.
  const auto dropped = admin->apply<ConfigMap>(
      ns, "c", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}})",
      {.field_manager = "me"});
  EXPECT_EQ(find((*dropped)->data, "b"), std::nullopt);
  EXPECT_EQ(find((*dropped)->data, "a"), "2");
  EXPECT_EQ(admin->apply<ConfigMap>(ns, "c", mine, {}).error().code, 422);  // manager is required
}

TEST_F(KubeApiTest, ResizesAPod) {
  const auto pod = createPod(podBody("p"));
  run("p", R"("resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"200m"}},)");
  const auto resized = admin->patch<Pod>(
      ns, "p", PatchType::kStrategic,
      fmt::format(
          R"({{"metadata":{{"uid":"{}","labels":{{"ignored":"yes"}}}},"spec":{{"containers":[
        {{"name":"main","resources":{{"limits":{{"cpu":"1500m"}}}}}}]}}}})",
          pod->meta.uid.view()),
      {.subresource = "resize"});
  ASSERT_TRUE(resized) << resized.error().describe();
  EXPECT_EQ((*resized)->container("main")->limits.cpu(), 1500_m);
  EXPECT_EQ((*resized)->container("main")->requests.cpu(), 100_m);
  EXPECT_EQ((*resized)->meta.generation, 2);
  EXPECT_TRUE((*resized)->meta.labels.empty());
  EXPECT_EQ((*resized)->status("main")->limits.cpu(), 200_m);  // nobody has actuated it
  EXPECT_TRUE(admin->get<Pod>(ns, "p", "resize"));

  const auto pending = admin->patch<Pod>(
      ns, "p", PatchType::kStrategic,
      R"({"status":{"observedGeneration":2,"conditions":[{"type":"PodResizePending","status":"True",
      "reason":"Infeasible","message":"no","observedGeneration":2}]}})",
      {.subresource = "status"});
  ASSERT_TRUE(pending) << pending.error().describe();
  EXPECT_EQ((*pending)->resizePending().reason, "Infeasible");
  EXPECT_EQ((*pending)->observed_generation, minor() >= 34 ? 2 : 0);  // off by default before
  EXPECT_TRUE(admin->patch<Pod>(ns, "p", PatchType::kStrategic, cpu("", "1000"),
                                {.subresource = "resize", .dry_run = true}));
}

TEST_F(KubeApiTest, EveryRefusalOfAResizeIsAnInvalidWithItsReason) {
  createPod(podBody("p"));
  const auto refused = [&](const std::string& pod, const std::string& patch,
                           const std::string& text, PatchType type = PatchType::kStrategic) {
    SCOPED_TRACE(pod + ": " + patch);
    const std::string error = resizeError(pod, patch, type);
    EXPECT_TRUE(error.starts_with("422 Invalid")) << error;
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  refused("p", cpu("200m", ""), "Pod QOS Class may not change as a result of resizing");
  refused("p", cpu("300m", ""), "must be less than or equal to cpu limit of 200m");
  refused("p", R"({"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":null}}}]}})",
          "resource limits cannot be removed");
  refused(
      "p",
      R"({"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":null},"limits":{"cpu":null}}}]}})",
      "resource requests cannot be removed");
  refused(
      "p",
      R"({"spec":{"containers":[{"name":"main","resources":{"limits":{"ephemeral-storage":"1Gi"}}}]}})",
      "only cpu and memory resources are mutable");
  refused(
      "p",
      R"({"spec":{"containers":[{"name":"main","resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]}]}})",
      "only cpu and memory resources are mutable");
  refused("p", R"({"spec":{"containers":[{"name":"new","image":"x"}]}})", "containers may not be");
  refused("p", R"([{"op":"replace","path":"/spec/containers/0/name","value":"renamed"}])",
          "containers may not be", PatchType::kJson);

  const auto effort = admin->create<Pod>(
      ns, R"({"metadata":{"name":"effort"},"spec":{"containers":[{"name":"main","image":"x"}]}})");
  ASSERT_TRUE(effort);
  EXPECT_EQ((*effort)->qos, QosClass::kBestEffort);
  refused("effort", cpu("100m", "200m"), "Pod QOS Class may not change");

  createPod(podBody(
      "two", "100m", "200m",
      R"("initContainers":[{"name":"init","image":"x","resources":{"requests":{"cpu":"50m"}}},
                    {"name":"side","image":"x","restartPolicy":"Always","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"100m"}}}],)"));
  if (minor() < 36) {  // from then on they may be resized while the pod has not begun
    refused(
        "two",
        R"({"spec":{"initContainers":[{"name":"init","resources":{"requests":{"cpu":"60m"}}}]}})",
        "resources for non-sidecar init containers are immutable");
  }
  EXPECT_EQ(
      resizeError(
          "two",
          R"({"spec":{"initContainers":[{"name":"side","resources":{"limits":{"cpu":"150m"}}}]}})"),
      "accepted");

  createPod(podBody("mirror", "100m", "200m", R"("nodeName":"n1",)",
                    R"(,"annotations":{"kubernetes.io/config.mirror":"x"})"));
  refused("mirror", cpu("", "300m"), "static pods cannot be resized");

  createPod(podBody("windows", "100m", "200m", R"("os":{"name":"windows"},)"));
  refused("windows", cpu("", "300m"), "windows pods cannot be resized");

  if (minor() >= 34) {  // before, the server drops what it does not know
    createPod(
        podBody("level", "100m", "200m", R"("resources":{"limits":{"cpu":"1","memory":"1Gi"}},)"));
    EXPECT_TRUE(admin->get<Pod>(ns, "level").value()->pod_level_resources);
    const std::string level =
        resizeError("level", R"({"spec":{"resources":{"limits":{"cpu":"2"}}}})");
    EXPECT_TRUE(minor() >= 36 ? level == "accepted" : level.starts_with("422 Invalid")) << level;
  }

  createPod(podBody("old"));
  run("old", "");
  EXPECT_FALSE(admin->get<Pod>(ns, "old").value()->nodeSupportsResize());
  refused("old", cpu("", "300m"), "Pod running on node without support for resize");

  // Guards: another incarnation, an older version, a kind of patch that does not exist.
  refused("p", R"({"metadata":{"uid":"other"},"spec":{"containers":[]}})", "uid");
  EXPECT_TRUE(resizeError("p", R"({"metadata":{"resourceVersion":"1"},"spec":{"containers":[]}})")
                  .starts_with("409 Conflict"));
  Call odd =
      Client::patchCall(Pod::kind(), ns, "p", PatchType::kMerge, "{}", {.subresource = "resize"});
  odd.content_type = "application/nonsense";
  EXPECT_EQ(admin->perform(odd).error().code, 415);
  EXPECT_EQ(
      admin->patch<Pod>(ns, "p", PatchType::kMerge, "{}", {.subresource = "teleport"}).error().code,
      404);
  EXPECT_EQ(
      admin->patch<Pod>(ns, "gone", PatchType::kStrategic, cpu("", "1"), {.subresource = "resize"})
          .error()
          .code,
      404);
}

TEST_F(KubeApiTest, QuotaLimitRangeAndRbacForbid) {
  createPod(podBody("p"));
  ASSERT_TRUE(admin->create<ResourceQuota>(
      ns, R"({"metadata":{"name":"q"},"spec":{"hard":{"limits.cpu":"500m"}}})"));
  // The quota controller would write this; admission reads it.
  ASSERT_TRUE(admin->patch<ResourceQuota>(
      ns, "q", PatchType::kMerge,
      R"({"status":{"hard":{"limits.cpu":"500m"},"used":{"limits.cpu":"200m"}}})",
      {.subresource = "status"}));
  std::string error;
  // Admission learns of a quota or range a moment later, and accepts until then: back to the start
  // before each attempt, because a repeated value is no rise and would never be refused.
  const auto refuses = [&](const std::string& limit, const std::string& text) {
    return eventually([&] {
      if (error = resizeError("p", cpu("", "200m")); error != "accepted") return false;
      error = resizeError("p", cpu("", limit));
      return error.starts_with("403 Forbidden") && error.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(refuses("800m", "exceeded quota: q")) << error;
  ASSERT_TRUE(admin->remove<ResourceQuota>(ns, "q"));

  ASSERT_TRUE(admin->create<LimitRange>(
      ns,
      R"({"metadata":{"name":"r"},"spec":{"limits":[{"type":"Container","max":{"cpu":"600m"}}]}})"));
  EXPECT_TRUE(refuses("5", "maximum cpu usage per Container is 600m")) << error;

  config.token = plane->userTokens().at("nobody");
  Client nobody(loop, config, clock);
  EXPECT_EQ(
      nobody.patch<Pod>(ns, "p", PatchType::kStrategic, cpu("", "1"), {.subresource = "resize"})
          .error()
          .code,
      403);
}

TEST_F(KubeApiTest, RecordsEventsOnObjects) {
  const auto pod = createPod(podBody("p"));
  EventRecorder recorder(*admin, "tester");
  const Note note{.about = ObjectReference::to(Pod::kind(), pod->meta),
                  .type = EventType::kWarning,
                  .reason = "TooSlow",
                  .message = "was slow"};
  for (int i = 0; i < 3; ++i) recorder.record(note);
  ASSERT_TRUE(recorder.flush(std::chrono::seconds(60)));
  const auto events =
      admin->list<Event>({.name_space = ns, .field_selector = "involvedObject.name=p"});
  ASSERT_TRUE(events) << events.error().describe();
  ASSERT_EQ(events->items.size(), 1u);
  const Event& event = *events->items[0];
  EXPECT_EQ(event.count, 3);
  EXPECT_EQ(event.reason, "TooSlow");
  EXPECT_EQ(event.source, "tester");
  EXPECT_EQ(event.involved_uid, pod->meta.uid.view());
  // It is deleted (as the server does after an hour): the next note makes a new one.
  ASSERT_TRUE(admin->remove<Event>(ns, event.meta.name));
  recorder.record(note);
  ASSERT_TRUE(recorder.flush(std::chrono::seconds(60)));
  EXPECT_EQ(admin->list<Event>({.name_space = ns})->items.size(), 1u);
}

}  // namespace
}  // namespace mbcas::test
