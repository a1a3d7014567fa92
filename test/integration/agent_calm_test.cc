// The agent as a process on a real API server, while nothing happens. Most of it is waiting.
#include "test/integration/agent_fixture.h"

namespace mbcas::test {
namespace {

using namespace literals;

using AgentCalmTest = AgentTest;

TEST_F(AgentCalmTest, InCalmItOnlyRenewsItsLease) {
  startEngine();
  std::vector<std::shared_ptr<const Pod>> calm;
  for (int i = 0; i < 5; ++i) calm.push_back(addPod(fmt::format("calm-{}", i)));
  startAgentAndWait();
  for (const auto& pod : calm) {
    cgroups.load(pod->meta.uid, 50_m);
    ASSERT_TRUE(eventually([&] {
      const auto now = allocation(*pod);
      return now && now->bounds() != nullptr && now->bounds()->managed;
    })) << everything(*pod);
  }
  ASSERT_TRUE(becomesCalm());
  const std::size_t before = audited().requests().size();
  const std::size_t leases = audited().count("patch", "leases");
  ASSERT_TRUE(eventually([&] { return audited().count("patch", "leases") >= leases + 4; }));
  const auto all = audited().requests();
  for (std::size_t i = before; i < all.size(); ++i) {
    EXPECT_EQ(all[i].verb + " " + all[i].resource, "patch leases") << all[i].name;
  }
}

TEST_F(AgentCalmTest, ANewAgentChangesNothingNeedlessly) {
  startEngine();
  const auto calm = addPod("calm");
  const auto busy = addPod("busy");
  startAgentAndWait();
  cgroups.load(calm->meta.uid, 50_m);
  cgroups.load(busy->meta.uid, 700_m);
  ASSERT_TRUE(eventually([&] { return limitOf("busy") >= 700_m; })) << everything(*busy);
  ASSERT_TRUE(eventually([&] {
    const auto now = allocation(*calm);
    return now && now->bounds() != nullptr;
  }));
  ASSERT_TRUE(becomesCalm());
  agent->signal(SIGKILL);
  agent->wait();
  const std::size_t writes = audited().count("patch", "podallocations");
  const auto calm_before = allocation(*calm);
  const auto busy_before = allocation(*busy);
  startAgentAndWait();
  const std::size_t leases = audited().count("patch", "leases");
  ASSERT_TRUE(eventually([&] { return audited().count("patch", "leases") >= leases + 3; }))
      << "it has been at work for 20 s";
  EXPECT_EQ(allocation(*calm)->meta.generation, calm_before->meta.generation) << everything(*calm);
  EXPECT_EQ(allocation(*busy)->desired, busy_before->desired) << everything(*busy);
  EXPECT_LE(audited().count("patch", "podallocations"), writes + 1)
      << "at most the wanted limit of the busy one";
}

}  // namespace
}  // namespace mbcas::test
