// docs/stability.md, checked on the code itself: the Lyapunov function along thousands of
// trajectories of the law and the estimators, at the edge of the conditions and beyond them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "mbcas/control/dice.h"
#include "mbcas/control/fluid_node.h"
#include "test/support/trials.h"

namespace mbcas::control {
namespace {

using namespace literals;
using std::chrono::seconds;

Millicores scaled(Millicores amount, double factor) {
  return Millicores(std::llround(static_cast<double>(amount.count()) * factor));
}
double logOf(Millicores limit) {
  return std::log(static_cast<double>(std::max<std::int64_t>(limit.count(), 1)));
}
int secondsOf(Nanos time) {
  return static_cast<int>(std::ceil(std::chrono::duration<double>(time).count()));
}

// The answers that a stationary load can have: [low, high]. R, the limits that none of them moves,
// is [low / (1 + hysteresis), high / (1 - hysteresis)].
struct Band {
  Millicores low;
  Millicores high;

  // Every answer is a limit at which the pod can rest.
  bool calm(double hysteresis) const { return high <= scaled(low, 1 + hysteresis); }
  double distance(Millicores limit, double hysteresis) const {
    constexpr Millicores kRounding(1);
    const double below = logOf(scaled(low, 1 / (1 + hysteresis)) - kRounding) - logOf(limit);
    const double above = logOf(limit) - logOf(scaled(high, 1 / (1 - hysteresis)) + kRounding);
    return std::max({below, above, 0.0});
  }
};

Millicores desiredOf(FluidNode& node, std::size_t i) {
  const auto& pods = node.law().state().pods;
  const auto found = pods.find(node.pod(i).id);
  return found == pods.end() ? node.pod(i).limit() : found->second.desired;
}

// V: of every pod the largest distance from R, in logarithms, of the limit in force, the desired
// one, and those in flight; summed over the pods.
double lyapunov(FluidNode& node, const std::vector<Band>& bands, double hysteresis) {
  std::vector<double> furthest(bands.size());
  for (std::size_t i = 0; i < bands.size(); ++i) {
    furthest[i] = std::max(bands[i].distance(node.pod(i).limit(), hysteresis),
                           bands[i].distance(desiredOf(node, i), hysteresis));
  }
  for (const FluidNode::Due& due : node.inFlight()) {
    furthest[due.pod] = std::max(furthest[due.pod], bands[due.pod].distance(due.limit, hysteresis));
  }
  double sum = 0;
  for (const double distance : furthest) sum += distance;
  return sum;
}

// A load within `noise` (thousandths) of `level`: constant, drawn anew each second, or a square
// wave that shows the estimator nothing but its highest for a while, then nothing but its lowest.
std::function<Millicores(int)> within(Millicores level, std::int64_t noise, Dice& dice) {
  const auto at = [level](std::int64_t wobble) {
    return Millicores(level.count() * (1000 + wobble) / 1000);
  };
  const auto seed = static_cast<std::uint64_t>(dice.between(1, 1'000'000'000));
  if (dice.chance(40)) {
    return [=](int second) {
      return at(Dice(seed + static_cast<std::uint64_t>(second)).between(-noise, noise));
    };
  }
  const int half = static_cast<int>(dice.between(1, 120));
  return [=](int second) { return at(second / half % 2 == 0 ? noise : -noise); };
}

// Free pods: a node with CPU for all, so that each is on its own.
struct FreeCase {
  Settings settings;
  Nanos delay{0};
  std::vector<FluidPod> pods;
  std::vector<Band> bands;
  bool calm = true;     // every answer is a resting limit, of every pod
  bool roomy = true;    // and no resting limit is ever below the load
  int rest_within = 0;  // seconds, by the formula of docs/stability.md
};

FreeCase freeCase(std::uint64_t seed, bool edge) {
  constexpr unsigned kCpus = 64;
  Dice dice(seed);
  FreeCase trial;
  Settings& settings = trial.settings;
  settings.hysteresis = dice.oneOf({0.02, 0.05, 0.10, 0.20, 0.30});
  settings.headroom = 1 + settings.hysteresis;
  if (!edge) settings.headroom += static_cast<double>(dice.between(0, 50)) / 100;
  settings.write_interval = seconds(dice.oneOf<int>({1, 15, 40}));
  settings.lower_lasts = seconds(dice.oneOf<int>({10, 15, 40}));
  settings.reclaim = dice.oneOf({Reclaim::kScarce, Reclaim::kAlways});
  settings.guards.cooldown = seconds(dice.oneOf<int>({1, 10, 30, 60}));
  settings.guards.max_step = dice.oneOf({1.1, 1.5, 3.0});
  settings.guards.raise_max_step = dice.oneOf({1.5, 8.0});
  trial.delay = seconds(dice.oneOf<int>({0, 1, 2, 10, 45, 100}));
  const double step = std::log(std::min(settings.guards.max_step, settings.guards.raise_max_step));
  const int pace = secondsOf(settings.guards.cooldown) + secondsOf(trial.delay) + 2;
  for (std::int64_t i = dice.between(1, 3); i > 0; --i) {
    const Millicores level(dice.between(20, 8000));
    // At the edge: as much noise as the hysteresis forgives. Else up to it, or beyond.
    const auto most =
        static_cast<std::int64_t>(1000 * settings.hysteresis / (2 + settings.hysteresis));
    const std::int64_t noise =
        edge ? most : dice.between(0, dice.chance(70) ? most : 2 * most + 50);
    const Millicores declared(10 * dice.between(1, dice.chance(50) ? 1 : 800));
    FluidPod pod = fluidPod("pod-" + std::to_string(i), 10_m, declared, within(level, noise, dice));
    pod.threads = kCpus;
    const auto factor = std::exp(static_cast<double>(dice.between(-3000, 3000)) / 1000);  // 20 x
    pod.pod.containers[0].limit = std::max(roundUp(scaled(level, factor)), 10_m);
    pod.pod.floor = 10_m;

    const Millicores least = settings.reclaim == Reclaim::kAlways ? 10_m : std::max(declared, 10_m);
    const Millicores lowest(level.count() * (1000 - noise) / 1000 - 2);
    const Millicores highest(level.count() * (1000 + noise) / 1000 + 1);
    Band band{roundUp(std::max(scaled(lowest, settings.headroom), least)),
              roundUp(std::max(scaled(highest, settings.headroom), least))};
    trial.calm &= band.calm(settings.hysteresis);
    trial.roomy &= band.low >= scaled(highest, 1 + settings.hysteresis);
    // A limit that comes from above may rest at its highest use in whole CPUs.
    constexpr std::int64_t kNoise = 20;
    if (highest.count() - kNoise > 1000) {
      band.high = std::max(band.high, Millicores((highest.count() - kNoise + 999) / 1000 * 1000));
    }
    const double way =
        std::abs(logOf(pod.pod.limit()) - logOf(band.low)) + logOf(band.high) - logOf(band.low);
    // Rounding up to 10m makes a step of factor k one of sqrt(k) at least.
    trial.rest_within = std::max(trial.rest_within,
                                 5 + secondsOf(settings.lower_lasts + settings.write_interval) +
                                     static_cast<int>(std::ceil(way / (step / 2))) * pace + pace);
    trial.bands.push_back(band);
    trial.pods.push_back(std::move(pod));
  }
  return trial;
}

TEST(Stability, FreePodsComeToRest) {
  constexpr int kLongest = 1200;
  constexpr int kAtRest = 400;
  const int wanted = test::trials(700, 30'000);
  int edges = 0;
  int restless = 0;
  int done = 0;
  for (std::uint64_t seed = 1; done < wanted; ++seed) {
    const bool edge = seed % 3 == 0;
    FreeCase trial = freeCase(seed, edge);
    if (trial.rest_within > kLongest) continue;
    ++done;
    edges += edge ? 1 : 0;
    SCOPED_TRACE("seed " + std::to_string(seed));
    const double hysteresis = trial.settings.hysteresis;
    FluidNode node(64, trial.settings, trial.delay);
    for (const FluidPod& pod : trial.pods) node.add(pod);
    double value = lyapunov(node, trial.bands, hysteresis);
    std::vector<Millicores> resting(trial.pods.size());
    std::vector<int> moves(trial.pods.size());
    for (int second = 1; second <= trial.rest_within + kAtRest; ++second) {
      node.second();
      const double next = lyapunov(node, trial.bands, hysteresis);
      ASSERT_LE(next, value + 1e-9) << "second " << second;
      value = next;
      if (second < trial.rest_within) continue;
      ASSERT_EQ(value, 0) << "second " << second;
      for (std::size_t i = 0; i < resting.size(); ++i) {
        const Millicores desired = desiredOf(node, i);
        moves[i] += second > trial.rest_within && desired != resting[i] ? 1 : 0;
        resting[i] = desired;
        if (trial.roomy) {
          ASSERT_EQ(node.blocked(i), 0_m);
        }
      }
    }
    // Where it started may have been a limit at which it can rest, and not an answer: one move.
    const int most = std::ranges::max(moves);
    if (trial.calm) {
      ASSERT_LE(most, 1);
    }
    restless += most > 1 ? 1 : 0;
  }
  EXPECT_GT(edges, wanted / 5);
  EXPECT_TRUE(restless > 0 || wanted < 500) << "noise beyond the band was to be among them";
}

// Not proved, only tried: loads with a backlog, too many for the node, and limits in force later
// than the next decrease is allowed.
TEST(Stability, DelaysBeyondTheCooldownEndToo) {
  constexpr int kDelay = 45;
  constexpr int kSettled = 2400;
  const auto nodes = test::trials<std::uint64_t>(60, 2'000);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    Dice dice(seed);
    const auto cpus = dice.oneOf<std::int64_t>({1, 2, 4});
    FluidNode node(static_cast<unsigned>(cpus), Settings{}, seconds(kDelay));
    const std::int64_t pods = dice.between(1, 8);
    for (std::int64_t i = 0; i < pods; ++i) {
      const Millicores load(dice.between(0, 1000 * cpus));
      FluidPod pod =
          fluidPod("pod-" + std::to_string(i), Millicores(dice.between(10, 300)),
                   Millicores(dice.between(300, 1200 * cpus)), [load](int) { return load; });
      pod.threads = static_cast<std::uint64_t>(dice.between(1, 8));
      pod.backlog = dice.chance(30);
      pod.pod.containers[0].limit = Millicores(10 * dice.between(1, 200 * cpus));
      node.add(std::move(pod));
    }
    for (int second = 0; second < kSettled + 600; ++second) {
      node.second();
      if (second < kSettled) continue;
      for (const Move& move : node.moves()) {
        ASSERT_FALSE(move.moves) << "seed " << seed << " second " << second;
      }
    }
  }
}

// How one pod's limit moves over time: what makes a limit cycle one is that it goes on, and that it
// does not get smaller.
struct Course {
  std::vector<Millicores> limits;  // in force, second by second

  int reversals(std::size_t from, std::size_t until) const {
    int count = 0;
    int direction = 0;
    for (std::size_t t = from + 1; t < until; ++t) {
      const auto change = limits[t] <=> limits[t - 1];
      if (change == 0) continue;
      const int now = change > 0 ? 1 : -1;
      count += direction != 0 && now != direction ? 1 : 0;
      direction = now;
    }
    return count;
  }
  double swing(std::size_t from, std::size_t until) const {
    const auto [low, high] =
        std::minmax_element(limits.begin() + static_cast<std::ptrdiff_t>(from),
                            limits.begin() + static_cast<std::ptrdiff_t>(until));
    return high->cores() / low->cores();
  }
};

constexpr std::size_t kHour = 3600;

// Of its first pod, for two hours.
Course courseOf(FluidNode& node) {
  Course course;
  while (course.limits.size() < 2 * kHour) {
    node.second();
    course.limits.push_back(node.pod(0).limit());
  }
  return course;
}

Course courseOf(const Settings& settings, std::function<Millicores(int)> load) {
  FluidNode node(4, settings);
  node.add(fluidPod("pod", 100_m, 200_m, std::move(load)));
  return courseOf(node);
}

std::function<Millicores(int)> squareWave(Millicores level, std::int64_t noise, int half) {
  return [=](int second) {
    return Millicores(level.count() * (1000 + (second / half % 2 == 0 ? noise : -noise)) / 1000);
  };
}

void expectCycle(const Course& course, double swing) {
  EXPECT_GE(course.reversals(0, kHour), 8);
  EXPECT_GE(course.reversals(kHour, 2 * kHour), 8) << "it has died out";
  EXPECT_NEAR(course.swing(kHour / 2, kHour), course.swing(3 * kHour / 2, 2 * kHour), 0.02);
  EXPECT_GE(course.swing(3 * kHour / 2, 2 * kHour), swing);
}

// Regret would see that the noise comes back, and no longer follow it; without it the hysteresis
// alone stands between noise and limits.
Settings withoutRegret(double hysteresis) {
  Settings settings;
  settings.hysteresis = hysteresis;
  settings.regret = Nanos(0);
  return settings;
}

TEST(Stability, WithoutHysteresisAnyNoiseIsALimitCycle) {
  const auto noise = squareWave(1000_m, 20, 100);
  expectCycle(courseOf(withoutRegret(0), noise), 1.02);
  const Course calm = courseOf(withoutRegret(0.05), noise);
  EXPECT_EQ(calm.reversals(600, 2 * kHour), 0);
}

TEST(Stability, NoiseBeyondTheBandIsALimitCycleUntilItIsRegretted) {
  constexpr double kHysteresis = 0.10;
  const auto edge = static_cast<std::int64_t>(1000 * kHysteresis / (2 + kHysteresis));
  expectCycle(courseOf(withoutRegret(kHysteresis), squareWave(1000_m, 2 * edge, 100)), 1.1);
  const Course within = courseOf(withoutRegret(kHysteresis), squareWave(1000_m, edge, 100));
  EXPECT_EQ(within.reversals(600, 2 * kHour), 0);
  Settings settings;
  settings.hysteresis = kHysteresis;
  const Course regretted = courseOf(settings, squareWave(1000_m, 2 * edge, 100));
  EXPECT_EQ(regretted.reversals(kHour, 2 * kHour), 0);
}

// A limit below the use it was made from throttles, is raised by what waits, and is lowered again:
// no noise is needed. validate() refuses it.
TEST(Stability, WithoutHeadroomConstantLoadIsALimitCycle) {
  Settings settings = withoutRegret(0.10);
  settings.headroom = 0.8;
  FluidNode node(4, settings);
  FluidPod pod = fluidPod("pod", 100_m, 200_m, [](int) { return 1000_m; });
  pod.backlog = true;
  node.add(std::move(pod));
  expectCycle(courseOf(node), 1.2);
  settings.headroom = 1.05;
  EXPECT_EQ(validate(settings).error().message(), "hysteresis: 0.1 is not between 0 and 0.05");
}

// What is throttled bids, what is not bids nothing: on a node that is half idle, two pods of
// constant load take turns.
TEST(Stability, TheClassicProfileCyclesOnConstantLoad) {
  FluidNode node(4, settingsOf(Profile::kClassic));
  node.add(fluidPod("large", 100_m, 200_m, [](int) { return 1000_m; }));
  node.add(fluidPod("small", 100_m, 200_m, [](int) { return 500_m; }));
  expectCycle(courseOf(node), 1.2);
}

// Pods that are bound for another one, and pods whose help does not help.

// A hog next to gold, which is short of CPU. The hog is the first pod.
FluidNode goldAndHog(double factor, Millicores wants, Nanos delay = Nanos(0)) {
  FluidNode node(2, Settings{}, delay);
  node.add(fluidPod("hog", 200_m, 2000_m, [](int) { return 2000_m; }));
  node.add(important(fluidPod("gold", 200_m, 2000_m, [wants](int) { return wants; }), factor));
  return node;
}

// One and the same border for beginning and for ending would send the hog back and forth between
// its award and its declared limit.
TEST(Stability, AtTheBorderBetweenFreeAndBoundAPodRests) {
  for (int factor = 100; factor <= 112; factor += test::kSanitized ? 6 : 2) {
    for (const Millicores wants : {1010_m, 1040_m, 1100_m, 2000_m}) {
      FluidNode node = goldAndHog(factor / 100.0, wants);
      const Course course = courseOf(node);
      // A trial that does not help is repeated once in the second hour.
      ASSERT_LE(course.reversals(kHour, 2 * kHour), 1)
          << "factor " << factor << ", wants " << wants.count();
    }
  }
}

// What removes the evidence is not undone because the evidence is gone.
TEST(Stability, AHoldLastsAndDoesNotSwing) {
  for (const double factor : {1.5, 2.0, 4.0}) {
    if (test::kSanitized && factor != 2.0) continue;
    for (const Millicores wants : {1200_m, 1500_m, 2000_m}) {
      FluidNode node = goldAndHog(factor, wants);
      const Course course = courseOf(node);
      EXPECT_LT(course.limits.back(), 1000_m);
      EXPECT_EQ(course.reversals(120, 2 * kHour), 0) << factor << ' ' << wants.count();
      EXPECT_EQ(course.swing(300, 2 * kHour), 1) << factor << ' ' << wants.count();
    }
  }
}

// The limits come into force long after the trial is over, so no trial ever helps.
TEST(Stability, TrialsThatDoNotHelpBecomeRare) {
  FluidNode node = goldAndHog(4, 2000_m, std::chrono::hours(24));
  int trials = 0;
  int seconds_on_trial = 0;
  bool before = false;
  for (std::size_t second = 0; second < 4 * kHour; ++second) {
    const bool on_trial = node.second().pods[1].help == Help::Phase::kProbe;
    trials += on_trial && !before ? 1 : 0;
    seconds_on_trial += on_trial ? 1 : 0;
    before = on_trial;
  }
  EXPECT_GE(trials, 5);
  EXPECT_LE(trials, 7);
  EXPECT_LE(seconds_on_trial, 4 * static_cast<int>(kHour) / 50);
}

}  // namespace
}  // namespace mbcas::control
