// Who wrote the CPU limits of a pod, from metadata.managedFields: the API server keeps there which
// client last set which field.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"

namespace mbcas::controller {

// The containers whose CPU limit `manager` has written, of a pod as JSON. Kubernetes drops a field
// from a manager's set as soon as another writer gives it another value.
Result<std::vector<std::string>> limitsWrittenBy(std::string_view manager, std::string pod_json);

}  // namespace mbcas::controller
