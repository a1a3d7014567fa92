#include "mbcas/cli/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "mbcas/kube/exec.h"

namespace mbcas::cli {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;
constexpr std::size_t kLongestState = 8 << 20;
constexpr const char* kAgentProgram = "/usr/local/bin/mbcas-agent";
constexpr Nanos kSilence = std::chrono::seconds(30);   // after which a stream has broken
constexpr Nanos kPause = std::chrono::seconds(5);      // before a broken one begins again
constexpr Nanos kLongPause = std::chrono::minutes(1);  // before a refused one does
constexpr const char* kLines = "5000";                 // of the log that are read

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

// What the handlers of streams write to; it outlives the object where one of them still runs.
struct AgentStates::Shared {
  mutable std::mutex mutex;
  std::condition_variable changed;
  struct Seen {
    std::uint64_t stream = 0;  // which one may write here
    std::shared_ptr<const NodeRecord> record;
    std::string trouble;
    bool refused = false;  // another try would be refused again
    bool ended = false;
    MonotonicTime ended_at{};
  };
  std::map<std::string, Seen> nodes;
};

struct AgentStates::Stream {
  std::string pod;
  std::unique_ptr<kube::Exec> exec;
};

AgentStates::AgentStates(kube::Client& client, std::string system_namespace)
    : client_(client),
      system_namespace_(std::move(system_namespace)),
      shared_(std::make_shared<Shared>()) {}
AgentStates::~AgentStates() = default;

void AgentStates::start(const std::string& node, const std::string& pod, bool once) {
  const std::uint64_t number = ++last_;
  streams_.erase(node);
  {
    const std::lock_guard lock(shared_->mutex);
    Shared::Seen& seen = shared_->nodes[node];
    seen.stream = number;
    seen.ended = false;
  }
  // Runs what changes the node's entry, unless another stream has taken it over.
  const auto change = [shared = shared_, node, number](const auto& apply) {
    const std::lock_guard lock(shared->mutex);
    const auto found = shared->nodes.find(node);
    if (found == shared->nodes.end() || found->second.stream != number) return;
    apply(found->second);
    shared->changed.notify_all();
  };
  const auto lines = std::make_shared<LineReader>(kLongestState, [change](std::string line) {
    Result<NodeRecord> record = parseState(std::move(line));
    change([&](Shared::Seen& seen) {
      seen.trouble = record ? "" : record.error().message();
      seen.record = record ? std::make_shared<const NodeRecord>(*std::move(record)) : nullptr;
    });
  });
  kube::ExecRequest request{.name_space = system_namespace_,
                            .pod = pod,
                            .container = "agent",
                            .command = {kAgentProgram, "observe"},
                            .idle_timeout = kSilence};
  if (once) request.command.emplace_back("--once");
  auto stream = std::make_unique<Stream>(pod, nullptr);
  stream->exec = std::make_unique<kube::Exec>(
      client_, std::move(request),
      kube::ExecHandlers{
          .out = [lines](std::string_view piece) { lines->feed(piece); },
          .done =
              [lines, change, node, name_space = system_namespace_, &clock = client_.clock()](
                  const kube::ApiResult<int>& ended, const std::string& complaint) {
                lines->finish();
                change([&](Shared::Seen& seen) {
                  seen.ended = true;
                  seen.ended_at = clock.monotonic();
                  if (ended && *ended == 0 && seen.record) return;
                  seen.record = nullptr;
                  seen.refused = !ended && ended.error().answered();
                  seen.trouble = whyUnseen(node, name_space, ended, complaint);
                });
              }});
  streams_[node] = std::move(stream);
}

bool AgentStates::startsAgain(const std::string& node, const std::string& pod,
                              const Stream& stream) const {
  if (stream.pod != pod) return true;
  const std::lock_guard lock(shared_->mutex);
  const auto found = shared_->nodes.find(node);
  if (found == shared_->nodes.end()) return true;
  const Shared::Seen& seen = found->second;
  if (!seen.ended) return false;
  const Nanos pause = seen.trouble.empty() ? Nanos(0) : seen.refused ? kLongPause : kPause;
  return client_.clock().monotonic() - seen.ended_at >= pause;
}

void AgentStates::follow(const Agents& agents) {
  Agents now;
  for (const auto& entry : agents) {
    if (now.size() < kMostAtOnce) now.insert(entry);
  }
  std::erase_if(streams_, [&](const auto& entry) { return !now.contains(entry.first); });
  {
    const std::lock_guard lock(shared_->mutex);
    std::erase_if(shared_->nodes, [&](const auto& entry) { return !now.contains(entry.first); });
  }
  for (const auto& [node, pod] : now) {
    const auto found = streams_.find(node);
    if (found == streams_.end() || startsAgain(node, pod, *found->second)) start(node, pod, false);
  }
}

void AgentStates::askAll(const Agents& agents, Nanos at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  const auto asked = [&] {
    std::size_t count = 0;
    for (const auto& [node, seen] : shared_->nodes) count += seen.ended ? 0 : 1;
    return count;
  };
  const auto wait_for = [&](std::size_t at_once) {
    std::unique_lock lock(shared_->mutex);
    return shared_->changed.wait_until(lock, deadline, [&] { return asked() <= at_once; });
  };
  for (const auto& [node, pod] : agents) {
    if (!wait_for(kMostAtOnce - 1)) return;
    start(node, pod, true);
  }
  (void)wait_for(0);
}

AgentStates::Latest AgentStates::latest() const {
  const std::lock_guard lock(shared_->mutex);
  Latest latest;
  for (const auto& [node, seen] : shared_->nodes) {
    if (seen.record) latest.nodes[node] = seen.record;
    if (latest.trouble.empty()) latest.trouble = seen.trouble;
  }
  return latest;
}

std::string whyUnseen(const std::string& node, const std::string& system_namespace,
                      const kube::ApiResult<int>& ended, const std::string& complaint) {
  if (!ended && ended.error().code == 403) {
    // The server's words come last, because the page of `mbcas ui` cuts what is too long for it.
    return fmt::format(
        "what agents see (throttling, pressure, price) is missing, because you may not exec in "
        "their pods. A cluster-admin can allow it: kubectl -n {} create rolebinding observers "
        "--role mbcas-observe --user NAME. The server says: {}",
        system_namespace, ended.error().message);
  }
  const std::string last = complaint.substr(0, complaint.find('\n'));
  std::string why = ended          ? fmt::format("mbcas-agent observe ended with {}", *ended)
                    : last.empty() ? ended.error().describe()
                                   : "";
  if (!last.empty()) why += (why.empty() ? "" : ": ") + last;
  return fmt::format("what the agent of node {} sees is missing: {}", node, why);
}

void LineReader::feed(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    if (partial_.size() + part.size() > longest_) too_long_ = true;
    if (too_long_) {
      partial_.clear();
    } else {
      partial_ += part;
    }
    if (end == std::string_view::npos) return;
    piece.remove_prefix(end + 1);
    std::string line = std::exchange(partial_, {});
    if (!std::exchange(too_long_, false)) take_(std::move(line));
  }
}

void LineReader::finish() {
  if (!partial_.empty()) take_(std::exchange(partial_, {}));
}

DecisionLog::DecisionLog(std::string name_space, std::string pod, std::size_t most)
    : name_space_(std::move(name_space)),
      pod_(std::move(pod)),
      most_(most),
      lines_(kLongestLine, [this](const std::string& text) { line(text); }) {}

void DecisionLog::line(std::string_view text) {
  // Most lines are about others: not worth being parsed.
  if (!text.starts_with('{') || text.find(pod_) == std::string_view::npos) return;
  Result<Decision> decision = parseDecision(std::string(text));
  if (!decision || decision->pod.pod != pod_ || decision->pod.name_space != name_space_) return;
  decisions_.push_back(*std::move(decision));
  if (decisions_.size() > most_) decisions_.erase(decisions_.begin());
}

std::vector<Decision> DecisionLog::take() {
  lines_.finish();
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
