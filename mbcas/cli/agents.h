// Reaching the agents of a cluster through its API server: what they see now, and what they have
// decided before.
#pragma once

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
inline constexpr int kAgentPort = 8082;

// Each answer to the call of the same index. At most `at_once` are under way; each has the time-out
// of the client.
std::vector<kube::ApiResult<std::string>> performAll(kube::Client& client,
                                                     std::vector<kube::Call> calls,
                                                     std::size_t at_once = 16);

// The pods of the agents, by node. Those that do not run are left out.
std::map<std::string, std::string> agentPods(const std::vector<PodPtr>& pods);

// What the agents answer, by node. Asks in the background, so that a screen never waits.
class AgentStates {
 public:
  AgentStates(kube::Client& client, std::string system_namespace);
  ~AgentStates();
  AgentStates(const AgentStates&) = delete;
  AgentStates& operator=(const AgentStates&) = delete;

  using Agents = std::map<std::string, std::string>;  // names of their pods by node

  // Asks these agents, unless they are being asked already; of very many some now and the others
  // when it is called again.
  void ask(const Agents& agents);
  // Asks each of them once, and waits for what they answer within that time.
  void askAll(const Agents& agents, Nanos at_most);

  struct Latest {
    std::map<std::string, std::shared_ptr<const NodeRecord>, std::less<>> nodes;
    std::string trouble;  // why one of them did not answer; empty: all did
  };
  Latest latest() const;

 private:
  struct Shared;
  bool start(const std::string& node, const std::string& pod);

  kube::Client& client_;
  const std::string system_namespace_;
  std::shared_ptr<Shared> shared_;
  std::string last_asked_;
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
  void feed(std::string_view piece);
  std::vector<Decision> take();  // after the last piece

 private:
  void line(std::string_view text);

  std::string name_space_;
  std::string pod_;
  std::size_t most_;
  std::string partial_;
  std::vector<Decision> decisions_;
};

}  // namespace mbcas::cli
