#include "mbcas/market/solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "mbcas/market/reference/random_problem.h"
#include "test/support/count_allocations.h"

namespace mbcas::market {
namespace {

TEST(Solver, TheExampleOfTheHeader) {
  Problem problem{.capacity = Millicores(1000)};
  problem.pods.push_back({.id = "a", .bid = 60, .min = Millicores(100)});
  problem.pods.push_back({.id = "b", .bid = 40, .min = Millicores(100)});
  EXPECT_EQ(clear(problem).value(),
            (Clearing{.mode = Mode::kCongested,
                      .price = 0.125,
                      .allocated = Millicores(1000),
                      .pods = {{Millicores(580), Bound::kNone, Basis::kBid},
                               {Millicores(420), Bound::kNone, Basis::kBid}}}));
}

TEST(Solver, SaysByWhatACpuWasDecided) {
  const Clearing clearing = clear({.capacity = Millicores(1000),
                                   .pods = {{.id = "a", .bid = 1, .max = Millicores(100)},
                                            {.id = "b", .bid = 0, .max = Millicores(300)},
                                            {.id = "c", .bid = 0, .weight = 0}}})
                                .value();
  EXPECT_EQ(clearing.pods, (std::vector<Award>{{Millicores(100), Bound::kMax, Basis::kBid},
                                               {Millicores(300), Bound::kMax, Basis::kWeight},
                                               {Millicores(600), Bound::kNone, Basis::kEqual}}));
  EXPECT_DOUBLE_EQ(clearing.spare_price, 1.0 / 600);
}

TEST(Solver, RemembersNothing) {
  reference::ProblemGenerator generate(7);
  Solver used;
  Clearing clearing;
  for (int i = 0; i < 500; ++i) {
    const Problem problem = generate.any(50);
    ASSERT_TRUE(used.solve(problem, clearing));
    ASSERT_EQ(clearing, clear(problem).value());
  }
}

TEST(Solver, AllocatesNothingOnceWarm) {
  reference::ProblemGenerator generate(8);
  std::vector<Problem> problems;
  for (int i = 0; i < 300; ++i) problems.push_back(generate.any(400));
  problems.push_back(generate.ordinary(2'000));
  Solver solver;
  Clearing clearing;
  for (const Problem& problem : problems) ASSERT_TRUE(solver.solve(problem, clearing));
  const std::uint64_t before = test::allocationsSoFar();
  for (const Problem& problem : problems) ASSERT_TRUE(solver.solve(problem, clearing));
  EXPECT_EQ(test::allocationsSoFar(), before);
  EXPECT_GT(before, 300u) << "the counter does not count";
}

TEST(Solver, RefusesWhatIsNotAProblem) {
  const auto errorOf = [](const Pod& pod) {
    const Problem problem{.capacity = Millicores(10), .pods = {{.id = "first"}, pod}};
    Solver solver;
    Clearing clearing;
    EXPECT_FALSE(solver.solve(problem, clearing));
    return clear(problem).error().message();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(errorOf({.id = "a", .bid = nan}), "pods[1].bid: is not a number");
  EXPECT_EQ(errorOf({.id = "a", .bid = infinity}),
            "pods[1].bid: inf is not below 1.8446744073709552e+19");
  EXPECT_EQ(errorOf({.id = "a", .bid = -1}), "pods[1].bid: -1 is negative");
  EXPECT_EQ(errorOf({.id = "a", .weight = nan}), "pods[1].weight: is not a number");
  EXPECT_EQ(errorOf({.id = "a", .weight = -infinity}), "pods[1].weight: -inf is negative");
  EXPECT_EQ(errorOf({.id = "a", .min = Millicores(-1)}), "pods[1].min: -1 is negative");
  EXPECT_EQ(errorOf({.id = "a", .max = Millicores(-1)}), "pods[1].max: -1 is negative");
  EXPECT_EQ(errorOf({.id = "a", .min = Millicores(200), .max = Millicores(100)}),
            "pods[1].max: 100 is below min 200");
  EXPECT_EQ(errorOf({.id = "a", .guarantee = Millicores(1)}),
            "pods[1].guarantee: 1 is above min 0");
  EXPECT_EQ(errorOf({.id = "a", .min = kLargestAmount + Millicores(1)}),
            "pods[1].min: 1099511627777 is above 1099511627776");
  EXPECT_EQ(clear({.capacity = Millicores(-1)}).error().message(), "capacity: -1 is negative");
  EXPECT_EQ(validate({.pods = {{.id = "x"}, {.id = "x"}}}).error().message(),
            "pods[1].id: \"x\" is repeated");
  Problem crowd;
  crowd.pods.resize(kMostPods + 1);
  Solver solver;
  Clearing clearing;
  EXPECT_EQ(solver.solve(crowd, clearing).error().message(),
            "pods: 1048577 of them, more than 1048576");
}

// Doubles that differ in the last bit, bounds that only exact arithmetic tells from the share: a
// sum in doubles would round one way or the other, depending on the order.
TEST(Solver, IsExactWhereDoublesAreNot) {
  const double third = 1.0 / 3;
  const double above = std::nextafter(third, 1.0);
  const Problem problem{
      .capacity = Millicores(2),
      .pods = {{.id = "a", .bid = third}, {.id = "b", .bid = above}, {.id = "c", .bid = third}}};
  // Shares of just under, just above and just under 2/3: one rounds down, and it is not b.
  const Clearing clearing = clear(problem).value();
  EXPECT_EQ(clearing.pods[0].cpu, Millicores(1));
  EXPECT_EQ(clearing.pods[1].cpu, Millicores(1));
  EXPECT_EQ(clearing.pods[2].cpu, Millicores(0));

  // 2^60 and 1: a sum of doubles loses the 1, which decides whether `b` reaches its max exactly.
  const Clearing huge = clear({.capacity = kLargestAmount,
                               .pods = {{.id = "a", .bid = 0x1p60},
                                        {.id = "b", .bid = 0x1p20, .max = Millicores(1)},
                                        {.id = "c", .bid = 1}}})
                            .value();
  EXPECT_EQ(huge.pods[1].bound, Bound::kNone);
  EXPECT_EQ(huge.pods[1].cpu + huge.pods[0].cpu + huge.pods[2].cpu, kLargestAmount);
}

}  // namespace
}  // namespace mbcas::market
