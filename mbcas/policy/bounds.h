// Derives from the objects of a cluster what may be done with a pod: it is left alone for a reason,
// or managed between a floor and a ceiling. Everything but quotas, which concern all pods of a
// namespace together: see quota.h.
//
//   PodPolicy policy = judgePod(pod, allocation, namespace_objects, node, settings);
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
  std::string remedy;   // left alone: what the owner could do about that; empty: nothing
  // What restores the pod; empty: MBCAS has not changed it. Of every pod.
  std::vector<podallocation::OriginalCpu> original;
  // The rest is of managed pods. Sums are over the managed containers.
  std::vector<ManagedContainer> containers;
  Millicores floor;
  Millicores ceiling;
  bool requests_follow = false;     // Guaranteed: request and limit move together
  bool scaled_by_hpa = false;       // lowered half as often
  bool disruption_blocked = false;  // a disruption budget of its pods is not met

  Millicores limit() const;
  Millicores declared() const;
  Millicores request() const;
};

// The cluster's mode, or the namespace's own. An unknown mode counts as off: its writer wanted less
// than full.
Mode effectiveMode(const kube::Namespace& name_space, const Settings& settings);

// The original as the allocation's status records it, which only the controller can write; empty if
// there is none. The request of a pod that is not Guaranteed is its spec's: MBCAS never changes it.
std::vector<podallocation::OriginalCpu> recordedOriginal(
    const kube::Pod& pod, const podallocation::PodAllocation* allocation);

// What restores the pod; empty if MBCAS has not changed it. It is the recorded original. Where
// that is lost it is the pod's annotation, which its tenant may have written: the annotation is
// believed only if the spec has changed since the pod was created, and only as far as the tenant
// could have declared the same. So no limit exceeds what LimitRanges and the node allow, unless the
// spec has it already. `allocation` and `node` may be null.
Result<std::vector<podallocation::OriginalCpu>> wayBack(
    const kube::Pod& pod, const podallocation::PodAllocation* allocation,
    const NamespaceObjects& objects, const kube::Node* node);

// A container of the pod with what its owner declared for it, without bounds; nothing if it is left
// alone. `original` is what wayBack() or recordedOriginal() returned.
std::optional<ManagedContainer> manageable(const kube::Container& container,
                                           const std::vector<podallocation::OriginalCpu>& original);

// `allocation` is null if there is none, `node` while it is not known.
PodPolicy judgePod(const kube::Pod& pod, const podallocation::PodAllocation* allocation,
                   const NamespaceObjects& objects, const kube::Node* node,
                   const Settings& settings);

// A ceiling that came to light later, as a quota's share of a managed pod. Never below the
// requests.
void lowerCeiling(PodPolicy& policy, Millicores ceiling, const std::string& by);

}  // namespace mbcas::policy
