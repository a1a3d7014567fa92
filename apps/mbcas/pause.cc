// mbcas pause, mbcas resume: everything back to what was declared, and on again.
#include "apps/mbcas/pause.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/controller/cluster.h"

namespace mbcas::app {
namespace {

constexpr const char* kPauseFooter = R"(Examples:
  mbcas pause && kubectl get podallocations -A
  mbcas pause --dry-run          # whether you may; nothing changes

While paused, the controller gives every pod the CPU requests and limits that it declared and
changes nothing, whatever the mode of its namespace is. After `mbcas resume` it goes on.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

constexpr const char* kResumeFooter = R"(Examples:
  mbcas resume && mbcas top -A
  mbcas resume --dry-run         # whether you may; nothing changes

The command ends what `mbcas pause` or `mbcas restore --all` began: the controller manages pods
again, each namespace in its own mode. Limits start from the declared ones, and the first of them
change within seconds. If MBCAS is not paused, nothing happens.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

struct Flags {
  ClusterFlags cluster;
  std::string dry_run;
  std::string output;
};

std::string report(const Flags& flags, bool pause) {
  std::string json;
  JsonWriter writer(json);
  writer.beginObject().key("paused").value(pause);
  if (!flags.dry_run.empty()) writer.key("dryRun").value(flags.dry_run);
  writer.endObject();
  return json;
}

int pauseCommand(const Flags& flags, bool pause) {
  const auto failed = [&](const std::string& message) {
    complain(pause ? "mbcas pause" : "mbcas resume", message);
    return kFailed;
  };
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return failed(connection.error().message());
  if (flags.dry_run != "client") {
    const kube::ApiResult<void> done = setPaused(
        (*connection)->client(), flags.cluster.system_namespace, pause, !flags.dry_run.empty());
    if (!done) return failed(explained(done.error()));
  }
  if (isDocument(flags.output)) {
    printDocument(report(flags, pause), flags.output);
  } else if (flags.output == "name") {
    fmt::print("configmap/{}\n", controller::kSettingsName);
  } else if (!flags.dry_run.empty()) {
    fmt::print("would be {} ({} dry run)\n", pause ? "paused" : "resumed", flags.dry_run);
  } else {
    fmt::print("{}\n", pause ? "paused: the controller restores what pods declared"
                             : "resumed: the controller manages pods again");
  }
  return kDone;
}

}  // namespace

kube::ApiResult<void> writeSetting(kube::Client& client, const std::string& system_namespace,
                                   std::string_view key, std::optional<std::string_view> value,
                                   bool dry_run) {
  const std::string body =
      fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},)"
                  R"("data":{{"{}":{}}}}})",
                  controller::kSettingsName, key, value ? fmt::format("\"{}\"", *value) : "null");
  auto written = client.patch<kube::ConfigMap>(system_namespace, controller::kSettingsName,
                                               kube::PatchType::kMerge, body, {.dry_run = dry_run});
  if (!written && written.error().notFound()) {
    if (!value) return {};
    written = client.create<kube::ConfigMap>(system_namespace, body, {.dry_run = dry_run});
  }
  if (!written) return kube::apiFailure(written.error());
  return {};
}

kube::ApiResult<void> setPaused(kube::Client& client, const std::string& system_namespace,
                                bool paused, bool dry_run) {
  return writeSetting(client, system_namespace, "paused", paused ? "true" : "false", dry_run);
}

void addPause(CLI::App& app, int& exit_code) {
  for (const bool pause : {true, false}) {
    const auto flags = std::make_shared<Flags>();
    CLI::App* const command =
        pause ? app.add_subcommand("pause", "Restore all pods, and change nothing until resumed")
              : app.add_subcommand("resume", "Manage pods again after a pause");
    command->footer(pause ? kPauseFooter : kResumeFooter);
    addDryRun(*command, flags->dry_run);
    addOutput(*command, flags->output, {"text", "json", "yaml", "name"});
    addClusterFlags(*command, flags->cluster);
    addSystemNamespace(*command, flags->cluster);
    command->callback([flags, pause, &exit_code] { exit_code = pauseCommand(*flags, pause); });
  }
}

}  // namespace mbcas::app
