// Settings of the whole cluster, in the controller's ConfigMap; "paused" is the switch by which
// everything stops.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mbcas/kube/client.h"

namespace mbcas::app {

// Without a value the key is removed.
kube::ApiResult<void> writeSetting(kube::Client& client, const std::string& system_namespace,
                                   std::string_view key, std::optional<std::string_view> value,
                                   bool dry_run = false);
kube::ApiResult<void> setPaused(kube::Client& client, const std::string& system_namespace,
                                bool paused, bool dry_run = false);

}  // namespace mbcas::app
