// What the cluster says about one node, as of one moment: what the agent's watches hold.
#pragma once

#include <memory>
#include <vector>

#include "mbcas/kube/types.h"
#include "mbcas/podallocation/pod_allocation.h"
#include "mbcas/policy/settings.h"

namespace mbcas::agent {

struct World {
  std::vector<std::shared_ptr<const kube::Pod>> pods{};  // bound to this node
  std::vector<std::shared_ptr<const podallocation::PodAllocation>> allocations{};  // of these
  std::shared_ptr<const kube::Node> node{};  // null: not known, nothing is decided
  policy::Settings settings{};
};

}  // namespace mbcas::agent
