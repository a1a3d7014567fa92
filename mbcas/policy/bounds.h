// From the objects of a cluster to what may be done with a pod: left alone and why, or managed
// between a floor and a ceiling. Everything but quotas, which concern all pods of a namespace
// together: see quota.h.
//
//   PodPolicy policy = judgePod(pod, namespace_objects, node, settings, not_ready_for);
//   if (!policy.managed) say(policy.reason);
//
// Pure. CPU is in steps of 10m: a floor is rounded up, a ceiling down.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/control/guards.h"
#include "mbcas/kube/types.h"
#include "mbcas/podallocation/original_resources.h"
#include "mbcas/podallocation/pod_allocation.h"
#include "mbcas/policy/settings.h"

namespace mbcas::policy {

// What the cluster says about the pods of one namespace.
struct NamespaceObjects {
  std::shared_ptr<const kube::Namespace> name_space;
  std::vector<std::shared_ptr<const kube::LimitRange>> ranges;
  std::vector<std::shared_ptr<const kube::ResourceQuota>> quotas;
  std::vector<std::shared_ptr<const kube::HorizontalPodAutoscaler>> hpas;
  std::vector<std::shared_ptr<const kube::VerticalPodAutoscaler>> vpas;
  std::vector<std::shared_ptr<const kube::PodDisruptionBudget>> budgets;
};

struct ManagedContainer {
  std::string name;
  Millicores limit;     // in the spec, now
  Millicores declared;  // its owner's limit
  Millicores request;   // its owner's
  Millicores floor;
  Millicores ceiling;
  friend bool operator==(const ManagedContainer&, const ManagedContainer&) = default;
};

struct PodPolicy {
  Mode mode = Mode::kOff;
  bool managed = false;
  bool let_go = false;  // left alone, and what was changed is to be restored
  std::string reason;   // why it is left alone, or what sets its bounds
  std::string remedy;   // left alone: what its owner could do about it; empty: nothing
  // The rest is of managed pods. Sums are over the managed containers.
  std::vector<ManagedContainer> containers;
  Millicores floor;
  Millicores ceiling;
  bool requests_follow = false;  // Guaranteed: request and limit move together
  bool scaled_by_hpa = false;    // lowered half as often
  control::Hold no_decrease = control::Hold::kNothing;

  Millicores limit() const;
  Millicores declared() const;
  Millicores request() const;
};

// The cluster's mode, or the namespace's own. A mode that nobody knows is off: its writer wanted
// less than full.
Mode effectiveMode(const kube::Namespace& name_space, const Settings& settings);

// What the pod's owner wrote: its original-resources annotation, or else its spec.
Result<std::vector<podallocation::OriginalCpu>> declaredCpu(const kube::Pod& pod);

// A container of the pod with what its owner wrote for it, without bounds; nothing if it is left
// alone. `declared`: see declaredCpu().
std::optional<ManagedContainer> manageable(const kube::Container& container,
                                           const std::vector<podallocation::OriginalCpu>& declared);

// `node` is null while it is not known. `not_ready_for`: zero when the pod is ready.
PodPolicy judgePod(const kube::Pod& pod, const NamespaceObjects& objects, const kube::Node* node,
                   const Settings& settings, Nanos not_ready_for);

// A ceiling that came to light later, as a quota's share of a managed pod. Never below the
// requests.
void lowerCeiling(PodPolicy& policy, Millicores ceiling, const std::string& by);

// Divides `total` over the managed containers, each between its floor and ceiling, in proportion to
// `bids` (what the agent desires for each, or their limits today), in whole steps. The answer adds
// up to `total` within the sums of floors and ceilings. Same order as policy.containers.
std::vector<Millicores> splitTotal(const PodPolicy& policy, Millicores total,
                                   const std::vector<Millicores>& bids);

}  // namespace mbcas::policy
