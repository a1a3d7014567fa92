#include "mbcas/controller/decide.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mbcas/base/backoff.h"
#include "mbcas/controller/restore.h"

namespace mbcas::controller {
namespace {

using namespace literals;
using namespace std::chrono_literals;
using podallocation::Phase;
using podallocation::PodAllocation;

constexpr const char* kRecorded200 = R"([{"name":"main","request":"100m","limit":"200m"}])";
constexpr const char* kOriginal200 =
    R"("annotations":{"mbcas.io/original-resources":"{\"main\":{\"request\":\"100m\",\"limit\":\"200m\"}}"},)";

// A pod with one container; its status may lag behind its spec.
struct World {
  std::string limit = "200m";     // spec
  std::string in_force = "200m";  // status
  std::string annotations{};
  std::string conditions{};
  std::string phase = "Running";
  int generation = 1;
  int observed = 1;
  bool ready = true;

  std::string allocation_spec = R"("desiredCPULimit":"200m","nodeName":"n1")";
  std::string allocation_status = "{}";
  std::string original{};  // of allocation_status, as JSON
  bool has_allocation = true;
  std::string mode = "full";
  std::string namespace_meta{};
  policy::Settings settings{};

  MonotonicTime now{1h};
  bool agent_silent = false;
  bool dry_run = false;
  bool budget_unmet = false;
  std::optional<Millicores> room{};
  bool may_raise = true;

  Decision decide(PodMemory& memory) {
    const auto pod = kube::decodeObject<kube::Pod>(fmt::format(
        R"({{"metadata":{{{}"name":"p","namespace":"shop","uid":"u1","generation":{},
        "resourceVersion":"{}"}},"spec":{{"nodeName":"n1","containers":[{{"name":"main","resources":{{
        "requests":{{"cpu":"100m"}},"limits":{{"cpu":"{}"}}}}}}]}},"status":{{"phase":"{}",
        "qosClass":"Burstable","observedGeneration":{},"conditions":[{}{{"type":"Ready",
        "status":"{}"}}],"containerStatuses":[{{"name":"main","state":{{"running":{{}}}},
        "resources":{{"requests":{{"cpu":"100m"}},"limits":{{"cpu":"{}"}}}}}}]}}}})",
        annotations, generation, 100 + generation, limit, phase, observed, conditions,
        ready ? "True" : "False", in_force));
    EXPECT_TRUE(pod) << pod.error().message();
    std::string status = allocation_status;
    if (!original.empty()) {
      status.insert(1, fmt::format(R"("original":{}{})", original, status == "{}" ? "" : ","));
    }
    const auto allocation = kube::decodeObject<PodAllocation>(fmt::format(
        R"({{"metadata":{{"name":"u1","namespace":"shop","uid":"a1","generation":3}},
        "spec":{{"namespace":"shop","podName":"p",{}}},"status":{}}})",
        allocation_spec, status));
    EXPECT_TRUE(allocation) << allocation.error().message();
    const auto node = kube::decodeObject<kube::Node>(
        R"({"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4"}}})");
    const auto name_space = kube::decodeObject<kube::Namespace>(
        fmt::format(R"({{"metadata":{{{}"name":"shop","labels":{{"mbcas.io/mode":"{}"}}}}}})",
                    namespace_meta, mode));
    pod_ = *pod;
    allocation_ = *allocation;
    std::vector<std::shared_ptr<const kube::PodDisruptionBudget>> budgets;
    if (budget_unmet) {
      budgets.push_back(*kube::decodeObject<kube::PodDisruptionBudget>(
          R"({"metadata":{"name":"b"},"spec":{"selector":{}},
              "status":{"currentHealthy":0,"desiredHealthy":1}})"));
    }
    Situation situation{.pod = pod_.get(),
                        .allocation = has_allocation ? allocation_.get() : nullptr,
                        .policy = policy::judgePod(
                            *pod_, has_allocation ? allocation_.get() : nullptr,
                            {.name_space = *name_space, .budgets = budgets}, node->get(), settings),
                        .law = settings.law,
                        .agent_silent = agent_silent,
                        .dry_run = dry_run,
                        .room = room,
                        .may_raise = may_raise,
                        .now = now,
                        .wall = WallTime(1'000'000s + now.time_since_epoch())};
    return controller::decide(situation, memory);
  }
  Decision decide() {
    PodMemory memory;
    return decide(memory);
  }
  void desire(const std::string& cpu) {
    allocation_spec = fmt::format(R"("desiredCPULimit":"{}","nodeName":"n1","reason":"r")", cpu);
  }
  std::shared_ptr<const kube::Pod> pod_;
  std::shared_ptr<const PodAllocation> allocation_;
};

World managed(const std::string& limit, const std::string& desired) {
  World world{
      .limit = limit, .in_force = limit, .annotations = kOriginal200, .original = kRecorded200};
  world.allocation_status = fmt::format(
      R"({{"phase":"Applied","observedDesired":"{0}","appliedCPULimit":"{0}"}})", limit);
  world.desire(desired);
  return world;
}

Millicores onlyLimit(const Decision& decision) {
  EXPECT_EQ(decision.act, Act::kResize);
  if (decision.request.containers.size() != 1 || !decision.request.containers[0].limit) {
    ADD_FAILURE() << "not one limit";
    return {};
  }
  EXPECT_FALSE(decision.request.containers[0].request) << "limits only";
  return *decision.request.containers[0].limit;
}

TEST(Decide, BootstrapPublishesBounds) {
  World world;
  const Decision decision = world.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  ASSERT_TRUE(decision.status);
  EXPECT_EQ(decision.status->phase, Phase::kApplied);
  EXPECT_EQ(decision.status->applied, 200_m);
  EXPECT_EQ(decision.status->observed_desired, 200_m);
  EXPECT_EQ(decision.status->observed_generation, 3);
  ASSERT_TRUE(decision.status->bounds);
  EXPECT_TRUE(decision.status->bounds->managed);
  EXPECT_EQ(decision.status->bounds->floor, 100_m);
  EXPECT_EQ(decision.status->bounds->ceiling, 4000_m);
}

TEST(Decide, TheOriginalIsRecordedBeforeTheFirstResizeAndCopiedToThePodAfterwards) {
  World world;
  world.desire("500m");
  const Decision first = world.decide();
  EXPECT_EQ(first.act, Act::kRecordOriginal);
  EXPECT_EQ(first.status->original,
            (std::vector<podallocation::OriginalCpu>{{"main", 100_m, 200_m}}));
  world.original = kRecorded200;
  const Decision decision = world.decide();
  EXPECT_EQ(onlyLimit(decision), 500_m) << "no other version of the pod comes before";
  EXPECT_EQ(decision.purpose, Purpose::kManage);
  EXPECT_EQ(decision.from, 200_m);
  EXPECT_EQ(decision.to, 500_m);

  PodMemory memory;
  world.limit = "500m";
  world.generation = 2;
  memory.attempt = resize::adopt(*world.pod_, decision.request);
  memory.attempt->generation = 2;
  memory.attempt_since = world.now;
  memory.ours = std::vector<podallocation::OriginalCpu>{{"main", 100_m, 500_m}};
  EXPECT_EQ(world.decide(memory).act, Act::kNothing) << "the kubelet is not disturbed";
  world.in_force = "500m";
  world.observed = 2;
  EXPECT_EQ(world.decide(memory).act, Act::kKeepOriginal);
  // The process ended before the pod carried it.
  world.allocation_status = R"({"phase":"Applied","observedDesired":"500m"})";
  EXPECT_EQ(world.decide().act, Act::kKeepOriginal);
  world.annotations = kOriginal200;
  EXPECT_EQ(world.decide(memory).act, Act::kNothing);
}

TEST(Decide, APodThatIsNotSaidToRunWaitsUnlessItsAgentSawItRun) {
  World world{.annotations = kOriginal200, .original = kRecorded200};
  world.phase = "Pending";
  PodMemory memory;
  Decision decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->reason, "waits for the pod to run");
  world.desire("150m");
  EXPECT_EQ(world.decide(memory).act, Act::kNothing) << "a decrease waits";
  world.desire("500m");
  decision = world.decide(memory);
  EXPECT_EQ(onlyLimit(decision), 500_m) << decision.status->reason;

  // On its way: still Pending in the cache.
  world.limit = "500m";
  world.generation = 2;
  memory.attempt = resize::adopt(*world.pod_, decision.request);
  memory.attempt->generation = 2;
  memory.attempt_since = world.now;
  memory.ours = std::vector<podallocation::OriginalCpu>{{"main", 100_m, 500_m}};
  EXPECT_FALSE(world.decide(memory).status) << "one status for the whole decision";
  world.phase = "Running";
  world.in_force = "500m";
  world.observed = 2;
  decision = world.decide(memory);
  EXPECT_EQ(decision.status->phase, Phase::kApplied);
}

TEST(Decide, LimitsAreWrittenInSteps) {
  World world = managed("200m", "503m");
  EXPECT_EQ(onlyLimit(world.decide()), 510_m);
  // A declared limit between steps is not "corrected".
  World odd{.limit = "205m", .in_force = "205m"};
  odd.desire("205m");
  const Decision decision = odd.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kApplied);
}

TEST(Decide, RaisesAreGuardedByAStep) {
  World world = managed("200m", "3");
  const Decision decision = world.decide();
  EXPECT_EQ(onlyLimit(decision), 1600_m) << "8 times, and the rest later";
  EXPECT_EQ(decision.status->phase, Phase::kPending);
  EXPECT_EQ(decision.status->observed_desired, 3000_m);
  EXPECT_TRUE(decision.again);
}

TEST(Decide, DecreasesWaitAndGoInSteps) {
  World world = managed("2", "500m");
  PodMemory memory;
  memory.actuation.last_change = world.now - 10s;
  Decision decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kPending);
  EXPECT_EQ(decision.again, Nanos(20s));
  world.now += 20s;
  decision = world.decide(memory);
  EXPECT_EQ(onlyLimit(decision), 1340_m) << "2000 / 1.5, rounded up";
}

TEST(Decide, TheCooldownOutlivesTheProcess) {
  World world = managed("2", "500m");
  const WallTime wall(1'000'000s + world.now.time_since_epoch());
  world.allocation_status = fmt::format(
      R"({{"phase":"Applied","observedDesired":"2","appliedCPULimit":"2","lastAppliedTime":"{}"}})",
      "1970-01-12T14:46:30Z");
  // 1,000,000 s + 1 h after the epoch is 1970-01-12T14:46:40Z: ten seconds after the change.
  const Decision decision = world.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.again, Nanos(20s)) << wall.time_since_epoch().count();
}

TEST(Decide, BoundsClampAndSaySo) {
  World world = managed("2", "100");
  const Decision above = world.decide();
  EXPECT_EQ(onlyLimit(above), 4000_m);
  ASSERT_NE(above.status->condition(podallocation::kClamped), nullptr);
  EXPECT_EQ(above.status->condition(podallocation::kClamped)->status,
            podallocation::ConditionStatus::kTrue);
  World below = managed("140m", "1m");
  EXPECT_EQ(onlyLimit(below.decide()), 100_m);
}

TEST(Decide, NotReadyIsNotLowered) {
  World world = managed("2", "1500m");
  world.ready = false;
  const Decision decision = world.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kPending);
  EXPECT_NE(decision.status->reason.find("not ready"), std::string::npos);
  world.desire("2500m");
  EXPECT_EQ(onlyLimit(world.decide()), 2500_m) << "raises are free";
}

TEST(Decide, ABudgetThatIsNeverMetMakesNoPodImmune) {
  World world = managed("2", "1500m");
  world.budget_unmet = true;
  PodMemory memory;
  Decision decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.again, Nanos(10min));
  world.now += 9min;
  EXPECT_EQ(world.decide(memory).act, Act::kNothing);
  world.now += 1min;
  EXPECT_EQ(onlyLimit(world.decide(memory)), 1500_m);
  // A budget that is met for a moment does not hold again; one that was met for as long does.
  world.budget_unmet = false;
  (void)world.decide(memory);
  world.budget_unmet = true;
  EXPECT_EQ(onlyLimit(world.decide(memory)), 1500_m);
  world.budget_unmet = false;
  (void)world.decide(memory);
  world.now += 10min;
  world.budget_unmet = true;
  EXPECT_EQ(world.decide(memory).act, Act::kNothing);
}

TEST(Decide, FollowsAResizeToItsEnd) {
  World world = managed("500m", "500m");
  world.in_force = "200m";
  world.generation = 2;
  world.allocation_status =
      R"({"phase":"Applied","observedDesired":"200m","appliedCPULimit":"200m"})";
  PodMemory memory;
  EXPECT_EQ(world.decide(memory).act, Act::kAskWho) << "it may be another writer's";
  memory.asked = 2;
  memory.ours = {{"main", 100_m, 500_m}};
  Decision decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_FALSE(decision.status) << "the status still speaks of the limit before";
  ASSERT_TRUE(memory.attempt);
  EXPECT_TRUE(decision.again);

  world.now += 5s;
  decision = world.decide(memory);
  EXPECT_EQ(decision.status->phase, Phase::kPending) << "it takes long enough to say so";

  world.in_force = "500m";
  world.observed = 2;
  decision = world.decide(memory);
  EXPECT_FALSE(memory.attempt);
  EXPECT_EQ(decision.status->phase, Phase::kApplied);
  EXPECT_EQ(decision.status->applied, 500_m);
  EXPECT_EQ(decision.status->observed_desired, 500_m);
  EXPECT_NE(decision.status->last_applied, WallTime{});
}

TEST(Decide, AnOlderVersionOfThePodTellsNothing) {
  World world = managed("200m", "500m");
  PodMemory memory;
  memory.generation = 2;
  const Decision decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_FALSE(decision.status);
}

TEST(Decide, InfeasibleIsTakenBackAtOnce) {
  World world = managed("500m", "500m");
  world.in_force = "200m";
  world.generation = world.observed = 2;
  world.conditions =
      R"({"type":"PodResizePending","status":"True","reason":"Infeasible","observedGeneration":2},)";
  PodMemory memory;
  Decision decision = world.decide(memory);
  EXPECT_EQ(decision.purpose, Purpose::kRevert);
  EXPECT_EQ(onlyLimit(decision), 200_m);
  EXPECT_EQ(decision.status->phase, Phase::kFailed);
  EXPECT_EQ(memory.failures, 1);
  remember(*world.pod_, decision,
           {.verdict = resize::Verdict::kAccepted,
            .attempt = resize::Attempt{.name_space = "shop",
                                       .pod = "p",
                                       .uid = "u1",
                                       .generation = 3,
                                       .resource_version = "103",
                                       .containers = decision.request.containers}},
           world.now, 0, memory);
  // Back, but not tried again before the time.
  world.limit = "200m";
  world.generation = world.observed = 3;
  world.conditions.clear();
  decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kFailed);
  EXPECT_EQ(decision.status->applied, 200_m);
  world.now += 2s;
  EXPECT_EQ(onlyLimit(world.decide(memory)), 500_m);
}

TEST(Decide, DeferredIsGivenTime) {
  World world = managed("500m", "500m");
  world.in_force = "200m";
  world.generation = world.observed = 2;
  world.conditions =
      R"({"type":"PodResizePending","status":"True","reason":"Deferred","observedGeneration":2},)";
  PodMemory memory;
  EXPECT_EQ(world.decide(memory).act, Act::kNothing);
  world.now += 31s;
  EXPECT_EQ(world.decide(memory).purpose, Purpose::kRevert);
}

// The kubelet cannot do what another writer asked for. That is between the two of them.
TEST(Decide, AnotherWritersResizeIsNotTakenBack) {
  for (const char* reason : {"Infeasible", "Deferred"}) {
    World world;
    world.limit = "64";
    world.generation = world.observed = 2;
    world.conditions = fmt::format(
        R"({{"type":"PodResizePending","status":"True","reason":"{}","observedGeneration":2}},)",
        reason);
    world.desire("500m");
    for (const char* mode : {"full", "raise-only", "recommend", "off"}) {
      world.mode = mode;
      PodMemory memory;
      EXPECT_EQ(world.decide(memory).act, Act::kNothing) << reason << " " << mode;
      world.now += 60s;
      const Decision later = world.decide(memory);
      EXPECT_EQ(later.act, Act::kNothing) << reason << " " << mode;
      EXPECT_EQ(later.status->applied, 200_m);
    }
    world.mode = "full";
    PodMemory memory;
    (void)world.decide(memory);
    world.now += 60s;
    EXPECT_EQ(world.decide(memory).status->phase, Phase::kPending);
    EXPECT_TRUE(world.decide(memory).status->reason.contains("MBCAS did not send"))
        << world.decide(memory).status->reason;
    // Once the kubelet has done it, or it was withdrawn, the pod is managed as ever.
    world.limit = "200m";
    world.conditions.clear();
    EXPECT_EQ(world.decide(memory).act, Act::kRecordOriginal);
  }
}

// The same where MBCAS had changed the pod before: the other writer's limits are respected.
TEST(Decide, AnotherWritersResizeOfAChangedPodIsNotTakenBack) {
  World world = managed("64", "500m");
  world.in_force = "500m";
  world.generation = world.observed = 3;
  world.conditions =
      R"({"type":"PodResizePending","status":"True","reason":"Infeasible","observedGeneration":3},)";
  world.allocation_status =
      R"({"phase":"Applied","observedDesired":"500m","appliedCPULimit":"500m"})";
  PodMemory memory;
  EXPECT_EQ(world.decide(memory).act, Act::kAskWho);
  memory.asked = 3;
  memory.ours = std::vector<podallocation::OriginalCpu>{};
  const Decision decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kForgetOriginal);
  EXPECT_EQ(decision.purpose, Purpose::kYield);
  EXPECT_TRUE(decision.status->original.empty());
}

// What MBCAS sent itself and the node cannot do is taken back to what was declared once the pod is
// not to be managed any more.
TEST(Decide, AnInfeasibleResizeOfOursEndsInARestore) {
  World world = managed("500m", "500m");
  world.in_force = "300m";
  world.mode = "off";
  world.generation = world.observed = 3;
  world.conditions =
      R"({"type":"PodResizePending","status":"True","reason":"Infeasible","observedGeneration":3},)";
  const Decision decision = world.decide();
  EXPECT_EQ(decision.purpose, Purpose::kRestore);
  EXPECT_EQ(onlyLimit(decision), 200_m);
}

// Whoever may patch pods can write the annotation, or remove it.
TEST(Decide, AnAnnotationIsNoAuthority) {
  World world = managed("500m", "500m");
  world.annotations =
      R"("annotations":{"mbcas.io/managed":"false","mbcas.io/original-resources":"{\"main\":{\"request\":\"64\",\"limit\":\"64\"}}"},)";
  EXPECT_EQ(onlyLimit(world.decide()), 200_m) << "what the status recorded";
  world.annotations.clear();
  EXPECT_EQ(world.decide().act, Act::kKeepOriginal) << "it gets its way back again";
  // Without a record: never beyond the node, and the request stays.
  World lost = managed("500m", "500m");
  lost.original.clear();
  lost.generation = lost.observed = 2;
  lost.annotations =
      R"("annotations":{"mbcas.io/managed":"false","mbcas.io/original-resources":"{\"main\":{\"request\":\"64\",\"limit\":\"64\"}}"},)";
  EXPECT_EQ(onlyLimit(lost.decide()), 4000_m);
  lost.generation = lost.observed = 1;
  EXPECT_EQ(lost.decide().act, Act::kNothing) << "a pod that was never resized";
}

TEST(Decide, ADecisionThatWasOvertakenIsNoFailure) {
  World world = managed("200m", "500m");
  PodMemory memory;
  const Decision decision = world.decide(memory);
  remember(*world.pod_, decision, {.verdict = resize::Verdict::kSuperseded}, world.now, 0, memory);
  EXPECT_EQ(memory.failures, 0);
  EXPECT_EQ(world.decide(memory).act, Act::kResize);
}

TEST(Decide, FailuresBackOff) {
  EXPECT_EQ(backoff(1, 0), Nanos(1s));
  EXPECT_EQ(backoff(2, 0), Nanos(2s));
  EXPECT_EQ(backoff(100, 0), Nanos(300s));
  World world = managed("200m", "500m");
  PodMemory memory;
  Decision decision = world.decide(memory);
  remember(*world.pod_, decision, {.verdict = resize::Verdict::kRejected, .message = "no"},
           world.now, 0, memory);
  decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kFailed);
  EXPECT_EQ(decision.status->reason, "no");
  EXPECT_EQ(decision.again, Nanos(1s));
  // Less is another matter.
  world.desire("400m");
  EXPECT_EQ(onlyLimit(world.decide(memory)), 400_m);
}

TEST(Decide, OptOutRestoresExactly) {
  World world = managed("500m", "500m");
  world.annotations =
      R"("annotations":{"mbcas.io/managed":"false","mbcas.io/original-resources":"{\"main\":{\"request\":\"100m\",\"limit\":\"205m\"}}"},)";
  world.original = R"([{"name":"main","request":"100m","limit":"205m"}])";
  Decision decision = world.decide();
  EXPECT_EQ(decision.purpose, Purpose::kRestore);
  EXPECT_EQ(onlyLimit(decision), 205_m);
  world.limit = world.in_force = "205m";
  decision = world.decide();
  EXPECT_EQ(decision.act, Act::kForgetOriginal);
  EXPECT_FALSE(decision.status->bounds->managed);
}

TEST(Decide, NothingToRestoreNothingDone) {
  World world;
  world.annotations = R"("annotations":{"mbcas.io/managed":"false"},)";
  const Decision decision = world.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kLeftAlone);
  EXPECT_NE(decision.status->reason.find("opted out"), std::string::npos);
}

// Whoever reads `Applied` may believe that the pod has what is desired.
TEST(Decide, AppliedMeansThatTheDesiredLimitIsInForce) {
  const auto phase = [](World world) { return world.decide().status->phase; };
  EXPECT_EQ(phase(managed("500m", "500m")), Phase::kApplied);
  World off = managed("500m", "500m");
  off.mode = "off";
  off.annotations = off.original = "";
  EXPECT_EQ(phase(off), Phase::kLeftAlone);
  World silent = managed("500m", "700m");
  silent.agent_silent = true;
  EXPECT_EQ(phase(silent), Phase::kLeftAlone);
  World dry = managed("500m", "700m");
  dry.dry_run = true;
  EXPECT_EQ(phase(dry), Phase::kRecommended);
}

TEST(Decide, ClampedIsNotApplied) {
  World world = managed("4", "100");
  Decision decision = world.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kClamped);
  EXPECT_EQ(decision.status->applied, 4000_m);
  EXPECT_EQ(decision.status->observed_desired, 4000_m);
  EXPECT_NE(decision.status->reason.find("desired 100000m is above the ceiling 4000m"),
            std::string::npos)
      << decision.status->reason;
  // What is desired comes within the bounds: then it is Applied, and no longer Clamped.
  world.desire("4");
  decision = world.decide();
  EXPECT_EQ(decision.status->phase, Phase::kApplied);
  // Limits are written in steps.
  decision = managed("510m", "505m").decide();
  EXPECT_EQ(decision.status->phase, Phase::kClamped);
  EXPECT_EQ(decision.status->reason, "desired 505m is rounded up to 510m");
}

TEST(Decide, AnOlderStatusIsNotTrueOfANewDecision) {
  World world = managed("500m", "700m");
  const Decision decision = world.decide();
  EXPECT_EQ(onlyLimit(decision), 700_m);
  EXPECT_EQ(decision.status->phase, Phase::kPending) << "it said Applied, of 500m";
}

TEST(Decide, EachWayOfLettingGo) {
  for (const char* mode : {"off", "recommend"}) {
    World world = managed("500m", "500m");
    world.mode = mode;
    EXPECT_EQ(onlyLimit(world.decide()), 200_m) << mode;
  }
  World gone = managed("500m", "500m");
  gone.has_allocation = false;
  gone.generation = gone.observed = 2;
  PodMemory memory;
  memory.ours = {{"main", 100_m, 500_m}};
  EXPECT_EQ(onlyLimit(gone.decide(memory)), 200_m);
  World paused = managed("500m", "500m");
  paused.settings.paused = true;
  EXPECT_EQ(onlyLimit(paused.decide()), 200_m);
}

TEST(Decide, RecommendSaysWhatItWouldDo) {
  World world;
  world.mode = "recommend";
  world.desire("700m");
  const Decision decision = world.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kRecommended);
  EXPECT_EQ(decision.status->reason, "mode recommend: would be set to 700m");
  EXPECT_EQ(decision.status->observed_desired, 700_m);
  EXPECT_EQ(decision.status->applied, 200_m);
}

TEST(Decide, DryRunNeverActs) {
  World world;
  world.dry_run = true;
  world.desire("700m");
  EXPECT_EQ(world.decide().act, Act::kNothing);
  World changed = managed("500m", "700m");
  changed.dry_run = true;
  for (const char* mode : {"off", "recommend", "full"}) {
    changed.mode = mode;
    EXPECT_EQ(changed.decide().act, Act::kNothing) << mode;
  }
  changed.agent_silent = true;
  EXPECT_EQ(changed.decide().act, Act::kNothing);
}

TEST(Decide, ASilentAgentsPodsAreRaisedNeverLowered) {
  World low = managed("120m", "120m");
  low.agent_silent = true;
  const Decision decision = low.decide();
  EXPECT_EQ(decision.purpose, Purpose::kGiveBack);
  EXPECT_EQ(onlyLimit(decision), 200_m);
  World high = managed("900m", "120m");
  high.agent_silent = true;
  EXPECT_EQ(high.decide().act, Act::kNothing) << "not lowered";
}

TEST(Decide, SomebodyElsesLimitIsRespected) {
  World world = managed("900m", "300m");
  world.allocation_status =
      R"({"phase":"Applied","observedDesired":"500m","appliedCPULimit":"500m"})";
  PodMemory memory;
  Decision decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kAskWho);
  // It was ours: a predecessor died after sending it.
  PodMemory ours;
  ours.asked = 1;
  ours.ours = {{"main", 100_m, 900_m}};
  EXPECT_EQ(world.decide(ours).act, Act::kResize);
  // It was not.
  memory.asked = 1;
  memory.ours = std::vector<podallocation::OriginalCpu>{};
  decision = world.decide(memory);
  EXPECT_EQ(decision.act, Act::kForgetOriginal);
  EXPECT_EQ(decision.purpose, Purpose::kYield);
}

TEST(Decide, TheQuotaLeavesSomeRoom) {
  World world = managed("200m", "500m");
  world.room = 105_m;
  Decision decision = world.decide();
  EXPECT_EQ(onlyLimit(decision), 300_m);
  EXPECT_EQ(decision.status->phase, Phase::kPending);
  world.room = 0_m;
  decision = world.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_NE(decision.status->reason.find("quota"), std::string::npos);
  EXPECT_TRUE(decision.again);
}

TEST(Decide, ANodeIsRaisedInTurns) {
  World world = managed("200m", "500m");
  world.may_raise = false;
  const Decision decision = world.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kPending);
  EXPECT_NE(decision.status->reason.find(control::name(control::Hold::kRaiseRate)),
            std::string::npos);
  EXPECT_TRUE(decision.again);
  world = managed("600m", "500m");
  world.may_raise = false;
  EXPECT_EQ(onlyLimit(world.decide()), 500_m) << "a decrease needs no room";
}

TEST(Decide, AnotherNodesDecisionIsRefused) {
  World world = managed("200m", "500m");
  world.allocation_spec = R"("desiredCPULimit":"500m","nodeName":"n9")";
  const Decision decision = world.decide();
  EXPECT_EQ(decision.act, Act::kNothing);
  EXPECT_EQ(decision.status->phase, Phase::kFailed);
  EXPECT_NE(decision.status->reason.find("n9"), std::string::npos);
}

TEST(PublishedBounds, AreCalm) {
  policy::PodPolicy policy;
  policy.managed = true;
  policy.floor = 100_m;
  policy.ceiling = 1000_m;
  podallocation::Bounds before = publishedBounds(policy, 300_m, 1, nullptr);
  EXPECT_EQ(before.start, 300_m);
  policy.ceiling = 1090_m;
  EXPECT_EQ(publishedBounds(policy, 500_m, 1, &before), before) << "a tremor; start stays";
  policy.ceiling = 1200_m;
  EXPECT_EQ(publishedBounds(policy, std::nullopt, 1, &before).ceiling, 1200_m);
}

// Whatever the world is like: the invariants of the status hold, limits stay within the bounds and
// never below the request, and deciding twice on the same state decides the same.
RC_GTEST_PROP(Decide, Invariants, ()) {
  const auto cpu = [] { return std::to_string(*rc::gen::inRange(1, 500) * 10) + "m"; };
  const Millicores desired(*rc::gen::inRange(1, 1000) * 5);  // also between two steps
  World world = managed(std::to_string(*rc::gen::inRange(10, 400) * 10) + "m",
                        std::to_string(desired.count()) + "m");
  world.in_force = *rc::gen::element(world.limit, cpu());
  if (*rc::gen::arbitrary<bool>()) world.annotations.clear();
  if (*rc::gen::inRange(0, 4) == 0) world.original.clear();
  world.generation = world.observed = *rc::gen::inRange(1, 3);
  world.mode = *rc::gen::element<std::string>("off", "recommend", "raise-only", "full");
  world.agent_silent = *rc::gen::inRange(0, 4) == 0;
  world.dry_run = *rc::gen::inRange(0, 4) == 0;
  world.ready = *rc::gen::inRange(0, 4) != 0;
  world.has_allocation = *rc::gen::inRange(0, 4) != 0;
  if (*rc::gen::arbitrary<bool>()) world.room = Millicores(*rc::gen::inRange(0, 1000));
  if (*rc::gen::arbitrary<bool>()) world.may_raise = false;
  PodMemory memory;
  if (*rc::gen::arbitrary<bool>())
    memory.actuation.last_change = world.now - Nanos(1s) * *rc::gen::inRange(0, 60);
  PodMemory copy = memory;
  const Decision decision = world.decide(memory);
  const Decision same = world.decide(copy);
  RC_ASSERT(decision.act == same.act);
  RC_ASSERT(decision.request.containers == same.request.containers);
  if (decision.status && decision.status->phase == Phase::kApplied) {
    RC_ASSERT(decision.status->applied == decision.status->observed_desired);
    RC_ASSERT(decision.status->applied == desired);
  }
  if (decision.status && decision.status->phase == Phase::kClamped) {
    RC_ASSERT(decision.status->applied == decision.status->observed_desired);
    RC_ASSERT(decision.status->condition(podallocation::kClamped)->status ==
              podallocation::ConditionStatus::kTrue);
  }
  if (world.dry_run) RC_ASSERT(decision.act == Act::kNothing || decision.act == Act::kAskWho);
  if (decision.act != Act::kResize) return;
  // Never before the original is kept, in the status above all.
  RC_ASSERT(!world.annotations.empty() || !world.original.empty());
  if (decision.purpose == Purpose::kManage) RC_ASSERT(!world.original.empty());
  const Millicores limit = *decision.request.containers.at(0).limit;
  RC_ASSERT(limit >= 100_m);
  if (decision.purpose == Purpose::kManage) {
    RC_ASSERT(limit <= 4000_m);
    RC_ASSERT(limit.count() % 10 == 0);
    if (world.room && limit > decision.from) RC_ASSERT(limit - decision.from <= *world.room);
    if (!world.may_raise) RC_ASSERT(limit < decision.from);
  }
  if (decision.purpose == Purpose::kGiveBack) RC_ASSERT(limit > decision.from);
}

}  // namespace
}  // namespace mbcas::controller
