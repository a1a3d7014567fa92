// Several controllers, of which one may work. The API server's own audit log shows who has written
// what and when: after another has taken the lease, no one writes but that one.
#include <signal.h>

#include <fstream>
#include <sstream>

#include "test/integration/controller_fixture.h"
#include "test/support/fault_proxy.h"
#include "test/support/process.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;

constexpr const char* kA = "replica-a";
constexpr const char* kB = "replica-b";

std::string auditLog() {
  return testing::TempDir() + fmt::format("controller-leader-audit-{}.log", ::getpid());
}

class ControllerLeaderTest : public ControllerTest {
 protected:
  static void SetUpTestSuite() {
    const std::string policy = auditLog() + ".policy";
    std::ofstream(policy) << R"(apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, verbs: [get, list, watch]}
- {level: Metadata}
)";
    planeOptions().users = {fmt::format("{},system:masters", kA),
                            fmt::format("{},system:masters", kB)};
    planeOptions().apiserverArgs = {"--audit-policy-file=" + policy,
                                    "--audit-log-path=" + auditLog(), "--audit-log-mode=blocking"};
    KubeTest::SetUpTestSuite();
  }
  static void TearDownTestSuite() {
    KubeTest::TearDownTestSuite();
    ::unlink(auditLog().c_str());
    ::unlink((auditLog() + ".policy").c_str());
  }
  void TearDown() override {
    if (admin) (void)admin->remove<kube::Lease>(kSystem, "mbcas-controller");
    ControllerTest::TearDown();
  }

  // Of the user at the server, which may be a proxy.
  static std::string kubeconfigOf(const std::string& user, const std::string& server) {
    std::string path = fmt::format("{}/{}.kubeconfig", plane->dir(), user);
    const std::string ca = server.starts_with("https")
                               ? fmt::format(", certificate-authority: {}", plane->caFile())
                               : "";
    std::ofstream(path) << fmt::format(
        R"(apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "{}"{}}}}}]
users: [{{name: u, user: {{token: "{}"}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
)",
        server, ca, plane->userTokens().at(user));
    return path;
  }
  // The program itself. A busy machine may stall for seconds, and a lease is to outlast that.
  static std::unique_ptr<Process> replica(const std::string& user, const std::string& server) {
    return std::make_unique<Process>(
        std::vector<std::string>{MBCAS_CONTROLLER, "--kubeconfig", kubeconfigOf(user, server),
                                 "--leader-elect-lease", "9", "--metrics-bind-address", "0",
                                 "--health-probe-bind-address", "127.0.0.1:0", "--cooldown", "0s",
                                 "--silence", "1h"},
        plane->dir(), fmt::format("{}-{}", user, ++started));
  }
  static bool says(const Process& process, const std::string& text) {
    return process.err().find(text) != std::string::npos;
  }
  static std::string identityOf(const Process& process) {
    constexpr std::string_view kBegin = "starts, as ";
    const std::string text = process.err();
    const std::size_t at = text.find(kBegin);
    if (at == std::string::npos) return "unknown";
    return text.substr(at + kBegin.size(), text.find('"', at) - at - kBegin.size());
  }
  std::string leader() {
    const auto lease = admin->get<kube::Lease>(kSystem, "mbcas-controller");
    return lease ? (*lease)->holder.string() : "";
  }

  // Writes that a replica sent after another had taken the lease.
  static std::vector<std::string> writesOfOthersThanTheLeader() {
    struct Write {
      std::string at;  // RFC 3339 with microseconds: its order is that of time
      bool lease = false;
      std::string user;
      std::string what;
    };
    std::vector<Write> writes;
    std::ifstream file(auditLog());
    for (std::string line; std::getline(file, line);) {
      const auto event = nlohmann::json::parse(line, nullptr, false);
      if (event.is_discarded() || event.value("stage", "") != "ResponseComplete") continue;
      const std::string user = event.at("user").at("username");
      if (user != kA && user != kB) continue;
      const auto object = event.value("objectRef", nlohmann::json::object());
      const std::string resource = object.value("resource", "");
      if (resource.starts_with("selfsubject")) continue;  // asks for permissions, writes nothing
      const bool lease = resource == "leases";
      if (lease && event.at("responseStatus").value("code", 0) >= 300) continue;
      writes.push_back({event.at(lease ? "stageTimestamp" : "requestReceivedTimestamp"), lease,
                        user,
                        fmt::format("{} {}/{} {}", event.value("verb", ""), resource,
                                    object.value("subresource", ""), object.value("name", ""))});
    }
    std::stable_sort(writes.begin(), writes.end(),
                     [](const Write& a, const Write& b) { return a.at < b.at; });
    std::vector<std::string> wrong;
    std::string holder;
    int counted = 0;
    for (const Write& write : writes) {
      if (write.lease) {
        holder = write.user;
        continue;
      }
      ++counted;
      if (write.user != holder) {
        wrong.push_back(fmt::format("{} {} {}, while {} led", write.at, write.user, write.what,
                                    holder.empty() ? "no replica" : holder));
      }
    }
    fmt::print("{} writes of replicas, {} of them not by the leader\n", counted, wrong.size());
    return wrong;
  }

  static inline int started = 0;
};

using Wrong = std::vector<std::string>;

TEST_F(ControllerLeaderTest, ACandidateThatHasNotSeenTheClusterLeavesTheLeaseToOthers) {
  const auto pod = makePod("p");
  FaultProxy proxy(port());
  std::atomic<bool> slow = true;
  proxy.hold([&](std::string_view line) { return slow && line.starts_with("GET /api/v1/pods?"); });

  // SIGTERM while it waits for its lists.
  {
    const auto waiting = replica(kA, proxy.url());
    ASSERT_TRUE(eventually([&] { return proxy.held() > 0; })) << waiting->err();
    waiting->signal(SIGTERM);
    EXPECT_EQ(waiting->wait(), 0) << waiting->err();
  }

  const auto a = replica(kA, proxy.url());
  ASSERT_TRUE(eventually([&] { return proxy.held() > 0; })) << a->err();
  // For more than a lease no one leads, and it does not take the lease.
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(leader(), "");
    std::this_thread::sleep_for(100ms);
  }
  const auto b = replica(kB, plane->server());
  desire(*pod, 500_m);
  expectApplied(*pod, 500_m);
  const std::string of_b = identityOf(*b);
  EXPECT_EQ(leader(), of_b) << b->err();
  slow = false;
  EXPECT_TRUE(eventually([&] { return says(*a, "stands by; the leader is " + of_b); })) << a->err();

  b->signal(SIGTERM);
  EXPECT_EQ(b->wait(), 0) << b->err();
  EXPECT_TRUE(eventually([&] { return says(*a, "\"leads\""); })) << a->err();
  desire(*pod, 600_m);
  expectApplied(*pod, 600_m);
  EXPECT_TRUE(eventually([&] {
    return says(*a, fmt::format("resize {}/p on node-1 from 500m to 600m (manage): Accepted", ns));
  })) << a->err();
  a->signal(SIGTERM);
  EXPECT_EQ(a->wait(), 0) << a->err();
  EXPECT_EQ(leader(), "") << "released";
  EXPECT_EQ(writesOfOthersThanTheLeader(), Wrong{});
}

TEST_F(ControllerLeaderTest, SigtermAtAnyMomentOfTheStart) {
  const auto pod = makePod("p");
  desire(*pod, 300_m);
  for (const auto delay : {0ms, 30ms, 100ms, 200ms, 400ms, 700ms, 1000ms, 1500ms}) {
    SCOPED_TRACE(delay.count());
    const auto a = replica(kA, plane->server());
    std::this_thread::sleep_for(delay);
    a->signal(SIGTERM);
    const int code = a->wait();
    // Before it has begun to wait for signals, the signal itself ends it.
    EXPECT_TRUE(code == 0 || (code == -1 && a->ended() && a->err().empty())) << code << a->err();
    EXPECT_EQ(leader(), "") << "released, if it was held: " << a->err();
  }
  EXPECT_EQ(writesOfOthersThanTheLeader(), Wrong{});
}

// A request that does not end does not keep the lease from the next leader.
TEST_F(ControllerLeaderTest, SigtermWhileARequestHangs) {
  FaultProxy proxy(port());
  const std::string quotas = fmt::format("GET /api/v1/namespaces/{}/resourcequotas", ns);
  proxy.hold([&](std::string_view line) { return line.starts_with(quotas); });
  ASSERT_TRUE(admin->create<kube::ResourceQuota>(
      ns, R"({"metadata":{"name":"q"},"spec":{"hard":{"limits.cpu":"100"}}})"));
  const auto pod = makePod("p");
  desire(*pod, 300_m);
  const auto a = replica(kA, proxy.url());
  ASSERT_TRUE(eventually([&] { return proxy.held() > 0; })) << a->err();
  a->signal(SIGTERM);
  EXPECT_EQ(a->wait(), 0) << a->err();
  EXPECT_EQ(leader(), "") << "released";
}

// The leader is stopped between a decision and the write that would follow.
TEST_F(ControllerLeaderTest, ALeaderThatWasStoppedBeyondItsLeaseWritesNothingMore) {
  const auto process = [&](const std::string& user, const std::string& step) {
    return std::make_unique<Process>(
        std::vector<std::string>{CONTROLLER_PROCESS, kubeconfigOf(user, plane->server()), step,
                                 user},
        plane->dir(), fmt::format("{}-{}", user, ++started));
  };
  const auto isStopped = [](pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(file, text);
    return text.find(") T ") != std::string::npos;
  };
  const auto pod = makePod("p");
  desire(*pod, 500_m);
  const auto a = process(kA, "stop-at-decided");
  ASSERT_TRUE(eventually([&] { return isStopped(a->pid()); })) << a->err();
  EXPECT_EQ(leader(), kA);
  EXPECT_EQ(limitOf("p"), 200_m);

  const auto b = process(kB, "never");
  expectApplied(*pod, 500_m);
  EXPECT_EQ(leader(), kB);
  desire(*pod, 300_m);
  expectApplied(*pod, 300_m);
  const int resizes = kubelet->actuated("p");

  a->signal(SIGCONT);
  EXPECT_EQ(a->wait(), 3) << "it has lost the lease";
  // The leader goes on; if the other had written, its resize would be in between.
  desire(*pod, 700_m);
  expectApplied(*pod, 700_m);
  EXPECT_EQ(kubelet->actuated("p"), resizes + 1);
  EXPECT_EQ(writesOfOthersThanTheLeader(), Wrong{});
  b->signal(SIGTERM);
  EXPECT_EQ(b->wait(), 0);
}

}  // namespace
}  // namespace mbcas::test
