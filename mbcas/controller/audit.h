// One line for every resize that was decided: a JSON object for the audit log, and text for people.
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

// "resize shop/web-1 on n1 from 200m to 500m (manage): Accepted; wants 480m: throttled 31 %". Where
// the server has refused it, its message stands in place of the reason.
std::string logLine(const kube::Pod& pod, const podallocation::PodAllocation* allocation,
                    const Decision& decision, const resize::Outcome& outcome);

}  // namespace mbcas::controller
