// The reconciler's decisions in a closed loop on simulated time: the model kernel, the agent's own
// pipeline, and decide() as the controller calls it, with a kubelet that actuates after a delay.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "mbcas/agent/fixture_test.h"
#include "mbcas/controller/decide.h"
#include "test/support/trials.h"

namespace mbcas::controller {
namespace {

using namespace std::chrono_literals;
using namespace literals;
using agent::ModelAgent;
using agent::ModelCluster;
using agent::ModelPod;

// What the engine does with decisions, on the fixture's objects.
class Reconciler {
 public:
  explicit Reconciler(ModelCluster& cluster) : cluster_(cluster) {
    cluster.setNode(fmt::format(R"("capacity":{{"cpu":"{0}"}},"allocatable":{{"cpu":"{0}"}})",
                                cluster.kernel.cpus()));
    cluster.controller = [this](ModelPod& pod) { look(pod); };
  }

  void setMode(const std::string& mode) { mode_ = mode; }
  int resizes(const std::string& uid) { return resizes_[uid]; }

 private:
  void look(ModelPod& pod) {
    PodMemory& memory = memories_[pod.uid];
    for (int round = 0; round < 6; ++round) {
      cluster_.show(pod);
      if (!pod.allocation) return;
      const MonotonicTime now = cluster_.clock.monotonic();
      const auto name_space = agent::object<kube::Namespace>(
          fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"mbcas.io/mode":"{}"}}}}}})",
                      pod.name_space, mode_));
      Situation situation{
          .pod = pod.object.get(),
          .allocation = pod.allocation.get(),
          .policy = policy::judgePod(*pod.object, pod.allocation.get(), {.name_space = name_space},
                                     cluster_.node.get(), cluster_.settings),
          .law = cluster_.settings.law,
          .may_raise = raises_.hasRoom("n1", *cluster_.node->capacity.cpu(),
                                       cluster_.settings.law.guards.raise_rate, now),
          .now = now,
          .wall = cluster_.clock.wall()};
      Decision decision = decide(situation, memory);
      if (decision.act == Act::kAskWho) {
        memory.ours = podallocation::currentCpu(*pod.object);
        memory.asked = pod.generation;
        continue;
      }
      if (decision.act == Act::kKeepOriginal) keep(pod, situation.policy.original);
      if (decision.act == Act::kForgetOriginal) pod.annotations.clear();
      if (decision.act == Act::kResize) {
        resize(pod, decision, memory);
        return;
      }
      if (decision.status && pod.status != decision.status) {
        pod.status = podallocation::trimmed(*decision.status);
        cluster_.touch(pod);
      }
      if (decision.act == Act::kNothing) return;
    }
    ADD_FAILURE() << pod.uid << ": no end of decisions";
  }

  void keep(ModelPod& pod, const std::vector<podallocation::OriginalCpu>& original) {
    const std::string patch = podallocation::annotateOriginal(*pod.object, original);
    const std::size_t key = patch.find(R"("mbcas.io/original)");
    pod.annotations = "," + patch.substr(key, patch.size() - key - 3);
    cluster_.touch(pod);
  }

  void resize(ModelPod& pod, const Decision& decision, PodMemory& memory) {
    const std::shared_ptr<const kube::Pod> before = pod.object;
    for (const resize::ContainerCpu& change : decision.request.containers) {
      for (std::size_t c = 0; c < pod.containers.size(); ++c) {
        if (pod.containers[c].name == change.name && change.limit) pod.limits[c] = *change.limit;
      }
    }
    const MonotonicTime now = cluster_.clock.monotonic();
    raises_.spend("n1", std::max(decision.to - decision.from, 0_m), now);
    ++resizes_[pod.uid];
    ++pod.generation;
    pod.actuated = now + cluster_.actuation;
    cluster_.touch(pod);
    cluster_.show(pod);
    resize::Outcome outcome{.verdict = resize::Verdict::kAccepted};
    outcome.attempt = resize::adopt(*pod.object, decision.request);
    remember(*before, decision, outcome, now, 0.5, memory);
  }

  ModelCluster& cluster_;
  control::RaiseBudget raises_;
  std::map<std::string, PodMemory> memories_;
  std::map<std::string, int> resizes_;
  std::string mode_ = "full";
};

ModelPod podOf(std::string uid, sim::WorkloadSpec work, Millicores request, Millicores limit) {
  return {.uid = std::move(uid),
          .containers = {{.request = request, .limit = limit, .work = std::move(work)}}};
}

TEST(ClosedLoop, AThrottledPodIsResizedOnceAndItsStatusSaysSo) {
  ModelCluster cluster(4);
  Reconciler reconciler(cluster);
  cluster.add(podOf("web", agent::spin(2, 30s), 100_m, 200_m));
  ModelAgent agent(cluster);
  agent.run(29s);
  EXPECT_EQ(reconciler.resizes("web"), 0);
  agent.run(5s);
  const ModelPod& web = cluster.pods.at("web");
  EXPECT_GE(web.inForce(), 1600_m) << "eight times what it had, at once";
  agent.run(2min);
  EXPECT_LE(reconciler.resizes("web"), 2);
  ASSERT_TRUE(web.status);
  EXPECT_EQ(web.status->phase, podallocation::Phase::kApplied);
  EXPECT_EQ(web.status->applied, web.inForce());
  EXPECT_EQ(web.spec->desired, web.inForce());
  ASSERT_EQ(web.status->original.size(), 1u);
  EXPECT_EQ(web.status->original[0].limit, 200_m);
}

TEST(ClosedLoop, AContainerThatNeedsNoMoreKeepsItsLimitOnTheWay) {
  ModelCluster cluster(8);
  Reconciler reconciler(cluster);
  ModelPod pod = podOf("web", agent::spin(4, 20s), 100_m, 100_m);
  pod.containers.push_back(
      {.name = "side", .request = 50_m, .limit = 100_m, .work = agent::periodic(5ms, 100ms)});
  cluster.add(pod);
  ModelAgent agent(cluster);
  Millicores least = 100_m;
  for (int second = 0; second < 60; ++second) {
    agent.run(1s);
    least = std::min(least, cluster.pods.at("web").actual[1]);
  }
  EXPECT_GE(cluster.pods.at("web").actual[0], 3000_m);
  EXPECT_EQ(least, 100_m);
}

TEST(ClosedLoop, LettingGoRestoresEveryPod) {
  ModelCluster cluster(2);
  Reconciler reconciler(cluster);
  cluster.add(podOf("a", agent::spin(2), 100_m, 200_m));
  cluster.add(podOf("b", agent::periodic(50ms, 1s), 100_m, 150_m));
  cluster.add(podOf("c", {}, 100_m, 500_m));
  ModelAgent agent(cluster);
  agent.run(2min);
  EXPECT_GT(cluster.pods.at("a").inForce(), 200_m);
  EXPECT_GT(cluster.pods.at("b").inForce(), 150_m);
  reconciler.setMode("off");
  agent.run(10s);
  for (const auto& [uid, pod] : cluster.pods) {
    EXPECT_EQ(pod.inForce(), pod.declared()) << uid;
    EXPECT_EQ(pod.status->phase, podallocation::Phase::kLeftAlone) << uid;
    EXPECT_TRUE(pod.status->original.empty()) << uid;
  }
}

// Whatever pods do, what is said of them is true, no limit is below a request, and a steady load
// comes to rest.
TEST(ClosedLoop, InvariantsHoldOnRandomNodes) {
  const auto runs = test::trials<std::uint64_t>(20, 500);
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Random random(seed);
    const auto between = [&](int least, int most) {
      return least + static_cast<int>(random.uniform() * (most - least + 1));
    };
    ModelCluster cluster(static_cast<unsigned>(between(1, 4)), seed);
    Reconciler reconciler(cluster);
    const int pods = between(1, 6);
    for (int i = 0; i < pods; ++i) {
      const Millicores request(10 * between(1, 20));
      const Millicores limit = request + Millicores(10 * between(1, 60));
      const Nanos from = 1s * between(0, 60);
      const sim::WorkloadSpec work =
          between(0, 1) == 0 ? agent::spin(between(1, 3), from)
                             : agent::periodic(1ms * between(1, 60), 100ms, between(1, 3), from);
      ModelPod pod = podOf("p" + std::to_string(i), work, request, limit);
      pod.priority = between(0, 3) == 0 ? 3000 : 0;
      pod.ready = between(0, 9) != 0;
      cluster.add(pod);
    }
    ModelAgent agent(cluster);
    std::map<std::string, int> settled;
    for (int second = 0; second < 300; ++second) {
      agent.run(1s);
      for (const auto& [uid, pod] : cluster.pods) {
        ASSERT_GE(pod.limit(), pod.request()) << uid;
        if (!pod.status || pod.status->phase != podallocation::Phase::kApplied) continue;
        if (pod.actuated || pod.status->observed_desired != pod.spec->desired) continue;
        ASSERT_EQ(pod.status->applied, pod.inForce()) << uid;
      }
      if (second == 180) {
        for (const auto& [uid, pod] : cluster.pods) settled[uid] = reconciler.resizes(uid);
      }
    }
    for (const auto& [uid, pod] : cluster.pods) {
      ASSERT_LE(reconciler.resizes(uid) - settled[uid], 6) << uid;
      ASSERT_LE(reconciler.resizes(uid), 30) << uid;
    }
  }
}

}  // namespace
}  // namespace mbcas::controller
