#include "mbcas/controller/startup.h"

#include <fmt/format.h>

#include <vector>

namespace mbcas::controller {
namespace {

std::string describe(const kube::AccessQuestion& question) {
  std::string resource = question.resource;
  if (!question.subresource.empty()) resource += "/" + question.subresource;
  if (!question.group.empty()) resource += "." + question.group;
  return question.name_space.empty()
             ? fmt::format("{} {}", question.verb, resource)
             : fmt::format("{} {} in {}", question.verb, resource, question.name_space);
}

// What config/rbac/role.yaml grants.
std::vector<kube::AccessQuestion> needed(const std::string& name_space, bool dry_run) {
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
  questions.push_back({"create", "", "events", "", ""});
  questions.push_back({"get", "coordination.k8s.io", "leases", "", name_space});
  questions.push_back({"list", "", "configmaps", "", name_space});
  if (!dry_run) {
    questions.push_back({"get", "", "pods", "", ""});
    questions.push_back({"patch", "", "pods", "", ""});
    questions.push_back({"patch", "", "pods", "resize", ""});
  }
  return questions;
}

}  // namespace

Result<void> checkCluster(kube::Client& client, const std::string& name_space, bool dry_run) {
  if (const auto version = client.version(); !version) {
    return failure(fmt::format("the API server does not answer: {}", version.error().describe()));
  }
  if (Result<void> served = client.require("v1", "pods/resize"); !served) {
    return failure(fmt::format(
        "{}. In-place resize needs Kubernetes 1.33 or later, or 1.32 with the feature gate "
        "InPlacePodVerticalScaling",
        served.error().message()));
  }
  if (!client.require("allocation.mbcas.io/v1alpha1", "podallocations")) {
    return failure(
        "the PodAllocation resource is not installed: kubectl apply -k config/crd, or install the "
        "chart");
  }
  std::string missing;
  for (const kube::AccessQuestion& question : needed(name_space, dry_run)) {
    const auto answer = client.mayI(question);
    if (!answer)
      return failure(fmt::format("asking for permissions: {}", answer.error().describe()));
    if (answer->allowed) continue;
    missing += missing.empty() ? "" : ", ";
    missing += describe(question);
  }
  if (!missing.empty()) {
    return failure(
        fmt::format("not permitted: {}. kubectl apply -f config/rbac/role.yaml, and bind "
                    "it to the account the controller runs as",
                    missing));
  }
  return {};
}

}  // namespace mbcas::controller
