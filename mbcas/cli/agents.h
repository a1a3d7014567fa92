// Reaching the agents of a cluster through its API server: what they see now, and what they have
// decided before.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mbcas/cli/record.h"
#include "mbcas/cli/snapshot.h"
#include "mbcas/kube/client.h"

namespace mbcas::cli {

inline constexpr const char* kAgentSelector = "app.kubernetes.io/component=agent";

// Each answer to the call of the same index. At most `at_once` are under way; each has the time-out
// of the client.
std::vector<kube::ApiResult<std::string>> performAll(kube::Client& client,
                                                     std::vector<kube::Call> calls,
                                                     std::size_t at_once = 16);

// The pods of the agents, by node. Those that do not run are left out.
std::map<std::string, std::string> agentPods(const std::vector<PodPtr>& pods);

// What agents see, by node: `mbcas-agent observe`, started in their containers by pods/exec. Works
// in the background, so that a screen never waits. One thread.
class AgentStates {
 public:
  static constexpr std::size_t kMostAtOnce = 64;

  AgentStates(kube::Client& client, std::string system_namespace);
  ~AgentStates();
  AgentStates(const AgentStates&) = delete;
  AgentStates& operator=(const AgentStates&) = delete;

  using Agents = std::map<std::string, std::string>;  // names of their pods by node

  // Follows these agents, the first kMostAtOnce of them, and no others. Call it now and then: it
  // begins again, after a while, where an agent has stopped to tell.
  void follow(const Agents& agents);
  // Asks each of them once, and waits for what they answer within that time.
  void askAll(const Agents& agents, Nanos at_most);

  struct Latest {
    std::map<std::string, std::shared_ptr<const NodeRecord>, std::less<>> nodes;
    // What is missing and how to get it, for a person; empty: all of them tell what they see.
    std::string trouble;
  };
  Latest latest() const;

 private:
  struct Shared;
  struct Stream;
  void start(const std::string& node, const std::string& pod, bool once);
  bool startsAgain(const std::string& node, const std::string& pod, const Stream& stream) const;

  kube::Client& client_;
  const std::string system_namespace_;
  std::shared_ptr<Shared> shared_;
  std::map<std::string, std::unique_ptr<Stream>> streams_;  // by node
  std::uint64_t last_ = 0;                                  // number of a stream
};

// Why agents do not tell what they see, as a sentence that says what is missing and how to get it.
std::string whyUnseen(const std::string& node, const std::string& system_namespace,
                      const kube::ApiResult<int>& ended, const std::string& complaint);

// Lines out of pieces. A line that is too long is left out.
class LineReader {
 public:
  LineReader(std::size_t longest, std::function<void(std::string line)> take)
      : longest_(longest), take_(std::move(take)) {}
  void feed(std::string_view piece);
  void finish();  // what has no end is a line, too

 private:
  std::size_t longest_;
  std::function<void(std::string line)> take_;
  std::string partial_;
  bool too_long_ = false;
};

// The last `most` decisions about a pod in the log of its agent, oldest first.
kube::ApiResult<std::vector<Decision>> readDecisions(kube::Client& client,
                                                     const std::string& system_namespace,
                                                     const std::string& agent_pod,
                                                     const std::string& name_space,
                                                     const std::string& pod, std::size_t most);
// The same from the text of a log, fed in pieces.
class DecisionLog {
 public:
  DecisionLog(std::string name_space, std::string pod, std::size_t most);
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;
  void feed(std::string_view piece) { lines_.feed(piece); }
  std::vector<Decision> take();  // after the last piece

 private:
  void line(std::string_view text);

  std::string name_space_;
  std::string pod_;
  std::size_t most_;
  LineReader lines_;
  std::vector<Decision> decisions_;
};

}  // namespace mbcas::cli
