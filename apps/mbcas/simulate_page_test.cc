// Tables and pages of `mbcas simulate`, from reports made by hand.
#include "apps/mbcas/simulate_page.h"

#include <gtest/gtest.h>

#include <limits>

#include "apps/mbcas/simulate_measures.h"
#include "mbcas/sim/policy.h"

namespace mbcas::app {
namespace {

using sim::Report;

constexpr double kNever = std::numeric_limits<double>::infinity();

Report reportOf(const char* policy, double throttled, double p99) {
  Report report{.scenario = "s", .policy = policy};
  report.throttled_free = throttled;
  report.p99 = p99;
  report.used = 1;
  report.window_use = {1};
  report.window_most = {3.6};
  return report;
}

std::size_t columnOf(const Comparison& comparison, const std::string& title) {
  const Row& titles = comparison.rows.front();
  return static_cast<std::size_t>(std::ranges::find(titles, title) - titles.begin());
}

TEST(Measures, Texts) {
  EXPECT_EQ(secondsText(std::nullopt), "-");
  EXPECT_EQ(secondsText(kNever), "never");
  EXPECT_EQ(secondsText(2.4), "2");
  EXPECT_EQ(millisecondsText(std::nullopt), "-");
  EXPECT_EQ(millisecondsText(9.96), "10.0");
  EXPECT_EQ(millisecondsText(12.3), "12");
}

TEST(Measures, TheBestOfAScenarioIsMarked) {
  std::vector<Report> reports = {reportOf("unlimited", 0, 20), reportOf("static", 0.5, 200),
                                 reportOf("responsive", 0.00001, 15)};
  reports[1].reserved = 2;
  reports[1].reactions = {kNever};
  const Comparison comparison = compare(reports);
  ASSERT_EQ(comparison.rows.size(), 4u);
  const std::size_t p99 = columnOf(comparison, "P99 ms");
  EXPECT_TRUE(comparison.best.contains({3, p99}));
  EXPECT_FALSE(comparison.best.contains({1, p99}));
  const std::size_t free = columnOf(comparison, "FREE ms/s");
  EXPECT_TRUE(comparison.best.contains({1, free}) && comparison.best.contains({3, free}))
      << "both read 0.0";
  const std::size_t reaction = columnOf(comparison, "REACTION s");
  EXPECT_EQ(comparison.rows[2][reaction], "never");
  EXPECT_FALSE(comparison.best.contains({2, reaction})) << "never is no best";
  EXPECT_EQ(comparison.rows[2][columnOf(comparison, "SLACK %")], "50");
}

TEST(Measures, WithoutUnlimitedThereIsNothingToBeBeside) {
  const Comparison comparison = compare({reportOf("static", 1, 1), reportOf("responsive", 0, 1)});
  const std::size_t used = columnOf(comparison, "USED %");
  EXPECT_EQ(comparison.rows[1][used], "-");
  EXPECT_FALSE(comparison.best.contains({1, used}));
}

TEST(Measures, OverScenarios) {
  const std::vector<Report> unlimited = {reportOf("unlimited", 0, 10),
                                         reportOf("unlimited", 0, 10)};
  std::vector<Report> reports = {reportOf("static", 0.1, 20), reportOf("static", 0.3, 80)};
  reports[0].reserved = 4;
  reports[1].reserved = 2;
  reports[0].changes = 3;
  reports[1].reactions = {1, 2};
  const Overall all = overall({&reports[0], &reports[1]}, {&unlimited[0], &unlimited[1]});
  EXPECT_NEAR(all.throttled_free, 200, 1e-9);
  EXPECT_NEAR(all.slowdown, 4, 1e-9) << "between 2 and 8";
  EXPECT_NEAR(all.reserved, 6, 1e-9);
  EXPECT_NEAR(all.slack, (0.75 + 0.5) / 2, 1e-9);
  EXPECT_NEAR(all.changes, 1.5, 1e-9);
  EXPECT_NEAR(all.used, 1, 1e-9);
  EXPECT_EQ(all.reactions.size(), 2u);
  EXPECT_EQ(overall({&reports[0]}, {}).slowdown, 1);
}

TEST(Measures, RowsBecomeATable) {
  EXPECT_EQ(tableOf({{"POD", "CPU"}, {"a", "12"}}, 1).toString(false), "POD  CPU\na     12\n");
  Report report;
  report.pods.push_back({.name = "web", .offered = 0.5, .last_limit = 0});
  const std::vector<Row> rows = podRows(report);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1][1], "500m");
  EXPECT_EQ(rows[1][6], "none");
}

TEST(SimulatePage, ACourseIsInPieces) {
  sim::Scenario scenario{.duration = std::chrono::minutes(8)};  // two seconds a piece
  sim::PodSpec spec{.name = "a"};
  spec.containers.push_back({.limit = Millicores(500),
                             .request = Millicores(100),
                             .workload = {.kind = sim::WorkloadSpec::Kind::kSpin, .threads = 1}});
  scenario.pods = {spec, spec};
  scenario.pods[1].name = "b";
  const auto policy = sim::makeStatic();
  sim::Simulation simulation(scenario, *policy);
  Course course(scenario);
  for (int i = 0; i < 4; ++i) {
    simulation.step();
    course.add(simulation);
  }
  EXPECT_NEAR(course.secondsOf(1), 3, 1e-9);
  EXPECT_EQ(course.first()[1].samples, 2);
  EXPECT_NEAR(course.first()[1].limit / 2, 0.5, 1e-9);
  EXPECT_NEAR(course.all()[1].limit / 2, 1.0, 1e-9);
  EXPECT_NEAR(course.all()[1].need / 2, 2.0, 1e-6);
  EXPECT_EQ(course.all()[10].samples, 0);
}

TEST(SimulatePage, ASweepHasItsDefaultsFirst) {
  std::vector<Tried> tried = {{{}, {.throttled_free = 1.5}},
                              {{.setting = "headroom", .value = "2"}, {.slack = 0.8}}};
  const std::vector<Row> rows = sweepRows(tried);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1][0], "defaults");
  EXPECT_EQ(rows[1][2], "1.50");
  EXPECT_EQ(rows[2][3], "80.0");
  const std::string page = sweepPage(tried, {"one"}, {}, "a machine");
  EXPECT_NE(page.find("Throttling against slack"), std::string::npos);
  EXPECT_NE(page.find("a machine"), std::string::npos);
  EXPECT_EQ(page.find("held out"), std::string::npos);
}

}  // namespace
}  // namespace mbcas::app
