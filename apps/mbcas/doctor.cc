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
#include "mbcas/cli/install_checkup.h"

namespace mbcas::app {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas doctor                    # the cluster: server, definition, permissions, agents, pods
  mbcas doctor -n shop            # the same, and of pods only those of one namespace
  mbcas doctor --pre              # before an installation: can it work here, and may I install it?
  mbcas doctor --pre --architectures amd64,arm64   # with images that have both
  mbcas doctor --host             # this machine: cgroups, limits, pressure
  mbcas doctor -o json | jq '.findings[] | select(.level == "problem")'

A note is something to know. A problem keeps MBCAS from working, or from working everywhere. The
arrow points to what you can do about it. A server that does not answer is a problem, too.

Exit code: 0 no problems, 1 problems, 2 the command is wrong.)";

// `make images` makes the images on the machine, and so for the architecture, that this program is
// made on.
constexpr const char* kOwnArchitecture =
#if defined(__aarch64__)
    "arm64";
#else
    "amd64";
#endif

struct Flags {
  ClusterFlags cluster;
  bool all_namespaces = false;
  bool host = false;
  bool pre = false;
  std::vector<std::string> architectures = {kOwnArchitecture};
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string state = kHostState;
  std::string output;
};

cli::Findings unreachable(std::string what, std::string remedy) {
  return {{cli::Finding::Level::kProblem, "server", std::move(what), std::move(remedy)}};
}

// What there is to say of a cluster, also if that is only why there is nothing else to say.
cli::Findings examine(const Flags& flags) {
  if (const auto config = findCluster(flags.cluster); !config) {
    return unreachable(config.error().message(), kNoClusterRemedy);
  }
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return unreachable(connection.error().message(), kNoClusterRemedy);
  kube::Client& client = (*connection)->client();
  constexpr const char* kRemedy =
      "is the cluster up, and is it the right one? kubectl cluster-info, kubectl config "
      "get-contexts";
  if (flags.pre) {
    const Result<cli::InstallFacts> facts =
        cli::examineBefore(client, flags.cluster.system_namespace, flags.architectures);
    return facts ? cli::diagnoseBefore(*facts) : unreachable(facts.error().message(), kRemedy);
  }
  const cli::Selection selection{.name_space =
                                     flags.all_namespaces ? "" : flags.cluster.name_space};
  const Result<cli::ClusterFacts> facts =
      cli::examineCluster(client, selection, flags.cluster.system_namespace);
  return facts ? cli::diagnose(*facts) : unreachable(facts.error().message(), kRemedy);
}

int doctorCommand(const Flags& flags) {
  const cli::Findings findings =
      flags.host ? cli::diagnose(cli::examineHost(flags.cgroup_root, "/proc", flags.state))
                 : examine(flags);
  if (isDocument(flags.output)) {
    printDocument(cli::findingsJson(findings), flags.output);
  } else if (flags.output == "name") {
    for (const cli::Finding& finding : findings) {
      say(fmt::format("{}/{}", name(finding.level), finding.area));
    }
  } else {
    fmt::print(
        "{}", cli::findingsText(findings, wantsColours(), isTerminal() ? terminalSize().width : 0));
  }
  return cli::healthy(findings) ? kDone : kFailed;
}

}  // namespace

void addDoctor(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("doctor", "Find what keeps MBCAS from working, and how to fix it");
  command->footer(kFooter);
  command
      ->add_flag("-A,--all-namespaces", flags->all_namespaces,
                 "Pods of all namespaces (the default without -n)")
      ->group(kPodGroup);
  CLI::Option* const pre = command->add_flag(
      "--pre", flags->pre, "Before an installation: whether MBCAS can be installed and would work");
  command
      ->add_option("--architectures", flags->architectures,
                   "With --pre: what the images have; several, with commas")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(pre)
      ->default_str(kOwnArchitecture);
  addOutput(*command, flags->output, {"text", "json", "yaml", "name"});
  command->add_flag("--host", flags->host, "This machine, not a cluster")
      ->group(kHostGroup)
      ->excludes(pre);
  command->add_option("--cgroup-root", flags->cgroup_root, "With --host: where cgroups are mounted")
      ->type_name("FOLDER")
      ->group(kHostGroup)
      ->capture_default_str();
  command->add_option("--state", flags->state, "With --host: the file of `mbcas run`")
      ->type_name("FILE")
      ->group(kHostGroup)
      ->capture_default_str();
  addClusterFlags(*command, flags->cluster);
  addSystemNamespace(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = doctorCommand(*flags); });
}

}  // namespace mbcas::app
