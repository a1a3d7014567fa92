// The controller at work: looks at pods whose key is in the queue, decides (decide.h), and does
// what was decided. All state that matters is in the cluster; any number of engines may have run
// before.
//
//   Engine engine(client, {.audit = ..., .log = ...});
//   engine.start();                   // watches
//   engine.lead();                    // after sync and election: works
//   engine.stop();                    // what is in hand is finished
//
// None of these calls waits for the API server, but for stop(), which lets requests that are under
// way end.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/kube/client.h"
#include "mbcas/policy/settings.h"

namespace mbcas::controller {

// The steps of a decision after which a test may end the process: nothing may be lost, nothing done
// twice.
enum class Step : std::uint8_t {
  kDecided,           // nothing was done yet
  kOriginalRecorded,  // the original is in the allocation's status
  kResizeSent,        // the server has accepted the resize
  kActuated,          // the kubelet has done it; the status does not say so yet
  kStatusWritten,
  kOriginalKept,       // the original is in the pod's annotation, too
  kOriginalForgotten,  // restored, and the annotation is gone
};
inline constexpr Step kSteps[] = {
    Step::kDecided,       Step::kOriginalRecorded, Step::kResizeSent,       Step::kActuated,
    Step::kStatusWritten, Step::kOriginalKept,     Step::kOriginalForgotten};
std::string_view name(Step step);

struct EngineOptions {
  std::string name_space = "mbcas-system";  // of agents' Leases and of the settings
  policy::SettingsData overrides;           // by flags; published when leading begins
  policy::SettingsData initial;             // of what neither those nor the ConfigMap name
  int workers = 8;
  bool dry_run = false;
  double give_backs_per_second = 20;  // raises for silent agents, in the whole cluster
  // A reconciliation of a pod, or a check of the agents, that takes longer than this is stuck: see
  // live(). Every request has a time-out, so that an API server that does not answer makes nothing
  // stuck.
  Nanos stuck_after = std::chrono::minutes(15);
  // A watch that has been failing for so long does not keep up: see ready().
  Nanos behind_after = std::chrono::minutes(3);
  std::function<void(const std::string& line)> audit;
  // Lines for people: what happens, and what goes wrong (null: `log` is told that, too). In a storm
  // some are left out, and a line says how many.
  std::function<void(const std::string& line)> log;
  std::function<void(const std::string& line)> log_error;
  std::function<void(Step)> after;  // for tests
};

class Engine {
 public:
  // `client` must outlive it.
  Engine(kube::Client& client, EngineOptions options);
  ~Engine();  // stops

  // Starts the watches.
  void start();
  bool hasSynced() const;
  bool waitForSync(Nanos timeout) const;
  // Begins to work: publishes the settings and looks at every pod, on threads of its own. To be
  // called once, by the leader, after the sync; after stop() it does nothing. Fails if the settings
  // make no sense.
  Result<void> lead();
  // Begins nothing new, and drops what is in line: whoever leads next finds it again.
  void stop();

  policy::Settings settings() const;

  // For probes, with what is wrong. Live: no look at a pod or at the agents is stuck; if one is,
  // only a restart helps. Ready: the first lists are in, and every watch keeps up.
  Result<void> live() const;
  Result<void> ready() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::controller
