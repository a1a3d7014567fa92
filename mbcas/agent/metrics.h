// What the agent shows to Prometheus, in its text format, version 0.0.4. Pure.
#pragma once

#include <string>

#include "mbcas/agent/agent.h"
#include "mbcas/agent/view.h"

namespace mbcas::agent {

std::string metricsText(const View& view, const AgentCounters& counters);

}  // namespace mbcas::agent
