// What the agent sends to the API server besides its watches, and what the answers mean. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mbcas/agent/allocations.h"
#include "mbcas/agent/outbox.h"
#include "mbcas/base/clock.h"
#include "mbcas/kube/api_error.h"
#include "mbcas/kube/client.h"

namespace mbcas::agent {

inline constexpr std::string_view kLeasePrefix = "mbcas-agent-";  // and the node's name
inline constexpr std::string_view kSettingsName = "mbcas";        // of the ConfigMap

// The PodAllocation as wished: made if there is none. Tried once: the outbox tries again, with
// what is wished by then.
kube::Call writeCall(const Wish& wish);

// The PodAllocation as it is. Tried once.
kube::Call readCall(const Allocations::Read& read);

// Says that the agent is alive. There is no election: one Lease per node, made if there is none.
kube::Call leaseCall(const std::string& name_space, const std::string& node,
                     const std::string& holder, Nanos duration, WallTime now);

// Of a write that was not accepted.
WriteResult writeResultOf(const kube::ApiError& error);

// What config/agent/rbac.yaml grants, as questions to the server.
std::vector<kube::AccessQuestion> neededPermissions(const std::string& name_space, bool dry_run);

}  // namespace mbcas::agent
