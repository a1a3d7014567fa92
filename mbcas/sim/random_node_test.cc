#include "mbcas/sim/random_node.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "test/support/trials.h"

namespace mbcas::sim {
namespace {

using namespace literals;
using namespace std::chrono_literals;

std::string kindOf(const PodSpec& pod) {
  const std::size_t dash = pod.name.rfind('-');
  return pod.name.substr(0, dash);
}

TEST(RandomNode, TheSameSeedGivesTheSameNode) {
  EXPECT_EQ(randomNode(5), randomNode(5));
  EXPECT_NE(randomNode(5).pods, randomNode(6).pods);
}

TEST(RandomNode, HasPodsOfEveryKindAndTheirRequestsFit) {
  std::map<std::string, int> kinds;
  std::map<unsigned, int> cpus;
  std::map<std::int64_t, int> priorities;
  int floors = 0;
  int ceilings = 0;
  int changing = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Scenario scenario = randomNode(seed);
    ++cpus[scenario.cpus];
    ASSERT_GE(scenario.pods.size(), 2u);
    ASSERT_LE(scenario.pods.size(), 21u) << "20 pods and a process outside";
    Millicores requests;
    for (const PodSpec& pod : scenario.pods) {
      ++kinds[kindOf(pod)];
      requests += pod.request();
      floors += pod.floor ? 1 : 0;
      ceilings += pod.ceiling ? 1 : 0;
      const ContainerSpec& container = pod.containers.at(0);
      if (!container.workload.profile.constant()) {
        ++changing;
        EXPECT_LE(container.workload.profile.points.back().at, scenario.duration / 2);
      }
      if (!pod.managed) continue;
      ++priorities[pod.priority];
      EXPECT_EQ(pod.qos(), kernel::Qos::kBurstable) << pod.name;
      EXPECT_GT(*container.limit, container.request);
      EXPECT_GE(pod.ceiling.value_or(container.request), container.request);
    }
    EXPECT_LE(requests, Millicores(scenario.cpus * 1000));
  }
  EXPECT_EQ(cpus.size(), 4u);
  EXPECT_EQ(kinds.size(), 6u);
  for (const auto& [kind, count] : kinds) EXPECT_GE(count, 50) << kind;
  EXPECT_EQ(priorities.size(), 4u);
  EXPECT_GE(floors, 50);
  EXPECT_GE(ceilings, 50);
  EXPECT_GE(changing, 50);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    for (const PodSpec& pod : randomNode(seed, {.equal = true}).pods) {
      EXPECT_EQ(pod.priority, 0);
      EXPECT_FALSE(pod.floor || pod.ceiling);
    }
  }
}

TEST(RandomNode, NoMoreIsUsedThanThereIs) {
  const auto nodes = test::trials<std::uint64_t>(20, 500);
  for (std::uint64_t seed = 1; seed <= nodes; ++seed) {
    const Scenario scenario = randomNode(seed);
    const Outcome plain = runPlain(scenario);
    const std::unique_ptr<Policy> policy = makeUnlimited();
    const Outcome unlimited = run(scenario, *policy);
    for (const Outcome* const outcome : {&plain, &unlimited}) {
      ASSERT_EQ(outcome->pods.size(), scenario.pods.size());
      EXPECT_LE(outcome->used(), scenario.cpus * (1 + 1e-9)) << scenario.name;
    }
    EXPECT_GE(unlimited.used(), plain.used() - 0.02 * scenario.cpus) << scenario.name;
    for (std::size_t i = 0; i < plain.pods.size(); ++i) {
      const PodSpec& spec = scenario.pods[i];
      EXPECT_EQ(plain.pods[i].changes, 0);
      EXPECT_NEAR(plain.pods[i].offered, unlimited.pods[i].offered, 1e-6) << spec.name;
      const std::optional<Millicores> declared = spec.containers[0].limit;
      EXPECT_EQ(plain.pods[i].limit, declared);
      // One period more than there are in the time: they begin when they want.
      const double most = declared.value_or(Millicores(scenario.cpus * 1000)).cores();
      EXPECT_LE(plain.pods[i].used, most * 301 / 300 + 1e-6);
      EXPECT_EQ(unlimited.pods[i].limit, spec.managed ? std::nullopt : declared);
    }
  }
}

}  // namespace
}  // namespace mbcas::sim
