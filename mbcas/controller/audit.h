// The audit log: one JSON object a line for every resize that was decided.
#pragma once

#include <string>

#include "mbcas/controller/decide.h"

namespace mbcas::controller {

// {"time":"...","namespace":"shop","pod":"web-1","uid":"...","node":"n1","purpose":"manage",
//  "from":"200m","to":"500m","desired":"500m","containers":[{"name":"main","limit":"500m"}],
//  "reason":"...","verdict":"Accepted","message":""} without a line end.
std::string auditLine(WallTime now, const kube::Pod& pod,
                      const podallocation::PodAllocation* allocation, const Decision& decision,
                      const resize::Outcome& outcome);

}  // namespace mbcas::controller
