// What must hold on any node, whatever its pods do: random nodes, every invariant at every tick.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "mbcas/control/dice.h"
#include "mbcas/control/fluid_node.h"
#include "mbcas/control/weight.h"
#include "test/support/trials.h"

namespace mbcas::control {
namespace {

using namespace literals;
using std::chrono::seconds;

std::function<Millicores(int)> randomLoad(Dice& dice, std::int64_t most) {
  const Millicores low(dice.between(0, most / 4));
  const Millicores high(dice.between(low.count(), most));
  const auto noise = dice.oneOf<std::int64_t>({0, 0, 5, 30});  // percent
  const auto on = static_cast<int>(dice.between(1, 60));
  const auto off = dice.chance(40) ? 0 : static_cast<int>(dice.between(1, 120));
  const auto phase = static_cast<int>(dice.between(0, on + off - 1));
  const auto seed = static_cast<std::uint64_t>(dice.between(1, 1'000'000'000));
  return [=](int second) {
    const Millicores level = (second + phase) % (on + off) < on ? high : low;
    Dice noisy(seed + static_cast<std::uint64_t>(second));
    const auto wobble = noise == 0 ? 0 : noisy.between(-noise, noise);
    return Millicores(level.count() * (100 + wobble) / 100);
  };
}

FluidPod randomPod(Dice& dice, int number, std::int64_t cpus) {
  const Millicores request(dice.chance(20) ? 0 : dice.between(1, 300 * cpus));
  const Millicores declared(std::max<std::int64_t>(request.count(), dice.between(10, 1200 * cpus)));
  FluidPod fluid =
      fluidPod("pod-" + std::to_string(number), request, declared, randomLoad(dice, 1100 * cpus));
  fluid.threads = static_cast<std::uint64_t>(dice.between(1, 8));
  fluid.backlog = dice.chance(30);
  if (dice.chance(40)) fluid.burst = Millicores(dice.between(50, 1000 * cpus));
  Pod& pod = fluid.pod;
  const auto priority = dice.oneOf<std::int64_t>({0, 0, 2000, -500, 9000});
  pod.weight = weightOf(request, priority);
  pod.factor = priorityFactor(priority);
  pod.may_lower = !dice.chance(10);
  if (dice.chance(20)) pod.ceiling = Millicores(dice.between(5, 1000 * cpus));
  if (dice.chance(20)) pod.floor = Millicores(dice.between(5, 500 * cpus));
  if (dice.chance(10)) pod.start = Millicores(dice.between(5, 1000 * cpus));
  fluid.ready = !dice.chance(10);
  pod.containers[0].limit =
      dice.chance(70) ? pod.containers[0].declared : Millicores(10 * dice.between(1, 100 * cpus));
  return fluid;
}

FluidOther randomOther(Dice& dice, int number, std::int64_t cpus) {
  return {.id = "other-" + std::to_string(number),
          .weight = dice.oneOf({2.0, 102.0, 1024.0, 4096.0}),
          .wants = randomLoad(dice, 1100 * cpus)};
}

Settings randomSettings(Dice& dice) {
  Settings settings;
  settings.reclaim = dice.oneOf(
      {Reclaim::kScarce, Reclaim::kScarce, Reclaim::kScarce, Reclaim::kAlways, Reclaim::kNever});
  settings.strict_capacity = dice.chance(15);
  settings.bid_rule = dice.chance(15) ? BidRule::kPressure : BidRule::kEntitlement;
  return dice.chance(10) ? settingsOf(Profile::kClassic) : settings;
}

// Checks every decision against what came before it.
class Judge {
 public:
  Judge(const Settings& settings, std::size_t pods) : settings_(settings), pods_(pods) {}

  void look(FluidNode& node, const NodeDecision& decision) {
    const MonotonicTime now = node.input().now;
    checkBinding(node.input(), decision);
    for (std::size_t i = 0; i < decision.pods.size(); ++i) {
      const Pod& pod = node.input().pods[i];
      const PodDecision& verdict = decision.pods[i];
      const Move& move = node.moves()[i];
      Past& past = pods_[i];
      SCOPED_TRACE(pod.id);
      const Millicores least = std::max(pod.request(), 10_m);
      ASSERT_GE(verdict.desired, std::min(least, pod.limit()));
      ASSERT_GE(move.limit, std::min(least, pod.limit()));
      ASSERT_GE(verdict.answer, std::min(least, pod.limit()));
      if (move.moves && move.limit != pod.declared()) {
        ASSERT_EQ(move.limit.count() % 10, 0);
      }
      checkDeclared(pod, verdict, move);
      checkPace(pod, verdict, move, past, now);
      if (verdict.publish) {
        ASSERT_LE(sentence(verdict.reason).size(), 256u);
      }
      Millicores split;
      for (const Millicores part : move.containers) split += part;
      ASSERT_EQ(split, move.limit);
    }
  }

 private:
  struct Past {
    std::optional<MonotonicTime> changed{};
    Millicores to{};
  };

  // Pods are bound only for a pod that matters more and is helped, and only if they may be lowered.
  void checkBinding(const NodeInput& input, const NodeDecision& decision) {
    if (isClassic(settings_)) return;
    const auto helped = [](const PodDecision& pod) { return pod.help != Help::Phase::kNone; };
    const bool helps = std::ranges::any_of(decision.pods, helped);
    const auto [least, most] = std::ranges::minmax(input.pods, {}, &Pod::factor);
    ever_short_ |= *input.idle * 20 < input.capacity;
    for (std::size_t i = 0; i < decision.pods.size(); ++i) {
      if (!decision.pods[i].constrained) continue;
      const Pod& pod = input.pods[i];
      SCOPED_TRACE(pod.id);
      ASSERT_TRUE(helps);
      ASSERT_TRUE(ever_short_) << "CPU has always been idle";
      ASSERT_LT(least.factor, most.factor) << "the kernel's division is the market's";
      ASSERT_TRUE(pod.may_lower);
      ASSERT_NE(settings_.reclaim, Reclaim::kNever);
      ASSERT_FALSE(helped(decision.pods[i])) << "a pod is helped or bound, not both";
    }
  }

  // A pod that is not bound is never sent below what it declared.
  void checkDeclared(const Pod& pod, const PodDecision& verdict, const Move& move) const {
    if (isClassic(settings_) || settings_.reclaim == Reclaim::kAlways) return;
    if (verdict.constrained) return;
    const Millicores most =
        std::max(roundDown(pod.ceiling.value_or(1'000'000_m)), roundUp(pod.request()));
    const Millicores declared = std::min(pod.declared(), most);
    ASSERT_GE(verdict.desired, declared);
    ASSERT_GE(move.limit, std::min(declared, verdict.limit));
  }

  // No pod changes more often, or further, than its guards allow.
  void checkPace(const Pod& pod, const PodDecision& verdict, const Move& move, Past& past,
                 MonotonicTime now) const {
    if (!move.moves) return;
    const GuardSettings& guards = settings_.guards;
    const auto from = static_cast<double>(verdict.limit.count());
    const auto to = static_cast<double>(move.limit.count());
    const bool lower = to < from;
    const bool follows = guards.follow_market && settings_.reclaim != Reclaim::kAlways &&
                         verdict.desired < pod.declared();
    Nanos pause = lower ? guards.cooldown : guards.raise_cooldown;
    if (follows) pause = guards.market_interval;
    if (past.changed) {
      ASSERT_GE(now - *past.changed, pause);
    }
    if (!lower) {
      ASSERT_LE(to, from * guards.raise_max_step + 10);
    }
    if (lower && !follows) {
      ASSERT_GE(to, std::min(from / guards.max_step, from - 10));
    }
    past = {now, move.limit};
  }

  Settings settings_;
  std::vector<Past> pods_;
  bool ever_short_ = false;  // of CPU: less than a twentieth of it was idle
};

TEST(Properties, HoldOnRandomNodesAtEveryTick) {
  const auto nodes = test::trials<std::uint64_t>(700, 30'000);
  std::int64_t bound = 0;  // pod-seconds
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const Settings settings = randomSettings(dice);
    const auto cpus = dice.oneOf<std::int64_t>({1, 2, 4, 16});
    FluidNode node(static_cast<unsigned>(cpus), settings);
    const auto pods = static_cast<int>(dice.between(1, 12));
    for (int i = 0; i < pods; ++i) node.add(randomPod(dice, i, cpus));
    const auto others = dice.chance(50) ? 0 : dice.between(1, 3);
    for (int i = 0; i < others; ++i) node.add(randomOther(dice, i, cpus));
    // Every fourth node: no pod matters more than another.
    const bool equal = seed % 4 == 0;
    for (std::size_t i = 0; equal && i < node.size(); ++i) node.pod(i).factor = 2;
    Judge judge(settings, node.size());
    for (int second = 0; second < 180; ++second) {
      const NodeDecision& decision = node.second();
      judge.look(node, decision);
      if (testing::Test::HasFatalFailure()) return;
      bound += std::ranges::count_if(decision.pods, &PodDecision::constrained);
      if (dice.chance(1)) {
        FluidPod& pod = node.spec(static_cast<std::size_t>(dice.between(0, pods - 1)));
        pod.ready = !pod.ready;
      }
    }
  }
  EXPECT_GT(bound, 1000) << "bound pods were to be among them";
}

// Constant demand, any start: the limits come to rest and stay there.

struct Rest {
  int moves = 0;     // in the last five minutes of twenty-five, trials apart
  double swing = 1;  // largest limit over smallest then, of the pod that swings most
  bool trial = false;
  Millicores use_of_all{};  // at the end, and of all consumers
  NodeDecision last{};
};

Rest settle(FluidNode& node) {
  constexpr int kAfterTrial = 60;  // seconds in which limits come back
  Rest rest;
  std::vector<Millicores> lowest(node.size(), 1'000'000_m);
  std::vector<Millicores> highest(node.size(), 0_m);
  int trial = 0;
  for (int second = 0; second < 1500; ++second) {
    rest.last = node.second();
    const bool probes = std::ranges::any_of(
        rest.last.pods, [](const PodDecision& pod) { return pod.help == Help::Phase::kProbe; });
    trial = probes ? kAfterTrial : std::max(trial - 1, 0);
    rest.trial = trial > 0;
    if (second < 1200 || rest.trial) continue;
    for (std::size_t i = 0; i < node.size(); ++i) {
      rest.moves += node.moves()[i].moves ? 1 : 0;
      lowest[i] = std::min(lowest[i], node.pod(i).limit());
      highest[i] = std::max(highest[i], node.pod(i).limit());
    }
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (highest[i] == 0_m) continue;
    rest.swing = std::max(rest.swing, static_cast<double>(highest[i].count()) /
                                          static_cast<double>(lowest[i].count()));
  }
  rest.use_of_all = node.usedByAll();
  return rest;
}

// Constant but for burst levels, whose trials to go lower are meant to be seen: none here.
FluidNode constantNode(std::uint64_t seed, const Settings& settings, Nanos delay = Nanos(0)) {
  Dice dice(seed);
  const auto cpus = dice.oneOf<std::int64_t>({1, 2, 4});
  FluidNode node(static_cast<unsigned>(cpus), settings, delay);
  const auto pods = static_cast<int>(dice.between(1, 8));
  for (int i = 0; i < pods; ++i) {
    FluidPod pod = randomPod(dice, i, cpus);
    const Millicores demand(dice.between(0, 1000 * cpus));
    pod.wants = [demand](int) { return demand; };
    pod.burst = 0_m;
    pod.ready = true;
    pod.pod.start.reset();
    // Any start: far too low, as declared, far too high.
    pod.pod.containers[0].limit = Millicores(10 * dice.between(1, 200 * cpus));
    node.add(pod);
  }
  for (int i = 0; i < (dice.chance(50) ? 0 : 2); ++i) {
    FluidOther other = randomOther(dice, i, cpus);
    other.wants = [demand = Millicores(dice.between(0, 1000 * cpus))](int) { return demand; };
    node.add(other);
  }
  return node;
}

TEST(LimitCycles, NoneOnConstantDemandFromAnyStart) {
  const auto nodes = test::trials<std::uint64_t>(60, 10'000);
  std::uint64_t restless = 0;
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    const auto delay = seconds(seed % 2 == 0 ? 0 : 2);
    FluidNode equal = constantNode(seed, settingsOf(Profile::kResponsive), delay);
    for (std::size_t i = 0; i < equal.size(); ++i) equal.pod(i).factor = 1;
    const Rest rest = settle(equal);
    ASSERT_EQ(rest.moves, 0) << "seed " << seed << ", swing " << rest.swing;
    FluidNode node = constantNode(seed, settingsOf(Profile::kResponsive), delay);
    restless += settle(node).moves > 0 ? 1 : 0;
  }
  // Where pods differ in importance, a raise that would take from others what they are promised is
  // cut short, and taken back to the step. The pod is then throttled, its demand is a guess, and on
  // a few nodes the guess swings.
  EXPECT_LE(restless, nodes / 50);
}

TEST(LimitCycles, AMistunedLawShowsThem) {
  // A limit below the use it was made from: it throttles, is raised by what waits, and trimmed
  // again.
  Settings mistuned = settingsOf(Profile::kResponsive);
  mistuned.reclaim = Reclaim::kAlways;
  mistuned.headroom = 0.8;
  mistuned.regret = Nanos(0);
  std::uint64_t cycling = 0;
  const auto nodes = test::trials<std::uint64_t>(40, 50);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    FluidNode node = constantNode(seed, mistuned);
    const Rest rest = settle(node);
    cycling += rest.moves > 10 && rest.swing > 1.2 ? 1 : 0;
  }
  EXPECT_GE(cycling * 5, nodes);
}

// Runs a node with the limits that are in force now: what is decided comes in a year.
constexpr Nanos kStatic = std::chrono::hours(24 * 365);

TEST(FixedPoint, WithEqualFactorsTheMachineIsUsedAsWithoutLimits) {
  const auto nodes = test::trials<std::uint64_t>(60, 10'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FluidNode node = constantNode(seed, settingsOf(Profile::kResponsive));
    FluidNode free = constantNode(seed, settingsOf(Profile::kResponsive), kStatic);
    for (std::size_t i = 0; i < node.size(); ++i) {
      node.pod(i).ceiling.reset();
      node.pod(i).factor = 1;
      free.pod(i).containers[0].limit = node.input().capacity;
    }
    free.second();
    const Rest rest = settle(node);
    EXPECT_GE(rest.use_of_all * 100, free.usedByAll() * 99);
    for (std::size_t i = 0; i < node.size(); ++i) {
      EXPECT_GE(node.pod(i).limit(), node.pod(i).declared());
    }
  }
}

// The promise, at rest: every consumer has at least the smaller of what plain Kubernetes with the
// declared limits gives it and its award.
TEST(FixedPoint, NoConsumerHasLessThanThePromise) {
  const auto nodes = test::trials<std::uint64_t>(60, 10'000);
  int binding = 0;
  Settings settings = settingsOf(Profile::kResponsive);
  settings.min_cpu = kLimitStep;  // a floor above the declared limit is a promise of its own
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    FluidNode node = constantNode(seed, settings);
    FluidNode plain = constantNode(seed, settingsOf(Profile::kResponsive), kStatic);
    for (std::size_t i = 0; i < node.size(); ++i) {
      plain.pod(i).containers[0].limit = plain.pod(i).declared();
      node.pod(i).floor.reset();
    }
    plain.second();
    const Rest rest = settle(node);
    if (rest.trial) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    // Limits that differ by less than the hysteresis are left alone, so a large pod may keep a
    // little that a small one was promised.
    const Millicores slack = Millicores(node.input().capacity.count() / 50);
    for (std::size_t i = 0; i < node.size(); ++i) {
      const PodDecision& pod = rest.last.pods[i];
      binding += pod.constrained ? 1 : 0;
      const Millicores promised = std::min(plain.used(i), pod.award);
      EXPECT_GE(node.used(i) * 100 + slack * 100, promised * 95)
          << node.pod(i).id << " used " << node.used(i).count() << " of " << promised.count();
      if (!pod.constrained) continue;
      EXPECT_GE(pod.desired * 100, pod.answer * 95) << "at most 5 % below the market's answer";
      EXPECT_LE(pod.desired * 100, pod.answer * 106 + 1000_m) << "nor above";
    }
  }
  EXPECT_GT(binding * 10, static_cast<int>(nodes)) << "bound pods were to be among them";
}

TEST(Equality, EqualPodsAreTreatedEqually) {
  const auto nodes = test::trials<std::uint64_t>(150, 3'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    Dice dice(seed);
    FluidNode node(2, settingsOf(Profile::kResponsive));
    FluidPod twin = randomPod(dice, 0, 2);
    const auto load = randomLoad(dice, 2000);
    for (const char* id : {"a", "b", "c"}) {
      twin.pod.id = id;
      node.add(twin);
    }
    for (int i = 0; i < 3; ++i) node.add(randomPod(dice, i, 2));
    for (int second = 0; second < 180; ++second) {
      const NodeDecision& decision = node.second();
      for (std::size_t i = 1; i < 3; ++i) {
        ASSERT_EQ(decision.pods[0].desired, decision.pods[i].desired)
            << "seed " << seed << " second " << second;
        ASSERT_EQ(decision.pods[0].constrained, decision.pods[i].constrained);
      }
    }
  }
}

// Gold is short of CPU, and the tenant's pods are bound for it with others.
struct Bound {
  Millicores used{};  // by the tenant's pods, over five minutes
  bool bound = false;
};

Bound boundTenant(std::uint64_t seed, const std::vector<FluidPod>& tenants) {
  Dice dice(seed);
  FluidNode node(4, settingsOf(Profile::kResponsive));
  for (const FluidPod& tenant : tenants) node.add(important(tenant, 0.5));
  node.add(important(
      fluidPod("gold", Millicores(dice.between(100, 400)), 4000_m, [](int) { return 4000_m; }), 4));
  for (int i = 0; i < 2; ++i) {
    const Millicores request(dice.between(50, 400));
    node.add(fluidPod("p" + std::to_string(i), request, 4000_m, [](int) { return 4000_m; }));
  }
  Bound result;
  for (int second = 0; second < 600; ++second) {
    const NodeDecision& decision = node.second();
    if (second < 300) continue;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
      result.used += node.used(i);
      result.bound |= decision.pods[i].constrained;
    }
  }
  return result;
}

TEST(Incentives, ABoundPodGainsNothingBySpinningMore) {
  const auto nodes = test::trials<std::uint64_t>(50, 1'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    const auto gets = [&](Millicores demand, std::uint64_t threads) {
      FluidPod tenant = fluidPod("tenant", 200_m, 1000_m, [=](int) { return demand; });
      tenant.threads = threads;
      return boundTenant(seed, {tenant});
    };
    const Bound modest = gets(1800_m, 2);
    const Bound greedy = gets(4000_m, 64);
    EXPECT_TRUE(modest.bound && greedy.bound) << "seed " << seed;
    EXPECT_LE(greedy.used * 100, modest.used * 102) << "seed " << seed;
  }
}

TEST(Incentives, ABoundPodGainsNothingBySplitting) {
  const auto nodes = test::trials<std::uint64_t>(50, 1'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    const auto part = [](const char* id, Millicores request, Millicores declared) {
      return fluidPod(id, request, declared, [](int) { return 4000_m; });
    };
    const Bound whole = boundTenant(seed, {part("whole", 400_m, 2000_m)});
    const Bound split =
        boundTenant(seed, {part("half", 200_m, 1000_m), part("other", 200_m, 1000_m)});
    EXPECT_TRUE(whole.bound && split.bound) << "seed " << seed;
    EXPECT_LE(split.used * 100, whole.used * 102 + 300'000_m) << "seed " << seed << ": 10m each";
  }
}

}  // namespace
}  // namespace mbcas::control
