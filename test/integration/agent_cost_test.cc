// What an agent costs on a full node in calm: 110 pods as real cgroups on the real kernel, a
// quarter of them at work, and a real API server. The numbers are printed, as a table for
// docs/agent-figures.md; what is judged are bounds that hold on any machine.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "test/integration/agent_fixture.h"
#include "test/kernel/burner.h"
#include "test/kernel/scratch.h"
#include "test/support/tcp_tap.h"
#include "test/support/trials.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;

constexpr int kPods = 110;
constexpr int kActive = 28;

// A directory that looks like /sys/fs/cgroup and holds only the test's own cgroups.
class CgroupRoot {
 public:
  explicit CgroupRoot(const kernel::Mounts& mounts) {
    if (mounts.version == kernel::Version::kV2) {
      root_ = mounts.cpu;
      return;
    }
    std::string pattern = std::filesystem::temp_directory_path() / "mbcas-root-XXXXXX";
    made_ = root_ = ::mkdtemp(pattern.data());
    const auto link = [&](const char* name, const std::string& target) {
      if (!target.empty()) std::filesystem::create_directory_symlink(target, root_ + "/" + name);
    };
    link("cpu", mounts.cpu);
    link("cpuacct", mounts.cpuacct);
    link("pids", mounts.pids);
    link("unified", mounts.unified);
  }
  ~CgroupRoot() {
    std::error_code ignored;
    if (!made_.empty()) std::filesystem::remove_all(made_, ignored);
  }
  const std::string& path() const { return root_; }

 private:
  std::string root_;
  std::string made_;
};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

// CPU time of the thread that samples and decides: the first one.
std::chrono::nanoseconds firstThread(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/schedstat", pid));
  std::int64_t nanos = 0;
  file >> nanos;
  return std::chrono::nanoseconds(nanos);
}

class AgentCostTest : public AgentTest {
 protected:
  static void SetUpTestSuite() {
    if (soaking()) {
      AgentTest::SetUpTestSuite();
    } else {
      skip = "measures for minutes: MBCAS_SOAK=1, as in make soak";
    }
  }
};

TEST_F(AgentCostTest, AFullNodeInCalm) {
  Result<std::unique_ptr<Scratch>> scratch = Scratch::make();
  if (!scratch) GTEST_SKIP() << scratch.error().message();
  const CgroupRoot root((*scratch)->mounts());
  startEngine();
  std::vector<std::shared_ptr<const Pod>> all;
  std::vector<Burner> burners;
  for (int i = 0; i < kPods; ++i) {
    all.push_back(createPod(
        podBody(fmt::format("p{}", i), "100m", "200m", fmt::format(R"("nodeName":"{}",)", kNode))));
    const std::string uid = all.back()->meta.uid.string();
    const std::string pod = "/kubepods/burstable/pod" + uid;
    const std::string container = pod + "/" + fakeContainerId(uid, "main");
    const std::vector<std::string> directories = (*scratch)->add(container);
    (*scratch)->setLimit(pod, 200_m);
    (*scratch)->setLimit(container, 200_m);
    if (i < kActive) {
      burners.emplace_back(LoadShape{.on = 2000us, .period = 200'000us}, directories);
    }
  }
  TcpTap tap(port());
  const std::string tapped =
      writeAgentConfig("tapped", kNode, fmt::format("https://127.0.0.1:{}", tap.port()));
  agent = std::make_unique<Process>(
      std::vector<std::string>{MBCAS_AGENT, "--kubeconfig", tapped, "--node-name", kNode,
                               "--cgroup-root", root.path()},
      plane->dir(), "tapped");
  ASSERT_TRUE(eventually(
      [&] {
        const auto allocations = admin->list<PodAllocation>({.name_space = ns});
        int managed = 0;
        for (const auto& each : allocations->items) {
          managed += each->bounds() != nullptr && each->bounds()->managed ? 1 : 0;
        }
        return managed == kPods;
      },
      300s))
      << agent->err();
  ASSERT_TRUE(becomesCalm()) << agent->out();

  const std::chrono::seconds window = 120s;
  const auto begin = std::chrono::steady_clock::now();
  const Process::Cost before = agent->cost();
  const auto first_before = firstThread(agent->pid());
  const TcpTap::Counts passed_before = tap.counts();
  const std::size_t requests_before = audited().requests().size();
  std::this_thread::sleep_for(window);
  const Process::Cost after = agent->cost();
  const auto first_after = firstThread(agent->pid());
  const TcpTap::Counts passed = tap.counts();
  const auto requests = audited().requests();
  const double took = seconds(std::chrono::steady_clock::now() - begin);

  std::size_t leases = 0;
  std::size_t others = 0;
  std::string which;
  for (std::size_t i = requests_before; i < requests.size(); ++i) {
    const AuditLog::Request& request = requests[i];
    const bool lease = request.verb == "patch" && request.resource == "leases";
    (lease ? leases : others) += 1;
    if (!lease) which += fmt::format("{} {} {}\n", request.verb, request.resource, request.name);
  }
  const double minutes = took / 60;
  fmt::print("an agent with {} pods, {} of them at work, over {:.0f} s ({}, {}):\n", kPods, kActive,
             took, MBCAS_STATIC ? "static" : "shared libraries",
             kernel::describe((*scratch)->mounts()));
  fmt::print("| CPU | {:.3f} % of a core |\n", seconds(after.cpu - before.cpu) / took * 100);
  fmt::print("| of which sampling and deciding | {:.3f} % |\n",
             seconds(first_after - first_before) / took * 100);
  fmt::print("| resident | {:.1f} MB |\n", static_cast<double>(after.rss) / (1 << 20));
  fmt::print("| of which its own data | {:.1f} MB |\n",
             static_cast<double>(after.anonymous) / (1 << 20));
  fmt::print("| Lease renewals a minute | {:.1f} |\n", static_cast<double>(leases) / minutes);
  fmt::print("| other requests a minute | {:.1f} |\n", static_cast<double>(others) / minutes);
  fmt::print("| bytes sent a minute | {:.0f} |\n",
             static_cast<double>(passed.sent - passed_before.sent) / minutes);
  fmt::print("| bytes received a minute | {:.0f} |\n",
             static_cast<double>(passed.received - passed_before.received) / minutes);

  if (MBCAS_STATIC) {
    EXPECT_LE(after.rss, 10u << 20);
  }
  EXPECT_LE(leases, static_cast<std::size_t>(took / 10) + 1);
  EXPECT_EQ(others, 0u) << "watches last at least half an hour\n" << which << agent->out();
  EXPECT_LT(seconds(after.cpu - before.cpu) / took, 0.02) << "ten times what is aimed at";
}

}  // namespace
}  // namespace mbcas::test
