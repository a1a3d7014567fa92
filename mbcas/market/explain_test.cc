#include "mbcas/market/explain.h"

#include <gtest/gtest.h>

namespace mbcas::market {
namespace {

std::vector<std::string> explainAll(const Problem& problem) {
  const Clearing clearing = clear(problem).value();
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    sentences.push_back(explain(problem, clearing, i));
  }
  return sentences;
}

using Sentences = std::vector<std::string>;
constexpr Millicores kThousand{1000};
constexpr Millicores kHundred{100};

TEST(Explain, Congested) {
  EXPECT_EQ(
      explainAll({.capacity = kThousand,
                  .pods = {{.id = "a", .bid = 100, .min = kHundred, .max = Millicores(300)},
                           {.id = "b", .bid = 50, .min = kHundred},
                           {.id = "c", .bid = 50},
                           {.id = "d", .bid = 0, .min = kHundred}}}),
      (Sentences{"at its max of 300m: bid 100 at price 0.2 would buy 500m above its min of 100m",
                 "bid 50 at price 0.2 buys 250m above its min of 100m",
                 "bid 50 at price 0.2 buys 250m",
                 "at its min of 100m: bids nothing, and the others leave no more"}));
}

TEST(Explain, Welfare) {
  EXPECT_EQ(explainAll({.capacity = kThousand,
                        .objective = Objective::kWelfare,
                        .pods = {{.id = "a", .bid = 1, .min = Millicores(600)},
                                 {.id = "b", .bid = 1, .min = kHundred}}}),
            (Sentences{"at its min of 600m: bid 1 at price 0.0025 buys only 400m",
                       "bid 1 at price 0.0025 buys 400m"}));
}

TEST(Explain, Spare) {
  EXPECT_EQ(explainAll({.capacity = kThousand,
                        .pods = {{.id = "a", .bid = 9, .max = Millicores(400)},
                                 {.id = "b", .bid = 0, .weight = 2},
                                 {.id = "c", .bid = 0, .weight = 1},
                                 {.id = "d", .bid = 0, .weight = 0}}}),
            (Sentences{"at its max of 400m: enough for all who bid",
                       "bids nothing; weight 2 at price 0.005 buys 400m",
                       "bids nothing; weight 1 at price 0.005 buys 200m",
                       "at its min of 0m: bids nothing, and the others leave no more"}));
}

TEST(Explain, NothingBeyondTheMins) {
  EXPECT_EQ(explainAll({.capacity = kThousand, .pods = {{.id = "a", .min = kThousand}}}),
            (Sentences{"at its min of 1000m: the mins take all there is"}));
}

TEST(Explain, Overloaded) {
  Problem problem{.capacity = kThousand,
                  .pods = {{.id = "a", .min = Millicores(900), .guarantee = Millicores(300)},
                           {.id = "b", .min = Millicores(900), .guarantee = Millicores(100)}}};
  EXPECT_EQ(
      explainAll(problem),
      (Sentences{"overloaded: its guarantee of 300m and 42.9 % of the way to its min of 900m",
                 "overloaded: its guarantee of 100m and 42.9 % of the way to its min of 900m"}));
  problem.capacity = kHundred;
  EXPECT_EQ(explainAll(problem), (Sentences{"overloaded: 25.0 % of its guarantee of 300m",
                                            "overloaded: 25.0 % of its guarantee of 100m"}));
}

}  // namespace
}  // namespace mbcas::market
