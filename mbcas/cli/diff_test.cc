#include "mbcas/cli/diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mbcas/policy/fixture_test.h"

namespace mbcas::cli {
namespace {

using policy::C;
using policy::object;
using policy::P;

struct Given {
  std::string uid;
  std::string name;
  std::string owner{};  // members of an owner reference; empty: a bare pod
  std::string labels{};
  std::vector<C> containers = {{}};
  std::string allocation{};  // members of spec and status
};

constexpr const char* kDeployment =
    R"("kind":"ReplicaSet","name":"web-7d4b9c","controller":true,"apiVersion":"apps/v1","uid":"r")";

Snapshot snapshotOf(const std::vector<Given>& all) {
  Snapshot snapshot;
  for (const Given& given : all) {
    std::string meta;
    if (!given.owner.empty()) {
      meta = fmt::format(R"("ownerReferences":[{{{}}}],)", given.owner);
    }
    if (!given.labels.empty()) meta += fmt::format(R"("labels":{{{}}},)", given.labels);
    std::string text = P{.containers = given.containers, .name = given.name, .meta = meta}.json();
    text.replace(text.find(R"("uid":"u1")"), 10, fmt::format(R"("uid":"{}")", given.uid));
    snapshot.pods.push_back(object<kube::Pod>(text));
    if (given.allocation.empty()) continue;
    snapshot.allocations[given.uid] = object<podallocation::PodAllocation>(fmt::format(
        R"({{"metadata":{{"namespace":"shop","name":"{}"}},{}}})", given.uid, given.allocation));
  }
  return snapshot;
}

std::string allocation(const std::string& desired, const std::string& containers = "",
                       const std::string& status = R"("bounds":{"managed":true})") {
  return fmt::format(
      R"("spec":{{"namespace":"shop","podName":"x","nodeName":"n1","desiredCPULimit":"{}",
         "containers":[{}]}},"status":{{{}}})",
      desired, containers, status);
}

const std::string kHash = R"("pod-template-hash":"7d4b9c")";

TEST(DiffTest, PodsOfAWorkloadTogether) {
  const Diff diff = diffOf(snapshotOf(
      {{"a", "web-7d4b9c-aaaaa", kDeployment, kHash, {{}}, allocation("800m")},
       {"b",
        "web-7d4b9c-bbbbb",
        kDeployment,
        kHash,
        {{}},
        allocation("900m", "",
                   R"("bounds":{"managed":true},"original":[{"name":"main","limit":"500m"}])")},
       {"c", "web-7d4b9c-ccccc", kDeployment, kHash, {{}}, allocation("400m")}}));
  ASSERT_EQ(diff.workloads.size(), 1U);
  EXPECT_EQ(diff.workloads[0],
            (WorkloadDiff{
                "shop", {"Deployment", "web"}, 3, {{"main", Millicores(500), Millicores(900)}}}));
  EXPECT_EQ(
      patchesOf(diff),
      (std::vector<std::string>{
          R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"900m"}}}]}}}})"}));
}

TEST(DiffTest, WhatIsNoChange) {
  const Diff diff = diffOf(snapshotOf({
      {"a", "same", "", "", {{}}, allocation("500m")},
      {"b", "bound", "", "", {{}}, allocation("300m")},
      {"c", "alone", "", "", {{}}, allocation("900m", "", R"("bounds":{"managed":false})")},
      {"d", "unknown", "", "", {{}}, allocation("900m", "", "")},
      {"e", "no-allocation"},
      // Which of both would have it is not known.
      {"f", "two", "", "", {{"one"}, {"two"}}, allocation("2")},
  }));
  EXPECT_TRUE(diff.workloads.empty());
  EXPECT_TRUE(diff.notes.empty());
}

TEST(DiffTest, BarePodsAndUnknownKinds) {
  const Diff diff = diffOf(snapshotOf(
      {{"a",
        "bare",
        "",
        "",
        {{"one"}, {"two"}},
        allocation(
            "1200m",
            R"({"name":"one","desiredCPULimit":"700m"},{"name":"two","desiredCPULimit":"500m"})")},
       {"b",
        "x-0",
        R"("kind":"Game","name":"x","controller":true,"apiVersion":"games/v1","uid":"g")",
        "",
        {{}},
        allocation("900m")}}));
  ASSERT_EQ(diff.workloads.size(), 2U);
  EXPECT_EQ(diff.notes,
            (std::vector<std::string>{"shop/x is of kind Game, for which no patch is known"}));
  EXPECT_EQ(
      patchesOf(diff),
      (std::vector<std::string>{
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"bare","namespace":"shop"},"spec":{"containers":[{"name":"one","resources":{"limits":{"cpu":"700m"}}}]}})"}));
  EXPECT_EQ(diffTable(diff, true, false),
            "NAMESPACE  WORKLOAD  CONTAINER  DECLARED  DESIRED  PODS\n"
            "shop       Game/x    main           500m     900m     1\n"
            "shop       Pod/bare  one            500m     700m     1\n");
  EXPECT_EQ(
      diffJson(diff),
      R"({"workloads":[{"namespace":"shop","kind":"Game","name":"x","pods":1,"containers":[{"name":"main","declared":500,"desired":900}]},{"namespace":"shop","kind":"Pod","name":"bare","pods":1,"containers":[{"name":"one","declared":500,"desired":700}]}],"notes":["shop/x is of kind Game, for which no patch is known"]})");
}

}  // namespace
}  // namespace mbcas::cli
