// Which agents are silent. An agent speaks by renewing its Lease; what counts is our own
// observation: the time since its last renewal reached us, while we could have heard it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/kube/types.h"

namespace mbcas::controller {

inline constexpr std::string_view kAgentLease = "mbcas-agent-";  // and the node's name

// Pure; not thread-safe.
class AgentWatch {
 public:
  // Whether the API server answers. While it does not, nobody can be heard, and after it does again
  // everybody is given the whole time anew.
  void serverAnswers(bool answers, MonotonicTime now);
  // The Lease of an agent was seen, renewed at `renewed` by its own clock (compared only with what
  // it said before).
  void heard(const std::string& node, WallTime renewed, MonotonicTime now);
  void leaseGone(const std::string& node) { agents_.erase(node); }

  bool silent(const std::string& node, MonotonicTime now, Nanos silence) const;

 private:
  struct Agent {
    WallTime renewed;
    MonotonicTime at;
  };
  std::map<std::string, Agent, std::less<>> agents_;
  std::optional<MonotonicTime> listening_since_;
};

// The node of an agent's Lease; empty if it is another Lease.
std::string nodeOfLease(const kube::Lease& lease);

}  // namespace mbcas::controller
