// Replays every capture in this folder through the sampler and the estimator.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "mbcas/demand/demand.h"
#include "mbcas/kernel/fake_tree.h"
#include "mbcas/sense/sampler.h"

namespace mbcas {
namespace {

using namespace literals;
using nlohmann::json;

std::vector<std::string> captures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("test/captures")) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

class Capture : public ::testing::TestWithParam<std::string> {
 protected:
  // Files of a step are those that changed; null is one that is gone.
  void apply(const json& step) {
    for (const auto& [path, content] : step.at("files").items()) {
      if (content.is_null()) {
        tree.remove(path);
      } else {
        tree.write(path, content.get<std::string>());
      }
    }
    const Nanos at(static_cast<std::int64_t>(step.at("at").get<double>() * 1e9));
    clock.advance(at - clock.monotonic().time_since_epoch());
  }

  kernel::FakeTree tree;
  SimulatedClock clock;
};

// All were made the same way (see make): one pod limited to 200m, whose container spins.
TEST_P(Capture, ShowsTheThrottledContainer) {
  std::ifstream file("test/captures/" + GetParam() + ".json");
  const json capture = json::parse(file);
  ASSERT_EQ(capture.at("format"), 1);
  const json& steps = capture.at("steps");
  ASSERT_GE(steps.size(), 3u);
  apply(steps[0]);
  const auto mounts = kernel::detectMounts(tree.root());
  ASSERT_TRUE(mounts) << mounts.error().message();
  sense::Sampler sampler(std::make_unique<kernel::PodTree>(*mounts), clock, {});
  demand::Demand demand({.cpus = 2});
  demand.update(sampler.tick());
  for (std::size_t i = 1; i < steps.size(); ++i) {
    apply(steps[i]);
    const auto pods = sampler.tick();
    const auto needs = demand.update(pods);
    ASSERT_EQ(pods.size(), 1u);
    const sense::PodSignals& pod = pods[0];
    const bool is_static = GetParam().find("static") != std::string::npos;
    EXPECT_EQ(pod.uid, is_static ? "0123456789abcdef0123456789abcdef"
                                 : "7d3f1a2b-5c4d-4e6f-8a9b-0c1d2e3f4a5b");
    const auto busy = std::ranges::find_if(pod.containers, [](const sense::ContainerSignals& c) {
      return c.id.starts_with("cccccccc");
    });
    ASSERT_NE(busy, pod.containers.end());
    EXPECT_NEAR(busy->cpu.usageRate().cores(), 0.2, 0.05);
    EXPECT_GT(busy->cpu.blockedRate(), 400_m);
    EXPECT_EQ(busy->cpu.limit->millicores(), 200_m);
    const auto index = static_cast<std::size_t>(busy - pod.containers.begin());
    const demand::Need& need = needs[0].containers[index].need;
    EXPECT_TRUE(need.ready);
    EXPECT_GE(need.burst, 250_m) << "raised in the first second";
    if (i + 1 == steps.size()) {
      EXPECT_NEAR(need.use_peak.cores(), 1.0, 0.25);
    }
    EXPECT_TRUE(pod.cpu_pressure) << "both kinds of host had pressure files";
  }
  EXPECT_EQ(sampler.counters().failures, 0u) << sampler.counters().last_failure;
  EXPECT_EQ(sampler.counters().resets, 0u);
}

std::string testName(const ::testing::TestParamInfo<std::string>& capture) {
  std::string name = capture.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Replay, Capture, ::testing::ValuesIn(captures()), testName);

}  // namespace
}  // namespace mbcas
