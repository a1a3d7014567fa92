#include "mbcas/cli/usage_report.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "test/support/golden.h"

namespace mbcas::cli {
namespace {

using std::chrono::seconds;

constexpr WallTime kBegin{std::chrono::sys_days{std::chrono::year{2026} / 2 / 1}};

struct Pod {
  std::string name;
  int usage = 0;
  int blocked = 0;
  int limit = 500;
  int desired = 500;
  int request = 100;
};

NodeRecord stateOf(int second, const std::vector<Pod>& pods, const std::string& node = "n1") {
  NodeRecord state{.node = node, .time = kBegin + seconds(second)};
  for (const Pod& pod : pods) {
    ContainerRecord container{.name = "main",
                              .limit = Millicores(pod.limit),
                              .declared = Millicores(500),
                              .request = Millicores(pod.request),
                              .desired = Millicores(pod.desired),
                              .usage = Millicores(pod.usage),
                              .blocked = Millicores(pod.blocked)};
    state.pods.push_back({.name_space = "shop", .pod = pod.name, .containers = {container}});
  }
  return state;
}

TEST(UseHistogramTest, PercentilesOfTime) {
  UseHistogram use;
  EXPECT_EQ(use.percentile(0.95), Millicores(0));
  use.add(Millicores(100), 94);
  use.add(Millicores(1000), 6);
  EXPECT_NEAR(static_cast<double>(use.percentile(0.5).count()), 100, 5);
  EXPECT_NEAR(static_cast<double>(use.percentile(0.95).count()), 1000, 50);
  use.add(Millicores(1'000'000'000), 1000);
  EXPECT_GT(use.percentile(0.95), Millicores(1'000'000));
}

RC_GTEST_PROP(UseHistogramProperties, AsTheSortedValues,
              (const std::vector<std::uint16_t>& values)) {
  RC_PRE(!values.empty());
  UseHistogram use;
  std::vector<double> sorted;
  for (const std::uint16_t value : values) {
    use.add(Millicores(value), 1);
    sorted.push_back(std::max<double>(value, 1));
  }
  std::ranges::sort(sorted);
  const auto at =
      static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(sorted.size()))) - 1;
  const auto found = static_cast<double>(use.percentile(0.95).count());
  RC_ASSERT(found >= sorted[at] * 0.95 - 1);
  RC_ASSERT(found <= sorted[at] * 1.06 + 1);
}

TEST(UsageReportTest, RequestsFarFromUse) {
  ReportBuilder builder;
  for (int second = 0; second <= 120; ++second) {
    builder.add(stateOf(second, {{"web-7d4b9c6f5d-x2x8k", 800, 0, 900, 900},
                                 {"web-7d4b9c6f5d-z5z5z", 800, 0, 900, 900},
                                 {"idle-0", 20, 0, 500, 500, 1000},
                                 {"right", 90}}));
  }
  const UsageReport report = builder.report();
  ASSERT_EQ(report.containers.size(), 3U);
  const ContainerReport& idle = report.containers[0];
  EXPECT_EQ(idle.workload, "idle");
  EXPECT_EQ(idle.recommended, Millicores(30));
  EXPECT_EQ(idle.requestChange(), Millicores(-970));
  const ContainerReport& web = report.containers[2];
  EXPECT_EQ(web.workload, "web");
  EXPECT_EQ(web.pods, 2U);
  EXPECT_EQ(web.mean, Millicores(800));
  EXPECT_EQ(web.recommended, Millicores(920));
  EXPECT_EQ(web.requestChange(), Millicores(2 * 820));
  EXPECT_EQ(report.containers[1].recommended, std::nullopt) << "near its use";
}

TEST(UsageReportTest, NothingIsSaidAfterAMoment) {
  ReportBuilder builder;
  for (int second = 0; second < 30; ++second) builder.add(stateOf(second, {{"web", 800}}));
  EXPECT_EQ(builder.report().containers[0].recommended, std::nullopt);
}

TEST(UsageReportTest, ThrottledBeforeAndAfter) {
  ReportBuilder builder;
  builder.add(stateOf(0, {{"web", 400, 900, 500, 800}}));
  for (int second = 1; second <= 10; ++second) {
    builder.add(
        stateOf(second, {{"web", 400, second <= 6 ? 900 : 0, 500, second <= 4 ? 800 : 500}}));
  }
  for (int second = 11; second <= 30; ++second) {
    builder.add(stateOf(second, {{"web", 400, second == 30 ? 20 : 19, 800, 800}}));
  }
  const ContainerReport web = builder.report().containers[0];
  EXPECT_EQ(web.declared_time, (ThrottledTime{10, 6}));
  EXPECT_EQ(web.raised_time, (ThrottledTime{20, 1}));
  EXPECT_EQ(web.avoidable, 4);
}

TEST(UsageReportTest, GapsAndOldStatesCountNothing) {
  ReportBuilder builder;
  builder.add(stateOf(0, {{"web", 100}}));
  builder.add(stateOf(2, {{"web", 100}}));
  builder.add(stateOf(1, {{"web", 5000}}));    // it came late
  builder.add(stateOf(1000, {{"web", 100}}));  // nothing is known of the time between
  builder.add(stateOf(500, {{"web", 100}}, "n2"));
  builder.add(stateOf(503, {{"web", 100}}, "n2"));
  const UsageReport report = builder.report();
  EXPECT_EQ(report.containers[0].declared_time.seconds, 5);
  EXPECT_EQ(report.containers[0].most, Millicores(100));
  EXPECT_EQ(report.nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(report.to - report.from, seconds(1000));
}

TEST(UsageReportTest, PodsThatAreLeftAloneAreNotInIt) {
  NodeRecord state = stateOf(0, {{"web", 100}});
  state.pods[0].left_alone = "opted out";
  ReportBuilder builder;
  builder.add(state);
  EXPECT_TRUE(builder.report().containers.empty());
  EXPECT_EQ(ReportBuilder().report().containers.size(), 0U);
}

TEST(UsageReportTest, NamesOfWorkloads) {
  for (const auto& [pod, workload] : std::vector<std::pair<std::string, std::string>>{
           {"web-7d4b9c6f5d-x2x8k", "web"},
           {"my-web-7d4b9c6f5d-x2x8k", "my-web"},
           {"node-exporter-x2x8k", "node-exporter"},
           {"db-0", "db"},
           {"db-12", "db"},
           {"web", "web"},
           {"web-final", "web-final"},  // no random letters: it has vowels
           {"-", "-"},
           {"", ""},
           {"x-2026", "x"},
           {"x-20260", "x-20260"}}) {
    EXPECT_EQ(workloadName(pod), workload) << pod;
  }
  ReportBuilder builder;
  builder.workloads[{"shop", "web-0"}] = "StatefulSet/web";
  builder.add(stateOf(0, {{"web-0", 1}}));
  EXPECT_EQ(builder.report().containers[0].workload, "StatefulSet/web");
}

TEST(UsageReportTest, AsTextJsonAndHtml) {
  ReportBuilder builder;
  for (int second = 0; second <= 120; ++second) {
    builder.add(stateOf(
        second, {{"web-7d4b9c6f5d-x2x8k", 800, second < 60 ? 300 : 0, second < 60 ? 500 : 900, 900},
                 {"<script>\x1b[31m", 20, 0, 500, 500, 1000}}));
  }
  UsageReport report = builder.report();
  report.quotas = {{"shop", "cpu", "limits.cpu", Millicores(4000), Millicores(3900)},
                   {"shop", "cpu", "requests.cpu", Millicores(4000), Millicores(1000)}};
  report.notes = {"a note"};
  test::expectGolden("test/golden/cli/report.txt", reportText(report, false));
  const auto json = nlohmann::json::parse(reportJson(report));
  EXPECT_EQ(json["containers"][1]["recommendedRequest"], 920);
  EXPECT_EQ(json["containers"][1]["withDeclaredLimit"]["throttledPodSeconds"], 59);
  EXPECT_EQ(json["quotas"][0]["used"], 3900);
  const std::string html = reportHtml(report);
  EXPECT_EQ(html.find("<script>"), std::string::npos);
  EXPECT_NE(html.find("Requests far from use"), std::string::npos);
  EXPECT_NE(reportText(ReportBuilder().report(), false).find("0 managed pods"), std::string::npos);
}

}  // namespace
}  // namespace mbcas::cli
