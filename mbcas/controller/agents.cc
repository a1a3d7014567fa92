#include "mbcas/controller/agents.h"

#include <algorithm>

namespace mbcas::controller {

void AgentWatch::serverServes(bool serves, MonotonicTime now) {
  if (!serves) {
    listening_since_.reset();
  } else if (!listening_since_) {
    listening_since_ = now;
  }
}

void AgentWatch::heard(const std::string& node, WallTime renewed, MonotonicTime now) {
  const auto [agent, is_new] = agents_.try_emplace(node, Agent{renewed, now});
  if (!is_new && agent->second.renewed != renewed) agent->second = {renewed, now};
}

AgentWatch::Changes AgentWatch::review(const std::vector<NodeState>& nodes, MonotonicTime now,
                                       Nanos silence) {
  Changes changes;
  std::set<std::string, std::less<>> left = silent_;
  for (const NodeState& node : nodes) {
    if (!node.ready) continue;
    left.erase(node.name);
    if (!silent_.contains(node.name)) {
      if (notHeard(node.name, now, silence)) changes.suspects.push_back(node.name);
      continue;
    }
    // Only a renewal ends a silence; an outage of the server does not.
    const auto agent = agents_.find(node.name);
    if (agent == agents_.end() || now - agent->second.at >= silence) continue;
    silent_.erase(node.name);
    changes.back.push_back(node.name);
  }
  for (const std::string& node : left) silent_.erase(node);
  changes.gone.assign(left.begin(), left.end());
  return changes;
}

bool AgentWatch::notHeard(const std::string& node, MonotonicTime now, Nanos silence) const {
  if (!listening_since_) return false;
  MonotonicTime since = *listening_since_;
  if (const auto agent = agents_.find(node); agent != agents_.end()) {
    since = std::max(since, agent->second.at);
  }
  return now - since >= silence;
}

std::string nodeOfLease(const kube::Lease& lease) {
  std::string_view name = lease.meta.name;
  if (!name.starts_with(kAgentLease)) return {};
  name.remove_prefix(kAgentLease.size());
  return std::string(name);
}

}  // namespace mbcas::controller
