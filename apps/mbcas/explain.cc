// mbcas explain: how a pod came to its limit, and what would give it more.
#include "mbcas/cli/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/host_state.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/cli/agents.h"

namespace mbcas::cli {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas explain shop/web-7d4b9c-x2x8k
  mbcas explain -n shop web-7d4b9c-x2x8k -o json
  mbcas explain --host web        # a pod of `mbcas run` on this machine

From the kernel's counters to the limit in force: each step with its numbers and its rule, who set
the bounds and why, and what would have to change for the pod to get more; for a pod that is left
alone, why. The numbers are those of the agent on the pod's node: its present state where it is
served (--metrics-bind-address), else its last decision in its log. Without either, what
PodAllocation and pod say.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

constexpr std::size_t kBefore = 5;  // decisions that are shown
constexpr Nanos kPatience = std::chrono::seconds(5);

struct Flags {
  ClusterFlags cluster;
  std::string pod;
  bool host = false;
  std::string socket;
  std::string output = "text";
};

int fail(const std::string& message) {
  complain("mbcas explain", message);
  return kFailed;
}

int show(const Evidence& evidence, const Flags& flags) {
  const Explanation explanation = explain(evidence);
  if (flags.output == "json") {
    fmt::print("{}\n", explanationJson(evidence, explanation));
    return kDone;
  }
  for (const std::string& note : evidence.notes) complain("mbcas explain", note);
  fmt::print("{}",
             explanationText(explanation, wantsColours(), isTerminal() ? terminalSize().width : 0));
  if (!evidence.trouble.empty()) {
    say("");
    say(evidence.trouble);
  }
  return kDone;
}

// What the agent of the pod's node knows: from itself, or from its log.
void askAgent(kube::Client& client, const std::string& system_namespace, Evidence& evidence) {
  if (evidence.node.empty()) return;
  const auto pods = client.list<kube::Pod>({.name_space = system_namespace,
                                            .label_selector = kAgentSelector,
                                            .field_selector = "spec.nodeName=" + evidence.node});
  if (!pods) {
    evidence.trouble = fmt::format("The agents cannot be found: {}", pods.error().describe());
    return;
  }
  const auto agents = agentPods(pods->items);
  if (agents.empty()) {
    evidence.trouble = fmt::format(
        "No agent runs on {}, so there are no counters: mbcas doctor tells more.", evidence.node);
    return;
  }
  const std::string& agent = agents.begin()->second;
  AgentStates states(client, system_namespace);
  states.askAll(agents, kPatience);
  const AgentStates::Latest latest = states.latest();
  auto decisions = readDecisions(client, system_namespace, agent, evidence.name_space, evidence.pod,
                                 kBefore + 1);
  if (const auto found = latest.nodes.find(evidence.node); found != latest.nodes.end()) {
    const NodeRecord& node = *found->second;
    if (const PodRecord* const record = node.find(evidence.name_space, evidence.pod)) {
      evidence.decision = Decision{node.node, node.time, node.market, *record};
      evidence.source = "agent " + agent;
    }
  }
  if (decisions && !evidence.decision && !decisions->empty()) {
    evidence.decision = std::move(decisions->back());
    decisions->pop_back();
    evidence.source = "log of " + agent;
  }
  if (decisions) evidence.before = std::move(*decisions);
  if (evidence.decision) return;
  evidence.trouble = fmt::format(
      "The counters are not known: agent {} has no decision about it in its log{}. Its present "
      "state "
      "can be asked for when it is started with --metrics-bind-address :{}.",
      agent,
      !decisions               ? fmt::format(" that can be read ({})", decisions.error().describe())
      : latest.trouble.empty() ? ""
                               : fmt::format(", and did not answer ({})", latest.trouble),
      kAgentPort);
}

int explainOfCluster(const Flags& flags) {
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return fail(connection.error().message() + "; for this machine: --host");
  kube::Client& client = (*connection)->client();
  const Target target = targetOf(flags.pod, (*connection)->defaultNamespace());
  const auto snapshot = takeSnapshot(client, {.name_space = target.name_space, .pod = target.pod},
                                     flags.cluster.system_namespace);
  if (!snapshot) return fail(snapshot.error().describe());
  if (snapshot->pods.empty()) {
    return fail(fmt::format("no pod {} in namespace {}", target.pod, target.name_space));
  }
  const PodPtr& pod = snapshot->pods.front();
  Evidence evidence{.name_space = target.name_space,
                    .pod = target.pod,
                    .node = pod->node.string(),
                    .object = pod,
                    .verdict = judge(*snapshot, *pod),
                    .notes = snapshot->notes};
  if (const auto found = snapshot->allocations.find(pod->meta.uid.view());
      found != snapshot->allocations.end()) {
    evidence.allocation = found->second;
  }
  // Of a pod that is left alone the counters explain nothing.
  if (evidence.verdict->policy.managed) {
    askAgent(client, flags.cluster.system_namespace, evidence);
  }
  evidence.now = (*connection)->clock().wall();
  return show(evidence, flags);
}

int explainOfHost(const Flags& flags) {
  const Result<NodeRecord> state = readHostState(flags.socket);
  if (!state) return fail(state.error().message());
  const kube::SplitKey key = kube::splitKey(flags.pod);
  const PodRecord* const record = state->find(key.name_space, key.name);
  if (record == nullptr) {
    return fail(
        fmt::format("no pod {} among the {} of {}", flags.pod, state->pods.size(), state->node));
  }
  return show({.name_space = record->name_space,
               .pod = record->pod,
               .node = state->node,
               .decision = Decision{state->node, state->time, state->market, *record},
               .source = "state of " + state->node,
               .now = SystemClock().wall()},
              flags);
}

}  // namespace

void addExplain(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "explain", "Tell how a pod came to its limit, and what would give it more");
  command->footer(kFooter);
  command->add_option("POD", flags->pod, "NAMESPACE/POD, or POD")->required();
  command->add_flag("--host", flags->host, "A pod of `mbcas run` on this machine");
  addSocketFlag(*command, flags->socket);
  command->add_option("-o,--output", flags->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  addSystemNamespace(*command, flags->cluster);
  addClusterFlags(*command, flags->cluster);
  command->callback([flags, &exit_code] {
    if (!isTarget(flags->pod)) {
      complain("mbcas explain", fmt::format("{}: not NAMESPACE/POD or POD", flags->pod));
      exit_code = kUsage;
      return;
    }
    exit_code = flags->host ? explainOfHost(*flags) : explainOfCluster(*flags);
  });
}

}  // namespace mbcas::cli
