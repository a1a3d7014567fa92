#include "mbcas/agent/startup.h"

#include <fmt/format.h>
#include <unistd.h>

#include "mbcas/agent/requests.h"
#include "mbcas/kube/types.h"
#include "mbcas/podallocation/pod_allocation.h"

namespace mbcas::agent {
namespace {

ClusterCheck wrong(std::string message) {
  return {ClusterCheck::Verdict::kWrong, std::move(message)};
}

// An answer that says nothing about what we asked for. A server that has just started forbids even
// what every account may ask, until it has read its roles.
ClusterCheck failed(std::string_view doing, const kube::ApiError& error) {
  std::string message = fmt::format("{}: {}", doing, error.describe());
  if (error.transient() || error.code == 403) {
    return {ClusterCheck::Verdict::kUnreachable, std::move(message)};
  }
  return wrong(std::move(message));
}

std::string describe(const kube::AccessQuestion& question) {
  std::string text = fmt::format("{} {}", question.verb, question.resource);
  if (!question.group.empty()) text += "." + question.group;
  if (!question.name_space.empty()) text += " in " + question.name_space;
  return text;
}

ClusterCheck checkServed(kube::Client& client) {
  const kube::Kind& kind = podallocation::PodAllocation::kind();
  const auto served = client.resources(kind.apiVersion());
  if (!served && !served.error().notFound()) {
    return failed(fmt::format("asking for {}", kind.apiVersion()), served.error());
  }
  if (served && std::find(served->begin(), served->end(), kind.plural) != served->end()) return {};
  return wrong(
      "the PodAllocation resource is not installed: kubectl apply -k config/crd, or install the "
      "chart");
}

ClusterCheck checkPermissions(kube::Client& client, const std::string& name_space, bool dry_run) {
  const auto refused = client.mayNot(neededPermissions(name_space, dry_run), name_space);
  if (!refused) return failed("asking for permissions", refused.error());
  std::string missing;
  for (const kube::AccessQuestion& question : *refused) {
    missing += missing.empty() ? "" : ", ";
    missing += describe(question);
  }
  if (missing.empty()) return {};
  return wrong(fmt::format(
      "not permitted: {}. kubectl apply -f config/agent/rbac.yaml, and run as its account",
      missing));
}

ClusterCheck checkNode(kube::Client& client, const std::string& node) {
  const auto nodes = client.list<kube::Node>({.field_selector = "metadata.name=" + node});
  if (!nodes) return failed("looking for the node " + node, nodes.error());
  if (!nodes->items.empty()) return {};
  return wrong(fmt::format(
      "there is no node {}: --node-name, or $NODE_NAME, has to be as in kubectl get nodes", node));
}

}  // namespace

ClusterCheck checkCluster(kube::Client& client, const std::string& node,
                          const std::string& name_space, bool dry_run) {
  ClusterCheck check = checkServed(client);
  if (check.verdict == ClusterCheck::Verdict::kGood) {
    check = checkPermissions(client, name_space, dry_run);
  }
  if (check.verdict == ClusterCheck::Verdict::kGood) check = checkNode(client, node);
  return check;
}

Result<kernel::Mounts> checkCgroups(const std::string& root) {
  Result<kernel::Mounts> mounts = kernel::detectMounts(root);
  if (!mounts) return mounts;
  for (const std::string& directory : kernel::hierarchies(*mounts)) {
    if (::access(directory.c_str(), R_OK | X_OK) == 0) continue;
    return failure(fmt::format(
        "{} cannot be read; mount the host's cgroup tree read-only and name it with --cgroup-root",
        directory));
  }
  return mounts;
}

}  // namespace mbcas::agent
