// A node whose pods exist on paper, with an agent that runs as a process under its own account: a
// fake kubelet towards a real API server, and cgroups made of files that follow what it says.
#pragma once

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "mbcas/kube/informer.h"
#include "mbcas/podallocation/marks.h"
#include "test/integration/controller_fixture.h"
#include "test/support/command.h"
#include "test/support/fake_cgroups.h"
#include "test/support/process.h"

namespace mbcas::test {

// Requests of the agents, as the API server logs them.
class AuditLog {
 public:
  AuditLog() {
    std::string pattern = std::filesystem::temp_directory_path() / "mbcas-audit-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    std::ofstream(directory_ + "/policy.yaml") << R"(apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: ["system:serviceaccount:mbcas-system:mbcas-agent"]}
- {level: None}
)";
  }
  ~AuditLog() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  std::vector<std::string> apiserverArgs() const {
    return {"--audit-policy-file=" + directory_ + "/policy.yaml",
            "--audit-log-path=" + directory_ + "/audit.log"};
  }

  struct Request {
    std::string verb;
    std::string resource;
    std::string name;
    std::string name_space;
    int code = 0;
  };
  // All so far, in order; a watch counts when it begins.
  std::vector<Request> requests() const {
    std::vector<Request> all;
    std::ifstream file(directory_ + "/audit.log");
    for (std::string line; std::getline(file, line);) {
      const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
      if (event.is_discarded()) break;  // is being written
      const std::string verb = event.at("verb");
      const bool begins = event.at("stage") == "ResponseStarted";
      if (begins != (verb == "watch")) continue;
      Request request{.verb = verb};
      if (event.contains("objectRef")) {
        const nlohmann::json& object = event["objectRef"];
        request.resource = object.value("resource", "");
        request.name = object.value("name", "");
        request.name_space = object.value("namespace", "");
      }
      if (event.contains("responseStatus")) request.code = event["responseStatus"].value("code", 0);
      all.push_back(std::move(request));
    }
    return all;
  }
  std::size_t count(const std::string& verb, const std::string& resource) const {
    std::size_t count = 0;
    for (const Request& request : requests()) {
      count += request.verb == verb && request.resource == resource ? 1 : 0;
    }
    return count;
  }

 private:
  std::string directory_;
};

class AgentTest : public ControllerTest {
 protected:
  static AuditLog& audited() {
    static AuditLog log;
    return log;
  }
  static void SetUpTestSuite() {
    if (plane == nullptr) planeOptions().apiserverArgs = audited().apiserverArgs();
    ControllerTest::SetUpTestSuite();
  }

  void SetUp() override {
    ControllerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (agent_config.empty()) {
      kubectl("apply -f config/agent/rbac.yaml");
      agent_config = writeAgentConfig("agent", kNode, plane->server());
    }
    pods = std::make_unique<kube::Informer<Pod>>(
        *admin, kube::WatchOptions{.field_selector = fmt::format("spec.nodeName={}", kNode)});
    pods->onChange([this](const kube::TypedChange<Pod>& change) { follow(change); });
    pods->start();
  }
  void TearDown() override {
    agent.reset();
    pods.reset();
    ControllerTest::TearDown();
  }
  static void TearDownTestSuite() { ControllerTest::TearDownTestSuite(); }

  // As the token that a DaemonSet's pod is given: bound to that pod, and so to its node.
  std::string writeAgentConfig(const std::string& name, const std::string& node,
                               const std::string& server) {
    const auto pod =
        admin->create<Pod>(kSystem, fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{
            "serviceAccountName":"mbcas-agent","nodeName":"{}","automountServiceAccountToken":false,
            "containers":[{{"name":"main","image":"x"}}]}}}})",
                                                name, node));
    EXPECT_TRUE(pod) << pod.error().describe();
    const auto answer = admin->perform(
        {.method = "POST",
         .path = fmt::format("/api/v1/namespaces/{}/serviceaccounts/mbcas-agent/token", kSystem),
         .body = fmt::format(
             R"({{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{{
             "boundObjectRef":{{"apiVersion":"v1","kind":"Pod","name":"{}","uid":"{}"}}}}}})",
             name, (*pod)->meta.uid.view())});
    EXPECT_TRUE(answer) << answer.error().describe();
    const std::string token = nlohmann::json::parse(*answer)["status"]["token"];
    const std::string path = fmt::format("{}/{}.kubeconfig", plane->dir(), name);
    const nlohmann::json kubeconfig = {
        {"clusters",
         {{{"name", "c"},
           {"cluster", {{"server", server}, {"certificate-authority", plane->caFile()}}}}}},
        {"users", {{{"name", "u"}, {"user", {{"token", token}}}}}},
        {"contexts", {{{"name", "x"}, {"context", {{"cluster", "c"}, {"user", "u"}}}}}},
        {"current-context", "x"}};
    std::ofstream(path) << kubeconfig.dump();
    return path;
  }

  void startAgent(const std::vector<std::string>& more = {}, const std::string& node = kNode) {
    const std::string name = fmt::format("agent-{}", ++processes);
    // The pods use no real CPU time, so what the machine's CPUs do is of no concern to them.
    std::vector<std::string> words{MBCAS_AGENT,    "--kubeconfig", agent_config,
                                   "--node-name",  node,           "--cgroup-root",
                                   cgroups.root(), "--proc-root",  cgroups.root()};
    probe_socket = fmt::format("{}/{}.probe", plane->dir(), name);
    words.insert(words.end(), {"--probe-socket", probe_socket});
    words.insert(words.end(), more.begin(), more.end());
    agent = std::make_unique<Process>(words, plane->dir(), name);
  }
  // As the kubelet asks. Empty: all is well; else what is wrong.
  std::string probe(const std::string& what) {
    const Outcome outcome =
        runCommand({MBCAS_AGENT, "--probe", what, "--probe-socket", probe_socket});
    EXPECT_EQ(outcome.exit_code == 0, outcome.out.empty()) << outcome.out << outcome.err;
    return outcome.exit_code == 0 ? "" : outcome.out;
  }
  bool atWork() { return agent->err().find("at work on node") != std::string::npos; }
  void startAgentAndWait(const std::vector<std::string>& more = {}) {
    startAgent(more);
    ASSERT_TRUE(eventually([&] { return atWork() || agent->ended(); }));
    ASSERT_TRUE(atWork()) << agent->err();
  }

  // A pod with its cgroup.
  std::shared_ptr<const Pod> addPod(const std::string& name, const std::string& request = "100m",
                                    const std::string& limit = "200m",
                                    const std::string& more_meta = "") {
    auto pod = makePod(name, request, limit, more_meta);
    const Millicores in_force = limitOf(name);  // asks the loop, where follow() may hold the lock
    const std::lock_guard lock(known_mutex);
    known.insert(pod->meta.uid.string());
    cgroups.add(pod->meta.uid, {"main"}, in_force);
    return pod;
  }
  // The kubelet's part that is not on paper: what it reports is in the cgroup.
  void follow(const kube::TypedChange<Pod>& change) {
    const std::string uid = change.latest().meta.uid.string();
    const std::lock_guard lock(known_mutex);
    if (!known.contains(uid)) return;
    if (!change.after) {
      cgroups.remove(uid);
      known.erase(uid);
      return;
    }
    const kube::ContainerStatus* const status = change.after->status("main");
    if (status != nullptr && status->limits.cpu()) cgroups.limit(uid, *status->limits.cpu());
  }

  // What the controller would say.
  void setBounds(const Pod& pod, const podallocation::Bounds& bounds) {
    ASSERT_TRUE(eventually([&] { return allocation(pod) != nullptr; })) << agent->err();
    const auto written = admin->apply<PodAllocation>(
        ns, pod.meta.uid,
        podallocation::applyStatus(allocation(pod)->meta,
                                   {.phase = Phase::kPending, .bounds = bounds}),
        {.subresource = "status", .field_manager = podallocation::kControllerManager});
    ASSERT_TRUE(written) << written.error().describe();
  }

  // As the controller tells the agent that the object of this pod has changed.
  void mark(const Pod& pod) {
    const std::string mark = fmt::format("{}:{}", ++marks, pod.meta.uid.view());
    const auto written = admin->patch<kube::Lease>(
        kSystem, fmt::format("mbcas-agent-{}", kNode), kube::PatchType::kMerge,
        nlohmann::json{
            {"metadata",
             {{"annotations", {{std::string(podallocation::kChangedAnnotation), mark}}}}}}
            .dump(),
        {});
    ASSERT_TRUE(written) << written.error().describe();
  }

  std::string everything(const Pod& pod) { return describe(pod) + agent->err() + agent->out(); }

  // What follows new bounds (a wanted limit, a reason) has been written when nothing is for 20 s.
  static bool becomesCalm() {
    return eventually(
        [] {
          const std::size_t before = audited().count("patch", "podallocations");
          std::this_thread::sleep_for(std::chrono::seconds(20));
          return audited().count("patch", "podallocations") == before;
        },
        std::chrono::seconds(600));
  }

  static inline std::string agent_config;
  static inline int processes = 0;
  int marks = 0;
  std::string probe_socket;  // of the agent that was started last
  FakeCgroups cgroups;
  std::mutex known_mutex;
  std::set<std::string> known;  // UIDs; guarded by known_mutex
  std::unique_ptr<kube::Informer<Pod>> pods;
  std::unique_ptr<Process> agent;
};

}  // namespace mbcas::test
