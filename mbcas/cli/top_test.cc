#include "mbcas/cli/top.h"

#include <gtest/gtest.h>

#include "mbcas/base/time.h"
#include "mbcas/policy/fixture_test.h"
#include "mbcas/view/text.h"
#include "test/support/golden.h"

namespace mbcas::cli {
namespace {

using namespace std::chrono_literals;
using namespace literals;
using policy::object, policy::P;
using view::Key, view::key;

NodeRecord state() {
  return *parseState(test::fileText("test/golden/cli/state.json"));
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
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

TEST(TopScreen, FitsEveryTerminal) {
  TopView view = topOf(state());
  for (int i = 0; i < 100; ++i) {
    view.rows.push_back({.name_space = "a-namespace-with-a-long-name",
                         .pod = fmt::format("a-pod-with-a-long-name-{:03}", i),
                         .node = "ip-10-0-0-1.internal",
                         .limit = 10000_m});
  }
  for (const bool wide : {false, true}) {
    TopScreen screen({.namespaces = true, .wide = wide});
    screen.update(view);
    for (std::size_t width = 20; width < 200; width += 13) {
      for (std::size_t height = 4; height < 130; height += 11) {
        for (const bool colours : {false, true}) {
          const auto lines = screen.render("mbcas top", width, height, colours);
          EXPECT_LE(lines.size(), height);
          for (const std::string& line : lines) EXPECT_LE(view::width(line), width) << line;
        }
      }
    }
  }
}

TEST(TopScreen, KeysSortAndScroll) {
  TopScreen screen({.namespaces = true});
  screen.update(topOf(state()));
  test::expectGolden("test/golden/cli/top-screen-80x24.txt",
                     joined(screen.render("mbcas top", 80, 24, false)));
  screen.press(key('l'));
  screen.press(key('i'));
  test::expectGolden("test/golden/cli/top-screen-by-limit.txt",
                     joined(screen.render("mbcas top", 80, 10, false)));
  // Six lines leave room for one pod; the next one comes by scrolling.
  const auto first_pod = [&] {
    const auto lines = screen.render("mbcas top", 80, 8, false);
    return lines.at(5);
  };
  screen.press(key('p'));
  EXPECT_NE(first_pod().find("proxy-1"), std::string::npos) << first_pod();
  screen.press(Key::kDown);
  EXPECT_NE(first_pod().find("batch-1"), std::string::npos) << first_pod();
  screen.press(Key::kEnd);
  screen.press(Key::kPageUp);
  screen.press(Key::kHome);
  EXPECT_NE(first_pod().find("proxy-1"), std::string::npos);
  for (int i = 0; i < 10; ++i) screen.press(Key::kRight);  // once around
  EXPECT_NE(first_pod().find("proxy-1"), std::string::npos);
  screen.press(Key::kLeft);
  screen.press(key('w'));
  EXPECT_NE(screen.render("mbcas top", 200, 24, false)[4].find("DECLARED"), std::string::npos);
}

}  // namespace
}  // namespace mbcas::cli
