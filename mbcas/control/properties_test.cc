// What must hold on any node, whatever its pods do: random nodes, every invariant at every tick.
#include <gtest/gtest.h>

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
  pod.weight = weightOf(request, dice.oneOf<std::int64_t>({0, 0, 2000, -500}));
  if (dice.chance(20)) pod.ceiling = Millicores(dice.between(5, 1000 * cpus));
  if (dice.chance(20)) pod.floor = Millicores(dice.between(5, 500 * cpus));
  if (dice.chance(10)) pod.start = Millicores(dice.between(5, 1000 * cpus));
  fluid.ready = !dice.chance(10);
  pod.containers[0].limit =
      dice.chance(70) ? pod.containers[0].declared : Millicores(10 * dice.between(1, 100 * cpus));
  return fluid;
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
      if (move.moves) {
        ASSERT_EQ(move.limit.count() % 10, 0);
      }
      checkDeclared(pod, verdict, move, decision.scarce);
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

  // While CPU is not scarce, nobody is sent below what it declared.
  void checkDeclared(const Pod& pod, const PodDecision& verdict, const Move& move,
                     bool scarce) const {
    if (settings_.strict_capacity || settings_.reclaim == Reclaim::kAlways) return;
    if (scarce && settings_.reclaim == Reclaim::kScarce) return;
    const Millicores most =
        std::max(roundDown(pod.ceiling.value_or(1'000'000_m)), roundUp(pod.request()));
    const Millicores declared = std::min(pod.declared(), most);
    if (verdict.limit >= declared) {
      ASSERT_GE(move.limit, declared);
    }
    ASSERT_GE(verdict.desired, std::min(declared, verdict.limit));
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
};

TEST(Properties, HoldOnRandomNodesAtEveryTick) {
  const auto nodes = test::trials<std::uint64_t>(2'000, 30'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const Settings settings = randomSettings(dice);
    const auto cpus = dice.oneOf<std::int64_t>({1, 2, 4, 16});
    FluidNode node(static_cast<unsigned>(cpus), settings);
    const auto pods = static_cast<int>(dice.between(1, 12));
    for (int i = 0; i < pods; ++i) node.add(randomPod(dice, i, cpus));
    node.input().unmanaged_use = Millicores(dice.chance(30) ? dice.between(0, 300 * cpus) : 0);
    Judge judge(settings, node.size());
    for (int second = 0; second < 180; ++second) {
      judge.look(node, node.second());
      if (testing::Test::HasFatalFailure()) return;
      if (dice.chance(1)) {
        FluidPod& pod = node.spec(static_cast<std::size_t>(dice.between(0, pods - 1)));
        pod.ready = !pod.ready;
      }
    }
  }
}

// Constant demand, any start: the limits come to rest and stay there.

struct Rest {
  int moves = 0;            // in the last five minutes of fifteen
  double swing = 1;         // largest limit over smallest then, of the pod that swings most
  Millicores use_of_all{};  // at the end
  NodeDecision last{};
};

Rest settle(FluidNode& node) {
  Rest rest;
  std::vector<Millicores> lowest(node.size(), 1'000'000_m);
  std::vector<Millicores> highest(node.size(), 0_m);
  for (int second = 0; second < 900; ++second) {
    rest.last = node.second();
    if (second < 600) continue;
    for (std::size_t i = 0; i < node.size(); ++i) {
      rest.moves += node.moves()[i].moves ? 1 : 0;
      lowest[i] = std::min(lowest[i], node.pod(i).limit());
      highest[i] = std::max(highest[i], node.pod(i).limit());
    }
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    rest.swing = std::max(rest.swing, static_cast<double>(highest[i].count()) /
                                          static_cast<double>(lowest[i].count()));
    rest.use_of_all += node.used(i);
  }
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
  return node;
}

TEST(LimitCycles, NoneOnConstantDemandFromAnyStart) {
  const auto nodes = test::trials<std::uint64_t>(300, 10'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    for (const auto delay : {0, 2}) {
      FluidNode node = constantNode(seed, settingsOf(Profile::kResponsive), seconds(delay));
      const Rest rest = settle(node);
      ASSERT_EQ(rest.moves, 0) << "seed " << seed << ", delay " << delay << " s, swing "
                               << rest.swing;
    }
  }
}

TEST(LimitCycles, AMistunedLawShowsThem) {
  // A limit below the use it was made from: it throttles, is raised by what waits, and trimmed
  // again.
  Settings mistuned = settingsOf(Profile::kResponsive);
  mistuned.reclaim = Reclaim::kAlways;
  mistuned.headroom = 0.8;
  mistuned.regret = Nanos(0);
  int cycling = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    FluidNode node = constantNode(seed, mistuned);
    const Rest rest = settle(node);
    cycling += rest.moves > 10 && rest.swing > 1.2 ? 1 : 0;
  }
  EXPECT_GE(cycling, 10);
}

TEST(FixedPoint, UseStaysWithinCapacityAndNothingIsWasted) {
  const auto nodes = test::trials<std::uint64_t>(300, 10'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    FluidNode node = constantNode(seed, settingsOf(Profile::kResponsive));
    for (std::size_t i = 0; i < node.size(); ++i) node.pod(i).ceiling.reset();
    const Rest rest = settle(node);
    Millicores wanted;
    Millicores floors;
    for (std::size_t i = 0; i < node.size(); ++i) {
      const auto most = Millicores(static_cast<std::int64_t>(node.spec(i).threads) * 1000);
      wanted += std::min({node.spec(i).wants(0), most, node.input().capacity});
      floors += std::max({node.pod(i).floor.value_or(100_m), node.pod(i).request(), 10_m});
    }
    SCOPED_TRACE("seed " + std::to_string(seed));
    // Floors are kept even where they do not fit; limits are in steps of 10m.
    const Millicores slack = Millicores(10 * static_cast<std::int64_t>(node.size()));
    // Each limit may be off by half the hysteresis.
    const Millicores most = std::max(Millicores(rest.last.capacity.count() * 106 / 100), floors);
    if (rest.last.scarce) {
      EXPECT_LE(rest.use_of_all, most + slack);
    }
    for (const PodDecision& pod : rest.last.pods) {
      if (!pod.constrained) continue;
      EXPECT_GE(pod.desired * 100, pod.answer * 95) << "at most 5 % below the market's answer";
      EXPECT_LE(pod.desired * 100, pod.answer * 106 + 1000_m) << "nor above";
    }
    EXPECT_GE(rest.use_of_all * 100,
              std::min({wanted, rest.last.capacity, node.input().capacity}) * 90);
  }
}

TEST(Equality, EqualPodsAreTreatedEqually) {
  const auto nodes = test::trials<std::uint64_t>(300, 3'000);
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

TEST(Incentives, AConstrainedPodGainsNothingBySpinningMore) {
  const auto nodes = test::trials<std::uint64_t>(100, 1'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    const auto gets = [&](Millicores demand, std::uint64_t threads) {
      Dice dice(seed);
      FluidNode node(4, settingsOf(Profile::kResponsive));
      FluidPod tenant = fluidPod("tenant", 200_m, 1000_m, [=](int) { return demand; });
      tenant.threads = threads;
      node.add(tenant);
      for (int i = 0; i < 3; ++i) {
        const Millicores request(dice.between(50, 400));
        node.add(fluidPod("p" + std::to_string(i), request, 4000_m, [](int) { return 4000_m; }));
      }
      Millicores sum;
      for (int second = 0; second < 600; ++second) {
        node.second();
        if (second >= 300) sum += node.used(0);
      }
      return sum;
    };
    const Millicores modest = gets(1800_m, 2);
    const Millicores greedy = gets(4000_m, 64);
    EXPECT_LE(greedy * 100, modest * 102) << "seed " << seed;
  }
}

}  // namespace
}  // namespace mbcas::control
