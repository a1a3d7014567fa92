// The state of an `mbcas run`, or of an agent, on this machine.
#pragma once

#include <string>

#include "mbcas/base/result.h"
#include "mbcas/cli/record.h"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
}

namespace mbcas::app {

// Where an `mbcas run` with this state file shows its state.
std::string socketOf(const std::string& state_file);
inline constexpr const char* kAgentSocket = "/run/mbcas/agent.sock";

void addSocketFlag(CLI::App& command, std::string& socket);

// From that socket; an empty one: from that of an `mbcas run`, else from that of an agent.
Result<cli::NodeRecord> readHostState(const std::string& socket);

}  // namespace mbcas::app
