// A scenario as it is named on the command line.
#pragma once

#include <string>

#include "mbcas/base/result.h"
#include "mbcas/sim/scenario.h"

namespace mbcas::app {

// With traces from the directory of the file, and a name from that of the file where it has none of
// its own. An empty error: the file cannot be read.
Result<sim::Scenario> loadScenario(const std::string& file);

}  // namespace mbcas::app
