// One pod of the node as the cluster has it: whether the agent decides about it, and with what.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/kube/types.h"
#include "mbcas/podallocation/pod_allocation.h"
#include "mbcas/policy/settings.h"

namespace mbcas::agent {

// A container that can be managed.
struct MemberContainer {
  std::string name{};
  std::string id{};       // its cgroup's; empty: not known yet
  bool running = false;   // one that is known not to run uses nothing
  bool reported = false;  // the kubelet has said whether it does
  Millicores limit;       // as Kubernetes says: of the status, else of the spec
  Millicores spec_limit;
  bool distinct = false;  // no other container of the pod, of any role, has this spec_limit
  Millicores declared;
  Millicores request;  // its limit never goes below; 0 where request and limit move together
  friend bool operator==(const MemberContainer&, const MemberContainer&) = default;
};

struct Member {
  std::string uid{};
  std::string name_space{};
  std::string name{};
  std::string cgroup{};      // the UID in the name of its cgroup: a static pod's is another one
  std::string left_alone{};  // why nothing is decided for it
  std::vector<MemberContainer> containers{};
  Millicores all_requests;  // of everything in it; one that has ended has none
  double weight = 1;
  double factor = 1;  // the part of the weight that is not its request
  std::int64_t priority = 0;
  bool ready = false;
  bool started = false;  // the kubelet says that it runs
  // Of its PodAllocation, where there is one.
  std::optional<podallocation::Spec> spec{};
  std::optional<podallocation::Bounds> bounds{};
  Millicores applied;

  bool managed() const { return left_alone.empty() && bounds.has_value(); }
  Millicores declared() const;
  friend bool operator==(const Member&, const Member&) = default;
};

// `allocation` is null if there is none. Whether a pod may be managed is the controller's to judge,
// who publishes it in the bounds; the agent only keeps away from pods that cannot be.
Member memberOf(const kube::Pod& pod, const podallocation::PodAllocation* allocation,
                const policy::Settings& settings);

}  // namespace mbcas::agent
