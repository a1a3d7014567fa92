#include "mbcas/cli/what_if.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mbcas::cli {
namespace {

WhatIfPod pod(std::string name, double factor, double demand) {
  return {.name = std::move(name),
          .weight = 204,
          .demand = demand,
          .factor = factor,
          .request = 200,
          .declared = 2000,
          .floor = 200};
}

TEST(WhatIf, IsReadAndBounded) {
  const Result<WhatIf> question = parseWhatIf(
      R"({"capacity":2000,"pods":[{"name":"web","weight":204.5,"factor":2,"demand":500,)"
      R"("request":200,"declared":1000,"floor":200,"ceiling":1500,"begin":{"request":100}},)"
      R"({"name":"hog","managed":false,"weight":2,"demand":4000,"ceiling":null}]})");
  ASSERT_TRUE(question) << question.error().message();
  EXPECT_EQ(question->capacity, 2000);
  ASSERT_EQ(question->pods.size(), 2u);
  EXPECT_EQ(question->pods[0].weight, 204.5);
  EXPECT_EQ(question->pods[0].ceiling, 1500);
  EXPECT_FALSE(question->pods[1].managed);
  EXPECT_FALSE(question->pods[1].ceiling);

  for (const char* wrong : {R"({"capacity":-1})", R"({"capacity":1e10})", R"({"capacity":"a"})",
                            R"({"pods":[{"weight":0}]})", R"({"pods":[{"factor":1e9}]})",
                            R"({"pods":[{"demand":"nan"}]})", "[]", ""}) {
    EXPECT_FALSE(parseWhatIf(wrong)) << wrong;
  }
  std::string many = R"({"pods":[{})";
  for (std::size_t i = 0; i < kMostWhatIfPods; ++i) many += ",{}";
  EXPECT_FALSE(parseWhatIf(many + "]}"));
}

TEST(WhatIf, EnoughForAll) {
  const WhatIfAnswer told =
      answer({.capacity = 4000, .pods = {pod("a", 1, 500), pod("b", 4, 700)}});
  EXPECT_EQ(told.price, 0);
  EXPECT_NEAR(told.pods[0].award, 500, 1);
  EXPECT_NEAR(told.pods[1].award, 700, 1);
  EXPECT_FALSE(told.pods[0].bound);
}

TEST(WhatIf, WhoMattersMoreIsHelped) {
  const WhatIf question{.capacity = 2000, .pods = {pod("gold", 4, 2000), pod("batch", 1, 2000)}};
  const WhatIfAnswer told = answer(question);
  EXPECT_GT(told.price, 0);
  EXPECT_NEAR(told.pods[0].by_kernel, 1000, 1);
  EXPECT_NEAR(told.pods[0].award, 1600, 1);
  EXPECT_TRUE(told.pods[0].helped);
  EXPECT_TRUE(told.pods[1].bound);
  EXPECT_NEAR(told.pods[1].award, 400, 1);
  ASSERT_TRUE(told.pods[1].limit);
  EXPECT_NEAR(*told.pods[1].limit, 400, 5);

  // With equal factors it is the kernel's division, and none is bound.
  WhatIf equal = question;
  equal.pods[0].factor = 1;
  const WhatIfAnswer alike = answer(equal);
  EXPECT_NEAR(alike.pods[0].award, 1000, 1);
  EXPECT_FALSE(alike.pods[0].helped);
  EXPECT_FALSE(alike.pods[1].bound);
}

TEST(WhatIf, AHogWithTheLeastWeightTakesWhatIsLeft) {
  WhatIf question{.capacity = 2000, .pods = {pod("a", 1, 600), pod("b", 1, 600)}};
  question.pods.push_back({.name = "hog", .managed = false, .weight = 2, .demand = 2000});
  const WhatIfAnswer told = answer(question);
  EXPECT_NEAR(told.pods[0].award, 600, 1);
  EXPECT_NEAR(told.pods[2].award, 800, 1);
  EXPECT_FALSE(told.pods[2].limit);
  const std::string json = whatIfJson(told);
  EXPECT_NE(json.find(R"("award":600,"bound":false,"helped":false)"), std::string::npos) << json;
}

// Anything that can be asked is answered: nothing is negative, and no more is given than there is.
TEST(WhatIf, ExtremesAreAnswered) {
  for (const double capacity : {0.0, 1.0, kMostWhatIfCpu}) {
    WhatIf question{.capacity = capacity};
    question.pods.push_back({.name = "a",
                             .weight = kMostWhatIfWeight,
                             .demand = kMostWhatIfCpu,
                             .factor = kMostWhatIfFactor,
                             .floor = kMostWhatIfCpu,
                             .ceiling = 0});
    question.pods.push_back({.name = "b",
                             .weight = 1e-3,
                             .demand = kMostWhatIfCpu,
                             .factor = 1e-3,
                             .declared = kMostWhatIfCpu});
    const WhatIfAnswer told = answer(question);
    double sum = 0;
    for (const WhatIfOutcome& outcome : told.pods) {
      EXPECT_GE(outcome.award, 0);
      sum += outcome.award;
    }
    EXPECT_LE(sum, capacity + 1);
    EXPECT_FALSE(whatIfJson(told).empty());
  }
}

}  // namespace
}  // namespace mbcas::cli
