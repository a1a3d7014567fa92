// mbcas doctor: what is missing, and how to fix it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/cli/cluster_checkup.h"
#include "mbcas/cli/host_checkup.h"

namespace mbcas::cli {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas doctor                    # the cluster: server, definition, permissions, agents, pods
  mbcas doctor -n shop            # the same, and of pods only those of one namespace
  mbcas doctor --host             # this machine: cgroups, limits, pressure
  mbcas doctor -o json | jq '.findings[] | select(.level == "problem")'

A note is something to know; a problem keeps MBCAS from working, or from working everywhere. Each
comes with what to do about it, after the arrow.

Exit code: 0 no problems, 1 problems, or the cluster does not answer, 2 the command is wrong.)";

struct Flags {
  ClusterFlags cluster;
  bool all_namespaces = false;
  bool host = false;
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string state = kHostState;
  std::string output = "text";
};

int doctorCommand(const Flags& flags) {
  const auto fail = [](const std::string& message) {
    complain("mbcas doctor", message);
    return kFailed;
  };
  Findings findings;
  if (flags.host) {
    findings = diagnose(examineHost(flags.cgroup_root, "/proc", flags.state));
  } else {
    const auto connection = Connection::open(flags.cluster);
    if (!connection) {
      return fail(connection.error().message() + "; for this machine: mbcas doctor --host");
    }
    const Selection selection{.name_space = flags.all_namespaces ? "" : flags.cluster.name_space};
    const Result<ClusterFacts> facts =
        examineCluster((*connection)->client(), selection, flags.cluster.system_namespace);
    if (!facts) return fail(facts.error().message());
    findings = diagnose(*facts);
  }
  if (flags.output == "json") {
    fmt::print("{}\n", findingsJson(findings));
  } else {
    fmt::print("{}",
               findingsText(findings, wantsColours(), isTerminal() ? terminalSize().width : 0));
  }
  return healthy(findings) ? kDone : kFailed;
}

}  // namespace

void addDoctor(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("doctor", "Find what keeps MBCAS from working, and how to fix it");
  command->footer(kFooter);
  command->add_flag("-A,--all-namespaces", flags->all_namespaces,
                    "Pods of all namespaces (the default without -n)");
  command->add_flag("--host", flags->host, "This machine, not a cluster");
  command->add_option("--cgroup-root", flags->cgroup_root, "With --host: where cgroups are mounted")
      ->capture_default_str();
  command->add_option("--state", flags->state, "With --host: the file of `mbcas run`")
      ->capture_default_str();
  command->add_option("-o,--output", flags->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  addSystemNamespace(*command, flags->cluster);
  addClusterFlags(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = doctorCommand(*flags); });
}

}  // namespace mbcas::cli
