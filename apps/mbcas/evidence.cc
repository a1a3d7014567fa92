#include "apps/mbcas/evidence.h"

#include <fmt/format.h>

#include <cctype>

#include "mbcas/cli/agents.h"

namespace mbcas::app {
namespace {

constexpr std::size_t kBefore = 5;  // decisions that are shown
constexpr Nanos kPatience = std::chrono::seconds(5);

// What the agent of the pod's node knows: from itself, or from its log.
void askAgent(kube::Client& client, const std::string& system_namespace, cli::Evidence& evidence) {
  if (evidence.node.empty()) return;
  const auto pods = client.list<kube::Pod>({.name_space = system_namespace,
                                            .label_selector = cli::kAgentSelector,
                                            .field_selector = "spec.nodeName=" + evidence.node});
  if (!pods) {
    evidence.trouble = fmt::format("The agents cannot be found: {}", pods.error().describe());
    return;
  }
  const auto agents = cli::agentPods(pods->items);
  if (agents.empty()) {
    evidence.trouble = fmt::format(
        "No agent runs on {}, so there are no counters: mbcas doctor tells more.", evidence.node);
    return;
  }
  const std::string& agent = agents.begin()->second;
  cli::AgentStates states(client, system_namespace);
  states.askAll(agents, kPatience);
  const cli::AgentStates::Latest latest = states.latest();
  auto decisions = cli::readDecisions(client, system_namespace, agent, evidence.name_space,
                                      evidence.pod, kBefore + 1);
  if (const auto found = latest.nodes.find(evidence.node); found != latest.nodes.end()) {
    const cli::NodeRecord& node = *found->second;
    if (const cli::PodRecord* const record = node.find(evidence.name_space, evidence.pod)) {
      evidence.decision = cli::Decision{node.node, node.time, node.market, *record};
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
      "The counters are not known: agent {} has no decision about it in its log{}.", agent,
      decisions ? "" : fmt::format(" that can be read ({})", decisions.error().describe()));
  if (latest.trouble.empty()) return;
  std::string more = latest.trouble;
  more.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(more.front())));
  evidence.trouble += " " + more + ".";
}

}  // namespace

Result<cli::Evidence> evidenceOf(Connection& connection, const std::string& name_space,
                                 const std::string& pod_name, const std::string& system_namespace) {
  kube::Client& client = connection.client();
  const auto snapshot =
      cli::takeSnapshot(client, {.name_space = name_space, .pod = pod_name}, system_namespace);
  if (!snapshot) return failure(explained(snapshot.error()));
  if (snapshot->pods.empty()) {
    return failure(fmt::format("no pod {} in namespace {}; mbcas pods list -n {} lists its pods",
                               pod_name, name_space, name_space));
  }
  const cli::PodPtr& pod = snapshot->pods.front();
  cli::Evidence evidence{.name_space = name_space,
                         .pod = pod_name,
                         .node = pod->node.string(),
                         .object = pod,
                         .verdict = cli::judge(*snapshot, *pod),
                         .notes = snapshot->notes};
  if (const auto found = snapshot->allocations.find(pod->meta.uid.view());
      found != snapshot->allocations.end()) {
    evidence.allocation = found->second;
  }
  // Of a pod that is left alone the counters explain nothing.
  if (evidence.verdict->policy.managed) askAgent(client, system_namespace, evidence);
  evidence.now = connection.clock().wall();
  return evidence;
}

Result<cli::Evidence> evidenceOf(const cli::NodeRecord& state, const std::string& name_space,
                                 const std::string& pod) {
  const cli::PodRecord* const record = state.find(name_space, pod);
  if (record == nullptr) {
    return failure(fmt::format("no pod {} among the {} of {}; mbcas top --host lists them", pod,
                               state.pods.size(), state.node));
  }
  return cli::Evidence{.name_space = record->name_space,
                       .pod = record->pod,
                       .node = state.node,
                       .decision = cli::Decision{state.node, state.time, state.market, *record},
                       .source = "state of " + state.node,
                       .now = SystemClock().wall()};
}

}  // namespace mbcas::app
