// What MBCAS may ask of an API server: requests and bytes of an agent in calm, and of agents and
// controller for each change of a limit. Fails when one of them is twice what docs/scale.md states.
// Counts only; what lasts is measured in renewals of Leases, of which each agent has one in ten
// seconds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "tools/hollow/fleet.h"

namespace mbcas::hollow {
namespace {

using namespace std::chrono_literals;

constexpr int kNodes = 3;
constexpr int kPods = 10;  // of each
constexpr Millicores kCalm{100};
constexpr Millicores kMuch{600};

// The budget. In calm, for each renewal of its Lease:
constexpr double kAgentRequests = 1;
constexpr double kAgentBytes = 3'000;
// For each raise of a limit that had never been raised:
constexpr double kAgentWrites = 1.5;       // one, and another where the first was not enough
constexpr double kAgentReads = 1;          // because the pod's limits have changed
constexpr double kMarks = 0.1;             // of the controller, for agents; a raise needs none
constexpr double kControllerWrites = 4.5;  // original, resize, status, event
constexpr double kAgentBytesPerRaise = 17'000;
constexpr double kControllerBytesPerRaise = 30'000;
constexpr double kControllerConnectionsPerRaise = 0.5;  // a handshake costs more than a write

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
bool byAgents(const std::string& what) {
  return what.starts_with("APPLY podallocations ") || what.starts_with("PATCH podallocations ");
}
bool readByAgents(const std::string& what) {
  return what.starts_with("GET podallocations ");
}
// Nobody else merges something into Leases.
bool marks(const std::string& what) {
  return what.starts_with("PATCH leases ");
}
bool byAgentsToLive(const std::string& what) {
  return what.starts_with("APPLY leases ");
}
bool byTheController(const std::string& what) {
  return contains(what, " podallocations/status ") || contains(what, " pods/resize ") ||
         what.starts_with("PATCH pods ") || contains(what, " events ");
}

std::uint64_t bytes(const test::TcpTap::Counts& before, const test::TcpTap::Counts& after) {
  return after.sent - before.sent + after.received - before.received;
}

class ScaleBudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = test::ControlPlane::skipReason()) GTEST_SKIP() << *reason;
    Result<std::unique_ptr<Fleet>> started = Fleet::start(
        {.nodes = kNodes, .pods = kPods, .load = kCalm, .controller = MBCAS_CONTROLLER});
    ASSERT_TRUE(started) << started.error().message();
    fleet = *std::move(started);
    const Result<void> made = fleet->makePods();
    ASSERT_TRUE(made) << made.error().message();
    fleet->startController();
    fleet->startAgents();
    ASSERT_TRUE(eventually([&] { return fleet->settled(); })) << trouble();
  }

  RequestCounts requests() {
    Result<RequestCounts> counts = fleet->requests();
    EXPECT_TRUE(counts) << counts.error().message();
    return counts ? *std::move(counts) : RequestCounts{};
  }
  std::uint64_t renewals() { return total(requests(), byAgentsToLive); }
  // So many renewals of each agent.
  bool aWhile(int count) {
    const std::uint64_t until = renewals() + static_cast<std::uint64_t>(count * kNodes);
    return eventually([&] {
      std::this_thread::sleep_for(500ms);
      return renewals() >= until;
    });
  }
  std::string trouble() { return fleet->complaints() + fleet->controllerLog(); }
  static std::string list(const RequestCounts& counts) {
    std::string text;
    for (const auto& [what, count] : counts) text += fmt::format("{} {}\n", count, what);
    return text;
  }

  std::unique_ptr<Fleet> fleet;
};

TEST_F(ScaleBudgetTest, CalmAndChange) {
  // What follows the first bounds is said in the first of these.
  bool calm = false;
  for (int tries = 0; tries < 6 && !calm; ++tries) {
    const RequestCounts before = requests();
    const std::uint64_t agents_before = fleet->agentRequests();
    const test::TcpTap::Counts agent_before = fleet->agentBytes();
    ASSERT_TRUE(aWhile(2)) << trouble();
    const RequestCounts passed = requests() - before;
    calm = total(passed, byAgents) + total(passed, byTheController) == 0;
    if (!calm) continue;
    const auto renewed = static_cast<double>(total(passed, byAgentsToLive));
    const auto asked = static_cast<double>(fleet->agentRequests() - agents_before);
    const auto moved = static_cast<double>(bytes(agent_before, fleet->agentBytes()));
    fmt::print("in calm, for each renewal of a Lease: {:.2f} requests of an agent, {:.0f} bytes\n",
               asked / renewed, moved / renewed * kNodes);
    EXPECT_LT(asked, 2 * kAgentRequests * renewed) << list(passed);
    EXPECT_LT(moved, 2 * kAgentBytes * renewed / kNodes) << list(passed);
  }
  EXPECT_TRUE(calm) << "something is decided again and again\n" << list(requests());

  const RequestCounts still = requests();
  const test::TcpTap::Counts agent_still = fleet->agentBytes();
  const test::TcpTap::Counts controller_still = fleet->controllerBytes();
  constexpr int kRaises = kNodes * kPods;
  std::vector<Millicores> loads(kRaises, kMuch);
  for (std::size_t i = 0; i < loads.size(); ++i) fleet->load(i, loads[i]);
  ASSERT_TRUE(eventually([&] { return fleet->lacking(loads).empty() && fleet->settled(); }))
      << trouble();
  ASSERT_TRUE(aWhile(1)) << trouble();  // what is said of it afterwards counts, too
  const RequestCounts change = requests() - still;
  const auto wishes = static_cast<double>(total(change, byAgents));
  const auto writes = static_cast<double>(total(change, byTheController));
  const auto reads = static_cast<double>(total(change, readByAgents));
  const auto marked = static_cast<double>(total(change, marks));
  const auto agent_bytes = static_cast<double>(bytes(agent_still, fleet->agentBytes()));
  const auto controller_bytes =
      static_cast<double>(bytes(controller_still, fleet->controllerBytes()));
  const auto connections =
      static_cast<double>(fleet->controllerBytes().connections - controller_still.connections);
  fmt::print("connections of the controller for {} raises: {:.0f}\n", kRaises, connections);
  EXPECT_LT(connections, 2 * kControllerConnectionsPerRaise * kRaises);
  fmt::print(
      "for each raise: {:.2f} writes and {:.2f} reads of an agent, {:.2f} writes of the "
      "controller; "
      "{:.0f} bytes of the agent, {:.0f} of the controller\n{}",
      wishes / kRaises, reads / kRaises, writes / kRaises, agent_bytes / kPods,
      controller_bytes / kRaises, list(change));
  EXPECT_LT(wishes, 2 * kAgentWrites * kRaises) << list(change);
  EXPECT_LT(reads, 2 * kAgentReads * kRaises) << list(change);
  EXPECT_LT(marked, 2 * kMarks * kRaises) << list(change);
  EXPECT_LT(writes, 2 * kControllerWrites * kRaises) << list(change);
  EXPECT_LT(agent_bytes, 2 * kAgentBytesPerRaise * kPods);
  EXPECT_LT(controller_bytes, 2 * kControllerBytesPerRaise * kRaises);
}

}  // namespace
}  // namespace mbcas::hollow
