#include "mbcas/policy/workload.h"

#include <fmt/format.h>

namespace mbcas::policy {
namespace {

// "web" of the ReplicaSet "web-5d9c7b8f6"; empty for a ReplicaSet without an owner.
std::string_view ownerOfReplicaSet(const kube::Pod& pod, std::string_view replica_set) {
  for (const std::string_view label : {"pod-template-hash", "rollouts-pod-template-hash"}) {
    const std::optional<std::string_view> hash = kube::find(pod.meta.labels, label);
    if (!hash || hash->empty() || !replica_set.ends_with(*hash)) continue;
    replica_set.remove_suffix(hash->size());
    if (replica_set.size() < 2 || !replica_set.ends_with('-')) continue;
    return replica_set.substr(0, replica_set.size() - 1);
  }
  return {};
}

}  // namespace

std::optional<Workload> workloadOf(const kube::Pod& pod) {
  const kube::OwnerReference* const owner = pod.meta.controller();
  if (owner == nullptr) return std::nullopt;
  if (owner->kind == "ReplicaSet") {
    const std::string_view deployment = ownerOfReplicaSet(pod, owner->name);
    if (!deployment.empty()) return Workload{"Deployment", std::string(deployment)};
  }
  return Workload{owner->kind.string(), owner->name.string()};
}

std::string workloadKey(const kube::Pod& pod) {
  const std::optional<Workload> workload = workloadOf(pod);
  if (!workload) return {};
  return fmt::format("{}/{}/{}", pod.meta.namespace_.view(), workload->kind, workload->name);
}

bool targets(const kube::TargetReference& target, const kube::Pod& pod) {
  const kube::OwnerReference* const owner = pod.meta.controller();
  if (owner == nullptr) return false;
  if (target.kind == owner->kind) return target.name == owner->name;
  // Above a ReplicaSet: a Deployment, or something that works like one.
  return owner->kind == "ReplicaSet" && target.name == ownerOfReplicaSet(pod, owner->name) &&
         !target.name.empty();
}

}  // namespace mbcas::policy
