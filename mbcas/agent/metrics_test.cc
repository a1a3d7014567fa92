#include "mbcas/agent/metrics.h"

#include <gtest/gtest.h>

namespace mbcas::agent {
namespace {

using namespace literals;

TEST(Metrics, OfANodeWithOneManagedPod) {
  View view;
  view.node.capacity = 1800_m;
  view.node.price = std::nullopt;
  view.sense.ticks = 7;
  view.pods.push_back({.name_space = "shop", .name = "web", .limit = 250_m});
  view.pods.push_back({.name_space = "shop", .name = "other", .left_alone = "opted out"});
  const std::string text = metricsText(view, {.written = 3, .waiting = 2});
  const auto has = [&](const std::string& line) {
    return text.find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("mbcas_node_capacity_cores 1.8")) << text;
  EXPECT_TRUE(has("# TYPE mbcas_pod_limit_cores gauge")) << text;
  EXPECT_TRUE(has(R"(mbcas_pod_limit_cores{namespace="shop",pod="web"} 0.25)")) << text;
  EXPECT_TRUE(has("mbcas_agent_ticks_total 7")) << text;
  EXPECT_TRUE(has(R"(mbcas_agent_writes_total{result="written"} 3)")) << text;
  EXPECT_TRUE(has("mbcas_agent_writes_waiting 2")) << text;
  EXPECT_EQ(text.find("mbcas_node_price"), std::string::npos) << "there is none";
  EXPECT_EQ(text.find("other"), std::string::npos) << "left alone";
}

}  // namespace
}  // namespace mbcas::agent
