#include "mbcas/cli/install_checkup.h"

#include <gtest/gtest.h>

namespace mbcas::cli {
namespace {

// A cluster on which MBCAS can be installed.
InstallFacts good() {
  InstallFacts facts;
  facts.server = "https://10.0.0.1:6443";
  facts.version = {"v1.35.4", 1, 35};
  facts.serves_resize = true;
  facts.serves_policies = true;
  facts.system_namespace = "mbcas-system";
  facts.namespace_exists = true;
  facts.pod_security = "privileged";
  facts.to_create = {{"create namespaces", "", true}, {"create daemonsets.apps", "", true}};
  facts.nodes = {{{"n1", "amd64", "linux", "v1.35.4"}, {"n2", "amd64", "linux", "v1.33.0"}}};
  facts.trials = {{"mbcas-system", "system-node-critical", true, ""},
                  {"mbcas-system", "system-cluster-critical", true, ""}};
  facts.images = {"amd64"};
  return facts;
}

// Those that are not good, as "level area".
std::vector<std::string> troubles(const InstallFacts& facts) {
  std::vector<std::string> all;
  for (const Finding& finding : diagnoseBefore(facts)) {
    if (finding.level == Finding::Level::kGood) continue;
    EXPECT_FALSE(finding.what.empty());
    all.push_back(std::string(name(finding.level)) + " " + finding.area);
  }
  return all;
}
using Troubles = std::vector<std::string>;

TEST(BeforeAnInstallation, NothingIsInTheWay) {
  EXPECT_EQ(troubles(good()), Troubles{});
  EXPECT_TRUE(healthy(diagnoseBefore(good())));
  InstallFacts fresh = good();
  fresh.namespace_exists = false;
  EXPECT_EQ(troubles(fresh), Troubles{});
}

TEST(BeforeAnInstallation, AServerThatCannotResize) {
  InstallFacts facts = good();
  facts.serves_resize = false;
  facts.serves_policies = false;
  EXPECT_EQ(troubles(facts), (Troubles{"problem server", "note server"}));
}

TEST(BeforeAnInstallation, WhoMayNotInstall) {
  InstallFacts facts = good();
  facts.to_create[0].allowed = false;
  facts.to_grant = {{"patch pods/resize", "", false}, {"list pods", "", true}};
  EXPECT_EQ(troubles(facts), (Troubles{"problem permissions", "problem permissions"}));
}

TEST(BeforeAnInstallation, APodSecurityLevelThatRefusesAgents) {
  InstallFacts facts = good();
  facts.pod_security = "restricted";
  EXPECT_EQ(troubles(facts), Troubles{"problem pod security"});
  // The cluster's own default, which no label tells: only the server's answer does.
  facts.pod_security = "";
  EXPECT_EQ(troubles(facts), Troubles{});
  facts.trials[0] = {"mbcas-system", "system-node-critical", false,
                     "403 Forbidden: violates PodSecurity \"baseline:latest\": hostPath volumes"};
  EXPECT_EQ(troubles(facts), Troubles{"problem pod security"});
}

TEST(BeforeAnInstallation, CriticalPodsNeedAQuota) {
  InstallFacts facts = good();
  for (auto& trial : facts.trials) {
    trial.admitted = false;
    trial.why = "403 Forbidden: insufficient quota to match these scopes: [{PriorityClass In ...}]";
  }
  EXPECT_EQ(troubles(facts), (Troubles{"problem critical pods", "problem critical pods"}));
  facts.trials[0].why = "403 Forbidden: user may not create pods";
  EXPECT_EQ(troubles(facts), (Troubles{"note critical pods", "problem critical pods"}));
}

TEST(BeforeAnInstallation, NodesThatCannotTakePart) {
  InstallFacts facts = good();
  facts.nodes = {{{"old", "amd64", "linux", "v1.32.9"},
                  {"arm", "arm64", "linux", "v1.35.4"},
                  {"win", "amd64", "windows", "v1.35.4"}}};
  EXPECT_EQ(troubles(facts), (Troubles{"problem nodes", "problem nodes", "note nodes"}));
  facts.images = {"amd64", "arm64"};
  EXPECT_EQ(troubles(facts), (Troubles{"problem nodes", "note nodes"}));
  facts.nodes.reset();
  facts.notes = {"nodes cannot be read: 403"};
  EXPECT_EQ(troubles(facts), Troubles{"note not checked"});
}

TEST(BeforeAnInstallation, OneThatIsThereAlready) {
  InstallFacts facts = good();
  facts.installed = true;
  EXPECT_EQ(troubles(facts), Troubles{"note installed"});
}

}  // namespace
}  // namespace mbcas::cli
