// The agent as a process, with its own account, role and admission policies, on a real API server.
#include "mbcas/base/local_socket.h"
#include "test/integration/agent_fixture.h"
#include "test/support/fault_proxy.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;
using podallocation::Bounds;

class AgentApiTest : public AgentTest {
 protected:
  void TearDown() override {
    touching = {};
    AgentTest::TearDown();
  }
  Millicores desired(const Pod& pod) {
    const auto now = allocation(pod);
    return now ? now->desired : Millicores(-1);
  }
  std::size_t lines(const std::string& text) const {
    std::size_t count = 0;
    const std::string err = agent->err();
    for (std::size_t at = 0; (at = err.find(text, at)) != std::string::npos; ++at) ++count;
    return count;
  }

  // ---- Sight ----

  // From now on what the agent watches changes several times a second, so that a watch that brings
  // nothing for a few seconds is broken.
  void startTouching(const std::shared_ptr<const Pod>& pod) {
    touching = std::jthread([this, pod](const std::stop_token& stop) {
      for (int i = 0; !stop.stop_requested(); ++i) {
        const std::string body =
            fmt::format(R"({{"metadata":{{"annotations":{{"touched":"{}"}}}}}})", i);
        const auto touch = [&]<class T>(const std::string& name_space, const std::string& name) {
          (void)admin->patch<T>(name_space, name, kube::PatchType::kMerge, body);
        };
        touch.operator()<Pod>(ns, "web");
        touch.operator()<PodAllocation>(ns, pod->meta.uid.string());
        touch.operator()<kube::Node>("", kNode);
        if (!admin->patch<kube::ConfigMap>(kSystem, "mbcas", kube::PatchType::kMerge, body)) {
          (void)admin->create<kube::ConfigMap>(kSystem, R"({"metadata":{"name":"mbcas"}})");
        }
        std::this_thread::sleep_for(200ms);
      }
    });
  }

  WallTime renewed() {
    const auto lease = admin->get<kube::Lease>(kSystem, "mbcas-agent-node-1");
    return lease ? (*lease)->renewed : WallTime{};
  }
  // For longer than from one renewal to the next. One may have been under way.
  bool leaseStands() {
    for (int i = 0; i < 2; ++i) {
      const WallTime before = renewed();
      std::this_thread::sleep_for(12s);
      if (renewed() == before) return true;
    }
    return false;
  }
  bool isReady() {
    return eventually([&] { return probe("ready").empty(); });
  }
  bool isBlind(const std::string& why) {
    return eventually([&] {
      const std::string said = probe("ready");
      return said.starts_with("blind: ") && said.find(why) != std::string::npos;
    });
  }
  std::string everythingOf(const Pod& pod) {
    return probe("ready") + probe("live") + everything(pod);
  }

  std::jthread touching;
};

TEST_F(AgentApiTest, MakesAnAllocationForEachPodOfItsNodeAndNoOther) {
  const auto web = addPod("web");
  const auto elsewhere = createPod(podBody("elsewhere", "100m", "200m", R"("nodeName":"node-2",)"));
  startAgentAndWait();
  ASSERT_TRUE(eventually([&] { return allocation(*web) != nullptr; })) << agent->err();
  const auto made = allocation(*web);
  EXPECT_EQ(made->desired, 200_m) << "until there are bounds: what is in force";
  EXPECT_EQ(made->pod_name, "web");
  EXPECT_EQ(made->pod_namespace, ns);
  EXPECT_EQ(made->node, kNode);
  EXPECT_EQ(kube::find(made->meta.labels, podallocation::kNodeLabel), kNode);
  ASSERT_EQ(made->meta.owners.size(), 1u);
  EXPECT_EQ(made->meta.owners[0].uid, web->meta.uid);
  EXPECT_EQ(made->meta.owners[0].name, "web");
  EXPECT_FALSE(made->reason.empty());

  // A later one too.
  const auto later = addPod("later", "100m", "300m");
  EXPECT_TRUE(eventually([&] { return desired(*later) == 300_m; })) << everything(*later);
  EXPECT_EQ(allocation(*elsewhere), nullptr);
  EXPECT_TRUE(eventually(
      [&] { return admin->get<kube::Lease>(kSystem, "mbcas-agent-node-1").has_value(); }));
  agent->signal(SIGTERM);
  EXPECT_EQ(agent->wait(), 0) << agent->err();
  EXPECT_TRUE(admin->get<kube::Lease>(kSystem, "mbcas-agent-node-1"))
      << "left: its successor goes on with it, and silence is what gives limits back";
}

TEST_F(AgentApiTest, AThrottledPodIsRaisedWithinItsBounds) {
  const auto free = addPod("free");
  const auto bounded = addPod("bounded");
  const auto alone = addPod("alone");
  startAgentAndWait();
  setBounds(*free, {.managed = true, .floor = 100_m, .ceiling = 4000_m});
  setBounds(*bounded, {.managed = true, .floor = 100_m, .ceiling = 300_m});
  setBounds(*alone, {.managed = false, .reason = "opted out"});
  for (const auto& pod : {free, bounded, alone}) cgroups.load(pod->meta.uid, 1000_m);
  EXPECT_TRUE(eventually([&] { return desired(*free) >= 900_m; })) << everything(*free);
  EXPECT_TRUE(eventually([&] { return desired(*bounded) == 300_m; })) << everything(*bounded);
  EXPECT_EQ(desired(*alone), 200_m);
  EXPECT_LE(desired(*free), 4000_m);

  // One line for each decision that was written.
  bool found = false;
  for (const std::string& line : agent->lines()) {
    const nlohmann::json decision = nlohmann::json::parse(line);
    found = found || (decision.at("pod") == "free" && decision.at("namespace") == ns);
  }
  EXPECT_TRUE(found) << agent->out();
}

TEST_F(AgentApiTest, TheLoopCloses) {
  startEngine();
  const auto pod = addPod("web");
  startAgentAndWait();
  cgroups.load(pod->meta.uid, 700_m);
  ASSERT_TRUE(eventually([&] {
    const auto now = allocation(*pod);
    return now && now->applied && *now->applied >= 700_m && limitOf("web") >= 700_m;
  })) << everything(*pod);
  expectAnnotation("web", R"({"main":{"request":"100m","limit":"200m"}})");
}

TEST_F(AgentApiTest, NothingIsAskedThatTheRoleDoesNotGrant) {
  for (const AuditLog::Request& request : audited().requests()) {
    EXPECT_NE(request.code, 403) << request.verb << " " << request.resource;
  }
  EXPECT_GT(audited().requests().size(), 0u);
}

TEST_F(AgentApiTest, TheServerGoesAwayAndComesBack) {
  const auto pod = addPod("web");
  startAgentAndWait();
  setBounds(*pod, {.managed = true, .floor = 100_m, .ceiling = 4000_m});
  ASSERT_TRUE(eventually([&] { return allocation(*pod)->wanted.has_value(); }))
      << "it knows its bounds: " << everything(*pod);
  ASSERT_TRUE(plane->killApiserver());
  cgroups.load(pod->meta.uid, 1000_m);
  ASSERT_TRUE(eventually([&] { return lines("writing: ") > 0; })) << agent->err();
  EXPECT_FALSE(agent->ended());
  ASSERT_TRUE(plane->startApiserver());
  EXPECT_TRUE(eventually([&] { return desired(*pod) >= 900_m; })) << everything(*pod);
  EXPECT_TRUE(eventually([&] { return lines("writing: works again") > 0; })) << agent->err();
}

TEST_F(AgentApiTest, StartsBeforeTheServer) {
  const auto pod = addPod("web");
  ASSERT_TRUE(plane->killApiserver());
  startAgent();
  ASSERT_TRUE(eventually([&] { return lines("the cluster: ") > 0; })) << agent->err();
  EXPECT_FALSE(agent->ended());
  ASSERT_TRUE(plane->startApiserver());
  EXPECT_TRUE(eventually([&] { return allocation(*pod) != nullptr; })) << agent->err();
}

TEST_F(AgentApiTest, ObjectsOfOtherNodesAreNotTouched) {
  const auto elsewhere = createPod(podBody("elsewhere", "100m", "200m", R"("nodeName":"node-2",)"));
  const podallocation::Spec spec{.name_space = ns,
                                 .pod_name = "elsewhere",
                                 .node = "node-2",
                                 .desired = 700_m,
                                 .reason = "another agent's"};
  ASSERT_TRUE(admin->apply<PodAllocation>(
      ns, elsewhere->meta.uid,
      podallocation::applySpec({elsewhere->meta.name, elsewhere->meta.uid}, spec),
      {.field_manager = podallocation::kAgentManager}));
  const auto before = allocation(*elsewhere);
  const auto here = addPod("here");
  startAgentAndWait();
  ASSERT_TRUE(eventually([&] { return allocation(*here) != nullptr; }));
  EXPECT_EQ(allocation(*elsewhere)->meta.resource_version, before->meta.resource_version);

  // Nor could they be: its token is bound to its node.
  const Result<kube::ClientConfig> own = kube::loadKubeconfig({.explicit_path = agent_config});
  ASSERT_TRUE(own);
  kube::Client token(loop, *own, clock);
  const auto other = token.apply<PodAllocation>(
      ns, elsewhere->meta.uid,
      podallocation::applySpec({elsewhere->meta.name, elsewhere->meta.uid}, spec),
      {.field_manager = podallocation::kAgentManager, .force = true});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("belongs to another node"), std::string::npos)
      << other.error().describe();
  const auto lease = token.apply<kube::Lease>(
      kSystem, "mbcas-controller",
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"mbcas-controller"},
         "spec":{"holderIdentity":"me"}})",
      {.field_manager = podallocation::kAgentManager, .force = true});
  ASSERT_FALSE(lease);
  EXPECT_NE(lease.error().message.find("the Lease is not that of this agent"), std::string::npos)
      << lease.error().describe();
}

TEST_F(AgentApiTest, ADeletedAllocationComesBackAndAnEndedPodIsForgotten) {
  const auto pod = addPod("web");
  startAgentAndWait();
  ASSERT_TRUE(eventually([&] { return allocation(*pod) != nullptr; }));
  setBounds(*pod, {.managed = true, .floor = 100_m, .ceiling = 4000_m});
  ASSERT_TRUE(eventually([&] { return allocation(*pod)->wanted.has_value(); })) << everything(*pod);
  ASSERT_TRUE(admin->remove<PodAllocation>(ns, pod->meta.uid));
  mark(*pod);
  EXPECT_TRUE(eventually([&] { return allocation(*pod) != nullptr; })) << agent->err();
  ASSERT_TRUE(admin->remove<Pod>(ns, "web", {.grace_seconds = 0}));
  ASSERT_TRUE(eventually([&] { return !admin->get<Pod>(ns, "web"); }));
  // No garbage collector here: we play it.
  ASSERT_TRUE(admin->remove<PodAllocation>(ns, pod->meta.uid));
  const auto other = addPod("other");
  ASSERT_TRUE(eventually([&] { return allocation(*other) != nullptr; })) << agent->err();
  EXPECT_EQ(allocation(*pod), nullptr);
}

TEST_F(AgentApiTest, FollowsTheSettingsOfTheCluster) {
  const auto pod = addPod("web");
  startAgentAndWait();
  setBounds(*pod, {.managed = true, .floor = 100_m, .ceiling = 4000_m});
  const auto write = [&](const std::string& data) {
    const auto made = admin->apply<kube::ConfigMap>(
        kSystem, "mbcas",
        fmt::format(
            R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"mbcas"}},"data":{{{}}}}})",
            data),
        {.field_manager = "test", .force = true});
    ASSERT_TRUE(made) << made.error().describe();
  };
  write(R"("hysteresis":"many")");
  ASSERT_TRUE(eventually([&] { return lines("hysteresis") > 0; })) << agent->err();
  write(fmt::format(R"("hysteresis":"0.2","exclude-namespaces":"{}")", ns));
  ASSERT_TRUE(eventually([&] { return lines("works again") > 0; })) << agent->err();
  EXPECT_EQ(lines("not a number"), 1u) << "said once";
  cgroups.load(pod->meta.uid, 1000_m);
  const auto other = addPod("other");
  const std::size_t leases = audited().count("patch", "leases");
  ASSERT_TRUE(eventually([&] { return audited().count("patch", "leases") >= leases + 2; }));
  EXPECT_EQ(desired(*pod), 200_m) << "its namespace is excluded now";
}

TEST_F(AgentApiTest, ShowsItsState) {
  const auto pod = addPod("web");
  const std::string socket = plane->dir() + "/agent.sock";
  startAgentAndWait({"--state-socket", socket, "--metrics-bind-address", "127.0.0.1:0"});
  ASSERT_TRUE(eventually([&] { return allocation(*pod) != nullptr; }));
  const auto has_pod = [&](const std::string& text) {
    const nlohmann::json state = nlohmann::json::parse(text, nullptr, false);
    if (state.is_discarded()) return false;
    for (const nlohmann::json& each : state.at("pods")) {
      if (each.at("pod") == "web" && each.at("namespace") == ns) return true;
    }
    return false;
  };
  ASSERT_TRUE(eventually([&] {
    const Result<std::string> text = readLocalSocket(socket, 60s);
    return text && has_pod(*text);
  })) << agent->err();
  const std::string shown = "metrics and state on 127.0.0.1:";
  const std::string err = agent->err();
  ASSERT_NE(err.find(shown), std::string::npos) << err;
  const int shown_port = std::atoi(err.c_str() + err.find(shown) + shown.size());
  kube::Client http(loop, {.server = fmt::format("http://127.0.0.1:{}", shown_port)}, clock);
  const auto state = http.perform({.path = "/state"});
  ASSERT_TRUE(state) << state.error().describe();
  EXPECT_TRUE(has_pod(*state)) << *state;
  const auto exposition = http.perform({.path = "/metrics"});
  ASSERT_TRUE(exposition) << exposition.error().describe();
  EXPECT_NE(exposition->find("mbcas_agent_writes_total{result=\"written\"}"), std::string::npos);
  EXPECT_NE(exposition->find("rest_client_requests_total"), std::string::npos);
  const std::size_t before = agent->lines().size();
  agent->signal(SIGUSR1);
  ASSERT_TRUE(eventually([&] { return agent->lines().size() > before; }));
  EXPECT_TRUE(has_pod(agent->lines().back())) << agent->lines().back();
  agent->signal(SIGTERM);
  EXPECT_EQ(agent->wait(), 0) << agent->err();
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST_F(AgentApiTest, DryRunAndOnceWriteNothing) {
  const auto pod = addPod("web");
  const std::size_t before = audited().count("patch", "podallocations");
  const std::size_t leases = audited().count("patch", "leases");
  startAgent({"--once", "--sample-interval", "200ms"});
  EXPECT_EQ(agent->wait(), 0) << agent->err();
  bool found = false;
  for (const std::string& line : agent->lines()) {
    found = found || nlohmann::json::parse(line).at("pod") == "web";
  }
  EXPECT_TRUE(found) << agent->out();
  startAgentAndWait({"--dry-run", "--sample-interval", "200ms"});
  ASSERT_TRUE(eventually([&] { return !agent->lines().empty(); })) << agent->err();
  EXPECT_EQ(audited().count("patch", "podallocations"), before);
  EXPECT_EQ(audited().count("patch", "leases"), leases);
  EXPECT_EQ(allocation(*pod), nullptr);
}

TEST_F(AgentApiTest, IsBlindWithoutItsWatches) {
  FaultProxy proxy(port());
  const std::string direct =
      std::exchange(agent_config, writeAgentConfig("agent-behind-proxy", kNode, proxy.url()));
  const auto pod = addPod("web");
  startTouching(pod);
  startAgentAndWait({"--watch-bound", "6"});
  agent_config = direct;
  setBounds(*pod, {.managed = true, .floor = 100_m, .ceiling = 4000_m});
  ASSERT_TRUE(isReady()) << everythingOf(*pod);
  ASSERT_TRUE(eventually([&] { return renewed() != WallTime{}; }));

  // Its watch of pods is answered, and then nothing comes any more.
  proxy.plan([](int) {
    return Fault{.kind = Fault::Kind::kHalfOpen, .after = 200, .request = "GET /api/v1/pods?"};
  });
  proxy.cutAll();
  ASSERT_TRUE(isBlind("the watch of pods has brought nothing")) << everythingOf(*pod);
  EXPECT_EQ(probe("live"), "") << "a restart would not help";
  EXPECT_GT(lines("blind: the watch of pods"), 0u) << agent->err();
  const Millicores before = desired(*pod);
  cgroups.load(pod->meta.uid, 1000_m);
  EXPECT_TRUE(leaseStands()) << everythingOf(*pod);
  EXPECT_EQ(desired(*pod), before) << "it publishes nothing";

  // The watch gets through, and is refused.
  kubectl("delete clusterrolebinding mbcas-agent");
  proxy.plan([](int) { return Fault{}; });
  proxy.cutAll();
  EXPECT_TRUE(isBlind("403 Forbidden")) << everythingOf(*pod);
  kubectl("apply -f config/agent/rbac.yaml");
  EXPECT_TRUE(isReady()) << everythingOf(*pod);
  const WallTime last = renewed();
  EXPECT_TRUE(eventually([&] { return renewed() > last; })) << everythingOf(*pod);
  EXPECT_TRUE(eventually([&] { return desired(*pod) >= 900_m; })) << everythingOf(*pod);
  EXPECT_GT(lines("sees again"), 0u) << agent->err();
}

TEST_F(AgentApiTest, IsBlindWithoutCgroups) {
  const auto web = addPod("web");
  const auto other = addPod("other");
  startAgentAndWait({"--cgroup-bound", "5"});
  EXPECT_GT(lines("reads cgroup v2 at " + cgroups.root()), 0u) << agent->err();
  ASSERT_TRUE(isReady()) << everythingOf(*web);
  EXPECT_EQ(lines("pods are found in cgroup v2, cgroupfs driver, containerd or docker, below /"),
            1u)
      << agent->err();
  cgroups.remove(other->meta.uid);
  cgroups.readable(false);
  ASSERT_TRUE(isBlind("none of the cgroups of 2 managed pods can be read")) << everythingOf(*web);
  EXPECT_GT(lines("blind: none of the cgroups"), 0u) << agent->err();
  EXPECT_EQ(probe("live"), "");
  EXPECT_TRUE(leaseStands()) << everythingOf(*web);
  cgroups.readable(true);
  EXPECT_TRUE(isReady()) << everythingOf(*web);
  const WallTime last = renewed();
  EXPECT_TRUE(eventually([&] { return renewed() > last; })) << everythingOf(*web);
  EXPECT_GT(lines("sees again"), 0u) << agent->err();

  // One pod that cannot be read is no blindness, and is told of once.
  const std::string told =
      fmt::format("{}/other: the cgroup of the pod is not found: looked for pod{}, *-pod", ns,
                  other->meta.uid.view());
  EXPECT_TRUE(eventually([&] { return lines(told) == 1; })) << agent->err();
  EXPECT_EQ(probe("ready"), "");
}

// The probes of an agent that hangs, and of one whose API server is away.
TEST_F(AgentApiTest, LiveWhileItsLoopRuns) {
  const auto pod = addPod("web");
  startAgentAndWait();
  ASSERT_TRUE(isReady()) << everythingOf(*pod);
  agent->signal(SIGSTOP);
  EXPECT_NE(probe("live").find("does not answer in time"), std::string::npos);
  agent->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return probe("live").empty(); }));
  ASSERT_TRUE(plane->killApiserver());
  ASSERT_TRUE(eventually([&] { return lines("renewing the Lease: ") > 0; })) << agent->err();
  EXPECT_EQ(probe("live"), "");
  EXPECT_EQ(probe("ready"), "") << "it sees its pods, and the server is away";
  ASSERT_TRUE(plane->startApiserver());
  EXPECT_TRUE(eventually([&] { return lines("renewing the Lease: works again") > 0; }))
      << agent->err();
  EXPECT_EQ(probe("ready"), "");
  EXPECT_EQ(lines("blind"), 0u) << agent->err();
  agent->signal(SIGTERM);
  EXPECT_EQ(agent->wait(), 0) << agent->err();
  EXPECT_NE(probe("live").find("no process listens there"), std::string::npos);
}

TEST_F(AgentApiTest, SaysWhatIsMissing) {
  startAgent({}, "node-9");
  EXPECT_EQ(agent->wait(), 1);
  EXPECT_NE(agent->err().find("there is no node node-9"), std::string::npos) << agent->err();

  kubectl("delete clusterrolebinding mbcas-agent");
  startAgent();
  EXPECT_EQ(agent->wait(), 1);
  EXPECT_NE(agent->err().find("not permitted: list pods, list nodes, watch pods, watch nodes, "
                              "get podallocations.allocation.mbcas.io"),
            std::string::npos)
      << agent->err();
  EXPECT_NE(agent->err().find("config/agent/rbac.yaml"), std::string::npos);
  kubectl("apply -f config/agent/rbac.yaml");

  agent = std::make_unique<Process>(
      std::vector<std::string>{MBCAS_AGENT, "--node-name", kNode, "--cgroup-root", "/proc/self"},
      plane->dir(), "no-cgroups");
  EXPECT_EQ(agent->wait(), 1);
  EXPECT_NE(agent->err().find("--cgroup-root"), std::string::npos) << agent->err();
  agent = std::make_unique<Process>(std::vector<std::string>{MBCAS_AGENT}, plane->dir(), "no-node",
                                    std::map<std::string, std::string>{{"NODE_NAME", ""}});
  EXPECT_EQ(agent->wait(), 2);
  EXPECT_NE(agent->err().find("$NODE_NAME"), std::string::npos) << agent->err();
}

// The last one: it takes away what the others need.
TEST_F(AgentApiTest, ZSaysThatTheDefinitionIsNotInstalled) {
  kubectl("delete -k config/crd");
  startAgent();
  EXPECT_EQ(agent->wait(), 1);
  EXPECT_NE(agent->err().find("the PodAllocation resource is not installed"), std::string::npos)
      << agent->err();
  installed = false;
}

}  // namespace
}  // namespace mbcas::test
