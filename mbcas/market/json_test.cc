#include "mbcas/market/json.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mbcas/market/reference/random_problem.h"

namespace mbcas::market {
namespace {

std::string errorOf(std::string_view json) {
  const Result<Problem> problem = parseProblem(json);
  return problem ? "no error" : problem.error().message();
}

// The error of a problem whose second pod is this.
std::string podError(std::string_view pod) {
  return errorOf(R"({"capacity":1000,"pods":[{"id":"a"},)" + std::string(pod) + "]}");
}

TEST(MarketJson, ReadsEveryField) {
  EXPECT_EQ(
      parseProblem(
          R"({"capacity":4000,"objective":"welfare","pods":[{"id":"a","bid":0.5,"weight":500,)"
          R"("min":500,"max":2000,"guarantee":50}]})")
          .value(),
      (Problem{.capacity = Millicores(4000),
               .objective = Objective::kWelfare,
               .pods = {{.id = "a",
                         .bid = 0.5,
                         .weight = 500,
                         .min = Millicores(500),
                         .max = Millicores(2000),
                         .guarantee = Millicores(50)}}}));
}

TEST(MarketJson, Defaults) {
  // In any order of the fields: the max of a pod depends on a capacity that comes later.
  EXPECT_EQ(
      parseProblem(R"({"pods":[{"weight":3,"id":"a"},{"id":"b","min":90}],"capacity":70})").value(),
      (Problem{.capacity = Millicores(70),
               .pods = {{.id = "a", .bid = 3, .weight = 3, .max = Millicores(70)},
                        {.id = "b", .bid = 1, .min = Millicores(90), .max = Millicores(90)}}}));
}

TEST(MarketJson, WholeNumbersInAnyNotation) {
  EXPECT_EQ(parseProblem(R"({"capacity":1e3,"pods":[{"id":"a","min":5.0}]})").value(),
            parseProblem(R"({"capacity":1000,"pods":[{"id":"a","min":5}]})").value());
  EXPECT_EQ(parseProblem(R"({"capacity":1,"pods":[{"id":"a","max":9223372036854775807}]})")
                .value()
                .pods[0]
                .max.count(),
            INT64_MAX);
}

TEST(MarketJson, BadNumbers) {
  EXPECT_EQ(podError(R"({"id":"b","min":200,"max":100})"), "pods[1].max: 100 is below min 200");
  EXPECT_EQ(podError(R"({"id":"b","min":200,"guarantee":201})"),
            "pods[1].guarantee: 201 is above min 200");
  EXPECT_EQ(podError(R"({"id":"b","min":-1})"), "pods[1].min: -1 is negative");
  EXPECT_EQ(podError(R"({"id":"b","max":-0.5})"), "pods[1].max: -0.5 is negative");
  EXPECT_EQ(podError(R"({"id":"b","guarantee":-7})"), "pods[1].guarantee: -7 is negative");
  EXPECT_EQ(podError(R"({"id":"b","bid":-1e-300})"), "pods[1].bid: -1e-300 is negative");
  EXPECT_EQ(podError(R"({"id":"b","weight":-2})"), "pods[1].weight: -2 is negative");
  EXPECT_EQ(podError(R"({"id":"b","bid":1e400})"), "pods[1].bid: 1e400 is out of range");
  EXPECT_EQ(podError(R"({"id":"b","bid":-1e400})"), "pods[1].bid: -1e400 is out of range");
  EXPECT_EQ(podError(R"({"id":"b","bid":1e300})"),
            "pods[1].bid: 1e+300 is not below 1.8446744073709552e+19");
  EXPECT_EQ(podError(R"({"id":"b","min":1.5})"),
            "pods[1].min: 1.5 is not a whole number of millicores");
  EXPECT_EQ(podError(R"({"id":"b","min":1099511627777})"),
            "pods[1].min: 1099511627777 is above 1099511627776");
  EXPECT_EQ(podError(R"({"id":"b","max":1e30})"), "pods[1].max: 1e+30 is out of range");
  EXPECT_EQ(podError(R"({"id":"b","max":18446744073709551615})"),
            "pods[1].max: 1.8446744073709552e+19 is out of range");
  EXPECT_EQ(podError(R"({"id":"b","bid":NaN})"),
            "pods[1].bid: not JSON at byte 53, near `\"bid\":N`");
  EXPECT_EQ(podError(R"({"id":"b","bid":Infinity})"),
            "pods[1].bid: not JSON at byte 53, near `\"bid\":I`");
  EXPECT_EQ(errorOf(R"({"capacity":-4,"pods":[]})"), "capacity: -4 is negative");
  EXPECT_EQ(errorOf(R"({"capacity":0.1,"pods":[]})"),
            "capacity: 0.1 is not a whole number of millicores");
  EXPECT_EQ(errorOf(R"({"capacity":1e13,"pods":[]})"),
            "capacity: 10000000000000 is above 1099511627776");
}

TEST(MarketJson, BadTypes) {
  EXPECT_EQ(podError(R"({"id":7})"), "pods[1].id: a number instead of a string");
  EXPECT_EQ(podError(R"({"id":null})"), "pods[1].id: null instead of a string");
  EXPECT_EQ(podError(R"({"id":"b","bid":"1"})"), "pods[1].bid: a string instead of a number");
  EXPECT_EQ(podError(R"({"id":"b","bid":null})"), "pods[1].bid: null instead of a number");
  EXPECT_EQ(podError(R"({"id":"b","min":true})"), "pods[1].min: a boolean instead of a number");
  EXPECT_EQ(podError(R"({"id":"b","min":[1]})"), "pods[1].min: an array instead of a number");
  EXPECT_EQ(podError(R"({"id":"b","min":{}})"), "pods[1].min: an object instead of a number");
  EXPECT_EQ(podError("[]"), "pods[1]: an array instead of an object");
  EXPECT_EQ(podError("3"), "pods[1]: a number instead of an object");
  EXPECT_EQ(podError("\"b\""), "pods[1]: a string instead of an object");
  EXPECT_EQ(errorOf("[]"), "an array instead of an object");
  EXPECT_EQ(errorOf("3"), "a number instead of an object");
  EXPECT_EQ(errorOf(R"({"pods":{}})"), "pods: an object instead of an array");
  EXPECT_EQ(errorOf(R"({"pods":1})"), "pods: a number instead of an array");
  EXPECT_EQ(errorOf(R"({"capacity":"4"})"), "capacity: a string instead of a number");
  EXPECT_EQ(errorOf(R"({"capacity":[4]})"), "capacity: an array instead of a number");
  EXPECT_EQ(errorOf(R"({"objective":1})"), "objective: a number instead of a string");
  EXPECT_EQ(errorOf(R"({"objective":"greed"})"),
            "objective: \"greed\" is neither bargaining nor welfare");
}

TEST(MarketJson, MissingUnknownAndRepeatedFields) {
  EXPECT_EQ(errorOf("{}"), "capacity: is missing");
  EXPECT_EQ(errorOf(R"({"capacity":1})"), "pods: is missing");
  EXPECT_EQ(podError("{}"), "pods[1].id: is missing");
  EXPECT_EQ(podError(R"({"id":""})"), "pods[1].id: is empty");
  EXPECT_EQ(podError(R"({"id":"a"})"), "pods[1].id: \"a\" is repeated");
  EXPECT_EQ(podError(R"({"id":"b","limit":3})"), "pods[1].limit: is not a field");
  EXPECT_EQ(podError(R"({"id":"b","min":1,"min":1})"), "pods[1].min: is repeated");
  EXPECT_EQ(errorOf(R"({"capacity":1,"capacity":1})"), "capacity: is repeated");
  EXPECT_EQ(errorOf(R"({"quota":1})"), "quota: is not a field");
  EXPECT_EQ(errorOf(R"({"capacity":1,"quota":1})"), "quota: is not a field");
  EXPECT_EQ(errorOf(R"({"pods":[],"quota":1})"), "quota: is not a field");
}

TEST(MarketJson, NotJson) {
  EXPECT_EQ(errorOf(""), "not JSON at byte 1, near ``");
  EXPECT_EQ(errorOf("nonsense"), "not JSON at byte 2, near `no`");
  EXPECT_EQ(errorOf(R"({"capacity":1,"pods":[]} x)"), "not JSON at byte 26, near `\"pods\":[]} x`");
  EXPECT_EQ(errorOf(R"({"capacity":1,"pods":[{"id":"a"})"),
            "pods[1]: not JSON at byte 33, near `\"a\"}`");
  EXPECT_EQ(errorOf("{\"a\n\x1b[31m\": 1}").find('\x1b'), std::string::npos);
  EXPECT_NE(errorOf("{\"capacity\":1,\"pods\":[{\"id\":\"\xff\"}]}"), "no error");
}

TEST(MarketJson, BoundsWhatItReads) {
  EXPECT_EQ(errorOf(std::string(kLongestJson + 1, ' ')), "longer than 33554432 bytes");
  EXPECT_EQ(errorOf(std::string(kLongestJson, '[')), "an array instead of an object");
  std::string many = R"({"capacity":1,"pods":[)";
  for (std::size_t i = 0; i <= kMostPods; ++i) many += R"({"id":"a"},)";
  EXPECT_EQ(errorOf(many), "pods: more than 1048576 of them");
}

TEST(MarketJson, APriceThatIsNoNumberIsNull) {
  const Problem problem{.capacity = Millicores(5), .pods = {{.id = "a", .min = Millicores(5)}}};
  EXPECT_EQ(toJson(problem, clear(problem).value()),
            R"({"mode":"congested","price":null,"allocated":5,"unallocated":0,"pods":[)"
            R"({"id":"a","cpu":5,"bound":"min"}]})");
}

RC_GTEST_PROP(MarketJson, ReadsBackWhatItWrites, ()) {
  reference::ProblemGenerator generate(*rc::gen::arbitrary<std::uint64_t>());
  const Problem problem = generate.any(20);
  RC_ASSERT(parseProblem(toJson(problem)).value() == problem);
}

RC_GTEST_PROP(MarketJson, AnyTextIsReadOrRefusedInOneLine, ()) {
  std::string text = toJson(reference::ProblemGenerator(1).any(3));
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  }
  const Result<Problem> problem = parseProblem(text);
  if (problem) {
    RC_ASSERT(validate(*problem).has_value());
  } else {
    RC_ASSERT(problem.error().message().find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace mbcas::market
