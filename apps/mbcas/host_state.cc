#include "apps/mbcas/host_state.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/mbcas/commands.h"
#include "apps/mbcas/flags.h"
#include "mbcas/base/local_socket.h"

namespace mbcas::app {
namespace {

constexpr Nanos kPatience = std::chrono::seconds(5);

Result<cli::NodeRecord> readFrom(const std::string& socket) {
  Result<std::string> text = readLocalSocket(socket, kPatience);
  if (!text) return failure(std::move(text).error());
  return cli::parseState(*std::move(text));
}

}  // namespace

std::string socketOf(const std::string& state_file) {
  return state_file + ".sock";
}

void addSocketFlag(CLI::App& command, std::string& socket) {
  command
      .add_option("--socket", socket,
                  fmt::format("With --host: where the state is shown (default {}, then {})",
                              socketOf(kHostState), kAgentSocket))
      ->type_name("FILE")
      ->group(kHostGroup);
}

Result<cli::NodeRecord> readHostState(const std::string& socket) {
  if (!socket.empty()) return readFrom(socket);
  if (Result<cli::NodeRecord> host = readFrom(socketOf(kHostState))) return host;
  if (Result<cli::NodeRecord> agent = readFrom(kAgentSocket)) return agent;
  return failure(fmt::format(
      "neither an `mbcas run` nor an agent shows its state on this machine ({}, {}); name the "
      "socket with --socket",
      socketOf(kHostState), kAgentSocket));
}

}  // namespace mbcas::app
