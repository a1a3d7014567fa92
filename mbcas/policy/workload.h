// The workload that a pod belongs to, derived from the pod alone.
#pragma once

#include <optional>
#include <string>

#include "mbcas/kube/types.h"

namespace mbcas::policy {

struct Workload {
  std::string kind;
  std::string name;
  friend auto operator<=>(const Workload&, const Workload&) = default;
};

// The pod's controller; of a ReplicaSet named by a Deployment's (or Rollout's) template hash, the
// Deployment, so that the pods of a rollout, old and new, are siblings. Nothing for a bare pod.
std::optional<Workload> workloadOf(const kube::Pod& pod);
// "namespace/kind/name" of it; empty for a bare pod.
std::string workloadKey(const kube::Pod& pod);

// Whether an autoscaler with this target scales the pod.
bool targets(const kube::TargetReference& target, const kube::Pod& pod);

}  // namespace mbcas::policy
