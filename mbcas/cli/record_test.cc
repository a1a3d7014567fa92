#include "mbcas/cli/record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mbcas/agent/view.h"
#include "mbcas/base/time.h"
#include "mbcas/cli/agents.h"
#include "mbcas/cli/explain.h"
#include "mbcas/cli/host_record.h"
#include "mbcas/host/show.h"
#include "test/support/golden.h"

namespace mbcas::cli {
namespace {

using namespace literals;

NodeRecord example() {
  const Result<NodeRecord> node = parseState(test::fileText("test/golden/cli/state.json"));
  EXPECT_TRUE(node) << node.error().message();
  return node.value_or(NodeRecord{});
}

TEST(Record, ReadsTheWholeState) {
  const NodeRecord node = example();
  EXPECT_EQ(node.node, "node-1");
  EXPECT_EQ(formatRfc3339(node.time), "2026-02-01T10:05:00Z");
  EXPECT_EQ(node.capacity, 4000_m);
  EXPECT_EQ(node.market.price, 0.25);
  EXPECT_TRUE(node.market.scarce);
  ASSERT_EQ(node.pods.size(), 4u);
  const PodRecord* const web = node.find("shop", "web-1");
  ASSERT_NE(web, nullptr);
  EXPECT_EQ(web->desired, 900_m);
  EXPECT_EQ(web->pressure, 0.35);
  EXPECT_TRUE(web->urgent);
  ASSERT_TRUE(web->bounds);
  EXPECT_EQ(web->bounds->start, 800_m);
  EXPECT_EQ(web->bounds->weight, 1.25);
  EXPECT_TRUE(node.market.whole_machine);
  EXPECT_EQ(web->help, "held");
  EXPECT_EQ(web->claim, 620_m);
  EXPECT_EQ(web->award, 620_m);
  EXPECT_EQ(web->by_kernel, 540_m);
  EXPECT_EQ(node.find("shop", "batch-1")->bound_for, std::vector<std::string>{"shop/web-1"});
  ASSERT_EQ(web->containers.size(), 2u);
  EXPECT_EQ(web->containers[0].throttled_periods, 7);
  EXPECT_EQ(web->containers[1].burst_state, "trying");
  EXPECT_FALSE(node.find("shop", "cache-1")->pressure);
  EXPECT_FALSE(node.find("kube-system", "proxy-1")->bounds);
  EXPECT_EQ(node.find("shop", "proxy-1"), nullptr);
}

// The first tick of `mbcas run`: a pod without a limit is given its declared one, and nothing is
// known of any pod. That is no failure.
TEST(Record, APodThatHasJustBegunIsNoAlarm) {
  host::View view;
  view.pods.push_back({.name = "job", .path = "/job", .declared = 50_m});
  view.pods.push_back({.name = "web", .path = "/web", .limit = 500_m, .declared = 500_m});
  view.pods[0].changed = view.pods[0].begins = true;
  EXPECT_EQ(host::changeLine(view.pods[0]),
            "job: no limit -> 50m: it begins with its declared limit");
  const NodeRecord node = recordOf(view, "vm", {});
  EXPECT_EQ(node.pods[0].limit, 50_m);
  EXPECT_EQ(hostPhase(node.pods[0]), "Applied");
  EXPECT_FALSE(neededOf(node.pods[0])) << "nothing was measured";
  for (const PodRecord& pod : node.pods) {
    EXPECT_EQ(pod.basis, "warm-up");
    EXPECT_EQ(pod.reason.find("cannot be read"), std::string::npos) << pod.reason;
    const Explanation explanation = explain({.name_space = "",
                                             .pod = pod.pod,
                                             .node = "vm",
                                             .decision = Decision{"vm", {}, node.market, pod},
                                             .source = "state of vm",
                                             .now = {}});
    for (const Section& section : explanation.sections) EXPECT_NE(section.title, "What it needs");
    ASSERT_EQ(explanation.more.size(), 1u);
    EXPECT_TRUE(explanation.more[0].starts_with("wait: ")) << explanation.more[0];
  }
  // What really cannot be read still is said to be so.
  view.pods[1].need.samples = 30;
  EXPECT_EQ(host::reasonOf(view.pods[1]), "its counters cannot be read, so it keeps its limit");
}

TEST(Record, WhatIsWrittenReadsBackTheSame) {
  const NodeRecord node = example();
  const Result<NodeRecord> again = parseState(stateJson(node));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, node);
}

TEST(Record, ADecisionIsAPodWithItsNodeAndMarket) {
  const NodeRecord node = example();
  std::string line = R"({"node":"n","time":"2026-02-01T10:05:00Z","market":)";
  {
    JsonWriter json(line);
    writeRecord(json, node.market);
  }
  std::string pod;
  {
    JsonWriter json(pod);
    writeRecord(json, node.pods[3]);
  }
  const Result<Decision> decision = parseDecision(line + "," + pod.substr(1));
  ASSERT_TRUE(decision) << decision.error().message();
  EXPECT_EQ(decision->pod, node.pods[3]);
  EXPECT_EQ(decision->market, node.market);
  EXPECT_EQ(decision->node, "n");
}

TEST(Record, OfAMachine) {
  host::View view{.capacity = 2000_m, .unmanaged_use = 100_m};
  view.node.capacity = 1700_m;
  host::PodView& web = view.pods.emplace_back(host::PodView{
      .name = "web", .path = "/web", .usage = 300_m, .blocked = 50_m, .limit = 400_m});
  web.declared = 200_m;
  web.weight = 100;
  web.request = 100_m;
  web.decision.desired = web.decision.answer = web.decision.wanted = 450_m;
  web.decision.reason.floor = 100_m;
  web.decision.reason.ceiling = 1800_m;
  web.decision.reason.basis = control::Basis::kBurst;
  web.need.burst = 450_m;
  web.decision.constrained = true;
  web.decision.award = 300_m;
  web.decision.by_kernel = 350_m;
  web.decision.bound_for = {"/gold.slice"};
  host::PodView gold = web;
  gold.name = "gold";
  gold.path = "/gold.slice";
  gold.decision.bound_for.clear();
  gold.decision.help = control::Help::Phase::kProbe;
  gold.decision.claim = 2000_m;
  view.pods.push_back(gold);
  view.pods.push_back({.name = "idle", .path = "/idle", .left_alone = "it has no limit"});
  control::NodeInput input;
  input.machine.push_back({.id = "/kubepods", .use = 900_m, .inner = true});
  input.machine.push_back({.id = "/web", .parent = 0, .weight = 200, .use = 300_m, .pod = 0});
  input.machine.push_back({.id = "/idle", .parent = 0, .weight = 312, .use = 20_m});
  input.pods.push_back({.id = "/web"});
  input.machine.push_back({.id = "/small", .use = 40_m});
  input.machine.push_back({.id = "/hog", .use = 500_m});
  input.machine.push_back({.id = "/sleeps"});
  view.input = &input;
  const NodeRecord node = recordOf(view, "this-machine", *parseRfc3339("2026-02-01T10:05:00Z"));
  EXPECT_EQ(node.others,
            (std::vector<OtherRecord>{{"/hog", 500_m, 1024.0}, {"/small", 40_m, 1024.0}}));
  EXPECT_EQ(node.find("", "web")->kernel_weight, 400.0);  // 200 of 512, of 1024
  EXPECT_EQ(node.node, "this-machine");
  ASSERT_EQ(node.pods.size(), 3u);
  EXPECT_EQ(node.find("", "web")->bound_for, std::vector<std::string>{"gold"});
  EXPECT_EQ(node.find("", "web")->by_kernel, 350_m);
  EXPECT_EQ(node.find("", "gold")->help, "probe");
  EXPECT_EQ(node.find("", "gold")->claim, 2000_m);
  EXPECT_EQ(node.find("", "web")->basis, "burst");
  EXPECT_EQ(node.find("", "web")->containers.at(0).burst, 450_m);
  EXPECT_EQ(node.find("", "idle")->left_alone, "it has no limit");
  EXPECT_EQ(parseState(stateJson(node)), node);
}

// What the agent writes is what is read here.
TEST(Record, OfAnAgent) {
  agent::View view{.wall = *parseRfc3339("2026-02-01T10:05:00Z"), .node_name = "n1"};
  view.capacity = 4000_m;
  view.node.capacity = 3400_m;
  view.node.price = std::nullopt;
  view.node.mode = market::Mode::kOverloaded;
  agent::PodView& web = view.pods.emplace_back();
  web.name_space = "shop";
  web.name = "web-1";
  web.uid = "u1";
  web.limit = 500_m;
  web.blocked = 210_m;
  web.cpu_pressure = 0.35;
  web.bounds = podallocation::Bounds{.managed = true, .ceiling = 1500_m, .reason = "a reason"};
  web.decision.desired = 900_m;
  web.decision.reason.basis = control::Basis::kBurst;
  web.containers.push_back({.name = "main", .limit = 500_m});
  web.containers[0].need.burst = 880_m;
  web.containers[0].need.burst_state = demand::BurstState::kLearned;
  web.containers[0].need.last.throttled_periods = 7;
  agent::PodView& other = view.pods.emplace_back();
  other.name = "other";
  other.left_alone = "opted out";

  const Result<NodeRecord> node = parseState(agent::stateJson(view));
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_EQ(node->node, "n1");
  EXPECT_EQ(node->time, view.wall);
  EXPECT_EQ(node->market.capacity, 3400_m);
  EXPECT_EQ(node->market.mode, "overloaded");
  EXPECT_FALSE(node->market.price);
  ASSERT_EQ(node->pods.size(), 2u);
  const PodRecord& pod = node->pods[0];
  EXPECT_EQ(pod.desired, 900_m);
  EXPECT_EQ(pod.basis, "burst");
  EXPECT_EQ(pod.pressure, 0.35);
  EXPECT_EQ(pod.bounds->ceiling, 1500_m);
  EXPECT_FALSE(pod.bounds->floor);
  EXPECT_EQ(pod.containers.at(0).burst_state, "learned");
  EXPECT_EQ(pod.containers.at(0).throttled_periods, 7);
  EXPECT_EQ(node->pods[1].left_alone, "opted out");
  EXPECT_FALSE(node->pods[1].limit);

  const Result<Decision> decision = parseDecision(agent::decisionJson(view, view.pods[0]));
  ASSERT_TRUE(decision) << decision.error().message();
  EXPECT_EQ(decision->node, "n1");
  EXPECT_EQ(decision->time, view.wall);
  EXPECT_EQ(decision->market, node->market);
  EXPECT_EQ(decision->pod, pod);
}

TEST(Record, AnOverloadedNodeHasNoPrice) {
  const Result<NodeRecord> node = parseState(R"({"market":{"price":null},"unknown":{"a":[1]}})");
  ASSERT_TRUE(node);
  EXPECT_FALSE(node->market.price);
}

TEST(Record, RefusesWhatIsNotOne) {
  for (const char* text : {"", "[]", "{", R"({"pods":[{"usage":"much"}]})",
                           R"({"market":{"price":"high"}})", R"({"time":"yesterday"})"}) {
    const Result<NodeRecord> node = parseState(text);
    ASSERT_FALSE(node) << text;
    EXPECT_TRUE(node.error().message().starts_with("state of an agent: "));
  }
}

TEST(DecisionLog, FindsThePodAmongOtherLines) {
  const auto line = [](const char* name_space, const char* pod, int desired) {
    return fmt::format(
        R"({{"node":"n","time":"2026-02-01T10:00:00Z","namespace":"{}","pod":"{}","desired":{}}})",
        name_space, pod, desired);
  };
  const std::string text = "not json\n" + line("shop", "web-1", 100) + "\n{\"broken web-1\n" +
                           line("other", "web-1", 200) + "\n" + line("shop", "web-10", 300) + "\n" +
                           line("shop", "web-1", 400) + "\n" + line("shop", "web-1", 500);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, text.size()}) {
    DecisionLog log("shop", "web-1", 2);
    for (std::size_t at = 0; at < text.size(); at += piece) {
      log.feed(std::string_view(text).substr(at, piece));
    }
    const std::vector<Decision> found = log.take();
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].pod.desired, 400_m);
    EXPECT_EQ(found[1].pod.desired, 500_m);
  }
}

}  // namespace
}  // namespace mbcas::cli
