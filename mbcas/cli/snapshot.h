// What the commands need to know of a cluster at one moment: pods, their allocations, and all that
// decides whether a pod is managed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mbcas/kube/client.h"
#include "mbcas/kube/types.h"
#include "mbcas/podallocation/pod_allocation.h"
#include "mbcas/policy/bounds.h"

namespace mbcas::cli {

using PodPtr = std::shared_ptr<const kube::Pod>;
using AllocationPtr = std::shared_ptr<const podallocation::PodAllocation>;
using NodePtr = std::shared_ptr<const kube::Node>;

// Which pods.
struct Selection {
  std::string name_space{};  // empty: all
  std::string label_selector{};
  std::string node{};  // empty: all
  std::string pod{};   // empty: all

  std::string fieldSelector() const;
};

struct Snapshot {
  std::vector<PodPtr> pods;                                       // by namespace and name
  std::map<std::string, AllocationPtr, std::less<>> allocations;  // by the UID of their pod
  std::map<std::string, NodePtr, std::less<>> nodes;
  bool nodes_known = true;  // false: they may not be listed
  std::map<std::string, policy::NamespaceObjects, std::less<>> namespaces;
  policy::Settings settings;
  // What the server has and cannot be read, as "pod shop/web-1"; MBCAS goes on without it.
  struct PassedOver {
    std::string object;
    std::string why;
  };
  std::vector<PassedOver> passed_over;
  // What could not be asked for, and so was not considered; for a person.
  std::vector<std::string> notes;

  const podallocation::PodAllocation* allocationOf(const kube::Pod& pod) const;
};

// Reads it all. Only pods must be readable.
kube::ApiResult<Snapshot> takeSnapshot(kube::Client& client, const Selection& selection,
                                       const std::string& system_namespace);

// Whether a pod is managed, as the controller says; where it has said nothing yet, as it would.
struct Verdict {
  bool managed = false;
  bool expected = false;     // it would be, but no agent has reported it
  std::string reason;        // why not, or what sets its bounds
  std::string remedy;        // what its owner could do
  policy::PodPolicy policy;  // as judged from here, quotas apart
};
Verdict judge(const Snapshot& snapshot, const kube::Pod& pod);

}  // namespace mbcas::cli
