#include "mbcas/cli/top.h"

#include <gtest/gtest.h>

#include "mbcas/base/time.h"
#include "mbcas/cli/explain.h"
#include "mbcas/cli/words.h"
#include "mbcas/policy/fixture_test.h"
#include "test/support/golden.h"

namespace mbcas::cli {
namespace {

using namespace std::chrono_literals;
using namespace literals;
using policy::object, policy::P;

NodeRecord state() {
  return *parseState(test::fileText("test/golden/cli/state.json"));
}

AllocationPtr allocation(const std::string& uid, const std::string& status) {
  return object<podallocation::PodAllocation>(fmt::format(
      R"({{"metadata":{{"namespace":"shop","name":"{}"}},"spec":{{"namespace":"shop","podName":"x",
          "nodeName":"n1","desiredCPULimit":"900m","wantedCPULimit":"1","reason":"a reason"}},
          "status":{}}})",
      uid, status));
}

TEST(Top, OfAMachine) {
  TopView view = topOf(state());
  sortRows(view.rows, TopKey::kThrottled, false);
  test::expectGolden("test/golden/cli/top-host.txt", topTable(view.rows, {}, false));
  test::expectGolden("test/golden/cli/top-host-wide.txt",
                     topTable(view.rows, {.namespaces = true, .wide = true}, false));
  test::expectGolden("test/golden/cli/top-host.json", topJson(view) + "\n");
}

TEST(Top, OfAClusterWithAndWithoutAgents) {
  const WallTime now = *parseRfc3339("2026-02-01T10:05:00Z");
  const std::string created = R"("creationTimestamp":"2026-01-12T10:05:00Z",)";
  const auto pod = [&](const std::string& name, const std::string& uid) {
    const std::string json = P{.name = name, .meta = created}.json();
    std::string text = json;
    text.replace(text.find(R"("uid":"u1")"), 10, fmt::format(R"("uid":"{}")", uid));
    return object<kube::Pod>(text);
  };
  const std::vector<PodPtr> pods = {pod("web-1", "u-web"), pod("batch-1", "u-batch"),
                                    pod("alone-1", "u-alone"), pod("new-1", "u-new")};
  const std::vector<AllocationPtr> allocations = {
      allocation("u-web", R"({"phase":"Pending","appliedCPULimit":"500m","reason":"cooldown",
                 "bounds":{"managed":true,"floor":"200m"}})"),
      allocation("u-batch", R"({"phase":"Applied","appliedCPULimit":"900m","observedDesired":"900m",
                 "bounds":{"managed":true}})"),
      allocation("u-alone",
                 R"({"phase":"Applied","bounds":{"managed":false,"reason":"opted out"}})")};
  TopView alone = topOf(pods, allocations, {}, now);
  sortRows(alone.rows, TopKey::kPod, false);
  test::expectGolden("test/golden/cli/top-cluster-alone.txt",
                     topTable(alone.rows, {.wide = true}, false));

  // The fixture's pods are on n1.
  const NodeRecords agents = {{"n1", std::make_shared<const NodeRecord>(state())}};
  TopView view = topOf(pods, allocations, agents, now);
  sortRows(view.rows, TopKey::kThrottled, false);
  test::expectGolden("test/golden/cli/top-cluster.txt", topTable(view.rows, {.wide = true}, false));
  ASSERT_EQ(view.nodes.size(), 1u);
  EXPECT_EQ(view.nodes[0].used, 1535_m);

  // An agent that speaks of a pod that had the same name says nothing about this one.
  const std::vector<PodPtr> other = {pod("web-1", "u-other")};
  EXPECT_FALSE(topOf(other, {}, agents, now).rows[0].throttled);
}

TEST(Top, SortsByEveryColumnBothWays) {
  std::vector<TopRow> rows = topOf(state()).rows;
  const auto order = [&](TopKey by, bool reverse) {
    sortRows(rows, by, reverse);
    std::string names;
    for (const TopRow& row : rows) names += row.pod.substr(0, 1);
    return names;
  };
  EXPECT_EQ(order(TopKey::kPod, false), "pbcw");  // kube-system before shop
  EXPECT_EQ(order(TopKey::kPod, true), "wcbp");
  EXPECT_EQ(order(TopKey::kLimit, false), "bwcp");
  EXPECT_EQ(order(TopKey::kLimit, true), "cwbp");  // what is not known stays last
  EXPECT_EQ(order(TopKey::kThrottled, false), "bwpc");
  EXPECT_EQ(order(TopKey::kPressure, false), "bwpc");
  for (const std::string& name : topKeyNames()) {
    EXPECT_EQ(cli::name(*parseTopKey(name)), name);
    (void)order(*parseTopKey(name), false);
  }
  EXPECT_FALSE(parseTopKey("colour"));
}

// What `mbcas top --host` shows of a pod is what `mbcas explain --host` says of it, in the same
// words.
TEST(Top, AgreesWithExplain) {
  const NodeRecord node = state();
  for (const TopRow& row : topOf(node).rows) {
    if (!row.managed) continue;
    const PodRecord& record = *node.find(row.name_space, row.pod);
    const Evidence evidence{.name_space = row.name_space,
                            .pod = row.pod,
                            .node = node.node,
                            .decision = Decision{node.node, node.time, node.market, record},
                            .source = "state",
                            .now = node.time};
    std::map<std::string, std::string> said;
    for (const Section& section : explain(evidence).sections) {
      for (const Step& step : section.steps) said[step.label] = step.value;
    }
    EXPECT_EQ(said["needs"], cpuText(row.need)) << row.pod;
    EXPECT_EQ(said["in force"], cpuText(row.limit)) << row.pod;
    EXPECT_EQ(said["phase"], row.phase) << row.pod;
    EXPECT_EQ(said["price"], priceText(row.price)) << row.pod;
    EXPECT_EQ(said["desired"], cpuText(row.desired)) << row.pod;
    EXPECT_EQ(said["award"], cpuText(row.award)) << row.pod;
    if (row.pressure) {
      EXPECT_EQ(said["pressure"], percentText(row.pressure)) << row.pod;
    }
  }
}

}  // namespace
}  // namespace mbcas::cli
