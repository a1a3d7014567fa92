// The commands that look at a cluster, as their users run them, on a real kube-apiserver with the
// controller at work and a fake kubelet.
#include <algorithm>

#include "mbcas/base/time.h"
#include "mbcas/controller/startup.h"
#include "test/integration/controller_fixture.h"
#include "test/support/command.h"

namespace mbcas::test {
namespace {

using namespace literals;
using nlohmann::json;

class CliTest : public ControllerTest {
 protected:
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), MBCAS_BINARY);
    words.insert(words.end(), {"--kubeconfig", plane->kubeconfig(), "--request-timeout", "60s"});
    return runCommand(std::move(words));
  }
  json runJson(std::vector<std::string> words, int exit_code = 0) const {
    words.insert(words.end(), {"-o", "json"});
    const Outcome outcome = run(std::move(words));
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err << outcome.out;
    json parsed = json::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << outcome.out << outcome.err;
    return parsed;
  }
  // As an agent or the controller renews it.
  void renew(const std::string& lease) {
    const std::string body = fmt::format(
        R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{}"}},
            "spec":{{"holderIdentity":"a test","leaseDurationSeconds":600,"renewTime":"{}"}}}})",
        lease, formatRfc3339(clock.wall(), TimePrecision::kMicros));
    const auto done = admin->apply<kube::Lease>(kSystem, lease, body, {.field_manager = "test"});
    ASSERT_TRUE(done) << done.error().describe();
  }
  static std::string findings(const json& report, const std::string& area) {
    std::string text;
    for (const json& finding : report.at("findings")) {
      if (finding.at("area") != area) continue;
      text += fmt::format("{}: {}\n", finding.at("level").get<std::string>(),
                          finding.at("what").get<std::string>());
    }
    return text;
  }
};

// On a real server, which judges the pods that are tried, and makes none of them.
TEST_F(CliTest, DoctorBeforeAnInstallation) {
  const json good = runJson({"doctor", "--pre"});
  EXPECT_EQ(findings(good, "permissions"), "ok: you may create all that the manifests contain\n");
  EXPECT_EQ(findings(good, "critical pods").substr(0, 3), "ok:") << good.dump(2);
  kubectl("label --overwrite namespace " + std::string(kSystem) +
          " pod-security.kubernetes.io/enforce=baseline");
  const json strict = runJson({"doctor", "--pre"}, 1);
  EXPECT_EQ(findings(strict, "pod security"),
            fmt::format("problem: namespace {} enforces level baseline, which refuses the agents' "
                        "hostPath\n",
                        kSystem));
  kubectl("label namespace " + std::string(kSystem) + " pod-security.kubernetes.io/enforce-");
  const json limited = runJson({"doctor", "--pre", "--as", "alice"}, 1);
  EXPECT_NE(findings(limited, "permissions").find("problem: you may not create namespaces"),
            std::string::npos)
      << limited.dump(2);
}

TEST_F(CliTest, DoctorFindsWhatIsMissingAndThenNothing) {
  makePod("web");
  json report = runJson({"doctor", "-n", ns}, 1);
  EXPECT_FALSE(report.at("healthy").get<bool>());
  EXPECT_EQ(findings(report, "definition"), "ok: PodAllocation v1alpha1\n");
  EXPECT_NE(findings(report, "server").find("ok: " + plane->server()), std::string::npos);
  EXPECT_EQ(findings(report, "controller"), "problem: no controller leads\n");
  EXPECT_EQ(findings(report, "agents"),
            fmt::format("problem: no agent has reported from {}\n", kNode));

  renew("mbcas-controller");
  renew(fmt::format("mbcas-agent-{}", kNode));
  kubectl("apply -f config/agent/rbac.yaml");
  report = runJson({"doctor", "-n", ns});
  EXPECT_TRUE(report.at("healthy").get<bool>()) << report.dump(1);
  EXPECT_EQ(findings(report, "agents"), "ok: alive on 1 node\n");
  EXPECT_EQ(findings(report, "controller"), "ok: a test leads\n");
  EXPECT_EQ(findings(report, "permissions"),
            "ok: you may do what the commands need\n"
            "ok: the controller's account may do what is needed\n"
            "ok: the agents' account may do what is needed\n");
  EXPECT_NE(findings(report, "pods").find(ns + "/web"), std::string::npos) << "not yet managed";
  // Every cluster has the system's classes, and this one no quota.
  EXPECT_NE(findings(report, "priorities").find("system-node-critical (4 times)"),
            std::string::npos)
      << findings(report, "priorities");
}

// What this version installs, as a server that has filled in the rest tells it, is as it should be.
TEST_F(CliTest, DoctorComparesPoliciesWithItsOwn) {
  const auto policies = [&] {  // whatever else is wrong with this cluster
    const Outcome outcome = run({"doctor", "-n", ns, "-o", "json"});
    const json report = json::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(report.is_discarded()) << outcome.out << outcome.err;
    return report.is_discarded() ? "" : findings(report, "policies");
  };
  EXPECT_TRUE(policies().starts_with("ok: ")) << policies();
  kubectl("delete validatingadmissionpolicy mbcas-agent-lease");
  kubectl("delete validatingadmissionpolicybinding mbcas-original-resources");
  kubectl(R"(patch validatingadmissionpolicybinding mbcas-agent-writes --type=merge )"
          R"(-p '{"spec":{"validationActions":["Warn"]}}')");
  kubectl(R"(patch validatingadmissionpolicy mbcas-controller-writes --type=json )"
          R"(-p '[{"op":"remove","path":"/spec/validations/2"}]')");
  const std::string found = policies();
  kubectl("apply -k config/policy");
  for (const char* const part :
       {"mbcas-agent-lease is missing", "mbcas-original-resources has no binding",
        "mbcas-agent-writes is not as this version has it (validationActions)",
        "mbcas-controller-writes is not as this version has it (validations)"}) {
    EXPECT_NE(found.find(part), std::string::npos) << part << "\n" << found;
  }
  EXPECT_EQ(std::ranges::count(found, '\n'), 4) << found;
  EXPECT_TRUE(policies().starts_with("ok: ")) << policies();
}

TEST_F(CliTest, PodsExplainAndTopTellTheSame) {
  startEngine();
  const auto web = makePod("web");
  const auto alone =
      makePod("alone", "100m", "200m", R"(,"annotations":{"mbcas.io/managed":"false"})");
  desire(*web, 500_m, 600_m);
  desire(*alone, 500_m);
  expectApplied(*web, 500_m);
  ASSERT_TRUE(eventually([&] {
    const auto now = allocation(*alone);
    return now && now->bounds() != nullptr;
  }));

  const json pods = runJson({"pods", "list", "-n", ns}).at("pods");
  ASSERT_EQ(pods.size(), 2u);
  EXPECT_EQ(pods[0].at("managed"), "no");
  EXPECT_EQ(pods[0].at("why"), "opted out: mbcas.io/managed=false on the pod");
  EXPECT_EQ(pods[1].at("managed"), "yes");
  EXPECT_EQ(pods[1].at("limit"), 500);
  EXPECT_EQ(pods[1].at("declared"), 200);

  const json top = runJson({"top", "-n", ns, "--sort", "pod"});
  ASSERT_EQ(top.at("pods").size(), 2u);
  const json& row = top.at("pods")[1];
  EXPECT_EQ(row.at("pod"), "web");
  EXPECT_EQ(row.at("phase"), "Applied");
  EXPECT_EQ(row.at("applied"), 500);
  EXPECT_EQ(row.at("need"), 600);
  EXPECT_TRUE(row.at("throttledMillisecondsPerSecond").is_null());
  EXPECT_EQ(top.at("notes")[0], "no agent runs: mbcas doctor tells more");

  const Outcome explained = run({"explain", ns + "/web"});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  for (const char* part : {": limit 500m, declared 200m", "What is allowed (by the controller)",
                           "the pod would become Guaranteed", "500m  a test wants it", "Applied",
                           "No agent runs on node-1"}) {
    EXPECT_NE(explained.out.find(part), std::string::npos) << part << "\n" << explained.out;
  }
  const Outcome left = run({"explain", "-n", ns, "alone"});
  EXPECT_NE(left.out.find("is left alone: opted out"), std::string::npos) << left.out;
  EXPECT_NE(left.out.find("to have it managed: remove mbcas.io/managed from the pod"),
            std::string::npos);
  EXPECT_EQ(
      run({"explain", ns + "/nobody"}).err,
      fmt::format("mbcas explain: no pod nobody in namespace {0}; mbcas pods list -n {0} lists "
                  "its pods\n",
                  ns));

  // The node is only on paper: nobody answers for its kubelet.
  const Outcome usage = run({"pods", "usage", "-n", ns});
  EXPECT_EQ(usage.exit_code, 1);
  EXPECT_TRUE(usage.err.starts_with(fmt::format("mbcas pods: node {}: ", kNode))) << usage.err;
}

TEST_F(CliTest, AModeHoldsAtOnce) {
  startEngine();
  const auto web = makePod("web");
  desire(*web, 500_m, 600_m);
  expectApplied(*web, 500_m);
  const Outcome looks = run({"mode", "recommend", "-n", ns});
  EXPECT_EQ(looks.exit_code, 0) << looks.err;
  // The pod has what it declared, and its allocation says what it would get.
  const auto phaseIs = [&](podallocation::Phase phase) {
    const auto now = allocation(*web);
    return now && now->phase == phase;
  };
  EXPECT_TRUE(eventually([&] { return phaseIs(podallocation::Phase::kRecommended); }));
  const json shown = runJson({"mode"});
  EXPECT_EQ(shown.at("cluster"), "full");
  EXPECT_EQ(shown.at("namespaces").at(ns), "recommend");
  EXPECT_EQ(run({"mode", "--reset", "-n", ns}).exit_code, 0);
  expectApplied(*web, 500_m);
  // The same for the cluster.
  EXPECT_EQ(run({"mode", "recommend"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return phaseIs(podallocation::Phase::kRecommended); }));
  EXPECT_EQ(runJson({"mode"}).at("cluster"), "recommend");
  EXPECT_EQ(run({"mode", "--reset"}).exit_code, 0);
  expectApplied(*web, 500_m);
  EXPECT_TRUE(runJson({"mode"}).at("namespaces").empty());
}

// Kubernetes 1.33 is the newest whose feature gate can be turned off everywhere; later servers can
// behave like it.
TEST(ServerWithoutResize, TheStartAndDoctorSayWhatIsMissing) {
  if (const auto reason = ControlPlane::skipReason()) GTEST_SKIP() << *reason;
  const auto plane =
      ControlPlane::start({.apiserverArgs = {"--emulated-version=1.33",
                                             "--feature-gates=InPlacePodVerticalScaling=false"}});
  ASSERT_TRUE(plane) << plane.error();
  const auto config = kube::loadKubeconfig({.explicit_path = (*plane)->kubeconfig()});
  ASSERT_TRUE(config) << config.error().message();
  SystemClock clock;
  kube::HttpLoop loop;
  kube::Client client(loop, *config, clock);
  const Result<void> started = controller::checkCluster(client, "mbcas-system", false);
  ASSERT_FALSE(started);
  const std::string said = started.error().message();
  EXPECT_NE(said.find("does not serve pods/resize"), std::string::npos) << said;
  EXPECT_NE(said.find("needs Kubernetes 1.33"), std::string::npos) << said;
  EXPECT_NE(said.find("that gate may have been turned off"), std::string::npos) << said;
  const Outcome doctor =
      runCommand({MBCAS_BINARY, "doctor", "--kubeconfig", (*plane)->kubeconfig()});
  EXPECT_EQ(doctor.exit_code, 1) << doctor.err;
  EXPECT_NE(doctor.out.find("does not serve pods/resize"), std::string::npos) << doctor.out;
}

}  // namespace
}  // namespace mbcas::test
