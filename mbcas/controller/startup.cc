#include "mbcas/controller/startup.h"

#include <fmt/format.h>

#include "mbcas/controller/cluster.h"

namespace mbcas::controller {

std::string describe(const kube::AccessQuestion& question) {
  std::string resource = question.resource;
  if (!question.subresource.empty()) resource += "/" + question.subresource;
  if (!question.group.empty()) resource += "." + question.group;
  if (!question.name.empty()) resource += " " + question.name;
  return question.name_space.empty()
             ? fmt::format("{} {}", question.verb, resource)
             : fmt::format("{} {} in {}", question.verb, resource, question.name_space);
}

// What config/rbac/role.yaml grants; without dry run all of it, but for VPAs, which need not be
// there.
std::vector<kube::AccessQuestion> neededAccess(const std::string& name_space, bool dry_run) {
  std::vector<kube::AccessQuestion> questions;
  const auto reads = [&](const std::string& group, const std::string& resource) {
    for (const char* verb : {"list", "watch"}) questions.push_back({verb, group, resource, "", ""});
  };
  reads("", "pods");
  reads("allocation.mbcas.io", "podallocations");
  reads("", "nodes");
  reads("", "namespaces");
  reads("", "limitranges");
  reads("", "resourcequotas");
  reads("autoscaling", "horizontalpodautoscalers");
  reads("policy", "poddisruptionbudgets");
  questions.push_back({"patch", "allocation.mbcas.io", "podallocations", "status", ""});
  questions.push_back({"delete", "allocation.mbcas.io", "podallocations", "", ""});
  for (const char* verb : {"create", "patch"}) questions.push_back({verb, "", "events", "", ""});
  for (const char* verb : {"get", "list", "watch", "create", "patch"}) {
    questions.push_back({verb, "coordination.k8s.io", "leases", "", name_space});
  }
  questions.push_back({"update", "coordination.k8s.io", "leases", "", name_space, kLeaderLease});
  questions.push_back({"create", "", "configmaps", "", name_space});
  for (const char* verb : {"list", "watch", "patch"}) {
    questions.push_back({verb, "", "configmaps", "", name_space, kSettingsName});
  }
  if (!dry_run) {
    questions.push_back({"get", "", "pods", "", ""});
    questions.push_back({"patch", "", "pods", "", ""});
    questions.push_back({"patch", "", "pods", "resize", ""});
  }
  return questions;
}

Result<void> checkCluster(kube::Client& client, const std::string& name_space, bool dry_run) {
  if (const auto version = client.version(); !version) {
    return failure(fmt::format("the API server does not answer: {}", version.error().describe()));
  }
  if (Result<void> served = client.require("v1", "pods/resize"); !served) {
    return failure(fmt::format(
        "{}. In-place resize needs Kubernetes 1.33 or later, or 1.32 with the feature gate "
        "InPlacePodVerticalScaling; on 1.33 and 1.34 that gate may have been turned off",
        served.error().message()));
  }
  if (!client.require("allocation.mbcas.io/v1alpha1", "podallocations")) {
    return failure(
        "the PodAllocation resource is not installed: kubectl apply -k config/crd, or install the "
        "chart");
  }
  const auto refused = client.mayNot(neededAccess(name_space, dry_run), name_space);
  if (!refused) {
    return failure(fmt::format("asking for permissions: {}", refused.error().describe()));
  }
  std::string missing;
  for (const kube::AccessQuestion& question : *refused) {
    missing += missing.empty() ? "" : ", ";
    missing += describe(question);
  }
  if (!missing.empty()) {
    return failure(
        fmt::format("not permitted: {}. kubectl apply -k config/rbac, or "
                    "bind such a role to the account the controller runs as",
                    missing));
  }
  return {};
}

}  // namespace mbcas::controller
