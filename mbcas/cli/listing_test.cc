#include "mbcas/cli/listing.h"

#include <gtest/gtest.h>

#include "mbcas/base/time.h"
#include "mbcas/policy/fixture_test.h"
#include "test/support/golden.h"

namespace mbcas::cli {
namespace {

using namespace literals;
using policy::object, policy::P;

Snapshot cluster() {
  Snapshot snapshot;
  const std::string created = R"("creationTimestamp":"2026-01-12T10:05:00Z",)";
  snapshot.pods = {
      P{.containers = {{"main", "100m", ""}}, .name = "batch-1", .meta = created}.make(),
      P{.containers = {{"a", "100m", "500m"}, {"b", "50m", ""}}, .name = "mixed-1", .meta = created}
          .make(),
      P{.name = "opted-out", .meta = created + R"("annotations":{"mbcas.io/managed":"false"},)"}
          .make(),
      P{.name = "web-1", .meta = created}.make()};
  snapshot.nodes["n1"] = policy::aNode();
  snapshot.namespaces["shop"] = policy::shop();
  return snapshot;
}

TEST(Listing, OfACluster) {
  const Snapshot snapshot = cluster();
  const auto rows = listRows(snapshot, *parseRfc3339("2026-02-01T10:05:00Z"));
  test::expectGolden("test/golden/cli/pods-list.txt", listTable(rows, true, false, false));
  test::expectGolden("test/golden/cli/pods-list-wide.txt", listTable(rows, false, true, false));
  test::expectGolden("test/golden/cli/pods-list.json", rowsJson(rows, {"a note"}) + "\n");
}

TEST(Listing, TheControllersWordCounts) {
  Snapshot snapshot = cluster();
  snapshot.allocations["u1"] = object<podallocation::PodAllocation>(
      R"({"metadata":{"namespace":"shop","name":"u1"},"spec":{"podName":"web-1",
          "desiredCPULimit":"1"},"status":{"bounds":{"managed":true,"floor":"150m",
          "ceiling":"2","reason":"floor: a; ceiling: b"}}})");
  const Verdict verdict = judge(snapshot, *snapshot.pods.back());
  EXPECT_TRUE(verdict.managed);
  EXPECT_EQ(verdict.reason, "floor: a; ceiling: b");
  const auto rows = listRows(snapshot, {});
  EXPECT_EQ(rows.back().managed, "yes");
  EXPECT_EQ(rows.back().ceiling, 2000_m);
}

TEST(Listing, WhereNodesMayNotBeReadTheyBoundNothing) {
  Snapshot snapshot = cluster();
  snapshot.nodes.clear();
  EXPECT_EQ(judge(snapshot, *snapshot.pods.back()).reason, "node n1 is not known");
  snapshot.nodes_known = false;
  EXPECT_TRUE(judge(snapshot, *snapshot.pods.back()).expected);
}

constexpr const char* kSummary = R"({"node":{"nodeName":"n1","cpu":{"usageNanoCores":1}},
  "pods":[{"podRef":{"name":"web-1","namespace":"shop","uid":"u1"},
           "cpu":{"time":"2026-02-01T10:05:00Z","usageNanoCores":470400000,
                  "usageCoreNanoSeconds":1,"psi":{"full":{"avg10":1},"some":{"total":5,"avg10":12.5,
                  "avg60":1}}},
           "containers":[{"name":"main","cpu":{"usageNanoCores":1}}]},
          {"podRef":{"name":"idle-1","namespace":"shop","uid":"u2"}}]})";

TEST(Summary, OfAKubelet) {
  const auto usages = parseSummary(kSummary);
  ASSERT_TRUE(usages) << usages.error().message();
  ASSERT_EQ(usages->size(), 2u);
  EXPECT_EQ((*usages)[0].usage, 470_m);
  EXPECT_EQ((*usages)[0].pressure, 0.125);
  EXPECT_FALSE((*usages)[1].usage);
  EXPECT_FALSE(parseSummary("<html>"));
}

TEST(Usage, WhoUsesMostComesFirst) {
  const std::vector<PodPtr> pods = {
      object<kube::Pod>(R"({"metadata":{"name":"idle-1","namespace":"shop","uid":"u2"},
        "spec":{"containers":[{"name":"main"}]},"status":{"phase":"Running"}})"),
      P{}.make(), object<kube::Pod>(R"({"metadata":{"name":"done-1","namespace":"shop","uid":"u3"},
        "spec":{"containers":[{"name":"main"}]},"status":{"phase":"Succeeded"}})")};
  std::vector<PodRow> rows = usageRows(pods, {});
  addUsage(rows, *parseSummary(kSummary));
  sortByUsage(rows);
  test::expectGolden("test/golden/cli/pods-usage.txt", usageTable(rows, true, false, false));
  test::expectGolden("test/golden/cli/pods-usage-wide.txt", usageTable(rows, false, true, false));
}

TEST(Usage, OfAMachine) {
  const NodeRecord agent = *parseState(test::fileText("test/golden/cli/state.json"));
  sense::PodSignals known;
  known.uid = "u-web";
  known.cpu.interval = std::chrono::seconds(1);
  known.cpu.usage = std::chrono::milliseconds(320);
  known.cpu.blocked = std::chrono::milliseconds(90);
  known.cpu.limit = kernel::CpuLimit{.quota = std::chrono::milliseconds(50)};
  sense::PodSignals unknown;
  unknown.uid = "7d3f1a2b-5c4d-4e6f-8a9b-0c1d2e3f4a5b";
  unknown.qos = kernel::Qos::kBestEffort;
  const std::vector<sense::PodSignals> pods = {known, unknown};
  test::expectGolden("test/golden/cli/pods-usage-host.txt",
                     usageTable(hostRows(pods, &agent, nullptr), true, false, false));
  EXPECT_EQ(hostRows({}, nullptr, &agent).size(), 4u);
}

}  // namespace
}  // namespace mbcas::cli
