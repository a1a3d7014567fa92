// What must be true before the controller may start; else what is missing, and what to do about it.
#pragma once

#include <string>

#include "mbcas/base/result.h"
#include "mbcas/kube/client.h"

namespace mbcas::controller {

Result<void> checkCluster(kube::Client& client, const std::string& name_space, bool dry_run);

}  // namespace mbcas::controller
