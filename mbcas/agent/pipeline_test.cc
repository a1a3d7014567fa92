#include "mbcas/agent/pipeline.h"

#include <gtest/gtest.h>

#include "mbcas/agent/fixture_test.h"

namespace mbcas::agent {
namespace {

ModelPod podOf(std::string uid, sim::WorkloadSpec work, Millicores request = 100_m,
               Millicores limit = 200_m) {
  return {.uid = std::move(uid),
          .containers = {{.request = request, .limit = limit, .work = std::move(work)}}};
}

// Thread time held back in the last `span`, per second.
double throttledPerSecond(ModelCluster& cluster, ModelAgent& agent, const ModelPod& pod,
                          Nanos span) {
  const Nanos before = cluster.kernel.counters(pod.index, 0).local;
  agent.run(span);
  return static_cast<double>((cluster.kernel.counters(pod.index, 0).local - before).count()) /
         static_cast<double>(span.count());
}

// A pod of which the kernel knows nothing.
void addGhost(ModelCluster& cluster, const std::string& uid) {
  ModelPod ghost = podOf(uid, {});
  ghost.limits = ghost.actual = {200_m};
  cluster.pods[uid] = ghost;
  cluster.touch(cluster.pods[uid]);
}

TEST(Pipeline, BeginsWithTheLimitInForce) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(podOf("web", {}));
  cluster.controls = false;
  ModelAgent agent(cluster);
  const Outcome& first = agent.step();
  EXPECT_TRUE(first.sampled);
  ASSERT_EQ(first.wishes.size(), 1u);
  const podallocation::Spec expected{
      .name_space = "shop",
      .pod_name = "web",
      .node = "n1",
      .desired = 200_m,
      .containers = {{"main", 200_m}},
      .reason = "keeps its limit until the controller has published its bounds"};
  EXPECT_EQ(first.wishes[0].spec, expected);
  EXPECT_EQ(first.wishes[0].uid, "web");
  EXPECT_FALSE(first.wishes[0].urgent);
  agent.run(5min);
  EXPECT_EQ(web.writes, 1) << "nobody judges it, and nothing more is said";
  EXPECT_EQ(agent.pod("web").left_alone, expected.reason);
}

TEST(Pipeline, RelievesAThrottledPod) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(podOf("web", spin(1, 20s)));
  ModelAgent agent(cluster);
  agent.run(20s);
  EXPECT_EQ(web.changes, 0);
  EXPECT_LE(web.writes, 2) << "the first one, and what it wants";
  agent.run(10s);
  EXPECT_GE(web.inForce(), 1000_m);
  EXPECT_LT(throttledPerSecond(cluster, agent, web, 30s), 0.002);
  EXPECT_LE(web.changes, 3);
  const PodView& view = agent.pod("web");
  EXPECT_EQ(view.left_alone, "");
  EXPECT_NEAR(static_cast<double>(view.usage.count()), 1000, 20);
  EXPECT_EQ(view.limit, web.inForce());
  EXPECT_EQ(view.declared, 200_m);
  EXPECT_EQ(view.decision.desired, web.inForce());
  EXPECT_EQ(view.weight, 100);
  EXPECT_NE(web.spec->reason.find("at most 1000m over 5 s"), std::string::npos) << web.spec->reason;
}

TEST(Pipeline, TheMostUrgentWishIsTheOneWithTheGreatestShortfallForItsWeight) {
  ModelCluster cluster(8);
  cluster.add(podOf("heavy", spin(1, 20s), 150_m));
  cluster.add(podOf("light", spin(1, 20s), 50_m));
  ModelAgent agent(cluster);
  std::map<std::string, double> urgency;
  agent.on_wish = [&](const Wish& wish) {
    if (wish.urgent) urgency.emplace(wish.uid, wish.urgency);
  };
  agent.run(25s);
  ASSERT_EQ(urgency.size(), 2u);
  EXPECT_NEAR(urgency.at("heavy") / urgency.at("light"), 3, 0.5);
}

TEST(Pipeline, IsCalmUnderSteadyLoad) {
  ModelCluster cluster;
  cluster.add(podOf("idle", {}));
  cluster.add(podOf("steady", spin(1)));
  cluster.add(podOf("bursty", periodic(50ms, 1s)));
  cluster.add(
      podOf("service",
            {.kind = sim::WorkloadSpec::Kind::kService, .threads = 4, .rate = 50, .work = 5ms}));
  ModelAgent agent(cluster);
  agent.run(4min);  // until guesses are trimmed
  for (auto& [uid, pod] : cluster.pods) pod.changes = pod.writes = 0;
  agent.run(10min);
  for (const auto& [uid, pod] : cluster.pods) {
    EXPECT_LE(pod.changes, 2) << uid << ": once in five minutes";
    EXPECT_LE(pod.writes, 4) << uid;
  }
  EXPECT_EQ(cluster.pods.at("idle").writes, 0);
}

TEST(Pipeline, ComesDownStepByStepAfterTheLoadEnds) {
  ModelCluster cluster;
  sim::WorkloadSpec work = spin(1);
  work.profile.shape = sim::Profile::Shape::kSteps;
  work.profile.points = {{0s, 1}, {60s, 0}};
  ModelPod& web = cluster.add(podOf("web", work));
  ModelAgent agent(cluster);
  agent.run(60s);
  EXPECT_GE(web.inForce(), 1000_m);
  Millicores last = web.inForce();
  for (int second = 0; second < 300; ++second) {
    agent.run(1s);
    EXPECT_GE(web.inForce() * 3, last * 2) << "at most 1.5 times a step";
    last = web.inForce();
  }
  EXPECT_EQ(web.inForce(), 200_m);
}

TEST(Pipeline, LeavesANodeOfEqualFactorsToTheKernel) {
  ModelCluster cluster(2);
  ModelPod& heavy = cluster.add(podOf("heavy", spin(2), 300_m));
  ModelPod& light = cluster.add(podOf("light", spin(2), 100_m));
  ModelAgent agent(cluster);
  agent.run(5min);
  const View& view = agent.pipeline.view();
  EXPECT_TRUE(view.node.scarce);
  EXPECT_EQ(view.node.capacity, 2000_m);
  for (const ModelPod* const pod : {&heavy, &light}) {
    EXPECT_GE(pod->inForce(), pod->declared());
    EXPECT_FALSE(agent.pod(pod->uid).decision.constrained);
  }
  // The kernel divides by requests, and no limit stands in its way.
  EXPECT_NEAR(agent.pod("heavy").usage.cores(), 1.5, 0.1);
  EXPECT_NEAR(agent.pod("light").usage.cores(), 0.5, 0.1);
}

TEST(Pipeline, BindsAPodForOneThatMattersMore) {
  ModelCluster cluster(2);
  ModelPod gold = podOf("gold", spin(2), 100_m, 1500_m);
  gold.priority = 7000;
  cluster.add(gold);
  ModelPod& hog = cluster.add(podOf("hog", spin(2), 100_m, 1500_m));
  ModelAgent agent(cluster);
  agent.run(3min);
  EXPECT_EQ(agent.pod("gold").decision.help, control::Help::Phase::kHeld);
  EXPECT_TRUE(agent.pod("hog").decision.constrained);
  EXPECT_NEAR(hog.inForce().cores(), 2.0 / 5, 0.08) << "a fifth of the node, by the factors";
  EXPECT_NEAR(agent.pod("gold").usage.cores(), 1.6, 0.1);
  // Gold ends: what was taken for it is given back.
  cluster.remove("gold");
  agent.run(10s);
  EXPECT_GE(hog.inForce(), 1500_m);
}

TEST(Pipeline, KnowsWhatIsNotManaged) {
  ModelCluster cluster(4);
  cluster.add(podOf("web", spin(4)));
  ModelPod& greedy = cluster.add(podOf("greedy", spin(1), 500_m, 2000_m));
  greedy.qos = "BestEffort";  // left alone
  ModelPod& judged = cluster.add(podOf("judged", spin(1), 500_m, 2000_m));
  judged.managed = false;
  ModelAgent agent(cluster);
  agent.run(40s);
  EXPECT_NEAR(static_cast<double>(agent.pipeline.view().unmanaged_use.count()), 2000, 50);
  EXPECT_EQ(agent.pipeline.view().node.capacity, 4000_m) << "use is never taken off it";
  EXPECT_EQ(greedy.writes, 0);
  EXPECT_EQ(judged.writes, 1) << "so that it can be judged";
  EXPECT_EQ(agent.pod("judged").left_alone, "left out");

  cluster.setNode(R"("capacity":{"cpu":"3"})");
  agent.run(2s);
  EXPECT_EQ(agent.pipeline.view().capacity, 3000_m) << "a node may change its size";
}

TEST(Pipeline, StrictCapacityCountsUnmanagedRequests) {
  ModelCluster cluster(4);
  cluster.settings.law.strict_capacity = true;
  cluster.add(podOf("web", {}));
  cluster.add(podOf("other", {}, 1100_m, 2000_m)).qos = "BestEffort";
  ModelAgent agent(cluster);
  agent.run(10s);
  EXPECT_EQ(agent.pipeline.view().node.capacity, 3600_m - 1100_m);
}

// Time until a condition holds; ten seconds if it never does.
template <class Condition>
Nanos timeUntil(ModelAgent& agent, const Condition& condition) {
  const MonotonicTime began = agent.now();
  while (!condition() && agent.now() - began < 10s) agent.run(100ms);
  return agent.now() - began;
}

// A pod that has been prepared for so long. It will be throttled from its first moment.
ModelPod& preparedPod(ModelCluster& cluster, ModelAgent& agent, Nanos prepared) {
  agent.run(10s);
  ModelPod starting = podOf("new", spin(2));
  starting.phase = "Pending";
  starting.begun = starting.reported = false;
  cluster.add(starting);
  agent.run(prepared);
  ModelPod& pod = cluster.pods.at("new");
  EXPECT_EQ(pod.writes, 1) << "its object, and nothing else";
  EXPECT_EQ(pod.changes, 0);
  return pod;
}

TEST(Pipeline, ANewPodIsPreparedBeforeItStarts) {
  for (int tenths = 15; tenths < 30; ++tenths) {
    ModelCluster cluster(4);
    cluster.add(podOf("other", {}));
    ModelAgent agent(cluster);
    ModelPod& pod = preparedPod(cluster, agent, tenths * 100ms);
    cluster.begin(pod);
    pod.phase = "Running";
    pod.reported = true;
    cluster.touch(pod);
    EXPECT_LE(timeUntil(agent, [&] { return pod.inForce() > 200_m; }), 1300ms)
        << tenths << "; 700 ms are the kubelet's";
  }
}

// The kubelet says a second later that a container runs. Its cgroup shows it at once.
TEST(Pipeline, ANewPodIsDecidedAboutBeforeTheKubeletSaysThatItRuns) {
  for (int tenths = 15; tenths < 30; ++tenths) {
    ModelCluster cluster(4);
    cluster.add(podOf("other", {}));
    ModelAgent agent(cluster);
    ModelPod& pod = preparedPod(cluster, agent, tenths * 100ms);
    cluster.begin(pod);
    EXPECT_LE(timeUntil(agent, [&] { return pod.limit() > 200_m; }), 700ms) << tenths;
    const int changes = pod.changes;
    const int writes = pod.writes;
    pod.phase = "Running";
    pod.reported = true;
    cluster.touch(pod);
    agent.run(500ms);
    EXPECT_EQ(pod.writes, writes) << "what the kubelet says is no news";
    agent.run(10s);
    EXPECT_LE(pod.changes - changes, 2);
    EXPECT_NEAR(static_cast<double>(pod.inForce().count()), 2500, 600) << "two threads";
  }
}

// Which of two cgroups with the same limit belongs to which container cannot be seen.
TEST(Pipeline, ContainersWithEqualLimitsAreDecidedAboutWhenTheKubeletNamesThem) {
  ModelCluster cluster(4);
  ModelAgent agent(cluster);
  agent.run(5s);
  ModelPod starting = podOf("new", spin(2));
  starting.containers.push_back({.name = "side", .limit = starting.containers[0].limit});
  starting.phase = "Pending";
  starting.reported = false;
  cluster.add(starting);
  agent.run(5s);
  ModelPod& pod = cluster.pods.at("new");
  EXPECT_EQ(pod.changes, 0);
  EXPECT_EQ(agent.pod("new").left_alone, "the pod does not run yet");
  pod.phase = "Running";
  pod.reported = true;
  cluster.touch(pod);
  agent.run(3s);
  EXPECT_GT(pod.changes, 0);
}

TEST(Pipeline, SaysNothingWithoutANode) {
  ModelCluster cluster;
  cluster.add(podOf("web", spin(1)));
  cluster.node.reset();
  ModelAgent agent(cluster);
  agent.run(30s);
  EXPECT_EQ(agent.attempts, 0);
  EXPECT_EQ(agent.pod("web").left_alone, "the node is not known yet");
  EXPECT_GT(agent.pipeline.counters().ticks, 25u) << "it goes on sensing";
}

TEST(Pipeline, SaysNothingOfAPodWithoutACgroup) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(podOf("web", spin(1)));
  ModelAgent agent(cluster);
  agent.run(10s);
  const int writes = web.writes;
  addGhost(cluster, "ghost");
  agent.run(25s);
  EXPECT_EQ(cluster.pods["ghost"].writes, 0);
  EXPECT_EQ(agent.pod("ghost").left_alone, "the cgroup of the pod is not found");
  EXPECT_EQ(web.writes, writes);
  EXPECT_TRUE(agent.notes.empty()) << "it may be starting";
  agent.run(5min);
  const std::vector<std::string> once = {
      "shop/ghost: the cgroup of the pod is not found: looked for podghost, *-podghost.slice, "
      "among the "
      "cgroups of 1 pods. The pod keeps its limit"};
  EXPECT_EQ(agent.notes, once);
}

TEST(Pipeline, SaysNothingOfAContainerWithoutACgroup) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(podOf("web", {}));
  ModelAgent agent(cluster);
  web.containers.push_back({.name = "side"});
  web.limits.push_back(500_m);
  web.actual.push_back(500_m);
  cluster.touch(web);
  agent.run(5min);
  ASSERT_EQ(agent.notes.size(), 1u);
  EXPECT_NE(agent.notes[0].find("shop/web: the cgroup of container side is not found: looked for "
                                "side, crio-side, cri-containerd-side.scope, "),
            std::string::npos)
      << agent.notes[0];
  EXPECT_EQ(web.writes, 0);
}

// A tree that is not understood is one trouble, not one for each pod.
TEST(Pipeline, TellsOfManyMissingCgroupsInAFewLines) {
  ModelCluster cluster;
  ModelAgent agent(cluster);
  for (int i = 0; i < 50; ++i) addGhost(cluster, fmt::format("ghost-{}", i));
  agent.run(5min);
  ASSERT_EQ(agent.notes.size(), 6u);
  EXPECT_EQ(agent.notes.back(), "the cgroups of 45 more pods are not found");
}

TEST(Pipeline, SeesWhileOneManagedPodCanBeRead) {
  ModelCluster cluster;
  ModelAgent agent(cluster);
  const auto sees = [&] {
    return agent.pipeline.cgroups().read && agent.now() - *agent.pipeline.cgroups().read <= 2s;
  };
  agent.run(5s);
  EXPECT_TRUE(sees()) << "a node without pods";
  EXPECT_EQ(agent.pipeline.cgroups().managed, 0u);
  cluster.add(podOf("web", spin(1)));
  addGhost(cluster, "ghost");
  agent.run(10s);
  EXPECT_TRUE(sees()) << "one can be read";
  EXPECT_EQ(agent.pipeline.cgroups().managed, 2u);
  cluster.remove("web");
  agent.run(10s);
  EXPECT_FALSE(sees()) << "none can be read";
  EXPECT_EQ(agent.pipeline.cgroups().managed, 1u);
  EXPECT_NE(agent.pipeline.cgroups().error.find("looked for podghost"), std::string::npos);
  cluster.settings.paused = true;
  cluster.changed = true;
  agent.run(10s);
  EXPECT_TRUE(sees()) << "none is to be read";
}

TEST(Pipeline, PausedItSaysNothingAndForgetsWhatWaits) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(podOf("web", {}));
  ModelAgent agent(cluster);
  agent.run(10s);
  const int writes = web.writes;
  cluster.settings.paused = true;
  cluster.changed = true;
  std::vector<std::string> ended;
  for (int i = 0; i < 10; ++i) {
    const Outcome& outcome = agent.step();
    ended.insert(ended.end(), outcome.ended.begin(), outcome.ended.end());
    EXPECT_TRUE(outcome.wishes.empty());
  }
  EXPECT_EQ(ended, std::vector<std::string>{"web"});
  EXPECT_EQ(agent.pod("web").left_alone, "MBCAS is paused");
  cluster.settings.paused = false;
  cluster.changed = true;
  agent.run(20s);
  EXPECT_EQ(web.writes, writes) << "it goes on where it was";
  EXPECT_EQ(agent.pod("web").left_alone, "");
}

TEST(Pipeline, PodsThatVanishAreForgotten) {
  ModelCluster cluster;
  cluster.add(podOf("web", spin(1)));
  ModelAgent agent(cluster);
  agent.run(10s);
  cluster.remove("web");
  cluster.changed = true;
  std::vector<std::string> ended;
  for (int i = 0; i < 5; ++i) {
    const Outcome& outcome = agent.step();
    ended.insert(ended.end(), outcome.ended.begin(), outcome.ended.end());
  }
  EXPECT_EQ(ended, std::vector<std::string>{"web"});
  EXPECT_TRUE(agent.pipeline.view().pods.empty());
}

TEST(Pipeline, ARestartedAgentChangesNothing) {
  ModelCluster cluster(4);
  cluster.add(podOf("idle", {}));
  cluster.add(podOf("steady", spin(1)));
  cluster.add(podOf("bursty", periodic(50ms, 1s), 100_m, 150_m));
  auto agent = std::make_unique<ModelAgent>(cluster);
  agent->run(2min);
  EXPECT_GT(cluster.pods.at("bursty").inForce(), 300_m);
  for (auto& [uid, pod] : cluster.pods) pod.changes = pod.writes = 0;
  agent = std::make_unique<ModelAgent>(cluster);
  agent->run(3min);
  for (const auto& [uid, pod] : cluster.pods) {
    EXPECT_EQ(pod.changes, 0) << uid;
    EXPECT_LE(pod.writes, 1) << uid;
  }
}

TEST(Pipeline, ARestartedAgentGivesBackWhatItKnowsNoReasonFor) {
  ModelCluster cluster(2);
  ModelPod gold = podOf("gold", spin(2), 100_m, 1500_m);
  gold.priority = 7000;
  cluster.add(gold);
  ModelPod& hog = cluster.add(podOf("hog", spin(2), 100_m, 1500_m));
  auto agent = std::make_unique<ModelAgent>(cluster);
  agent->run(3min);
  EXPECT_LT(hog.inForce(), 600_m);
  agent = std::make_unique<ModelAgent>(cluster);
  agent->run(15s);
  EXPECT_GE(hog.inForce(), 1500_m);
  agent->run(2min);
  EXPECT_LT(hog.inForce(), 600_m) << "the evidence is there again";
}

TEST(Pipeline, ARestartedContainerKeepsItsLimit) {
  ModelCluster cluster;
  ModelPod& bursty = cluster.add(podOf("bursty", periodic(50ms, 1s), 100_m, 150_m));
  ModelAgent agent(cluster);
  agent.run(2min);
  const Millicores before = bursty.inForce();
  EXPECT_GT(before, 300_m);
  bursty.changes = 0;
  cluster.kernel.restartContainer(bursty.index, 0);
  agent.run(2min);
  EXPECT_EQ(bursty.changes, 0);
  EXPECT_EQ(bursty.inForce(), before);
}

TEST(Pipeline, LimitsBetweenTwoStepsAreLeftAsTheyAre) {
  ModelCluster cluster;
  ModelPod& odd = cluster.add(podOf("odd", {}, 100_m, 255_m));
  // What a systemd that rounds to whole percents makes of it.
  const std::vector<std::optional<Millicores>> rounded{260_m};
  cluster.kernel.setLimit(odd.index, rounded, 260_m);
  ModelAgent agent(cluster);
  agent.run(2min);
  EXPECT_EQ(odd.spec->desired, 255_m);
  EXPECT_EQ(odd.changes, 0);
  EXPECT_TRUE(agent.notes.empty());
}

TEST(Pipeline, ALimitWrittenBehindItsBackIsNoticedAndDecidedFrom) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(podOf("web", {}, 100_m, 500_m));
  ModelAgent agent(cluster);
  agent.run(20s);
  const std::vector<std::optional<Millicores>> foreign{300_m};
  cluster.kernel.setLimit(web.index, foreign, 300_m);
  agent.run(3min);
  ASSERT_EQ(agent.notes.size(), 1u) << "once";
  EXPECT_EQ(agent.notes[0],
            "shop/web: container main has a limit of 300m in the kernel, where Kubernetes says "
            "500m: decisions use the limit in the kernel");
  EXPECT_EQ(agent.pod("web").limit, 300_m);
  EXPECT_EQ(agent.pipeline.view().notes, agent.notes);
}

TEST(Pipeline, AnotherWritersLimitIsTheDeclaredOneFromThenOn) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(podOf("web", spin(1), 100_m, 200_m));
  ModelAgent agent(cluster);
  agent.run(30s);
  EXPECT_GE(web.inForce(), 1000_m);
  // As the controller leaves a pod that somebody else has resized.
  web.containers[0].limit = 600_m;
  web.limits = web.actual = {600_m};
  web.original_kept = false;
  const std::vector<std::optional<Millicores>> limits{600_m};
  cluster.kernel.setLimit(web.index, limits, 600_m);
  cluster.touch(web);
  agent.run(2s);
  ASSERT_EQ(agent.notes.size(), 1u);
  EXPECT_EQ(agent.notes[0],
            "shop/web: another writer set the limit: the pod declares 600m from now on, not 200m");
  EXPECT_EQ(agent.pod("web").declared, 600_m);
  agent.run(30s);
  EXPECT_GE(web.inForce(), 1000_m) << "which it needs more than";
}

TEST(Pipeline, ADeletedPodAllocationIsMadeAgainFromTheLimitInForce) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(podOf("web", spin(1)));
  ModelAgent agent(cluster);
  agent.run(30s);
  EXPECT_GE(web.inForce(), 1000_m);
  web.spec.reset();
  web.judged = false;
  cluster.controls = false;
  cluster.touch(web);
  agent.run(2s);
  ASSERT_TRUE(web.spec);
  EXPECT_EQ(web.spec->desired, web.inForce());
  EXPECT_EQ(web.spec->reason, "keeps its limit until the controller has published its bounds");
}

TEST(Pipeline, WhatTheClusterDoesNotShowIsSaidAgainAfterAMinute) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(podOf("web", {}));
  ModelAgent agent(cluster);
  agent.run(20s);
  const podallocation::Spec said = *web.spec;
  const int writes = web.writes;
  web.spec->desired = 800_m;  // somebody writes over it
  web.spec->containers[0].desired = 800_m;
  cluster.controls = false;
  cluster.touch(web);
  agent.run(50s);
  EXPECT_EQ(web.writes, writes + 1) << "the first wish is older than a minute only then";
  EXPECT_EQ(web.spec->desired, said.desired);
}

TEST(Pipeline, AContainerThatDoesNotRunUsesNothing) {
  ModelCluster cluster;
  ModelPod& web = cluster.add(
      {.uid = "web",
       .containers = {{.limit = 200_m, .work = spin(1, 20s)}, {.name = "side", .limit = 300_m}}});
  ModelAgent agent(cluster);
  agent.run(10s);
  // Its cgroup is gone, and the kubelet says that it waits.
  World world = cluster.world();
  std::string json = fmt::format(
      R"({{"metadata":{{"name":"web","namespace":"shop","uid":"web"}},
          "spec":{{"nodeName":"n1","containers":[
            {{"name":"main","resources":{{"requests":{{"cpu":"100m"}},"limits":{{"cpu":"200m"}}}}}},
            {{"name":"side","resources":{{"requests":{{"cpu":"100m"}},"limits":{{"cpu":"300m"}}}}}}]}},
          "status":{{"phase":"Running","qosClass":"Burstable","containerStatuses":[
            {{"name":"main","containerID":"model://main","state":{{"running":{{}}}},
              "resources":{{"limits":{{"cpu":"200m"}}}}}},
            {{"name":"side","containerID":"model://old","state":{{"waiting":{{}}}}}}]}}}})");
  web.object = object<kube::Pod>(json);
  cluster.changed = true;
  cluster.controls = false;
  agent.run(20s);
  EXPECT_GE(web.spec->desired, 1300_m) << "the one that runs is helped";
  const PodView& view = agent.pod("web");
  ASSERT_EQ(view.containers.size(), 2u);
  EXPECT_EQ(view.containers[1].limit, 300_m);
  EXPECT_EQ(view.containers[1].need.use, 0_m);
}

TEST(Pipeline, SettingsTakeEffectAtOnceAndWhatWasLearnedStays) {
  ModelCluster cluster;
  ModelPod& bursty = cluster.add(podOf("bursty", periodic(50ms, 1s), 100_m, 150_m));
  ModelAgent agent(cluster);
  agent.run(2min);
  const Millicores learned = agent.pod("bursty").containers[0].need.burst;
  EXPECT_GT(learned, 300_m);
  const Millicores limit = bursty.inForce();
  cluster.settings.warmup = 3;
  cluster.settings.sample_interval = 2s;
  cluster.changed = true;
  agent.run(2s);
  EXPECT_EQ(agent.pod("bursty").containers[0].need.burst, learned);
  const std::uint64_t ticks = agent.pipeline.counters().ticks;
  agent.run(20s);
  EXPECT_LE(agent.pipeline.counters().ticks - ticks, 11u);
  EXPECT_EQ(bursty.inForce(), limit);
}

// A load that begins at any moment: from the first throttled period to the wish, and to the limit
// that it needs.
struct Reactions {
  std::vector<Nanos> wish;
  std::vector<Nanos> relief;
  std::uint64_t samples = 0;
};
Reactions reactions(bool adaptive, Nanos begin = 20s) {
  Reactions out;
  for (int i = 0; i < 50; ++i) {
    ModelCluster cluster(4);
    cluster.add(podOf(
        "noise", {.kind = sim::WorkloadSpec::Kind::kService, .threads = 4, .rate = 20, .work = 5ms},
        100_m, 1000_m));
    // It is throttled once its first quota of 20 ms is used up.
    const MonotonicTime throttled{begin + 37ms * i};
    ModelPod& web = cluster.add(podOf("web", spin(1, throttled.time_since_epoch() - 20ms)));
    ModelAgent agent(cluster, adaptive);
    std::optional<MonotonicTime> wished;
    agent.on_wish = [&](const Wish& wish) {
      if (wish.uid == "web" && wish.urgent && !wished) wished = agent.now();
    };
    agent.run(throttled.time_since_epoch());
    out.samples += agent.pipeline.counters().ticks;
    while (web.inForce() < 1000_m && agent.now() < throttled + 10s) agent.run(50ms);
    EXPECT_TRUE(wished);
    out.wish.push_back(wished.value_or(agent.now()) - throttled);
    out.relief.push_back(agent.now() - throttled);
  }
  std::ranges::sort(out.wish);
  std::ranges::sort(out.relief);
  const auto ms = [](Nanos time) { return time.count() / 1'000'000; };
  fmt::print("| {} | {} ms | {} ms | {} ms | {} ms | {} |\n",
             adaptive ? "looking in between" : "a sample a second", ms(out.wish[25]),
             ms(out.wish[49]), ms(out.relief[25]), ms(out.relief[49]), out.samples);
  return out;
}

TEST(Pipeline, SeesALoadThatBeginsBetweenTwoSamples) {
  const Reactions slow = reactions(false);
  const Reactions fast = reactions(true);
  EXPECT_LE(fast.wish[49], Nanos(500ms));
  EXPECT_LE(fast.relief[49], Nanos(1500ms)) << "700 ms of which are the kubelet's";
  EXPECT_LE(fast.relief[49] * 2, slow.relief[25]) << "one wish for the whole load, not several";
  EXPECT_LE(fast.samples, slow.samples * 5 / 4);
}

// When a pod is warmed up the agent tells what is wanted. Neither that nor its echo stands in the
// way of what is urgent.
TEST(Pipeline, SeesALoadThatBeginsBesideOtherNews) {
  const Reactions reacted = reactions(true, 4s);
  EXPECT_LE(reacted.wish[49], Nanos(600ms));
  EXPECT_LE(reacted.relief[49], Nanos(1500ms));
}

// Its throttling may not have been told yet, and its use, at the limit, shows nothing more.
TEST(Pipeline, SamplesAgainSoonWhereAPodStandsAtItsLimit) {
  const auto samples = [](Nanos work) {
    ModelCluster cluster(4);
    cluster.add(podOf(
        "web",
        {.kind = sim::WorkloadSpec::Kind::kPeriodic, .threads = 1, .on = work, .period = 10ms}));
    ModelAgent agent(cluster);
    agent.run(10s);
    return agent.pipeline.counters().ticks;
  };
  EXPECT_LE(samples(1700us), 11u);
  EXPECT_GE(samples(1900us), 15u);
}

// Each beginning is worth another sample, but not an endless row of them.
TEST(Pipeline, DecidesThoughOthersBeginToBeThrottledAllTheTime) {
  ModelCluster cluster(8);
  for (int i = 0; i < 16; ++i) {
    cluster
        .add(podOf(fmt::format("p{}", i), {.kind = sim::WorkloadSpec::Kind::kPeriodic,
                                           .threads = 1,
                                           .on = 40ms,
                                           .period = 1s + 130ms * i}))
        .ceiling = 200_m;
  }
  ModelPod& web = cluster.add(podOf("web", spin(1, 20s)));
  ModelAgent agent(cluster);
  agent.run(24s);  // the first decision may have seen a part of a second only
  EXPECT_GE(web.inForce(), 1000_m);
}

TEST(Pipeline, ARestlessNodeCostsLittleMore) {
  ModelCluster cluster(4);
  for (int i = 0; i < 8; ++i) {
    cluster.add(podOf(
        fmt::format("p{}", i),
        {.kind = sim::WorkloadSpec::Kind::kBursty, .threads = 2, .on = 100ms, .period = 700ms}));
  }
  ModelAgent agent(cluster);
  agent.run(1min);
  const std::uint64_t before = agent.pipeline.counters().ticks;
  agent.run(5min);
  EXPECT_LE(agent.pipeline.counters().ticks - before, 300u + 150u + 20u);
}

}  // namespace
}  // namespace mbcas::agent
