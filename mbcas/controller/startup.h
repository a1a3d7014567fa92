// What must be true before the controller may start; else what is missing, and what to do about it.
#pragma once

#include <string>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/kube/client.h"

namespace mbcas::controller {

// What its account must be permitted: what config/rbac/role.yaml grants.
std::vector<kube::AccessQuestion> neededAccess(const std::string& name_space, bool dry_run);
// "patch pods/resize", "get leases.coordination.k8s.io in mbcas-system".
std::string describe(const kube::AccessQuestion& question);

Result<void> checkCluster(kube::Client& client, const std::string& name_space, bool dry_run);

}  // namespace mbcas::controller
