#include "mbcas/cli/cluster_pods.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "mbcas/policy/fixture_test.h"

namespace mbcas::cli {
namespace {

AllocationPtr allocation(const std::string& name_space, const std::string& pod,
                         const std::string& node, bool managed = true) {
  return policy::object<podallocation::PodAllocation>(fmt::format(
      R"({{"metadata":{{"namespace":"{}","name":"u-{}"}},"spec":{{"namespace":"{}","podName":"{}",
          "nodeName":"{}","desiredCPULimit":"400m","wantedCPULimit":"900m",
          "reason":"limits share 2000m: weight 1 gets it 400m at price 0.5"}},
          "status":{{"phase":"Clamped","appliedCPULimit":"450m","bounds":{{"managed":{}}},
          "original":[{{"name":"c","limit":"1"}}]}}}})",
      name_space, pod, name_space, pod, node, managed));
}

const std::vector<AllocationPtr>& some() {
  static const std::vector<AllocationPtr> kSome = {
      allocation("shop", "web-2", "n1"), allocation("shop", "web-1", "n2"),
      allocation("batch", "Report-1", "n1"), allocation("batch", "web-9", "n1", false)};
  return kSome;
}

// "namespace/pod" of what is answered, in its order.
std::vector<std::string> namesOf(const PodAnswer& answer) {
  std::vector<std::string> names;
  for (const AllocatedPod& row : answer.pods) names.push_back(row.name_space + "/" + row.pod);
  return names;
}
using Names = std::vector<std::string>;

TEST(ClusterPods, TellsWhatAnAllocationTells) {
  const PodAnswer answer = answerPods({.node = "n2"}, some(), 10);
  ASSERT_EQ(answer.pods.size(), 1U);
  EXPECT_EQ(answer.pods[0],
            (AllocatedPod{.name_space = "shop",
                          .pod = "web-1",
                          .node = "n2",
                          .declared = Millicores(1000),
                          .have = Millicores(450),
                          .wanted = Millicores(900),
                          .desired = Millicores(400),
                          .bound = true,
                          .phase = "Clamped",
                          .reason = "limits share 2000m: weight 1 gets it 400m at price 0.5"}));
}

TEST(ClusterPods, FindsByNodeAndByName) {
  EXPECT_EQ(namesOf(answerPods({.node = "n1"}, some(), 10)),
            (Names{"batch/Report-1", "shop/web-2"}))
      << "by name, without those that are left alone";
  EXPECT_EQ(namesOf(answerPods({.text = "WEB"}, some(), 10)), (Names{"shop/web-1", "shop/web-2"}));
  EXPECT_EQ(namesOf(answerPods({.text = "report"}, some(), 10)), Names{"batch/Report-1"});
  EXPECT_EQ(namesOf(answerPods({.text = "op/w"}, some(), 10)), (Names{"shop/web-1", "shop/web-2"}));
  EXPECT_EQ(namesOf(answerPods({.text = "bat"}, some(), 10)), Names{"batch/Report-1"})
      << "a namespace";
  EXPECT_EQ(namesOf(answerPods({.node = "n2", .text = "2"}, some(), 10)), Names{});
  const PodAnswer few = answerPods({}, some(), 1);
  EXPECT_EQ(namesOf(few), Names{"batch/Report-1"});
  EXPECT_EQ(few.all, 3U);
}

TEST(ClusterPods, RecordedOnesAnswerAlike) {
  const std::vector<AllocatedPod> rows = answerPods({}, some(), 10).pods;
  for (const PodQuestion& question : std::vector<PodQuestion>{
           {}, {.node = "n1"}, {.text = "web"}, {.node = "n1", .text = "shop/"}}) {
    const PodAnswer live = answerPods(question, some(), 2);
    const PodAnswer recorded = answerPods(question, rows, 2);
    EXPECT_EQ(live.pods, recorded.pods);
    EXPECT_EQ(live.all, recorded.all);
  }
}

TEST(ClusterPods, AsJsonAndBack) {
  const PodAnswer answer = answerPods({}, some(), 10);
  std::string text = answerJson(answer);
  EXPECT_EQ(nlohmann::json::parse(text).at("all"), 3);
  std::vector<AllocatedPod> read;
  kube::JsonParser parser;
  ASSERT_TRUE(parser.parse(text, [&](kube::JsonCursor root) {
    root.members([&](std::string_view key, kube::JsonCursor value) {
      if (key != "pods") return;
      value.elements([&](kube::JsonCursor pod) { read.push_back(readAllocatedPod(pod)); });
    });
  }));
  EXPECT_EQ(read, answer.pods);
}

TEST(ClusterPods, ReadsQuestions) {
  EXPECT_EQ(parsePodQuestion(R"({"node":"n1","text":"web","more":1})"),
            (PodQuestion{.node = "n1", .text = "web"}));
  EXPECT_EQ(parsePodQuestion("{}"), PodQuestion{});
  EXPECT_FALSE(parsePodQuestion("["));
  EXPECT_FALSE(parsePodQuestion(R"({"node":7})"));
  EXPECT_FALSE(parsePodQuestion(fmt::format(R"({{"text":"{}"}})", std::string(254, 'x'))));
}

}  // namespace
}  // namespace mbcas::cli
