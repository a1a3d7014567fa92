#include "mbcas/controller/agents.h"

#include <algorithm>

namespace mbcas::controller {

void AgentWatch::serverAnswers(bool answers, MonotonicTime now) {
  if (!answers) {
    listening_since_.reset();
  } else if (!listening_since_) {
    listening_since_ = now;
  }
}

void AgentWatch::heard(const std::string& node, WallTime renewed, MonotonicTime now) {
  const auto [agent, is_new] = agents_.try_emplace(node, Agent{renewed, now});
  if (!is_new && agent->second.renewed != renewed) agent->second = {renewed, now};
}

bool AgentWatch::silent(const std::string& node, MonotonicTime now, Nanos silence) const {
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
