// mbcas diff: what MBCAS changes, as patches for the workloads' own manifests.
#include "mbcas/cli/diff.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/flags.h"
#include "apps/mbcas/terminal.h"

namespace mbcas::app {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas diff -A
  mbcas diff -n shop -o yaml > limits.yaml           # a patch for each workload
  kubectl patch -n shop deploy/web --patch-file web.yaml --dry-run=server

For each workload with managed pods the output has the CPU limits that its manifest declares, and
the largest that its pods should have by their PodAllocations. So you can keep limits in Git, also
without MBCAS, or after some days in mode recommend. Patches are strategic merges and change limits
only. A limit that is lower for a moment, because another pod matters more, does not count.

Exit code: 0 done, with or without changes, 1 failed, 2 the command is wrong.)";

struct Flags {
  ClusterFlags cluster;
  PodFlags pods;
  std::string output;
};

int fail(const std::string& message) {
  complain("mbcas diff", message);
  return kFailed;
}

int diffCommand(const Flags& flags) {
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return fail(connection.error().message());
  const cli::Selection selection =
      selectionOf(flags.cluster, flags.pods, (*connection)->defaultNamespace());
  const auto snapshot =
      cli::takeSnapshot((*connection)->client(), selection, flags.cluster.system_namespace);
  if (!snapshot) return fail(explained(snapshot.error()));
  const cli::Diff diff = cli::diffOf(*snapshot);
  if (flags.output == "json") {
    printDocument(cli::diffJson(diff), flags.output);
    return kDone;
  }
  for (const std::string& note : diff.notes) complain("mbcas diff", note);
  if (diff.workloads.empty()) {
    complain("mbcas diff", snapshot->pods.empty() ? "no pods" : "nothing differs");
    return kDone;
  }
  if (flags.output == "name") {
    for (const cli::WorkloadDiff& entry : diff.workloads) {
      say(fmt::format("{}/{}", entry.workload.kind, entry.workload.name));
    }
  } else if (flags.output == "yaml") {
    for (const std::string& patch : cli::patchesOf(diff)) printNextDocument(patch, flags.output);
  } else {
    fmt::print("{}", cli::diffTable(diff, selection.name_space.empty(), wantsColours()));
  }
  return kDone;
}

}  // namespace

void addDiff(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "diff", "Show the limits that workloads should declare, as patches for their manifests");
  command->footer(kFooter);
  addOutput(*command, flags->output, {"table", "yaml", "json", "name"});
  addPodFlags(*command, flags->pods);
  addClusterFlags(*command, flags->cluster);
  addSystemNamespace(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = diffCommand(*flags); });
}

}  // namespace mbcas::app
