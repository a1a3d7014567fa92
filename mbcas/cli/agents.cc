#include "mbcas/cli/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>

namespace mbcas::cli {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;
constexpr std::size_t kMostAtOnce = 64;  // agents that are being asked
constexpr const char* kLines = "5000";   // of the log that are read

}  // namespace

std::vector<kube::ApiResult<std::string>> performAll(kube::Client& client,
                                                     std::vector<kube::Call> calls,
                                                     std::size_t at_once) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<kube::ApiResult<std::string>> answers(calls.size());
  std::size_t under_way = 0;
  std::unique_lock lock(mutex);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    changed.wait(lock, [&] { return under_way < at_once; });
    ++under_way;
    lock.unlock();
    client.send(std::move(calls[i]), [&, i](kube::ApiResult<std::string> answer) {
      const std::lock_guard guard(mutex);
      answers[i] = std::move(answer);
      --under_way;
      changed.notify_one();
    });
    lock.lock();
  }
  changed.wait(lock, [&] { return under_way == 0; });
  return answers;
}

std::map<std::string, std::string> agentPods(const std::vector<PodPtr>& pods) {
  std::map<std::string, std::string> by_node;
  for (const PodPtr& pod : pods) {
    if (pod->phase != kube::PodPhase::kRunning || pod->node.empty()) continue;
    by_node[pod->node.string()] = pod->meta.name.string();
  }
  return by_node;
}

// Outlives the object where an answer is still to come.
struct AgentStates::Shared {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> asked;
  Latest latest;
};

AgentStates::AgentStates(kube::Client& client, std::string system_namespace)
    : client_(client),
      system_namespace_(std::move(system_namespace)),
      shared_(std::make_shared<Shared>()) {}
AgentStates::~AgentStates() = default;

// False: enough are being asked.
bool AgentStates::start(const std::string& node, const std::string& pod) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->asked.size() >= kMostAtOnce) return false;
    if (!shared_->asked.insert(node).second) return true;
  }
  kube::Call call{.path = fmt::format("/api/v1/namespaces/{}/pods/{}:{}/proxy/state",
                                      system_namespace_, pod, kAgentPort),
                  .retry = false};
  client_.send(std::move(call), [shared = shared_, node](kube::ApiResult<std::string> answer) {
    std::shared_ptr<const NodeRecord> record;
    std::string trouble;
    if (!answer) {
      trouble = answer.error().describe();
    } else if (Result<NodeRecord> parsed = parseState(*std::move(answer))) {
      record = std::make_shared<const NodeRecord>(*std::move(parsed));
    } else {
      trouble = parsed.error().message();
    }
    const std::lock_guard lock(shared->mutex);
    shared->asked.erase(node);
    if (record) {
      shared->latest.nodes[node] = std::move(record);
    } else {
      shared->latest.nodes.erase(node);
      shared->latest.trouble = fmt::format("node {}: {}", node, trouble);
    }
    shared->changed.notify_all();
  });
  return true;
}

void AgentStates::ask(const Agents& agents) {
  auto at = agents.upper_bound(last_asked_);
  for (std::size_t i = 0; i < agents.size(); ++i, ++at) {
    if (at == agents.end()) at = agents.begin();
    if (!start(at->first, at->second)) break;
    last_asked_ = at->first;
  }
  const std::lock_guard lock(shared_->mutex);
  std::erase_if(shared_->latest.nodes,
                [&](const auto& entry) { return !agents.contains(entry.first); });
  if (shared_->latest.nodes.size() == agents.size()) shared_->latest.trouble.clear();
}

void AgentStates::askAll(const Agents& agents, Nanos at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  for (const auto& [node, pod] : agents) {
    while (!start(node, pod)) {
      std::unique_lock lock(shared_->mutex);
      const bool room = shared_->changed.wait_until(
          lock, deadline, [&] { return shared_->asked.size() < kMostAtOnce; });
      if (!room) return;
    }
  }
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_until(lock, deadline, [&] { return shared_->asked.empty(); });
}

AgentStates::Latest AgentStates::latest() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->latest;
}

DecisionLog::DecisionLog(std::string name_space, std::string pod, std::size_t most)
    : name_space_(std::move(name_space)), pod_(std::move(pod)), most_(most) {}

void DecisionLog::feed(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    partial_ += piece.substr(0, end);
    if (end == std::string_view::npos) {
      if (partial_.size() > kLongestLine) partial_.clear();
      return;
    }
    piece.remove_prefix(end + 1);
    line(partial_);
    partial_.clear();
  }
}

void DecisionLog::line(std::string_view text) {
  // Most lines are about others: not worth being parsed.
  if (!text.starts_with('{') || text.find(pod_) == std::string_view::npos) return;
  Result<Decision> decision = parseDecision(std::string(text));
  if (!decision || decision->pod.pod != pod_ || decision->pod.name_space != name_space_) return;
  decisions_.push_back(*std::move(decision));
  if (decisions_.size() > most_) decisions_.erase(decisions_.begin());
}

std::vector<Decision> DecisionLog::take() {
  if (!partial_.empty()) line(partial_);
  return std::move(decisions_);
}

kube::ApiResult<std::vector<Decision>> readDecisions(kube::Client& client,
                                                     const std::string& system_namespace,
                                                     const std::string& agent_pod,
                                                     const std::string& name_space,
                                                     const std::string& pod, std::size_t most) {
  DecisionLog log(name_space, pod, most);
  kube::Call call{
      .path = fmt::format("/api/v1/namespaces/{}/pods/{}/log", system_namespace, agent_pod),
      .query = {{"tailLines", kLines}},
      .accept = "*/*"};
  call.receive = [&](std::string_view piece) -> Result<void> {
    log.feed(piece);
    return {};
  };
  kube::ApiResult<std::string> answer = client.perform(std::move(call));
  if (!answer) return kube::apiFailure(std::move(answer).error());
  return log.take();
}

}  // namespace mbcas::cli
