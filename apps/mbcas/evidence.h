// All that is known of one pod, for `mbcas explain` and for Enter in `mbcas top`.
#pragma once

#include <string>

#include "apps/mbcas/cluster_flags.h"
#include "mbcas/cli/explain.h"

namespace mbcas::app {

// From the API server and the agent on the pod's node.
Result<cli::Evidence> evidenceOf(Connection& connection, const std::string& name_space,
                                 const std::string& pod, const std::string& system_namespace);
// From the state of an `mbcas run` or of an agent on this machine.
Result<cli::Evidence> evidenceOf(const cli::NodeRecord& state, const std::string& name_space,
                                 const std::string& pod);

}  // namespace mbcas::app
