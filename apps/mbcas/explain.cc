// mbcas explain: how a pod came to its limit, and what would give it more.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <set>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/evidence.h"
#include "apps/mbcas/host_state.h"
#include "apps/mbcas/targets.h"
#include "apps/mbcas/terminal.h"

namespace mbcas::app {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas explain shop/web-7d4b9c-x2x8k
  mbcas explain -n shop web-7d4b9c-x2x8k -o json
  mbcas explain -n shop deploy/web       # each of its pods
  mbcas explain --host web        # a pod of `mbcas run` on this machine

The output leads from the kernel's counters to the limit in force. It shows each step with its
numbers and its rule, who set the bounds and why, and what would have to change for the pod to get
more. For a pod that is left alone it says why. The numbers come from the agent on the pod's node:
its present state, for which `mbcas-agent observe` is started there by pods/exec (the Role
mbcas-observe allows it), or else its last decision in its log. Without either, the output shows
what the PodAllocation and the pod say.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

struct Flags {
  ClusterFlags cluster;
  std::string pod;
  bool host = false;
  std::string socket;
  std::string output;
};

int fail(const std::string& message) {
  complain("mbcas explain", message);
  return kFailed;
}

// All of them, as text or as one document: a pod, or of a workload a list of its pods.
int show(const std::vector<cli::Evidence>& all, const Flags& flags, const std::string& workload) {
  if (flags.output == "name") {
    for (const cli::Evidence& evidence : all) say("pod/" + evidence.pod);
    return kDone;
  }
  if (isDocument(flags.output)) {
    std::string json;
    for (const cli::Evidence& evidence : all) {
      json += (json.empty() ? "" : ",") + cli::explanationJson(evidence, cli::explain(evidence));
    }
    if (!workload.empty()) json = R"({"pods":[)" + json + "]}";
    printDocument(json, flags.output);
    return kDone;
  }
  const std::size_t width = isTerminal() ? terminalSize().width : 0;
  std::set<std::string> told;
  for (const cli::Evidence& evidence : all) {
    for (const std::string& note : evidence.notes) {
      if (told.insert(note).second) complain("mbcas explain", note);
    }
    if (&evidence != all.data()) fmt::print("\n\n");
    fmt::print("{}", cli::explanationText(cli::explain(evidence), wantsColours(), width));
    if (evidence.trouble.empty()) continue;
    say("");
    say(evidence.trouble);
  }
  return kDone;
}

int explainOfCluster(const Flags& flags, const cli::Target& target) {
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return fail(connection.error().message());
  const auto targets =
      findTargets((*connection)->client(), target, (*connection)->defaultNamespace());
  if (!targets) return fail(targets.error().message());
  if (targets->pods.size() > 1) complain("mbcas explain", targets->announcement());
  std::vector<cli::Evidence> all;
  for (const std::string& pod : targets->pods) {
    Result<cli::Evidence> evidence =
        evidenceOf(**connection, targets->name_space, pod, flags.cluster.system_namespace);
    if (!evidence) return fail(evidence.error().message());
    all.push_back(*std::move(evidence));
  }
  return show(all, flags, targets->workload);
}

int explainOfHost(const Flags& flags, const cli::Target& target) {
  if (!target.isPod()) {
    return fail(flags.pod + ": with --host there are only pods; mbcas top --host lists them");
  }
  const Result<cli::NodeRecord> state = readHostState(flags.socket);
  if (!state) return fail(state.error().message());
  Result<cli::Evidence> evidence = evidenceOf(*state, target.name_space, target.name);
  if (!evidence) return fail(evidence.error().message());
  return show({*std::move(evidence)}, flags, "");
}

}  // namespace

void addExplain(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "explain", "Explain how a pod came to its limit, and what would give it more");
  command->footer(kFooter);
  command->add_option("POD", flags->pod, kTargetHelp)->required();
  addOutput(*command, flags->output, {"text", "json", "yaml", "name"});
  command->add_flag("--host", flags->host, "A pod of `mbcas run`, or of an agent, on this machine")
      ->group(kHostGroup);
  addSocketFlag(*command, flags->socket);
  addClusterFlags(*command, flags->cluster);
  addSystemNamespace(*command, flags->cluster);
  command->callback([flags, &exit_code] {
    const std::optional<cli::Target> target = cli::parseTarget(flags->pod);
    if (!target) {
      complain("mbcas explain", notATarget(flags->pod));
      exit_code = kUsage;
      return;
    }
    exit_code = flags->host ? explainOfHost(*flags, *target) : explainOfCluster(*flags, *target);
  });
}

}  // namespace mbcas::app
