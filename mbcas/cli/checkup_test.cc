#include <gtest/gtest.h>

#include "mbcas/base/time.h"
#include "mbcas/cli/cluster_checkup.h"
#include "mbcas/cli/host_checkup.h"
#include "mbcas/kernel/fake_tree.h"
#include "mbcas/policy/fixture_test.h"
#include "test/support/golden.h"

namespace mbcas::cli {
namespace {

using policy::object, policy::P;

std::shared_ptr<const kube::Lease> lease(const std::string& name, const std::string& holder,
                                         const std::string& renewed) {
  return object<kube::Lease>(fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"holderIdentity":"{}","leaseDurationSeconds":15,
          "renewTime":"{}"}}}})",
      name, holder, renewed));
}

NodePtr node(const std::string& name, const std::string& kubelet) {
  return object<kube::Node>(fmt::format(
      R"({{"metadata":{{"name":"{}"}},"status":{{"allocatable":{{"cpu":"4"}},
          "nodeInfo":{{"kubeletVersion":"{}","operatingSystem":"linux"}}}}}})",
      name, kubelet));
}

Definition definition() {
  Definition all{.established = true, .served = {"v1alpha1"}};
  for (const char* field : {"spec.namespace",
                            "spec.podName",
                            "spec.nodeName",
                            "spec.desiredCPULimit",
                            "spec.containers",
                            "spec.wantedCPULimit",
                            "spec.reason",
                            "status.phase",
                            "status.observedGeneration",
                            "status.observedDesired",
                            "status.appliedCPULimit",
                            "status.reason",
                            "status.original",
                            "status.lastAppliedTime",
                            "status.lastAttemptTime",
                            "status.bounds.managed",
                            "status.bounds.floor",
                            "status.bounds.ceiling",
                            "status.bounds.start",
                            "status.bounds.weight",
                            "status.bounds.reason",
                            "status.conditions"}) {
    all.fields.emplace_back(field);
  }
  return all;
}

// Everything is as it should be.
ClusterFacts good() {
  ClusterFacts facts;
  facts.server = "https://10.0.0.1:6443";
  facts.version = {"v1.35.4", 1, 35};
  facts.serves_resize = true;
  facts.definition = definition();
  facts.admission = installedAdmission("mbcas-system");
  facts.priority_classes = {{"low", -10}, {"usual", 1000}};
  facts.mine = {{"list pods", "every command", true}};
  facts.controllers = {{"list pods", "", true}};
  facts.agents = {{"list pods", "", true}};
  facts.system_namespace = "mbcas-system";
  facts.now = *parseRfc3339("2026-02-01T10:05:00Z");
  facts.leases = {lease("mbcas-controller", "mbcas-controller-5d9c_1", "2026-02-01T10:04:58Z"),
                  lease("mbcas-agent-n1", "mbcas-agent", "2026-02-01T10:04:51Z")};
  facts.snapshot.nodes["n1"] = node("n1", "v1.35.4");
  facts.snapshot.namespaces["shop"] = policy::shop();
  facts.snapshot.pods = {P{}.make()};
  facts.snapshot.allocations["u1"] = object<podallocation::PodAllocation>(
      R"({"metadata":{"namespace":"shop","name":"u1"},"spec":{"podName":"web-1",
          "desiredCPULimit":"1"},"status":{"phase":"Applied","bounds":{"managed":true}}})");
  return facts;
}

void expectText(const std::string& golden, const ClusterFacts& facts) {
  test::expectGolden("test/golden/cli/" + golden, findingsText(diagnose(facts), false));
}

TEST(ClusterCheckup, Healthy) {
  const Findings findings = diagnose(good());
  EXPECT_TRUE(healthy(findings));
  expectText("doctor-healthy.txt", good());
  test::expectGolden("test/golden/cli/doctor-healthy.json", findingsJson(findings) + "\n");
}

TEST(ClusterCheckup, NothingInstalled) {
  ClusterFacts facts = good();
  facts.version = {"v1.31.0", 1, 31};
  facts.serves_resize = false;
  facts.definition.reset();
  facts.admission = AdmissionObjects{};
  facts.leases.clear();
  facts.snapshot.allocations.clear();
  facts.snapshot.nodes["n1"] = node("n1", "v1.31.0");
  EXPECT_FALSE(healthy(diagnose(facts)));
  expectText("doctor-nothing.txt", facts);
}

TEST(ClusterCheckup, EverythingWrong) {
  ClusterFacts facts = good();
  facts.definition->fields.erase(facts.definition->fields.begin() + 5,
                                 facts.definition->fields.begin() + 7);
  facts.admission->policies.pop_back();
  facts.admission->bindings.erase(facts.admission->bindings.begin());
  facts.admission->policies[1].fields["failurePolicy"] = {"Ignore"};
  facts.priority_classes.push_back({"gold", 3000});
  facts.priority_classes.push_back({"system-node-critical", 2'000'001'000});
  facts.mine.push_back({"patch pods/resize", "mbcas resize, restore", false});
  facts.controllers->push_back({"patch pods/resize", "", false});
  facts.agents.reset();
  facts.notes = {"what account mbcas-agent may do cannot be read: 403 Forbidden"};
  facts.settings = {{"mode", "recommend"}, {"hysterese", "0.2"}};
  facts.leases = {lease("mbcas-controller", "mbcas-controller-5d9c_1", "2026-02-01T09:00:00Z"),
                  lease("mbcas-agent-n1", "mbcas-agent", "2026-02-01T10:01:00Z")};
  facts.snapshot.nodes["n2"] = node("n2", "v1.32.9");
  facts.snapshot.namespaces["shop"] = policy::shop(R"("labels":{"mbcas.io/mode":"fulll"},)");
  facts.snapshot.namespaces["shop"].vpas = {object<kube::VerticalPodAutoscaler>(
      R"({"metadata":{"name":"web","namespace":"shop"},"spec":{"targetRef":{"kind":"Deployment",
          "name":"web"}}})")};
  facts.system_pods = {object<kube::Pod>(
      R"({"metadata":{"name":"mbcas-agent-x7k2p","creationTimestamp":"2026-02-01T09:00:00Z",
          "labels":{"app.kubernetes.io/component":"agent"}},
          "spec":{"nodeName":"n1"},"status":{"phase":"Running"}})")};
  facts.snapshot.allocations["u1"] = object<podallocation::PodAllocation>(
      R"({"metadata":{"namespace":"shop","name":"u1"},"spec":{"podName":"web-1",
          "desiredCPULimit":"1"},"status":{"phase":"Failed","reason":"Infeasible: too much",
          "bounds":{"managed":true}}})");
  facts.snapshot.pods.push_back(object<kube::Pod>(
      R"({"metadata":{"name":"b-1","namespace":"shop","uid":"u2"},"spec":{"nodeName":"n1",
          "containers":[{"name":"main"}]},"status":{"phase":"Running","qosClass":"BestEffort"}})"));
  expectText("doctor-wrong.txt", facts);
}

std::string said(const ClusterFacts& facts, std::string_view area) {
  std::string text;
  for (const Finding& finding : diagnose(facts)) {
    if (finding.area == area) text += fmt::format("{}: {}\n", name(finding.level), finding.what);
  }
  return text;
}

TEST(ClusterCheckup, AWatchThatIsStuck) {
  ClusterFacts facts = good();
  const auto see = [&](const std::string& uid, const std::string& age, const std::string& status) {
    facts.snapshot.pods.push_back(object<kube::Pod>(fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"shop","uid":"{0}","creationTimestamp":"{1}"}},
            "spec":{{"nodeName":"n1"}},"status":{{"phase":"Running"}}}})",
        uid, age)));
    facts.snapshot.allocations[uid] = object<podallocation::PodAllocation>(fmt::format(
        R"({{"metadata":{{"namespace":"shop","name":"{0}","creationTimestamp":"{1}"}},
            "spec":{{"podName":"{0}","desiredCPULimit":"1"}},"status":{2}}})",
        uid, age, status));
  };
  const std::string denied = R"({"phase":"Failed","reason":"there is no pod x"})";
  see("new-1", "2026-02-01T10:04:30Z", "{}");
  see("new-2", "2026-02-01T10:04:30Z", denied);
  EXPECT_EQ(said(facts, "controller"), "ok: mbcas-controller-5d9c_1 leads\n");
  see("old-1", "2026-02-01T10:01:00Z", "{}");
  see("old-2", "2026-02-01T10:01:00Z", denied);
  EXPECT_EQ(said(facts, "controller"),
            "ok: mbcas-controller-5d9c_1 leads\n"
            "problem: it has not reconciled allocations for more than 60s: its watch of "
            "podallocations may be stuck (shop/old-1)\n"
            "problem: it does not know existing pods: its watch of pods may be stuck, or they "
            "cannot be read (shop/old-2)\n");
}

TEST(ClusterCheckup, ObjectsThatCannotBeRead) {
  ClusterFacts facts = good();
  facts.snapshot.passed_over = {{"Pod shop/odd-1", "spec.containers[0]: too much"}};
  EXPECT_FALSE(healthy(diagnose(facts)));
  EXPECT_EQ(said(facts, "unreadable"),
            "problem: Pod shop/odd-1 is passed over, as if it did not exist: spec.containers[0]: "
            "too much\n");
  facts.snapshot.passed_over.resize(200, facts.snapshot.passed_over.front());
  EXPECT_NE(said(facts, "unreadable").find("190 objects more are passed over"), std::string::npos);
}

TEST(ClusterCheckup, PrioritiesThatNoQuotaRestricts) {
  ClusterFacts facts = good();
  facts.priority_classes = {{"usual", 1000}, {"gold", 3000}, {"platinum", 9000}};
  const auto quota = [](const std::string& op, const std::string& values) {
    return object<kube::ResourceQuota>(fmt::format(
        R"({{"metadata":{{"name":"q","namespace":"shop"}},"spec":{{"hard":{{"pods":"0"}},
            "scopeSelector":{{"matchExpressions":[{{"scopeName":"PriorityClass","operator":"{}",
            "values":[{}]}}]}}}}}})",
        op, values));
  };
  auto& quotas = facts.snapshot.namespaces["shop"].quotas;
  quotas = {};
  EXPECT_NE(said(facts, "priorities")
                .find("every pod of shop may name a PriorityClass that gives it "
                      "more weight: gold (2 times), platinum (4 times)."),
            std::string::npos)
      << said(facts, "priorities");
  quotas = {quota("In", R"("gold")")};
  EXPECT_EQ(said(facts, "priorities").find("gold"), std::string::npos);
  EXPECT_NE(said(facts, "priorities").find("platinum"), std::string::npos);
  for (const auto& restricting :
       {quota("In", R"("gold","platinum")"), quota("Exists", ""), quota("NotIn", R"("usual")")}) {
    quotas = {restricting};
    EXPECT_EQ(said(facts, "priorities"), "");
  }
  quotas = {quota("NotIn", R"("gold","platinum")")};
  EXPECT_NE(said(facts, "priorities"), "");
}

TEST(ClusterCheckup, ReadsADefinition) {
  const Result<Definition> definition = parseDefinition(
      R"({"spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"spec":{"properties":{
          "reason":{"type":"string"}}},"status":{"properties":{"bounds":{"properties":{
          "floor":{}}}}}}}},"name":"v1alpha1","served":true},{"name":"v1","served":false}]},
          "status":{"conditions":[{"status":"True","type":"Established"}]}})");
  ASSERT_TRUE(definition) << definition.error().message();
  EXPECT_TRUE(definition->established);
  EXPECT_EQ(definition->served, std::vector<std::string>{"v1alpha1"});
  EXPECT_EQ(definition->fields, (std::vector<std::string>{"spec", "spec.reason", "status",
                                                          "status.bounds", "status.bounds.floor"}));
  EXPECT_FALSE(parseDefinition("{"));
}

TEST(Findings, AreWrapped) {
  const Findings findings = {{Finding::Level::kProblem, "agents",
                              "something that takes more words than fit into the width",
                              "do this"}};
  EXPECT_EQ(findingsText(findings, false, 50),
            "agents  problem  something that takes more words\n"
            "                 than fit into the width\n"
            "                 -> do this\n"
            "\n"
            "1 problem\n");
  const std::vector<std::string> names = {"a", "b", "c", "d", "e"};
  EXPECT_EQ(namesText(names), "a, b, c and 2 more");
  EXPECT_EQ(namesText(std::span(names).first(4)), "a, b, c, d");
}

// A cgroup tree and a /proc of ordinary files.
struct Machine {
  kernel::FakeTree files;
  std::string cgroups = files.root() + "/cgroup";
  std::string proc = files.root() + "/proc";
  std::string state = files.root() + "/state";

  std::string text() const {
    HostFacts facts = examineHost(cgroups, proc, state);
    facts.root = true;  // whoever runs the test
    std::string text = findingsText(diagnose(facts), false);
    for (std::size_t at = text.find(files.root()); at != std::string::npos;
         at = text.find(files.root(), at)) {
      text.replace(at, files.root().size(), "ROOT");
    }
    return text;
  }
};

TEST(HostCheckup, CgroupV2) {
  Machine machine;
  machine.files.write("proc/sys/kernel/osrelease", "6.12.1-amd64\n");
  machine.files.write("proc/pressure/cpu", "some\n");
  machine.files.write("cgroup/cgroup.controllers", "cpu pids\n");
  machine.files.write("cgroup/system.slice/cpu.max", "max 100000\n");
  machine.files.write("cgroup/system.slice/cpu.stat.local", "throttled_usec 0\n");
  machine.files.write("cgroup/system.slice/cpu.pressure", "some\n");
  test::expectGolden("test/golden/cli/doctor-host-v2.txt", machine.text());
}

TEST(HostCheckup, AnOldMachineOnWhichARunWasKilled) {
  Machine machine;
  machine.files.write("proc/sys/kernel/osrelease", "5.10.0\n");
  machine.files.write("cgroup/cpu/cpu.shares", "1024\n");
  machine.files.write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  machine.files.write("cgroup/cpuacct/cpuacct.usage", "1\n");
  machine.files.write("state", "limit 7 50000 100000 /web\nmade /mbcas-1\n");
  test::expectGolden("test/golden/cli/doctor-host-v1.txt", machine.text());
}

TEST(HostCheckup, NoCgroups) {
  Machine machine;
  machine.files.write("proc/sys/kernel/osrelease", "6.1.0\n");
  test::expectGolden("test/golden/cli/doctor-host-none.txt", machine.text());
}

}  // namespace
}  // namespace mbcas::cli
