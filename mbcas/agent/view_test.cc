#include "mbcas/agent/view.h"

#include <gtest/gtest.h>

#include "test/support/golden.h"

namespace mbcas::agent {
namespace {

using namespace literals;

View aView() {
  View view;
  view.wall = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 31)) +
              std::chrono::milliseconds(30'600'250);
  view.node_name = "n1";
  view.capacity = 4000_m;
  view.unmanaged_use = 250_m;
  view.node.capacity = 3350_m;
  view.node.whole_machine = true;
  view.node.demand = 3400_m;
  view.node.scarce = true;
  view.node.mode = market::Mode::kCongested;
  view.node.price = 0.25;
  view.node.welfare = 0.875;
  view.notes = {"shop/web: somebody \"else\" set its limit"};
  view.sense.ticks = 12;
  view.sense.late_ticks = 1;
  view.sense.reads = 340;
  view.sense.last_failure = "cpu.stat: \"x\"";

  PodView& web = view.pods.emplace_back();
  web.name_space = "shop";
  web.name = "web";
  web.uid = "u1";
  web.usage = 480_m;
  web.blocked = 120_m;
  web.cpu_pressure = 0.125;
  web.contention = 0.0;
  web.weight = 150;
  web.priority = 1500;
  web.limit = 500_m;
  web.declared = 800_m;
  web.applied = 500_m;
  web.bounds = podallocation::Bounds{.managed = true,
                                     .floor = 100_m,
                                     .ceiling = 3600_m,
                                     .weight = 1.5,
                                     .reason = "floor: its request"};
  web.decision.limit = 500_m;
  web.decision.answer = 450_m;
  web.decision.desired = 460_m;
  web.decision.wanted = 520_m;
  web.decision.constrained = web.decision.throttled = true;
  web.decision.award = 450_m;
  web.decision.by_kernel = 520_m;
  web.decision.bound_for = {"u3", "gone"};
  web.decision.reason = {.basis = control::Basis::kConstrained,
                         .use = 600_m,
                         .award = 460_m,
                         .capacity = 3350_m,
                         .price = 0.25,
                         .weight = 150};
  ContainerView& main = web.containers.emplace_back();
  main.name = "main";
  main.limit = 500_m;
  main.declared = 800_m;
  main.request = 100_m;
  main.desired = 460_m;
  main.need.use = 600_m;
  main.need.use_peak = 620_m;
  main.need.used_peak = 480_m;
  main.need.burst = 700_m;
  main.need.burst_state = demand::BurstState::kGuessed;
  main.need.binding = true;
  main.need.samples = 30;
  main.need.last.usage = 480_m;
  main.need.last.blocked = 120_m;
  main.need.last.periods = 10;
  main.need.last.throttled_periods = 9;

  PodView& other = view.pods.emplace_back();
  other.name_space = "shop";
  other.name = "worker";
  other.uid = "u2";
  other.left_alone = "QoS class BestEffort: nothing to resize";
  other.usage = 30_m;
  other.ready = false;

  PodView& gold = view.pods.emplace_back();
  gold.name_space = "bank";
  gold.name = "gold";
  gold.uid = "u3";
  gold.decision.help = control::Help::Phase::kHeld;
  gold.decision.award = gold.decision.claim.emplace(800_m);
  gold.decision.by_kernel = 650_m;
  return view;
}

TEST(View, ADecisionIsOneLineOfJson) {
  const View view = aView();
  std::string lines;
  for (const PodView& pod : view.pods) lines += decisionJson(view, pod) + "\n";
  test::expectGolden("test/golden/agent/decisions.jsonl", lines);
}

TEST(View, TheStateHasAllPods) {
  test::expectGolden("test/golden/agent/state.json", stateJson(aView()) + "\n");
}

TEST(View, WhereLimitsAreClearedNoPodIsBoundForAnother) {
  View view = aView();
  view.node.whole_machine = false;
  view.pods[2].decision = {.award = 300_m};
  const std::string text = decisionJson(view, view.pods[2]);
  EXPECT_NE(text.find(R"("award":300)"), std::string::npos) << text;
  for (const char* key : {"byKernel", "help", "claim", "boundFor"}) {
    EXPECT_EQ(text.find(key), std::string::npos) << text;
  }
}

TEST(View, AnOverloadedNodeHasNoPrice) {
  View view = aView();
  view.node.mode = market::Mode::kOverloaded;
  view.node.price.reset();
  EXPECT_NE(stateJson(view).find(R"("mode":"overloaded","price":null)"), std::string::npos);
  view.node.mode.reset();
  view.node.price = 0;
  EXPECT_NE(stateJson(view).find(R"("scarce":true,"price":0)"), std::string::npos)
      << "nothing was cleared";
}

}  // namespace
}  // namespace mbcas::agent
