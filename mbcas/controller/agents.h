// Which agents are silent. An agent speaks by renewing its Lease; what counts is our own
// observation: the time since its last renewal reached us, while we could have heard it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/kube/types.h"

namespace mbcas::controller {

inline constexpr std::string_view kAgentLease = "mbcas-agent-";  // and the node's name

// Pure; not thread-safe.
class AgentWatch {
 public:
  // Whether the API server can serve what agents write. While it cannot, no agent can be heard, and
  // after it can again every agent is given the whole time from the beginning.
  void serverServes(bool serves, MonotonicTime now);
  // The Lease of an agent was seen, renewed at `renewed` by its own clock (compared only with what
  // it said before).
  void heard(const std::string& node, WallTime renewed, MonotonicTime now);
  void leaseGone(const std::string& node) { agents_.erase(node); }

  struct NodeState {
    std::string name;
    bool ready = false;  // the agent of a node that is not Ready cannot be expected to speak
  };
  struct Changes {
    std::vector<std::string> suspects;  // silent by what has reached us: ask the server, confirm()
    std::vector<std::string> back;      // were silent, and have been heard
    std::vector<std::string> gone;      // were silent; the node is deleted or not Ready
  };
  // `nodes`: all that there are.
  Changes review(const std::vector<NodeState>& nodes, MonotonicTime now, Nanos silence);
  void confirm(const std::string& node) { silent_.insert(node); }

  bool isSilent(std::string_view node) const { return silent_.contains(node); }
  std::size_t silentAgents() const { return silent_.size(); }

 private:
  bool notHeard(const std::string& node, MonotonicTime now, Nanos silence) const;

  struct Agent {
    WallTime renewed;
    MonotonicTime at;
  };
  std::map<std::string, Agent, std::less<>> agents_;
  std::set<std::string, std::less<>> silent_;  // nodes
  std::optional<MonotonicTime> listening_since_;
};

// The node of an agent's Lease; empty if it is another Lease.
std::string nodeOfLease(const kube::Lease& lease);

}  // namespace mbcas::controller
