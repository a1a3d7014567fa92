// Whether the agent sees: its watches hear from the API server, and it can read the cgroups of its
// pods. A blind agent must not claim that all is well. It stops renewing its Lease, so that the
// controller gives its pods their original limits back, and it publishes nothing.
//
//   const Sight sight = look(evidence, {}, now);
//   if (sight.state == Sight::State::kBlind) complain(sight.why);
//
// Everything here is pure. Evidence is the time at which something was last known to work.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"

namespace mbcas::agent {

// What the kernel's files have shown. Managed pods are those that the agent decides about and that
// the kubelet says run.
struct CgroupEvidence {
  // The last sample that read at least one managed pod, or, where there is none, found the root of
  // the cgroup tree readable.
  std::optional<MonotonicTime> read{};
  std::size_t managed = 0;  // at the last sample
  std::string error{};      // why nothing could be read at the last sample
};

struct WatchEvidence {
  std::string_view kind{};               // plural, as in "pods"
  std::optional<MonotonicTime> heard{};  // the last event, bookmark or complete list
  std::string error{};                   // the last failure since then, if any
};

struct Evidence {
  MonotonicTime started{};
  std::vector<WatchEvidence> watches{};
  // Since when the server has answered what else it was asked (Answers::since). Nothing: it does
  // not answer, and then it is no fault of a watch that it brings nothing.
  std::optional<MonotonicTime> answering{};
  CgroupEvidence cgroups{};
};

// Since when the API server has answered without a break. After an outage every watch gets its
// whole time again, because watches come back later than other requests.
class Answers {
 public:
  // Two renewals of the Lease in a row have failed, or the agent itself was stopped.
  static constexpr Nanos kBreak = std::chrono::seconds(25);

  void answered(MonotonicTime now) {
    if (now - last_ > kBreak) since_.reset();
    if (!since_) since_ = now;
    last_ = now;
  }
  void failed(MonotonicTime now) {
    if (now - last_ > kBreak) since_.reset();
  }
  void forget() { since_.reset(); }
  std::optional<MonotonicTime> since() const { return since_; }

 private:
  std::optional<MonotonicTime> since_{};
  MonotonicTime last_{};
};

// How old evidence may be.
struct SightBounds {
  // A watch without events brings a bookmark every minute. One that brings nothing for a third of
  // this is opened again, and brings its first bookmark a minute later. After an outage of less
  // than Answers::kBreak it may also wait 50 s before it is opened.
  Nanos watches = std::chrono::seconds(240);
  // Several samples, and longer than a container needs to restart.
  Nanos cgroups = std::chrono::seconds(30);
};

struct Sight {
  enum class State {
    kStarting,  // not everything has been seen yet
    kSeeing,
    kBlind,
  };
  State state = State::kStarting;
  std::string what{};    // is not seen, and since when; empty if kSeeing
  std::string remedy{};  // what to do next, for kBlind

  bool seeing() const { return state == State::kSeeing; }
};

Sight look(const Evidence& evidence, const SightBounds& bounds, MonotonicTime now);

// ---- Probes ----

// What the kubelet asks about. The answer itself shows that the agent's own loop runs.
struct Health {
  Sight sight{};
  std::string refused{};      // what the server says to the Lease; empty: it accepts it
  Nanos http_loop_silent{0};  // how long the HTTP loop owes an answer
};

// Beyond this the HTTP loop hangs, and only a restart helps.
inline constexpr Nanos kHttpLoopBound = std::chrono::seconds(60);

// One line for each probe, "live: ok" or "live: what is wrong", which mbcas-agent --probe reads.
std::string probeAnswer(const Health& health);
// Of one probe, "live" or "ready": an error says what is wrong.
Result<void> readProbe(std::string_view answer, std::string_view probe);

}  // namespace mbcas::agent
