#include "mbcas/cli/cluster_view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "mbcas/base/time.h"
#include "mbcas/policy/fixture_test.h"

namespace mbcas::cli {
namespace {

using policy::object;

constexpr const char* kBound =
    "a pod that matters more is short of CPU: of the 900m it could use, weight 300 gets it 400m of "
    "2000m at price 0.75";

struct Given {
  std::string node = "n1";
  std::string name_space = "shop";
  int desired = 400;
  int wanted = 900;
  int applied = 400;
  int declared = 500;
  std::string reason = kBound;
  std::string phase = "Applied";
  bool managed = true;
};

AllocationPtr allocation(const Given& given) {
  return object<podallocation::PodAllocation>(fmt::format(
      R"({{"metadata":{{"namespace":"{}","name":"u"}},"spec":{{"namespace":"{}","podName":"x",
          "nodeName":"{}","desiredCPULimit":"{}m","wantedCPULimit":"{}m","reason":"{}"}},
          "status":{{"phase":"{}","appliedCPULimit":"{}m","bounds":{{"managed":{}}},
          "original":[{{"name":"c","limit":"{}m"}}]}}}})",
      given.name_space, given.name_space, given.node, given.desired, given.wanted, given.reason,
      given.phase, given.applied, given.managed, given.declared));
}

NodePtr node(const std::string& name) {
  return object<kube::Node>(fmt::format(
      R"({{"metadata":{{"name":"{}"}},"status":{{"allocatable":{{"cpu":"3900m"}},
          "conditions":[{{"type":"Ready","status":"True"}}]}}}})",
      name));
}

TEST(ClusterViewTest, SumsByNodeAndByNamespace) {
  const ClusterView view =
      clusterOf({allocation({}),
                 allocation({.name_space = "batch",
                             .desired = 800,
                             .wanted = 700,
                             .applied = 700,
                             .reason = "uses 300m",
                             .phase = "Failed"}),
                 allocation({.node = "n2", .reason = "needs 900m, more than its ceiling of 400m"}),
                 allocation({.node = "n3", .managed = false})},
                {node("n1"), node("n4")});
  ASSERT_EQ(view.nodes.size(), 4U);
  const NodeTile& first = view.nodes[0];
  EXPECT_EQ(first.node, "n1");
  EXPECT_EQ(first.capacity, Millicores(3900));
  EXPECT_TRUE(first.ready);
  EXPECT_EQ(first.price, 0.75);
  EXPECT_EQ(first.sum, (PodSum{.pods = 2,
                               .bound = 1,
                               .failed = 1,
                               .have = Millicores(1100),
                               .wanted = Millicores(1600),
                               .held = Millicores(500),
                               .use = Millicores(300),
                               .use_told = 1}));
  EXPECT_FALSE(view.nodes[1].isShort()) << "a ceiling is not scarcity";
  EXPECT_EQ(view.nodes[1].sum.held, Millicores(500));
  EXPECT_EQ(view.nodes[1].capacity, std::nullopt);
  EXPECT_EQ(view.nodes[2].sum, PodSum{}) << "left alone";
  EXPECT_EQ(view.nodes[3].node, "n4") << "without pods";
  ASSERT_EQ(view.namespaces.size(), 2U);
  EXPECT_EQ(view.namespaces[0].name_space, "batch");
  EXPECT_EQ(view.namespaces[1].sum.pods, 2U);
  EXPECT_EQ(view.namespaces[1].sum.held, Millicores(1000));
}

TEST(ClusterViewTest, WhoIsBound) {
  // The market gives it more than it declared.
  EXPECT_EQ(clusterOf({allocation({.declared = 300})}, {}).nodes[0].sum.bound, 0U);
  const ClusterView overloaded =
      clusterOf({allocation({}),
                 allocation({.reason = "limits share 2000m: weight 1 gets it 1m (overloaded)"})},
                {});
  EXPECT_TRUE(overloaded.nodes[0].overloaded);
  EXPECT_EQ(overloaded.nodes[0].sum.bound, 2U);
}

TEST(ClusterViewTest, RemembersSinceWhen) {
  const WallTime at{std::chrono::hours(1)};
  ShortSince since;
  ClusterView view = clusterOf({allocation({})}, {node("n2")});
  since.update(view, at);
  EXPECT_EQ(view.nodes[0].short_since, at);
  EXPECT_EQ(view.nodes[1].short_since, std::nullopt);
  since.update(view, at + std::chrono::seconds(5));
  EXPECT_EQ(view.nodes[0].short_since, at);
  ClusterView calm = clusterOf({allocation({.reason = "uses 1m"})}, {});
  since.update(calm, at + std::chrono::seconds(6));
  EXPECT_EQ(calm.nodes[0].short_since, std::nullopt);
  since.update(view, at + std::chrono::seconds(9));
  EXPECT_EQ(view.nodes[0].short_since, at + std::chrono::seconds(9));
}

TEST(ClusterViewTest, AsJson) {
  ClusterView view = clusterOf({allocation({})}, {});
  ShortSince().update(view, WallTime(std::chrono::seconds(2)));
  view.notes.emplace_back("\"<script>\n");
  const auto json = nlohmann::json::parse(clusterJson(view));
  EXPECT_EQ(json["nodes"][0],
            nlohmann::json::parse(R"({"node":"n1","pods":1,"bound":1,"failed":0,"have":400,
                "wanted":900,"held":500,"use":0,"useTold":0,"price":0.75,"capacity":null,"ready":true,
                "shortSince":2000})"));
  EXPECT_EQ(json["namespaces"][0]["namespace"], "shop");
  EXPECT_EQ(json["notes"][0], "\"<script>\n");
  EXPECT_EQ(clusterJson(view).find('\n'), std::string::npos) << "one line of a stream";
}

TEST(ClusterViewTest, ARecordedOneIsReadBack) {
  ClusterView written = clusterOf(
      {allocation({}), allocation({.node = "n2", .reason = "uses 120m", .phase = "Failed"}),
       allocation({.node = "n3", .reason = "limits share 2000m: it gets 1m (overloaded)"})},
      {node("n1"), node("n4")});
  written.time = WallTime(std::chrono::hours(500'000));
  ShortSince().update(written, written.time);
  written.notes = {"<b>", "two"};
  written.gone = {"n9"};
  std::string text = clusterJson(written);
  ClusterView read;
  kube::JsonParser parser;
  const Result<void> parsed =
      parser.parse(text, [&](kube::JsonCursor root) { read = readCluster(root); });
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(read, written);
}

TEST(ClusterViewTest, ARecordedOneThatMakesNoSense) {
  for (const char* text :
       {R"({"nodes":[{"price":"x"}]})", R"({"nodes":[{"price":-1}]})", R"({"time":"now"})",
        R"({"nodes":[{"shortSince":99999999999999999}]})", R"({"nodes":[{"pods":-3}]})",
        R"({"nodes":7})", R"({"namespaces":[{"have":"much"}]})"}) {
    std::string json = text;
    kube::JsonParser parser;
    EXPECT_FALSE(parser.parse(json, [](kube::JsonCursor root) { (void)readCluster(root); }))
        << text;
  }
}

}  // namespace
}  // namespace mbcas::cli
