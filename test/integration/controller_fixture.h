// A cluster with everything that the controller needs installed, a node with a fake kubelet, and
// the hand that writes what agents would.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "mbcas/controller/engine.h"
#include "mbcas/kube/metrics.h"
#include "mbcas/podallocation/original_resources.h"
#include "mbcas/podallocation/pod_allocation.h"
#include "test/integration/kube_fixture.h"
#include "test/support/fake_kubelet.h"

namespace mbcas::test {

using kube::Pod;
using podallocation::Phase;
using podallocation::PodAllocation;

class ControllerTest : public KubeTest {
 protected:
  static constexpr const char* kSystem = "mbcas-system";
  static constexpr const char* kNode = "node-1";

  void SetUp() override {
    KubeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!std::exchange(installed, true)) install();
    kubelet = std::make_unique<FakeKubelet>(*admin, FakeKubelet::Options{.node = kNode});
  }
  void TearDown() override {
    engine.reset();
    // Engines see the whole cluster: what a test leaves must not be worked on in the next.
    if (admin && !ns.empty()) {
      removeAll<PodAllocation>();
      removeAll<Pod>();
      for (const char* settings : {"mbcas"}) {
        (void)admin->remove<kube::ConfigMap>(kSystem, settings);
      }
    }
    kubelet.reset();
  }

  template <class T>
  void removeAll() {
    const auto all = admin->list<T>({.name_space = ns});
    if (!all) return;  // a test may have removed the definition
    for (const auto& object : all->items) {
      (void)admin->remove<T>(ns, object->meta.name, {.grace_seconds = 0});
    }
  }

  static void kubectl(const std::string& arguments) {
    const std::string command = fmt::format("{} --kubeconfig {} {} >/dev/null 2>&1",
                                            plane->kubectl(), plane->kubeconfig(), arguments);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(concurrency-mt-unsafe)
  }
  static std::string kubectlOutput(const std::string& arguments) {
    const std::string command =
        fmt::format("{} --kubeconfig {} {} 2>&1", plane->kubectl(), plane->kubeconfig(), arguments);
    std::string out;
    std::FILE* const pipe = ::popen(command.c_str(), "re");
    if (pipe == nullptr) return out;
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
      out.append(buffer, n);
    }
    ::pclose(pipe);
    return out;
  }

  void install() {
    kubectl("create namespace mbcas-system");
    kubectl("apply -k config/crd");
    awaitServed<PodAllocation>();
    kubectl("apply -k config/policy");
    kubectl("apply -k config/rbac");
    makeNode(kNode, "8");
  }
  void makeNode(const std::string& name, const std::string& cpu) {
    const auto made =
        admin->create<kube::Node>("", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name));
    ASSERT_TRUE(made) << made.error().describe();
    const auto ready = admin->patch<kube::Node>(
        "", name, kube::PatchType::kStrategic,
        fmt::format(R"({{"status":{{"capacity":{{"cpu":"{0}","memory":"10Ti"}},
        "allocatable":{{"cpu":"{0}","memory":"10Ti"}},
        "conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                    cpu),
        {.subresource = "status"});
    ASSERT_TRUE(ready) << ready.error().describe();
  }

  // The controller's own account, with the rights of config/rbac and under the policies.
  kube::ClientConfig controllerConfig() const {
    kube::ClientConfig other = config;
    if (!engine_server.empty()) other.server = engine_server;
    other.impersonate.user = "system:serviceaccount:mbcas-system:mbcas-controller";
    other.impersonate.groups = {"system:authenticated", "system:serviceaccounts"};
    return other;
  }

  void startEngine(policy::SettingsData settings = {}, bool dry_run = false) {
    settings.try_emplace("cooldown", "0s");
    settings.try_emplace("silence", "1h");
    metrics = std::make_unique<kube::Metrics>();
    controller_client = std::make_unique<kube::Client>(
        loop, controllerConfig(), clock, kube::ClientOptions{.metrics = metrics.get()});
    engine = std::make_unique<controller::Engine>(
        *controller_client,
        controller::EngineOptions{.overrides = std::move(settings),
                                  .initial = initial_settings,
                                  .dry_run = dry_run,
                                  .stuck_after = stuck_after,
                                  .behind_after = behind_after,
                                  .audit =
                                      [this](const std::string& line) {
                                        const std::lock_guard lock(audit_mutex);
                                        audit.push_back(nlohmann::json::parse(line));
                                      },
                                  .log =
                                      [this](const std::string& line) {
                                        const std::lock_guard lock(audit_mutex);
                                        log += line + "\n";
                                      },
                                  .after =
                                      [this](controller::Step step) {
                                        if (after_step) after_step(step);
                                      }});
    engine->start();
    ASSERT_TRUE(engine->waitForSync(std::chrono::minutes(2)));
    const Result<void> leads = engine->lead();
    ASSERT_TRUE(leads) << leads.error().message();
  }
  void stopEngine() {
    engine.reset();
    controller_client.reset();
  }

  std::shared_ptr<const Pod> makePod(const std::string& name, const std::string& request = "100m",
                                     const std::string& limit = "200m",
                                     const std::string& more_meta = "") {
    auto pod = createPod(
        podBody(name, request, limit, fmt::format(R"("nodeName":"{}",)", kNode), more_meta));
    EXPECT_TRUE(eventually([&] { return get(name)->phase == kube::PodPhase::kRunning; }))
        << kubelet->trouble();
    return pod;
  }
  std::shared_ptr<const Pod> get(const std::string& name) {
    const auto pod = admin->get<Pod>(ns, name);
    EXPECT_TRUE(pod) << pod.error().describe();
    return pod ? *pod : nullptr;
  }
  std::shared_ptr<const PodAllocation> allocation(const Pod& pod) {
    const auto found = admin->get<PodAllocation>(ns, pod.meta.uid);
    return found ? *found : nullptr;
  }

  // What an agent would write.
  void desire(const Pod& pod, Millicores desired, std::optional<Millicores> wanted = std::nullopt,
              std::vector<podallocation::ContainerLimit> containers = {}) {
    const podallocation::Spec spec{.name_space = ns,
                                   .pod_name = pod.meta.name.string(),
                                   .node = pod.node.string(),
                                   .desired = desired,
                                   .containers = std::move(containers),
                                   .wanted = wanted,
                                   .reason = "a test wants it"};
    const auto written = admin->apply<PodAllocation>(
        ns, pod.meta.uid, podallocation::applySpec({pod.meta.name, pod.meta.uid}, spec),
        {.field_manager = podallocation::kAgentManager});
    ASSERT_TRUE(written) << written.error().describe();
  }

  bool appliedIs(const Pod& pod, Millicores cpu) {
    const auto now = allocation(pod);
    // Applied only if it is what was desired.
    return now && now->phase == (now->desired == cpu ? Phase::kApplied : Phase::kClamped) &&
           now->applied == cpu && now->observed_desired == cpu &&
           now->observed_generation == now->meta.generation;
  }
  // Eventually the allocation says so and the pod has it.
  void expectApplied(const Pod& pod, Millicores cpu) {
    EXPECT_TRUE(eventually([&] { return appliedIs(pod, cpu); }))
        << "wanted " << cpu.count() << "m\n"
        << describe(pod);
    EXPECT_EQ(limitOf(pod.meta.name.string()), cpu);
  }
  Millicores limitOf(const std::string& pod, const std::string& container = "main") {
    const auto now = get(pod);
    const kube::ContainerStatus* const status = now->status(container);
    return status == nullptr ? Millicores(-1) : status->limits.cpu().value_or(Millicores(-1));
  }
  std::string describe(const Pod& pod) {
    std::string out =
        kubectlOutput(fmt::format("-n {} get podallocation {} -o yaml", ns, pod.meta.uid.view()));
    const std::lock_guard lock(audit_mutex);
    for (const nlohmann::json& line : audit) out += line.dump() + "\n";
    return out + log;
  }
  std::string annotation(const std::string& pod) {
    const auto now = get(pod);
    return std::string(
        kube::find(now->meta.annotations, podallocation::kOriginalResources).value_or(""));
  }
  // The copy of the original follows the resize.
  void expectAnnotation(const std::string& pod, const std::string& original) {
    EXPECT_TRUE(eventually([&] { return annotation(pod) == original; })) << annotation(pod);
  }
  void annotate(const std::string& pod, const std::string& key, const std::string& value) {
    const auto done =
        admin->patch<Pod>(ns, pod, kube::PatchType::kMerge,
                          fmt::format(R"({{"metadata":{{"annotations":{{"{}":{}}}}}}})", key,
                                      value.empty() ? "null" : "\"" + value + "\""));
    ASSERT_TRUE(done) << done.error().describe();
  }
  std::vector<std::string> eventsOf(const Pod& pod) {
    std::vector<std::string> reasons;
    const auto events = admin->list<kube::Event>({.name_space = ns});
    if (!events) return reasons;
    for (const auto& event : events->items) {
      if (event->involved_uid == pod.meta.uid) reasons.push_back(event->reason.string());
    }
    return reasons;
  }
  bool hasEvent(const Pod& pod, const std::string& reason) {
    const std::vector<std::string> reasons = eventsOf(pod);
    return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
  }
  bool logged(const std::string& text) {
    const std::lock_guard lock(audit_mutex);
    return log.find(text) != std::string::npos;
  }
  // The value of a metric of the engine without labels, or the sum over its labels.
  double metric(const std::string& name) const {
    std::istringstream text(metrics->text());
    double sum = 0;
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with(name) || line.size() == name.size()) continue;
      if (line[name.size()] != ' ' && line[name.size()] != '{') continue;
      sum += std::stod(line.substr(line.rfind(' ') + 1));
    }
    return sum;
  }
  // Limits that were sent for the pod, in order.
  std::vector<std::string> sent(const std::string& pod) {
    std::vector<std::string> limits;
    const std::lock_guard lock(audit_mutex);
    for (const nlohmann::json& line : audit) {
      if (line.at("pod") == pod && line.at("namespace") == ns) limits.push_back(line.at("to"));
    }
    return limits;
  }
  int refusals() {
    int count = 0;
    const std::lock_guard lock(audit_mutex);
    for (const nlohmann::json& line : audit) count += line.at("verdict") != "Accepted" ? 1 : 0;
    return count;
  }

  static inline bool installed = false;
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<kube::Metrics> metrics;
  std::unique_ptr<kube::Client> controller_client;
  std::unique_ptr<controller::Engine> engine;
  std::string engine_server;  // instead of the API server, to be set before startEngine()
  policy::SettingsData initial_settings;
  Nanos stuck_after = controller::EngineOptions{}.stuck_after;
  Nanos behind_after = controller::EngineOptions{}.behind_after;
  std::function<void(controller::Step)> after_step;
  std::mutex audit_mutex;
  std::vector<nlohmann::json> audit;
  std::string log;
};

}  // namespace mbcas::test
