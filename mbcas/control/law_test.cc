#include "mbcas/control/law.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "mbcas/control/answer.h"
#include "mbcas/control/dice.h"
#include "mbcas/control/fluid_node.h"
#include "mbcas/control/split.h"

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

// Scarcity and capacity.

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

TEST(Scarcity, IsJudgedByTheMedianWithHysteresis) {
  World world(2, kResponsive);  // C = 1800m: scarce from 1710m until below 1530m
  Millicores demand = 1600_m;
  world.add(fluidPod("a", 100_m, 2000_m, [&](int) { return demand; }));
  world.run(60);
  EXPECT_FALSE(world.last.scarce);
  demand = 1750_m;
  world.run(10);
  EXPECT_FALSE(world.last.scarce) << "a few seconds are left to the kernel";
  world.run(10);
  EXPECT_TRUE(world.last.scarce);
  demand = 1600_m;
  world.run(60);
  EXPECT_TRUE(world.last.scarce);
  demand = 1500_m;
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

// Constrained pods.

TEST(Constrained, SaturatingPodsShareByWeight) {
  World world(2, kResponsive);
  world.add(fluidPod("gold", 300_m, 2000_m, always(2000_m)));
  world.add(fluidPod("iron", 100_m, 2000_m, always(2000_m)));
  world.run(120);
  EXPECT_TRUE(world.last.scarce);
  EXPECT_EQ(world.last.mode, market::Mode::kCongested);
  EXPECT_GT(*world.last.price, 0);
  EXPECT_TRUE(world.last.pods[0].constrained);
  EXPECT_TRUE(world.last.pods[1].constrained);
  // Floors 300m and 100m, the surplus of 1400m by 3 to 1.
  EXPECT_NEAR(static_cast<double>(world.limit(0).count()), 1350, 20);
  EXPECT_NEAR(static_cast<double>(world.limit(1).count()), 450, 20);
  EXPECT_LT(world.last.welfare, 1);
  const std::vector<int> settled = world.changes;
  world.run(300);
  EXPECT_EQ(world.changes, settled) << "steady";
}

TEST(Constrained, WhoUsesLittleIsLeftFree) {
  World world(2, kResponsive);
  world.add(fluidPod("small", 100_m, 500_m, always(90_m)));
  world.add(fluidPod("hog", 100_m, 2000_m, always(2000_m)));
  world.run(120);
  EXPECT_FALSE(world.last.pods[0].constrained);
  EXPECT_EQ(world.limit(0), 500_m);
  EXPECT_TRUE(world.last.pods[1].constrained);
  EXPECT_NEAR(static_cast<double>(world.limit(1).count()), 1710, 20);
}

TEST(Constrained, KeepsTheShapeOfItsBursts) {
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

TEST(Constrained, AContainersBurstsEarnTheOneBesideItNothing) {
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

TEST(Constrained, IsGivenBackAtOnceWhenScarcityEnds) {
  World world(2, kResponsive);
  world.add(fluidPod("a", 100_m, 1500_m, from(100, 2000_m, 300_m)));
  world.add(fluidPod("b", 100_m, 1500_m, from(100, 2000_m, 300_m)));
  world.run(99);
  EXPECT_LT(world.limit(0), 1000_m);
  world.run(30);
  EXPECT_FALSE(world.last.scarce);
  EXPECT_GE(world.limit(0), 1500_m);
  EXPECT_GE(world.limit(1), 1500_m);
  world.run(300);
  EXPECT_EQ(world.limit(0), 1500_m) << "what its waiting threads could have used is forgotten";
}

TEST(Constrained, NeverWithReclaimNever) {
  Settings settings = kResponsive;
  settings.reclaim = Reclaim::kNever;
  World world(2, settings);
  world.add(fluidPod("a", 100_m, 1500_m, always(2000_m)));
  world.add(fluidPod("b", 100_m, 1500_m, always(2000_m)));
  world.run(120);
  EXPECT_EQ(world.limit(0), 1500_m);
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
  World world(2, kResponsive);
  world.add(fluidPod("never-ready", 100_m, 2000_m, always(2000_m)));
  world.add(fluidPod("good", 100_m, 2000_m, always(2000_m)));
  world.spec(0).ready = false;
  world.run(590);
  EXPECT_EQ(world.limit(0), 2000_m);
  EXPECT_EQ(world.moves()[0].held_by, Hold::kNotReady);
  world.run(30);
  EXPECT_LE(world.limit(0), 920_m);
}

TEST(Caution, ReadyForAMomentIsNoNewExcuse) {
  World world(2, kResponsive);
  world.add(fluidPod("flapping", 100_m, 2000_m, always(2000_m)));
  world.add(fluidPod("good", 100_m, 2000_m, always(2000_m)));
  for (int minute = 0; minute < 15; ++minute) {
    world.spec(0).ready = false;
    world.run(59);
    world.spec(0).ready = true;
    world.run(1);
  }
  world.spec(0).ready = false;
  world.run(60);
  EXPECT_LE(world.limit(0), 920_m);
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
  for (int second = 0; second < 10; ++second) {
    world.run(1);
    Millicores raised;
    for (std::size_t i = 0; i < world.size(); ++i) {
      raised += std::max(world.moves()[i].limit - before[i], 0_m);
      before[i] = world.moves()[i].limit;
    }
    most = std::max(most, raised);
  }
  EXPECT_GE(most, 3300_m);
  EXPECT_LE(most, 4000_m + 700_m) << "twice the node's capacity, and the rest of one raise";
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
  EXPECT_EQ(sentence(reason),
            "CPU is scarce: of the 2000m it could use, weight 100 gets it 450m of 1800m at price "
            "0.25");
  // Exactly the floors can be had, or not even those: no number is a price then.
  for (const std::optional<double> none :
       {std::optional(std::numeric_limits<double>::infinity()), std::optional<double>()}) {
    reason.price = none;
    EXPECT_EQ(sentence(reason),
              "CPU is scarce: of the 2000m it could use, weight 100 gets it 450m of 1800m "
              "(overloaded)");
  }
}

TEST(Decision, StateCanBeSavedAndRestored) {
  const auto make = [](World& world) {
    world.add(fluidPod("a", 300_m, 2000_m, always(2000_m)));
    world.add(fluidPod("b", 100_m, 2000_m, from(100, 50_m, 2000_m)));
  };
  World whole(2, kResponsive);
  World broken(2, kResponsive);
  make(whole);
  make(broken);
  whole.run(90);
  broken.run(90);
  broken.law() = NodeLaw(kResponsive, broken.law().state());
  for (int i = 0; i < 120; ++i) {
    whole.run(1);
    broken.run(1);
    ASSERT_EQ(whole.last, broken.last) << "second " << i;
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
