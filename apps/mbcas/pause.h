// The switch by which everything stops: the key "paused" of the settings.
#pragma once

#include <string>

#include "mbcas/kube/client.h"

namespace mbcas::cli {

kube::ApiResult<void> setPaused(kube::Client& client, const std::string& system_namespace,
                                bool paused, bool dry_run = false);

}  // namespace mbcas::cli
