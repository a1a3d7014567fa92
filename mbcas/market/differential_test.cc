// The solver against the reference, on random problems. MBCAS_SOAK=1 makes it a million of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "mbcas/market/json.h"
#include "mbcas/market/reference/random_problem.h"
#include "mbcas/market/reference/reference.h"
#include "test/support/trials.h"

namespace mbcas::market {
namespace {

bool closeTo(double a, double b) {
  return a == b || std::abs(a - b) <= 0x1p-49 * std::abs(b);
}

// Everything in whole numbers is equal; of the doubles, the last bits may differ.
bool agree(const Clearing& a, const Clearing& b) {
  return a.mode == b.mode && a.pods == b.pods && a.allocated == b.allocated &&
         a.unallocated == b.unallocated && a.price.has_value() == b.price.has_value() &&
         closeTo(a.price.value_or(0), b.price.value_or(0)) &&
         closeTo(a.spare_price, b.spare_price) && closeTo(a.overload_share, b.overload_share);
}

void compareMany(std::uint64_t seed, int problems, std::size_t most_pods) {
  reference::ProblemGenerator generate(seed);
  Solver solver;
  Clearing clearing;
  int modes[3] = {};
  for (int i = 0; i < problems; ++i) {
    const Problem problem = generate.any(most_pods);
    ASSERT_TRUE(solver.solve(problem, clearing));
    const Clearing expected = reference::clear(problem);
    ASSERT_TRUE(agree(clearing, expected))
        << "seed " << seed << " problem " << i << "\n"
        << toJson(problem) << "\nsolver:    " << toJson(problem, clearing)
        << "\nreference: " << toJson(problem, expected);
    ++modes[static_cast<int>(clearing.mode)];
  }
  for (const int count : modes) EXPECT_GT(count, problems / 50) << "a mode is hardly tried";
}

TEST(Differential, SmallProblems) {
  compareMany(1, test::trials(40'000, 700'000), 8);
}
TEST(Differential, MediumProblems) {
  compareMany(2, test::trials(8'000, 295'000), 60);
}
TEST(Differential, LargeProblems) {
  compareMany(3, test::trials(150, 5'000), 1'000);
}

TEST(Differential, AHundredThousandPods) {
  for (std::uint64_t kind = 0; kind < 4; ++kind) {
    reference::ProblemGenerator generate(kind);
    Problem problem = generate.ordinary(100'000);
    for (Pod& pod : problem.pods) {
      if (kind == 1) pod.bid = std::pow(10.0, static_cast<double>(generate.below(2401)) / 100 - 12);
      if (kind == 2) pod.bid = 0;
    }
    if (kind == 1) problem.objective = Objective::kWelfare;
    if (kind == 3) problem.capacity = Millicores(1'000'003);
    Clearing clearing;
    Solver solver;
    ASSERT_TRUE(solver.solve(problem, clearing));
    EXPECT_TRUE(agree(clearing, reference::clear(problem))) << "kind " << kind;
  }
}

TEST(Differential, Extremes) {
  std::vector<Problem> problems;
  const Millicores huge = kLargestAmount;
  problems.push_back({.capacity = huge, .pods = {{.id = "only"}}});
  problems.push_back({.capacity = huge, .pods = {{.id = "only", .max = huge}}});
  problems.push_back({.capacity = huge, .pods = {{.id = "only", .min = huge, .max = huge}}});
  problems.push_back({.capacity = Millicores(0), .pods = {{.id = "only"}}});
  problems.push_back({.capacity = Millicores(0), .pods = {{.id = "a"}, {.id = "b", .bid = 0}}});
  problems.push_back({.capacity = huge});
  Problem spread{.capacity = huge};
  Problem equal{.capacity = Millicores(999'999)};
  Problem nothing{.capacity = Millicores(999'999)};
  for (int i = 0; i < 1000; ++i) {
    const std::string id = std::to_string(i);
    spread.pods.push_back({.id = id, .bid = std::ldexp(1.0 + i * 0x1p-52, i % 128 - 64)});
    equal.pods.push_back({.id = id, .bid = 0.1, .min = Millicores(7)});
    nothing.pods.push_back({.id = id, .bid = 0, .weight = 0});
  }
  for (const Objective objective : {Objective::kBargaining, Objective::kWelfare}) {
    for (Problem* problem : {&spread, &equal, &nothing}) {
      problem->objective = objective;
      problems.push_back(*problem);
    }
    spread.pods[127].max = Millicores(5);  // satiates the richest, and the others divide the rest
  }
  for (const Problem& problem : problems) {
    const Result<Clearing> clearing = clear(problem);
    ASSERT_TRUE(clearing);
    EXPECT_TRUE(agree(*clearing, reference::clear(problem))) << toJson(problem);
  }
}

// Breakpoints in geometric progression make the solver's first guesses settle few of them each: the
// medians must take over.
TEST(Differential, ProblemsMadeToBeSlow) {
  for (const bool welfare : {false, true}) {
    Problem problem{.objective = welfare ? Objective::kWelfare : Objective::kBargaining};
    for (int i = 0; i < 1000; ++i) {
      const auto max = static_cast<std::int64_t>(std::pow(1.02, i)) + 1;
      problem.pods.push_back({.id = std::to_string(i),
                              .bid = std::pow(1.05, -i),
                              .min = Millicores(welfare ? max / 3 : 0),
                              .max = Millicores(max)});
      problem.capacity += Millicores(max);
    }
    for (const std::int64_t less : {1, 1'000'000, 300'000'000}) {
      problem.capacity -= Millicores(less);
      EXPECT_TRUE(agree(clear(problem).value(), reference::clear(problem))) << less;
    }
  }
}

// Equal answers for any order, whatever the ties: the reference sorts, the solver must not need to.
TEST(Differential, OrderOfThePodsChangesNothing) {
  reference::ProblemGenerator generate(4);
  std::mt19937_64 random(4);
  for (int i = 0; i < 2'000; ++i) {
    const Problem problem = generate.any(40);
    const Clearing clearing = clear(problem).value();
    std::vector<std::size_t> order(problem.pods.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    Problem shuffled{.capacity = problem.capacity, .objective = problem.objective};
    for (const std::size_t pod : order) shuffled.pods.push_back(problem.pods[pod]);
    Clearing again = clear(shuffled).value();
    std::vector<Award> awards(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) awards[order[k]] = again.pods[k];
    again.pods = std::move(awards);
    ASSERT_EQ(again, clearing) << toJson(problem);
  }
}

}  // namespace
}  // namespace mbcas::market
