#include "mbcas/control/law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "mbcas/control/answer.h"
#include "mbcas/control/dice.h"
#include "mbcas/control/fluid_node.h"
#include "mbcas/control/guards.h"
#include "mbcas/control/split.h"
#include "test/support/trials.h"

namespace mbcas::control {
namespace {

using namespace literals;
using std::chrono::minutes;
using std::chrono::seconds;

const Settings kResponsive = settingsOf(Profile::kResponsive);

std::function<Millicores(int)> always(Millicores demand) {
  return [demand](int) { return demand; };
}
std::function<Millicores(int)> from(int second, Millicores before, Millicores after) {
  return [=](int now) { return now < second ? before : after; };
}

// A node with its settled history, and what changed on the way.
struct World : FluidNode {
  using FluidNode::FluidNode;
  std::vector<int> changes;
  NodeDecision last;

  void run(int count) {
    changes.resize(size());
    for (int i = 0; i < count; ++i) {
      last = second();
      for (std::size_t p = 0; p < size(); ++p) changes[p] += moves()[p].moves ? 1 : 0;
    }
  }
  Millicores limit(std::size_t i) { return pod(i).limit(); }
};

// The capacity of the classic profile.

TEST(Capacity, IsWhatReserveAndOthersLeave) {
  NodeInput input{.capacity = 4000_m};
  EXPECT_EQ(nodeCapacity(input, 0_m, kResponsive), 3600_m);
  EXPECT_EQ(nodeCapacity(input, 600_m, kResponsive), 3000_m);
  input.pressure_conditions = 2;
  EXPECT_EQ(nodeCapacity(input, 600_m, kResponsive), 2430_m);
  input.pods.push_back(fluidPod("a", 2500_m, 3000_m, always(0_m)).pod);
  EXPECT_EQ(nodeCapacity(input, 600_m, kResponsive), 2500_m) << "requests are promised";
  input.unmanaged_requests = 900_m;
  input.pods.clear();
  input.pressure_conditions = 0;
  EXPECT_EQ(nodeCapacity(input, 600_m, kResponsive), 3000_m);
  EXPECT_EQ(nodeCapacity(input, 600_m, settingsOf(Profile::kClassic)), 2700_m);
}

TEST(Scarcity, IsThatTheMarketGivesAPodLessThanItCouldUse) {
  World world(2, kResponsive);
  Millicores demand = 900_m;
  world.add(fluidPod("a", 100_m, 2000_m, [&](int) { return demand; }));
  world.add(fluidPod("b", 100_m, 2000_m, always(900_m)));
  world.run(60);
  EXPECT_FALSE(world.last.scarce);
  EXPECT_EQ(world.last.mode, market::Mode::kUncongested);
  EXPECT_EQ(world.last.price, 0);
  EXPECT_EQ(world.last.welfare, 1);
  demand = 2000_m;
  world.run(5);
  EXPECT_FALSE(world.last.scarce) << "a few seconds are left to the kernel";
  world.run(55);
  EXPECT_TRUE(world.last.scarce);
  EXPECT_EQ(world.last.mode, market::Mode::kCongested);
  EXPECT_GT(*world.last.price, 0);
  EXPECT_LT(world.last.welfare, 1);
  demand = 900_m;
  world.run(60);
  EXPECT_FALSE(world.last.scarce);
}

TEST(Scarcity, BurstLevelsAreNotConsumption) {
  World world(2, kResponsive);
  for (int i = 0; i < 20; ++i) {
    FluidPod pod = fluidPod("p" + std::to_string(i), 20_m, 100_m, always(50_m));
    pod.burst = 500_m;
    world.add(pod);
  }
  world.run(120);
  EXPECT_FALSE(world.last.scarce) << "they use 1000m, though their limits add up to 10 cores";
  for (std::size_t i = 0; i < world.size(); ++i) {
    EXPECT_GE(world.limit(i), 500_m);
    EXPECT_EQ(world.blocked(i), 0_m);
  }
}

// Free pods.

TEST(Free, AThrottledPodIsRaisedWithinASecond) {
  World world(4, kResponsive);
  world.add(fluidPod("web", 100_m, 200_m, from(30, 50_m, 900_m)));
  world.run(29);
  EXPECT_EQ(world.limit(0), 200_m);
  world.run(1);  // the first second of load shows the throttling
  EXPECT_TRUE(world.last.pods[0].urgent);
  EXPECT_GE(world.moves()[0].limit, 1100_m);
  world.run(1);
  EXPECT_EQ(world.blocked(0), 0_m);
  world.run(120);
  EXPECT_LE(world.changes[0], 1) << "one raise, and calm";
}

TEST(Free, ARaiseIsAtMostEightfoldAStep) {
  World world(8, kResponsive);
  world.add(fluidPod("web", 50_m, 100_m, from(10, 20_m, 4000_m)));
  world.run(10);
  EXPECT_EQ(world.moves()[0].limit, 800_m);
  EXPECT_EQ(world.moves()[0].held_by, Hold::kStep);
  world.run(6);
  EXPECT_EQ(world.blocked(0), 0_m);
}

TEST(Free, AfterAFallOfLoadTheDeclaredLimitReturnsWithinFiveMinutes) {
  World world(4, kResponsive);
  world.add(fluidPod("web", 100_m, 200_m, [](int s) { return s < 60 ? 1500_m : 20_m; }));
  world.run(60);
  EXPECT_GE(world.limit(0), 1650_m);
  world.run(300);
  EXPECT_LE(world.limit(0), 220_m);
}

TEST(Free, ADecreaseStopsAtThePeakInWholeCpus) {
  World world(8, kResponsive);
  world.add(fluidPod("go", 100_m, 500_m, [](int s) { return s < 60 ? 4000_m : 1100_m; }));
  world.run(60);
  EXPECT_GE(world.limit(0), 4500_m);
  world.run(400);
  EXPECT_EQ(world.limit(0), 2000_m) << "1.25 times its use would be 1380m";
  EXPECT_EQ(world.last.pods[0].reason.basis, Basis::kWholeCpus);
  EXPECT_LT(world.last.pods[0].wanted, 1700_m) << "in steps of 10 %, and without what it keeps";
}

TEST(Free, WhatItKeepsRaisesNoLimit) {
  World world(8, kResponsive);
  world.add(fluidPod("go", 100_m, 500_m, from(30, 50_m, 1100_m)));
  world.run(400);
  EXPECT_LT(world.limit(0), 1600_m);
  EXPECT_EQ(world.blocked(0), 0_m);
}

// The law itself, for any need: never less than the whole CPUs, never more than the limit in force
// because of them, and no difference where it uses one CPU or less.
TEST(Free, WhatItKeepsIsBetweenItsPeakAndItsLimit) {
  std::uint64_t kept = 0;
  const auto trials = test::trials<std::uint64_t>(20'000, 200'000);
  for (std::uint64_t seed = 1; seed <= trials; ++seed) {
    Dice dice(seed);
    const Millicores declared(10 * dice.between(1, 300));
    Pod pod = fluidPod("a", 10_m, declared, always(0_m)).pod;
    Container& container = pod.containers[0];
    container.limit = Millicores(10 * dice.between(1, 900));
    container.need.samples = 30;
    container.need.ready = true;
    container.need.use_peak = container.need.used_peak = Millicores(dice.between(0, 5000));
    container.need.burst = Millicores(dice.chance(50) ? 0 : dice.between(0, 4000));
    container.need.burst_state = demand::BurstState::kLearned;
    if (dice.chance(30)) pod.ceiling = Millicores(10 * dice.between(1, 500));
    Settings settings = kResponsive;
    settings.reclaim = dice.oneOf({Reclaim::kScarce, Reclaim::kAlways, Reclaim::kNever});
    const NodeInput input{.capacity = 8000_m};
    const PodView view = viewOf(pod, input, settings);
    const Millicores answer = freeAnswer(view, settings).limit;
    // What it was before there was such a rule.
    const Millicores floor = settings.reclaim == Reclaim::kAlways ? 0_m : declared;
    const Millicores need =
        std::clamp(roundUp(std::max(view.needed, floor)), view.floor, view.ceiling);
    const Millicores peak = container.need.use_peak;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + std::to_string(peak.count()));
    ASSERT_GE(answer, need);
    ASSERT_LE(answer, std::max(need, container.limit));
    if (peak <= 1020_m) {
      ASSERT_EQ(answer, need);
    }
    if (peak <= container.limit && peak > 1020_m) {
      const Millicores whole((peak.count() - 20 + 999) / 1000 * 1000);
      ASSERT_GE(answer, std::min({whole, container.limit, view.ceiling}));
    }
    kept += answer > need ? 1U : 0U;
  }
  EXPECT_GT(kept, trials / 20) << "such pods were to be among them";
}

// Threads by the limit, as runtimes have them that follow it: demand that is seen only after a
// raise does not keep the limit down.
TEST(Free, ARuntimeThatFollowsItsLimitClimbsToWhatItCouldUse) {
  for (const std::uint64_t least : {1U, 2U}) {
    for (const Millicores wants : {1500_m, 3000_m, 6000_m}) {
      World world(8, kResponsive);
      world.add(fluidPod("go", 100_m, 500_m,
                         [&](int s) { return s < 30 || (s > 120 && s < 240) ? 100_m : wants; }));
      const auto run = [&](int count) {
        for (int i = 0; i < count; ++i) {
          world.spec(0).threads =
              std::max(least, static_cast<std::uint64_t>((world.limit(0).count() + 999) / 1000));
          world.run(1);
        }
      };
      run(60);
      EXPECT_EQ(world.used(0), wants) << least << " threads at least";
      run(179);
      EXPECT_LT(world.limit(0), wants);
      run(45);
      EXPECT_EQ(world.used(0), wants) << "again, after a pause: " << least;
    }
  }
}

TEST(Free, ARegularPauseIsNotTakenForAFallOfLoad) {
  World world(4, kResponsive);
  world.add(fluidPod("hog", 100_m, 200_m, [](int s) { return s % 120 < 20 ? 1000_m : 0_m; }));
  world.run(480);
  world.changes.assign(1, 0);
  world.run(1200);
  EXPECT_EQ(world.changes[0], 0) << "once it was lowered and raised again; twice as long next time";
  EXPECT_GE(world.limit(0), 1000_m);
}

TEST(Free, AtItsCeilingThereIsNothingToTell) {
  World world(4, kResponsive);
  world.add(fluidPod("web", 100_m, 200_m, always(2000_m)));
  world.pod(0).ceiling = 500_m;
  world.run(60);
  int told = 0;
  for (int i = 0; i < 120; ++i) {
    world.run(1);
    told += world.last.pods[0].publish ? 1 : 0;
  }
  EXPECT_EQ(told, 0);
}

TEST(Free, NeverBelowTheDeclaredLimitUnlessToldTo) {
  World scarce(4, kResponsive);
  scarce.add(fluidPod("idle", 100_m, 1000_m, always(10_m)));
  scarce.run(600);
  EXPECT_EQ(scarce.limit(0), 1000_m);

  Settings trimming = kResponsive;
  trimming.reclaim = Reclaim::kAlways;
  World always_reclaim(4, trimming);
  always_reclaim.add(fluidPod("idle", 100_m, 1000_m, always(10_m)));
  always_reclaim.run(600);
  EXPECT_EQ(always_reclaim.limit(0), 100_m) << "its floor";
}

TEST(Free, TheCeilingHolds) {
  World world(4, kResponsive);
  world.add(fluidPod("web", 100_m, 200_m, always(2000_m)));
  world.pod(0).ceiling = 500_m;
  world.run(60);
  EXPECT_EQ(world.limit(0), 500_m);
  EXPECT_EQ(world.last.pods[0].reason.basis, Basis::kCeiling);
  EXPECT_GE(world.last.pods[0].wanted, 2500_m) << "so that a quota can see who wants more";
}

TEST(Free, AFloorAboveTheCeilingYieldsButNotBelowTheRequest) {
  NodeInput input{.capacity = 4000_m};
  Pod pod = fluidPod("a", 305_m, 400_m, always(0_m)).pod;
  pod.floor = 800_m;
  pod.ceiling = 600_m;
  EXPECT_EQ(viewOf(pod, input, kResponsive).floor, 600_m);
  pod.ceiling = 200_m;
  EXPECT_EQ(viewOf(pod, input, kResponsive).floor, 310_m);
  EXPECT_EQ(viewOf(pod, input, kResponsive).ceiling, 310_m);
}

// Least intervention: next to any neighbour, managed pods have what plain Kubernetes gives them.

// The same node with static limits: what is decided comes into force in a year.
struct Plain : World {
  explicit Plain(unsigned cpus) : World(cpus, kResponsive, std::chrono::hours(24 * 365)) {}
};

TEST(Least, AHogNextToManagedPodsTakesNothingFromThem) {
  // All BestEffort pods together, a pod with a request and no limit, a process outside the pods.
  for (const double weight : {2.0, 307.0, 1024.0}) {
    SCOPED_TRACE(weight);
    World world(2, kResponsive);
    Plain plain(2);
    for (World* node : {&world, static_cast<World*>(&plain)}) {
      node->add(fluidPod("a", 300_m, 700_m, always(2000_m)));
      node->add(fluidPod("b", 300_m, 700_m, always(2000_m)));
      node->add({.id = "hog", .weight = weight, .wants = always(2000_m)});
    }
    for (int second = 0; second < 600; ++second) {
      world.run(1);
      plain.run(1);
      for (std::size_t i = 0; i < world.size(); ++i) {
        ASSERT_GE(world.limit(i), 700_m) << "second " << second;
        ASSERT_GE(world.last.pods[i].desired, 700_m);
        ASSERT_GE(world.used(i) * 100, plain.used(i) * 98);
        ASSERT_FALSE(world.last.pods[i].constrained);
      }
    }
  }
}

TEST(Least, AHogOfTinyWeightDoesNotDriveDownPodsOfOneThread) {
  World world(4, kResponsive);
  for (const char* id : {"a", "b", "c"}) {
    FluidPod pod = fluidPod(id, 300_m, 1000_m, always(1000_m));
    pod.threads = 1;
    world.add(pod);
  }
  world.add({.id = "hog", .wants = always(4000_m)});
  for (int second = 0; second < 600; ++second) {
    world.run(1);
    for (std::size_t i = 0; i < world.size(); ++i) ASSERT_GE(world.used(i), 990_m);
  }
}

TEST(Least, EqualPodsKeepTheirDeclaredLimitsAndShareTheWholeMachine) {
  World world(2, kResponsive);
  for (int i = 0; i < 5; ++i) {
    world.add(fluidPod("p" + std::to_string(i), 150_m, 600_m, always(2000_m)));
  }
  for (int second = 0; second < 600; ++second) {
    world.run(1);
    for (std::size_t i = 0; i < world.size(); ++i) {
      ASSERT_GE(world.limit(i), 600_m);
      ASSERT_GE(world.last.pods[i].desired, 600_m);
      ASSERT_NEAR(static_cast<double>(world.used(i).count()), 400, 1);
    }
  }
}

TEST(Least, WhatACeilingForbidsIsLeftToTheOthers) {
  World world(2, kResponsive);
  world.add(fluidPod("small", 100_m, 1000_m, always(2000_m)));
  world.add(fluidPod("other", 100_m, 1000_m, always(2000_m)));
  world.pod(0).ceiling = 200_m;
  world.run(300);
  EXPECT_EQ(world.used(0), 200_m);
  EXPECT_GE(world.used(1), 1790_m);
  EXPECT_GE(world.limit(1), 1800_m);
}

TEST(Least, AFloorGivesNothingAtTheCostOfOthers) {
  World world(2, kResponsive);
  for (const char* id : {"a", "b", "greedy"}) {
    world.add(fluidPod(id, 200_m, 1000_m, always(2000_m)));
  }
  world.pod(2).floor = 2000_m;
  world.run(300);
  for (std::size_t i = 0; i < world.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(world.used(i).count()), 667, 2);
    EXPECT_GE(world.limit(i), 1000_m);
  }
}

TEST(Least, NoPodIsCutWhileCpuIsIdle) {
  World world(4, kResponsive);
  world.add(important(fluidPod("gold", 200_m, 1000_m, always(1500_m)), 4));
  world.add(important(fluidPod("greedy", 200_m, 1000_m, always(2000_m)), 0.5));
  for (int second = 0; second < 600; ++second) {
    world.run(1);
    ASSERT_GE(world.limit(1), 1000_m);
    ASSERT_FALSE(world.last.pods[1].constrained);
    ASSERT_EQ(world.last.pods[0].help, Help::Phase::kNone);
  }
}

// Gold matters eight times as much as each hog, and in most seconds it asks for a little more than
// the kernel's equal weights give it.
constexpr std::size_t kGold = 0;
constexpr std::size_t kSilver = 1;
constexpr std::size_t kHog = 2;
constexpr std::size_t kOtherHog = 3;

struct GoldWorld : World {
  explicit GoldWorld(const Settings& settings = kResponsive, int leaves = 1'000'000)
      : World(2, settings) {
    add(important(fluidPod("gold", 200_m, 1000_m,
                           [=](int s) { return s >= leaves  ? 0_m
                                               : s % 10 < 8 ? 600_m
                                                            : 150_m; }),
                  4));
    add(fluidPod("silver", 200_m, 1000_m, always(300_m)));
    add(important(fluidPod("hog", 200_m, 2000_m, always(2000_m)), 0.5));
    add(important(fluidPod("other hog", 200_m, 2000_m, always(2000_m)), 0.5));
  }
  Help::Phase help() const { return last.pods[kGold].help; }
  bool binds() const { return std::ranges::any_of(last.pods, &PodDecision::constrained); }
  // The mean use of a pod over the next seconds.
  double meanUse(std::size_t i, int count) {
    double sum = 0;
    for (int second = 0; second < count; ++second) {
      run(1);
      sum += used(i).cores();
    }
    return sum / count;
  }
};

TEST(Gold, HogsAreBoundOnEvidenceFirstOnTrialThenForAsLongAsItHelps) {
  GoldWorld world;
  world.run(19);
  EXPECT_FALSE(world.binds()) << "too few samples";
  EXPECT_EQ(world.help(), Help::Phase::kNone);
  world.run(15);
  EXPECT_EQ(world.help(), Help::Phase::kProbe);
  EXPECT_TRUE(world.last.pods[kHog].constrained);
  EXPECT_TRUE(world.last.pods[kOtherHog].constrained);
  EXPECT_FALSE(world.last.pods[kSilver].constrained);
  EXPECT_EQ(world.last.pods[kHog].reason.basis, Basis::kConstrained);
  EXPECT_EQ(world.last.pods[kGold].claim, 2000_m) << "on trial it claims the whole machine";
  world.run(40);
  EXPECT_EQ(world.help(), Help::Phase::kHeld);
  const PodDecision& gold = world.last.pods[kGold];
  EXPECT_GT(gold.claim, 800_m);
  EXPECT_LT(gold.claim, 1200_m) << "insurance times its use";
  EXPECT_LT(gold.by_kernel, gold.award);
  EXPECT_TRUE(gold.bound_for.empty());
  EXPECT_GT(world.last.pods[kHog].by_kernel, world.last.pods[kHog].award);
  EXPECT_EQ(world.last.pods[kHog].bound_for, std::vector<std::string>{"gold"});
  EXPECT_FALSE(world.last.pods[kHog].claim);
  EXPECT_TRUE(world.last.whole_machine);
  world.run(60);
  world.changes.assign(world.size(), 0);
  for (int second = 0; second < 1800; ++second) {
    world.run(1);
    ASSERT_EQ(world.help(), Help::Phase::kHeld) << "second " << second;
    ASSERT_TRUE(world.last.pods[kHog].constrained);
    ASSERT_GE(world.limit(kSilver), 1000_m);
    ASSERT_GE(world.limit(kGold), 1000_m);
  }
  EXPECT_EQ(world.changes[kHog], 0) << "a hold is steady";
}

TEST(Gold, GetsAllItAsksForAndTheHogsKeepMoreThanHalf) {
  GoldWorld world;
  const double before = world.meanUse(kHog, 20);
  world.run(160);
  EXPECT_NEAR(world.meanUse(kGold, 100), 0.8 * 0.6 + 0.2 * 0.15, 0.005);
  EXPECT_GE(world.meanUse(kHog, 100), 0.55 * before);
  EXPECT_NEAR(world.meanUse(kSilver, 100), 0.3, 0.005);
}

TEST(Gold, HogsAreReleasedWhenItLeaves) {
  GoldWorld world(kResponsive, 300);
  world.run(299);
  EXPECT_TRUE(world.binds());
  world.run(60);
  EXPECT_FALSE(world.binds());
  EXPECT_GE(world.limit(kHog), 2000_m);

  GoldWorld gone;
  gone.run(299);
  EXPECT_TRUE(gone.binds());
  NodeInput input = gone.input();
  input.now += seconds(1);
  input.pods.erase(input.pods.begin());
  input.machine.clear();
  const NodeDecision& decision = gone.law().decide(input);
  for (const PodDecision& pod : decision.pods) {
    EXPECT_FALSE(pod.constrained);
    EXPECT_GE(pod.desired, pod.reason.declared) << "at once";
  }
}

TEST(Gold, AnUnmanagedHogThatWouldTakeWhatIsFreedPreventsIt) {
  World world(2, kResponsive);
  world.add(important(fluidPod("gold", 100_m, 2000_m, always(2000_m)), 4));
  world.add(important(fluidPod("batch", 100_m, 2000_m, always(2000_m)), 0.5));
  world.add({.id = "outside", .weight = 1024, .wants = always(2000_m)});
  for (int second = 0; second < 300; ++second) {
    world.run(1);
    ASSERT_FALSE(world.last.pods[1].constrained);
  }
}

TEST(Gold, NoPodIsBoundThatMayNotBeLowered) {
  GoldWorld raise_only;
  raise_only.pod(kHog).may_lower = false;
  raise_only.run(300);
  EXPECT_FALSE(raise_only.last.pods[kHog].constrained);
  EXPECT_GE(raise_only.limit(kHog), 2000_m);

  GoldWorld both;
  both.pod(kHog).may_lower = both.pod(kOtherHog).may_lower = false;
  Settings never = kResponsive;
  never.reclaim = Reclaim::kNever;
  GoldWorld reclaim_never(never);
  GoldWorld not_divisible;
  not_divisible.input().divisible = false;
  for (GoldWorld* world : {&both, &reclaim_never, &not_divisible}) {
    for (int second = 0; second < 300; ++second) {
      world->run(1);
      ASSERT_FALSE(world->binds());
      ASSERT_EQ(world->help(), Help::Phase::kNone);
      ASSERT_GE(world->limit(kHog), 2000_m);
    }
  }
}

TEST(Gold, WithEqualFactorsItIsOnItsOwn) {
  GoldWorld world;
  for (std::size_t i = 0; i < world.size(); ++i) world.pod(i).factor = 2;
  for (int second = 0; second < 300; ++second) {
    world.run(1);
    ASSERT_FALSE(world.binds());
  }
}

TEST(Gold, IsRaisedBeforeAnyPodIsBoundForIt) {
  World world(2, kResponsive);
  world.add(important(fluidPod("gold", 200_m, 300_m, always(800_m)), 4));
  world.add(important(fluidPod("hog", 200_m, 2000_m, always(2000_m)), 0.5));
  world.run(60);
  EXPECT_EQ(world.used(0), 800_m);
  EXPECT_FALSE(world.last.pods[1].constrained) << "its own limit kept it down, not the hog";
}

TEST(Gold, WithoutASensedMachineThePodsCountByTheirRequests) {
  GoldWorld world;
  NodeLaw law(kResponsive);
  bool bound = false;
  for (int second = 0; second < 60; ++second) {
    world.run(1);
    NodeInput input = world.input();
    input.machine.clear();
    input.idle.reset();
    bound |= law.decide(input).pods[kHog].constrained;
  }
  EXPECT_TRUE(bound);
}

TEST(Bound, BySomePredecessorIsGivenBackAtOnce) {
  World world(2, kResponsive);
  world.add(fluidPod("a", 100_m, 1500_m, always(2000_m)));
  world.pod(0).containers[0].limit = 300_m;
  world.law().resume(
      "a", {.desired = 300_m, .containers = {300_m}, .declared = 1500_m, .constrained = true});
  world.run(1);
  EXPECT_FALSE(world.last.pods[0].constrained);
  EXPECT_GE(world.last.pods[0].desired, 1500_m);
  EXPECT_GE(world.moves()[0].limit, 1500_m);
}

TEST(Bound, AnIdlePodOfAPredecessorToo) {
  World world(2, kResponsive);
  world.add(fluidPod("a", 100_m, 1500_m, always(10_m)));
  world.pod(0).containers[0].limit = 300_m;
  world.law().resume(
      "a", {.desired = 300_m, .containers = {300_m}, .declared = 1500_m, .constrained = true});
  world.run(2);
  EXPECT_EQ(world.limit(0), 1500_m);
}

TEST(Bound, KeepsTheShapeOfItsBursts) {
  Pod pod = fluidPod("a", 100_m, 300_m, always(0_m)).pod;
  demand::Need& need = pod.containers[0].need;
  need.use = 400_m;
  need.burst = 1000_m;
  need.burst_state = demand::BurstState::kLearned;
  EXPECT_EQ(shapedLimits(pod, 396_m), (std::vector{990_m})) << "1 % short: nothing jumps";
  EXPECT_EQ(shapedLimits(pod, 200_m), (std::vector{500_m}));
  need.used_peak = 280_m;  // of 300m
  EXPECT_EQ(shapedLimits(pod, 200_m), (std::vector{500_m}));
  need.used_peak = 290_m;
  EXPECT_EQ(shapedLimits(pod, 200_m), (std::vector{200_m})) << "it uses the whole of its limit";
  need.used_peak = 280_m;
  pod.contention = 0.6;
  EXPECT_EQ(shapedLimits(pod, 200_m), (std::vector{200_m})) << "it does not pause, it must wait";
  need.busy = 0.5;
  EXPECT_EQ(shapedLimits(pod, 200_m), (std::vector{1000_m})) << "of 200m to use, all";
  need.busy = 1;
  pod.contention = 0.4;
  EXPECT_EQ(shapedLimits(pod, 200_m), (std::vector{500_m}));
  need.burst_state = demand::BurstState::kGuessed;
  EXPECT_EQ(shapedLimits(pod, 200_m), (std::vector{200_m})) << "waiting threads are no burst";

  PodView view;
  view.floor = 100_m;
  view.ceiling = 2000_m;
  view.needed = view.free = 1000_m;
  EXPECT_EQ(constrainedAnswer(view, 985_m).limit, 990_m);
  EXPECT_EQ(constrainedAnswer(view, 25_m).limit, 100_m) << "its floor";
}

TEST(Bound, AContainersBurstsEarnItsSiblingNothing) {
  Pod pod = fluidPod("a", 100_m, 300_m, always(0_m)).pod;
  pod.containers.push_back({.name = "spins", .limit = 300_m, .declared = 300_m, .request = 100_m});
  pod.containers[0].need.use = 100_m;
  pod.containers[0].need.burst = 2000_m;
  pod.containers[0].need.burst_state = demand::BurstState::kLearned;
  pod.containers[1].need.use = 4000_m;
  pod.containers[1].need.burst = 4000_m;
  pod.containers[1].need.burst_state = demand::BurstState::kGuessed;
  const std::vector shaped = shapedLimits(pod, 600_m);
  EXPECT_EQ(shaped, (std::vector{2000_m, 500_m}));
  EXPECT_EQ(splitLimit(pod, shaped, 2500_m), shaped);
}

TEST(Strict, LimitsThemselvesStayWithinCapacity) {
  Settings settings = kResponsive;
  settings.strict_capacity = true;
  World world(2, settings);
  for (int i = 0; i < 5; ++i) {
    world.add(fluidPod("p" + std::to_string(i), 100_m, 1000_m, always(Millicores(100 * i))));
  }
  world.run(300);
  Millicores sum;
  for (std::size_t i = 0; i < world.size(); ++i) sum += world.limit(i);
  EXPECT_LE(sum, 1800_m);
  EXPECT_GE(sum, 1750_m);
}

TEST(Classic, MovesSlowlyBothWaysAndStaysWithinCapacity) {
  World world(2, settingsOf(Profile::kClassic));
  world.add(fluidPod("web", 100_m, 200_m, always(900_m)));
  world.add(fluidPod("idle", 100_m, 1000_m, always(10_m)));
  world.run(29);
  EXPECT_LE(world.limit(0), 300_m);
  world.run(600);
  EXPECT_GE(world.limit(0), 900_m);
  EXPECT_LE(world.limit(0) + world.limit(1), 1800_m);
}

// Caution.

TEST(Caution, NoDataNoDecision) {
  NodeLaw law(kResponsive);
  NodeInput input{.now = MonotonicTime(seconds(100)), .capacity = 4000_m};
  Pod pod = fluidPod("a", 100_m, 500_m, always(0_m)).pod;
  pod.containers[0].need.samples = 30;
  pod.containers[0].need.ready = true;
  pod.containers[0].need.use_peak = pod.containers[0].need.use = 3000_m;
  pod.containers[0].need.blocked = 500_m;
  pod.containers[0].need.good_until = MonotonicTime(seconds(99));
  input.pods.push_back(pod);
  NodeActuator actuator(kResponsive);
  const NodeDecision& decision = law.decide(input);
  EXPECT_EQ(decision.pods[0].desired, 500_m);
  EXPECT_EQ(decision.pods[0].reason.basis, Basis::kNoData);
  const Move none = actuator.next(input, decision)[0];
  EXPECT_FALSE(none.moves);
  EXPECT_EQ(none.held_by, Hold::kNoData);
  input.pods[0].containers[0].need.good_until = MonotonicTime(seconds(101));
  EXPECT_TRUE(actuator.next(input, law.decide(input))[0].moves);
}

TEST(Caution, ANewPodIsNotJudgedUnlessThrottled) {
  Settings trimming = kResponsive;
  trimming.reclaim = Reclaim::kAlways;
  trimming.lower_lasts = Nanos(0);
  World world(4, trimming);
  world.add(fluidPod("a", 100_m, 1000_m, always(10_m)));
  world.run(4);
  EXPECT_EQ(world.changes[0], 0);
  EXPECT_EQ(world.last.pods[0].reason.basis, Basis::kWarmup);
  world.run(1);
  EXPECT_EQ(world.changes[0], 1);
}

TEST(Caution, ANewPodStartsWhereItsSiblingsAre) {
  World world(4, kResponsive);
  world.add(fluidPod("a", 100_m, 200_m, always(150_m)));
  world.pod(0).start = 750_m;
  world.run(2);
  EXPECT_EQ(world.limit(0), 750_m);
  EXPECT_EQ(world.last.pods[0].reason.basis, Basis::kStart);
}

TEST(Caution, AnUnreadyPodIsNotLoweredForTenMinutes) {
  GoldWorld world;
  world.spec(kHog).ready = world.spec(kOtherHog).ready = false;
  bool held = false;
  for (int second = 0; second < 595; ++second) {
    world.run(1);
    ASSERT_EQ(world.limit(kHog), 2000_m);
    held |= world.moves()[kHog].held_by == Hold::kNotReady;
  }
  EXPECT_TRUE(held) << "a trial would have lowered it";
  // The trials so far did not help, so the next one waits.
  world.run(600);
  EXPECT_EQ(world.help(), Help::Phase::kHeld);
  EXPECT_LE(world.limit(kHog), 500_m);
}

TEST(Caution, ReadyForAMomentIsNoNewExcuse) {
  GoldWorld world;
  for (int minute = 0; minute < 15; ++minute) {
    world.spec(kHog).ready = world.spec(kOtherHog).ready = false;
    world.run(59);
    world.spec(kHog).ready = world.spec(kOtherHog).ready = true;
    world.run(1);
  }
  world.spec(kHog).ready = world.spec(kOtherHog).ready = false;
  world.run(240);
  EXPECT_LE(world.limit(kHog), 500_m);
}

TEST(Caution, AnotherWritersLimitIsTheNewDeclaredOne) {
  World world(4, kResponsive);
  world.add(fluidPod("a", 100_m, 1000_m, always(100_m)));
  world.run(60);
  world.pod(0).containers[0].declared = world.pod(0).containers[0].limit = 400_m;
  world.run(60);
  EXPECT_EQ(world.limit(0), 400_m);
  EXPECT_EQ(world.changes[0], 0);
}

TEST(Caution, ANodesRaisesAreRationed) {
  World world(2, kResponsive);
  for (int i = 0; i < 20; ++i) {
    world.add(fluidPod("p" + std::to_string(i), 10_m, 100_m, always(2000_m)));
  }
  std::vector<Millicores> before(world.size(), 100_m);
  Millicores most;
  for (int second = 0; second < 12; ++second) {
    world.run(1);
    Millicores raised;
    for (std::size_t i = 0; i < world.size(); ++i) {
      raised += std::max(world.moves()[i].limit - before[i], 0_m);
      before[i] = world.moves()[i].limit;
    }
    most = std::max(most, raised);
  }
  EXPECT_GE(most, 3300_m);
  EXPECT_LE(most, 4000_m + 1200_m) << "twice the node's capacity, and the rest of one raise";
  for (std::size_t i = 0; i < world.size(); ++i) EXPECT_GT(world.limit(i), 100_m);
}

// What is told.

TEST(Decision, IsPublishedOnceAndThenOnlyOnChange) {
  World world(4, kResponsive);
  world.add(fluidPod("web", 100_m, 200_m, always(50_m)));
  world.run(1);
  EXPECT_TRUE(world.last.pods[0].publish);
  int published = 0;
  for (int i = 0; i < 300; ++i) {
    world.run(1);
    published += world.last.pods[0].publish ? 1 : 0;
  }
  EXPECT_LE(published, 1);
}

TEST(Decision, SentencesAreShortAndSayTheNumbers) {
  Reason reason;
  for (int basis = 0; basis <= static_cast<int>(Basis::kCleared); ++basis) {
    reason.basis = static_cast<Basis>(basis);
    EXPECT_LE(sentence(reason).size(), 256u);
    EXPECT_FALSE(name(reason.basis).empty());
  }
  reason = {.basis = Basis::kConstrained,
            .use = 2000_m,
            .award = 450_m,
            .capacity = 1800_m,
            .price = 0.25,
            .weight = 100};
  EXPECT_EQ(
      sentence(reason),
      "a pod that matters more is short of CPU: of the 2000m it could use, weight 100 gets it "
      "450m of 1800m at price 0.25");
  // Exactly the floors can be had, or not even those: no number is a price then.
  for (const std::optional<double> none :
       {std::optional(std::numeric_limits<double>::infinity()), std::optional<double>()}) {
    reason.price = none;
    EXPECT_EQ(
        sentence(reason),
        "a pod that matters more is short of CPU: of the 2000m it could use, weight 100 gets it "
        "450m of 1800m (overloaded)");
  }
}

TEST(Decision, StateCanBeSavedAndRestored) {
  // Before a trial, during one, and while the help is held.
  for (const int at : {15, 40, 90}) {
    GoldWorld whole;
    GoldWorld broken;
    whole.run(at);
    broken.run(at);
    broken.law() = NodeLaw(kResponsive, broken.law().state());
    for (int i = 0; i < 120; ++i) {
      whole.run(1);
      broken.run(1);
      ASSERT_EQ(whole.last, broken.last) << "second " << i << " after " << at;
    }
  }
}

// Containers.

Pod twoContainers() {
  Pod pod = fluidPod("a", 100_m, 400_m, always(0_m)).pod;
  pod.containers.push_back({.name = "sidecar", .limit = 100_m, .declared = 100_m, .request = 50_m});
  return pod;
}

TEST(Split, GivesRequestsThenNeedsThenByDeclaredLimits) {
  const Pod pod = twoContainers();
  const std::vector idle{0_m, 0_m};
  EXPECT_EQ(splitLimit(pod, idle, 150_m), (std::vector{100_m, 50_m}));
  EXPECT_EQ(splitLimit(pod, idle, 500_m), (std::vector{400_m, 100_m}));
  EXPECT_EQ(splitLimit(pod, idle, 75_m), (std::vector{50_m, 30_m}));
  const std::vector busy{0_m, 350_m};
  EXPECT_EQ(splitLimit(pod, busy, 300_m), (std::vector{100_m, 200_m}));
  EXPECT_EQ(splitLimit(pod, busy, 450_m), (std::vector{100_m, 350_m}));
  EXPECT_EQ(splitLimit(pod, busy, 550_m), (std::vector{200_m, 350_m}));
}

TEST(Split, AStepOnTheWayMovesEachContainerItsPart) {
  const std::vector in_force{400_m, 100_m};
  const std::vector target{800_m, 100_m};
  EXPECT_EQ(splitOnTheWay(in_force, target, 500_m), (std::vector{400_m, 100_m}));
  EXPECT_EQ(splitOnTheWay(in_force, target, 700_m), (std::vector{600_m, 100_m}));
  EXPECT_EQ(splitOnTheWay(in_force, target, 900_m), target);
}

TEST(Split, WithinBoundsInProportionToWhatIsDesired) {
  const std::vector<BoundedPart> parts{{600_m, 100_m, 3600_m}, {200_m, 50_m, 3600_m}};
  EXPECT_EQ(splitWithin(parts, 1600_m), (std::vector{1200_m, 400_m}));
  EXPECT_EQ(splitWithin(parts, 1605_m), (std::vector{1210_m, 400_m}));
  // The smaller container would fall below its floor.
  EXPECT_EQ(splitWithin(parts, 160_m), (std::vector{110_m, 50_m}));
  EXPECT_EQ(splitWithin(parts, 1_m), (std::vector{100_m, 50_m}));
}

TEST(Split, WithinBoundsAddsUp) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    Dice dice(seed);
    std::vector<BoundedPart> parts(static_cast<std::size_t>(dice.between(1, 5)));
    Millicores least;
    Millicores most;
    for (BoundedPart& part : parts) {
      part.desired = Millicores(dice.between(0, 4000));
      part.floor = Millicores(10 * dice.between(0, 200));
      part.ceiling = part.floor + Millicores(10 * dice.between(0, 200));
      least += part.floor;
      most += part.ceiling;
    }
    const Millicores total(dice.between(1, 9000));
    const std::vector<Millicores> split = splitWithin(parts, total);
    Millicores sum;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      ASSERT_GE(split[i], parts[i].floor) << "seed " << seed;
      ASSERT_LE(split[i], parts[i].ceiling) << "seed " << seed;
      ASSERT_EQ(split[i].count() % 10, 0);
      sum += split[i];
    }
    ASSERT_EQ(sum, std::clamp(roundUp(total), least, most)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace mbcas::control
