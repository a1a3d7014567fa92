// The actuator against a real kube-apiserver and a fake kubelet: every verdict, and every refusal
// both as the server words it and as the client foresees it.
#include <thread>

#include "mbcas/resize/resize.h"
#include "test/integration/kube_fixture.h"
#include "test/support/fake_kubelet.h"

namespace mbcas::test {
namespace {

using namespace kube;
using namespace literals;
using namespace std::chrono_literals;
using resize::Outcome;
using resize::Refusal;
using resize::Request;
using resize::Verdict;
using Behaviour = FakeKubelet::Behaviour;
using PodPtr = std::shared_ptr<const Pod>;

constexpr std::chrono::seconds kPatience(90);  // for what should happen at once

class ResizeApiTest : public KubeTest {
 protected:
  static void SetUpTestSuite() {
    planeOptions().users = {"nobody"};
    KubeTest::SetUpTestSuite();
  }
  void SetUp() override {
    KubeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    node = "node-" + ns;
  }

  std::string onNode() const { return fmt::format(R"("nodeName":"{}",)", node); }
  // A pod that the kubelet of `node` has started.
  PodPtr running(const std::string& name, const std::string& more_spec = "") {
    createPod(podBody(name, "100m", "200m", onNode() + more_spec));
    PodPtr pod;
    EXPECT_TRUE(eventually([&] {
      pod = *admin->get<Pod>(ns, name);
      return pod->phase == PodPhase::kRunning;
    }));
    return pod;
  }
  static Request limit(Millicores cpu, const std::string& container = "main") {
    return {.containers = {{.name = container, .limit = cpu}}};
  }
  // Of what must be accepted.
  resize::Attempt sent(const Pod& pod, const Request& request) {
    // From 1.36 on admission wants to know the node, and learns of it a moment later.
    Outcome outcome;
    eventually([&] {
      outcome = submit(*admin, pod, request);
      return !outcome.message.contains("is forbidden: node ");
    });
    EXPECT_EQ(outcome.verdict, Verdict::kAccepted) << outcome.message;
    return outcome.attempt.value_or(resize::Attempt{});
  }
  // What the server says to a request that the client would not even send.
  Outcome asked(const std::string& name, const Request& request) {
    const PodPtr pod = *admin->get<Pod>(ns, name);
    const auto answer =
        admin->patch<Pod>(ns, name, PatchType::kStrategic, resize::patchBody(*pod, request),
                          {.subresource = "resize"});
    return answer ? Outcome{.verdict = Verdict::kAccepted} : resize::interpret(answer.error());
  }
  std::optional<Refusal> foreseen(const std::string& name, const Request& request) {
    const auto rejection = resize::check(**admin->get<Pod>(ns, name), request);
    return rejection ? std::optional(rejection->refusal) : std::nullopt;
  }

  std::string node;
};

TEST_F(ResizeApiTest, Done) {
  FakeKubelet kubelet(*admin, {.node = node});
  const PodPtr pod = running("p");
  const resize::Attempt attempt = sent(*pod, limit(750_m));
  EXPECT_EQ(attempt.generation, 2);
  const Outcome end = wait(*admin, attempt, kPatience);
  EXPECT_EQ(end.verdict, Verdict::kDone) << end.message << kubelet.trouble();
  EXPECT_EQ((*admin->get<Pod>(ns, "p"))->status("main")->limits.cpu(), 750_m);
  EXPECT_EQ(kubelet.actuated("p"), 1);

  // Again the same: nothing to do, and that is known at once.
  const PodPtr now = *admin->get<Pod>(ns, "p");
  EXPECT_TRUE(isNoOp(*now, limit(750_m)));
  const resize::Attempt again = sent(*now, limit(750_m));
  EXPECT_FALSE(again.changed);
  EXPECT_EQ(judge(*now, again).verdict, Verdict::kDone);
}

TEST_F(ResizeApiTest, DoneWithoutObservedGeneration) {
  FakeKubelet kubelet(*admin, {.node = node, .observed_generation = false});
  const PodPtr pod = running("p");
  EXPECT_EQ(pod->observed_generation, 0);
  kubelet.behave(Behaviour::kSilent);
  const resize::Attempt attempt = sent(*pod, limit(750_m));
  EXPECT_EQ(judge(**admin->get<Pod>(ns, "p"), attempt).verdict, Verdict::kAccepted);
  kubelet.setDelay(200ms);
  kubelet.behave(Behaviour::kApply);
  EXPECT_EQ(wait(*admin, attempt, kPatience).verdict, Verdict::kDone) << kubelet.trouble();
}

TEST_F(ResizeApiTest, SeveralContainersAndASidecar) {
  FakeKubelet kubelet(*admin, {.node = node});
  const PodPtr pod =
      running("p", R"("initContainers":[{"name":"setup","image":"x"},{"name":"proxy","image":"x",
      "restartPolicy":"Always","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"100m"}}}],)");
  const auto containers = resize::split(*pod, 600_m);
  ASSERT_TRUE(containers) << containers.error().message();
  const Outcome end = wait(*admin, sent(*pod, {.containers = *containers}), kPatience);
  EXPECT_EQ(end.verdict, Verdict::kDone) << end.message << kubelet.trouble();
  const PodPtr now = *admin->get<Pod>(ns, "p");
  EXPECT_EQ(now->status("main")->limits.cpu(), 400_m);
  EXPECT_EQ(now->status("proxy")->limits.cpu(), 200_m);
  EXPECT_EQ(now->status("main")->requests.cpu(), 100_m);
}

TEST_F(ResizeApiTest, RequestsAndBoth) {
  FakeKubelet kubelet(*admin, {.node = node});
  const PodPtr pod = running("p");
  EXPECT_EQ(wait(*admin, sent(*pod, {.containers = {{"main", 150_m, {}}}}), kPatience).verdict,
            Verdict::kDone);
  createPod(podBody("g", "200m", "200m", onNode()));
  ASSERT_TRUE(eventually([&] { return (*admin->get<Pod>(ns, "g"))->phase == PodPhase::kRunning; }));
  const PodPtr guaranteed = *admin->get<Pod>(ns, "g");
  EXPECT_EQ(guaranteed->qos, QosClass::kGuaranteed);
  const auto both = resize::split(*guaranteed, 300_m, resize::Policy::kBoth);
  EXPECT_EQ(wait(*admin, sent(*guaranteed, {.containers = *both}), kPatience).verdict,
            Verdict::kDone);
}

TEST_F(ResizeApiTest, DeferredAndThenDone) {
  FakeKubelet kubelet(*admin, {.node = node});
  const PodPtr pod = running("p");
  kubelet.behave(Behaviour::kDefer, "p");
  const resize::Attempt attempt = sent(*pod, limit(750_m));
  ASSERT_TRUE(eventually(
      [&] { return judge(**admin->get<Pod>(ns, "p"), attempt).verdict == Verdict::kDeferred; }));
  // Not before the time is over; a slow machine may not even have looked by then.
  Outcome so_far;
  EXPECT_TRUE(eventually([&] {
    so_far = wait(*admin, attempt, 1s);
    return so_far.verdict == Verdict::kDeferred;
  })) << name(so_far.verdict);
  EXPECT_NE(so_far.message.find("as the test wants it"), std::string::npos) << so_far.message;
  kubelet.behave(Behaviour::kApply, "p");
  EXPECT_EQ(wait(*admin, attempt, kPatience).verdict, Verdict::kDone) << kubelet.trouble();
}

TEST_F(ResizeApiTest, InfeasibleAndTheWayBack) {
  FakeKubelet kubelet(*admin, {.node = node});
  const PodPtr pod = running("p");
  kubelet.behave(Behaviour::kRefuse, "p");
  EXPECT_EQ(wait(*admin, sent(*pod, limit(1000000_m)), kPatience).verdict, Verdict::kInfeasible);
  // Back to what runs: the kubelet has nothing to do but to say so.
  const PodPtr now = *admin->get<Pod>(ns, "p");
  EXPECT_EQ(wait(*admin, sent(*now, limit(200_m)), kPatience).verdict, Verdict::kDone)
      << kubelet.trouble();
}

TEST_F(ResizeApiTest, TimedOut) {
  FakeKubelet kubelet(*admin, {.node = node});
  const PodPtr pod = running("p");
  kubelet.behave(Behaviour::kSilent);
  const resize::Attempt attempt = sent(*pod, limit(750_m));
  Outcome end;
  const auto times_out = [&](std::string_view message) {
    return eventually([&] {
      end = wait(*admin, attempt, 1s);
      return end.verdict == Verdict::kTimedOut && end.message.contains(message);
    });
  };
  EXPECT_TRUE(times_out("the kubelet has not seen the resize yet"))
      << name(end.verdict) << end.message;
  kubelet.behave(Behaviour::kFail);
  EXPECT_TRUE(times_out("failed and retries")) << name(end.verdict) << end.message;
}

TEST_F(ResizeApiTest, Superseded) {
  FakeKubelet kubelet(*admin, {.node = node});
  const PodPtr pod = running("p");
  kubelet.behave(Behaviour::kSilent);
  const resize::Attempt mine = sent(*pod, limit(750_m));
  const resize::Attempt theirs = sent(*pod, limit(800_m));
  EXPECT_EQ(wait(*admin, mine, kPatience).verdict, Verdict::kSuperseded);
  kubelet.behave(Behaviour::kApply);
  EXPECT_EQ(wait(*admin, theirs, kPatience).verdict, Verdict::kDone);
}

TEST_F(ResizeApiTest, Gone) {
  FakeKubelet kubelet(*admin, {.node = node});
  const PodPtr pod = running("p");
  kubelet.behave(Behaviour::kFail);
  const resize::Attempt attempt = sent(*pod, limit(750_m));
  Outcome end;
  std::jthread waiting([&] { end = wait(*admin, attempt, kPatience); });
  ASSERT_TRUE(admin->remove<Pod>(ns, "p", {.grace_seconds = 0}));
  waiting.join();
  EXPECT_EQ(end.verdict, Verdict::kGone) << end.message;
  EXPECT_EQ(wait(*admin, attempt, kPatience).verdict, Verdict::kGone) << "before the watch began";
  EXPECT_EQ(submit(*admin, *pod, limit(750_m)).verdict, Verdict::kGone);

  running("p");
  EXPECT_EQ(submit(*admin, *pod, limit(750_m)).verdict, Verdict::kGone) << "another incarnation";
  EXPECT_EQ(wait(*admin, attempt, kPatience).verdict, Verdict::kGone);
}

TEST_F(ResizeApiTest, DryRunChangesNothing) {
  const PodPtr pod = createPod(podBody("p"));
  const Outcome outcome = submit(*admin, *pod, limit(750_m), {.dry_run = true});
  EXPECT_EQ(outcome.verdict, Verdict::kAccepted) << outcome.message;
  EXPECT_EQ((*admin->get<Pod>(ns, "p"))->container("main")->limits.cpu(), 200_m);
}

TEST_F(ResizeApiTest, MayNotWatch) {
  FakeKubelet kubelet(*admin, {.node = node});
  const PodPtr pod = running("p");
  const resize::Attempt attempt = sent(*pod, limit(750_m));
  config.token = plane->userTokens().at("nobody");
  Client nobody(loop, config, clock);
  EXPECT_EQ(wait(nobody, attempt, kPatience).verdict, Verdict::kUnreachable);
  const Outcome outcome = submit(nobody, *pod, limit(750_m));
  EXPECT_EQ(outcome.verdict, Verdict::kRejected);
  EXPECT_EQ(outcome.refusal, Refusal::kForbidden) << outcome.message;
}

TEST_F(ResizeApiTest, RefusalsAreForeseen) {
  const auto both_refuse = [&](const std::string& name, const Request& request, Refusal refusal) {
    EXPECT_EQ(foreseen(name, request), refusal);
    Outcome outcome;
    eventually([&] {
      outcome = asked(name, request);
      return !outcome.message.contains("is forbidden: node ");
    });
    EXPECT_EQ(outcome.verdict, Verdict::kRejected) << outcome.message;
    EXPECT_EQ(outcome.refusal, refusal) << outcome.message;
  };
  {
    const FakeKubelet registers_the_node(*admin, {.node = node});
  }
  createPod(podBody("p"));
  both_refuse("p", limit(50_m), Refusal::kRequestAboveLimit);
  both_refuse("p", limit(100_m), Refusal::kQosWouldChange);
  both_refuse("p", limit(Millicores(-100)), Refusal::kNotPositive);
  createPod(podBody("g", "200m", "200m"));
  both_refuse("g", limit(300_m), Refusal::kQosWouldChange);
  createPod(podBody("mirror", "100m", "200m", onNode(),
                    R"(,"annotations":{"kubernetes.io/config.mirror":"x"})"));
  both_refuse("mirror", limit(300_m), Refusal::kStaticPod);
  createPod(podBody("windows", "100m", "200m", R"("os":{"name":"windows"},)"));
  both_refuse("windows", limit(300_m), Refusal::kWindows);
  createPod(podBody("old", "100m", "200m", onNode()));
  ASSERT_TRUE(admin->patch<Pod>(
      ns, "old", PatchType::kStrategic,
      R"({"status":{"phase":"Running","containerStatuses":[{"name":"main","image":"x","imageID":"x",
      "ready":true,"restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}})",
      {.subresource = "status"}));
  both_refuse("old", limit(300_m), Refusal::kNodeWithoutSupport);

  // What the server does not see or words otherwise.
  createPod(podBody("two", "100m", "200m",
                    R"("initContainers":[{"name":"setup","image":"x",
                    "resources":{"requests":{"cpu":"10m"},"limits":{"cpu":"50m"}}}],)"));
  EXPECT_EQ(foreseen("two", limit(60_m, "setup")), Refusal::kInitContainer);
  const int minor = admin->version().value_or(kube::ServerVersion{}).minor;
  if (minor < 36) {
    EXPECT_EQ(asked("two", limit(60_m, "setup")).refusal, Refusal::kInitContainer);
  }
  EXPECT_EQ(foreseen("two", limit(60_m, "other")), Refusal::kNoSuchContainer);
  ASSERT_TRUE(admin->create<Pod>(
      ns, R"({"metadata":{"name":"effort"},"spec":{"containers":[{"name":"main","image":"x"}]}})"));
  EXPECT_EQ(foreseen("effort", {.containers = {{"main", {}, 100_m}}, .may_add_limit = true}),
            Refusal::kBestEffort);
  EXPECT_EQ(asked("effort", limit(100_m)).refusal, Refusal::kQosWouldChange);
  createPod(
      podBody("level", "100m", "200m", R"("resources":{"limits":{"cpu":"1","memory":"1Gi"}},)"));
  if (minor >= 34) {  // before, the server drops them
    EXPECT_EQ(foreseen("level", limit(300_m)), Refusal::kPodLevelResources);
  }
}

TEST_F(ResizeApiTest, OtherRefusals) {
  const auto missing =
      admin->patch<Pod>(ns, "p", PatchType::kStrategic, "{}", {.subresource = "teleport"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(resize::interpret(missing.error()).refusal, Refusal::kServerWithoutResize)
      << missing.error().describe();

  createPod(podBody("p"));
  Outcome outcome;
  // Admission learns of a quota or range a moment later, and accepts until then: back to the start
  // before each attempt, because a repeated value is no rise and would never be refused.
  const auto refused = [&](Millicores cpu, Refusal refusal) {
    return eventually([&] {
      if (outcome = asked("p", limit(200_m)); outcome.verdict != Verdict::kAccepted) return false;
      outcome = asked("p", limit(cpu));
      return outcome.verdict == Verdict::kRejected && outcome.refusal == refusal;
    });
  };
  ASSERT_TRUE(admin->create<ResourceQuota>(
      ns, R"({"metadata":{"name":"q"},"spec":{"hard":{"limits.cpu":"500m"}}})"));
  ASSERT_TRUE(admin->patch<ResourceQuota>(
      ns, "q", PatchType::kMerge,
      R"({"status":{"hard":{"limits.cpu":"500m"},"used":{"limits.cpu":"200m"}}})",
      {.subresource = "status"}));
  EXPECT_TRUE(refused(800_m, Refusal::kQuota)) << outcome.message;
  ASSERT_TRUE(admin->remove<ResourceQuota>(ns, "q"));

  const auto range = [&](const std::string& limits) {
    return fmt::format(R"({{"metadata":{{"name":"r"}},"spec":{{"limits":[{}]}}}})", limits);
  };
  for (const auto& [limits, cpu] : std::vector<std::pair<std::string, Millicores>>{
           {R"({"type":"Container","max":{"cpu":"600m"}})", 5000_m},
           {R"({"type":"Container","min":{"cpu":"80m"},"max":{"cpu":"600m"}})", 700_m},
           {R"({"type":"Pod","max":{"cpu":"650m"}})", 5000_m},
           {R"({"type":"Container","maxLimitRequestRatio":{"cpu":"4"}})", 500_m}}) {
    ASSERT_TRUE(admin->create<LimitRange>(ns, range(limits)));
    EXPECT_TRUE(refused(cpu, Refusal::kLimitRange)) << limits << outcome.message;
    ASSERT_TRUE(admin->remove<LimitRange>(ns, "r"));
  }
}

}  // namespace
}  // namespace mbcas::test
