// mbcas pause, mbcas resume: everything back to what was declared, and on again.
#include "apps/mbcas/pause.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/controller/cluster.h"

namespace mbcas::cli {
namespace {

constexpr const char* kFooter = R"(Example:
  mbcas pause && kubectl get podallocations -A

While paused, the controller gives every pod the CPU requests and limits that it declared and
changes nothing, whatever the mode of its namespace. `mbcas resume` lets it go on.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

struct Flags {
  ClusterFlags cluster;
};

int pauseCommand(const Flags& flags, bool pause) {
  const auto failed = [&](const std::string& message) {
    complain(pause ? "mbcas pause" : "mbcas resume", message);
    return kFailed;
  };
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return failed(connection.error().message());
  const kube::ApiResult<void> done =
      setPaused((*connection)->client(), flags.cluster.system_namespace, pause);
  if (!done) return failed(done.error().describe());
  fmt::print("{}\n", pause ? "paused: the controller restores what pods declared"
                           : "resumed: the controller manages pods again");
  return kDone;
}

}  // namespace

kube::ApiResult<void> setPaused(kube::Client& client, const std::string& system_namespace,
                                bool paused) {
  const std::string body =
      fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},)"
                  R"("data":{{"paused":"{}"}}}})",
                  controller::kSettingsName, paused);
  auto written = client.patch<kube::ConfigMap>(system_namespace, controller::kSettingsName,
                                               kube::PatchType::kMerge, body);
  if (!written && written.error().notFound()) {
    written = client.create<kube::ConfigMap>(system_namespace, body);
  }
  if (!written) return kube::apiFailure(written.error());
  return {};
}

void addPause(CLI::App& app, int& exit_code) {
  for (const bool pause : {true, false}) {
    const auto flags = std::make_shared<Flags>();
    CLI::App* const command =
        pause ? app.add_subcommand("pause", "Restore all pods, and change nothing until resumed")
              : app.add_subcommand("resume", "Manage pods again");
    command->footer(kFooter);
    addSystemNamespace(*command, flags->cluster);
    addClusterFlags(*command, flags->cluster);
    command->callback([flags, pause, &exit_code] { exit_code = pauseCommand(*flags, pause); });
  }
}

}  // namespace mbcas::cli
