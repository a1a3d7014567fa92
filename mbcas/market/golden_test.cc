// The cases in test/golden/market, solved by the solver and by the reference.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "mbcas/market/json.h"
#include "mbcas/market/reference/reference.h"

namespace mbcas::market {
namespace {

TEST(Golden, SolverAndReferenceGiveTheExpectedAnswers) {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator("test/golden/market")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path());
    const nlohmann::json golden = nlohmann::json::parse(file);
    for (const auto& one : golden.at("cases")) {
      SCOPED_TRACE(one.at("name"));
      const Problem problem = parseProblem(one.at("input").dump()).value();
      EXPECT_EQ(nlohmann::json::parse(toJson(problem, clear(problem).value())), one.at("output"));
      EXPECT_EQ(nlohmann::json::parse(toJson(problem, reference::clear(problem))),
                one.at("output"));
      ++cases;
    }
  }
  EXPECT_GT(cases, 20);
}

}  // namespace
}  // namespace mbcas::market
