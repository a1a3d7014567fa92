// The agent at work on one node: three watches, the pipeline, its reads and writes, the Lease that
// says it is alive, and its state for who asks. Wiring only; what is decided is the pipeline's.
//
//   Agent agent(client, std::make_unique<kernel::PodTree>(mounts), {.node_name = "n1", ...});
//   Result<void> ended = agent.run();      // this thread ticks; stop() or a signal ends it
//
// Two threads: the one in run(), which samples, decides and never waits for the server, and the
// HTTP loop, which does nothing else. While the server does not answer the agent goes on sensing;
// what waits to be written is always the newest. While the agent is blind (sight.h) it writes
// nothing, and does not renew its Lease.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "mbcas/agent/sight.h"
#include "mbcas/agent/view.h"
#include "mbcas/base/local_socket.h"
#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kernel/pod_tree.h"
#include "mbcas/kube/client.h"
#include "mbcas/policy/settings.h"

namespace mbcas::agent {

struct AgentOptions {
  std::string node_name{};
  std::string name_space = "mbcas-system";  // of the Lease and of the settings
  std::string holder = "mbcas-agent";       // in the Lease, for people
  policy::SettingsData settings{};          // for what the ConfigMap does not say
  unsigned cpus = 1;                        // of the machine
  bool adaptive = true;                     // see PipelineOptions
  bool dry_run = false;                     // decide and log; write nothing, no Lease
  int samples = 0;   // end after so many that were taken with the cluster known; 0: go on
  int signals = -1;  // a signalfd: SIGUSR1 shows the state, any other signal ends run()
  std::optional<LocalSocket> socket{};        // shows the state
  std::optional<LocalSocket> probe_socket{};  // answers probes; see sight.h
  SightBounds sight{};
  // All on the thread of run().
  std::function<void(const std::string& line)> log{};
  std::function<void(const std::string& line)> log_error{};
  std::function<void(const std::string& json)> decision{};  // each that was written
  std::function<void(const std::string& json)> state{};     // for SIGUSR1
  std::function<void()> on_settled{};                       // the cluster is known; once
};

// Since the start.
struct AgentCounters {
  std::uint64_t written = 0;
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;
  std::uint64_t gone = 0;  // the pod had ended
  std::uint64_t renewed = 0;
  std::uint64_t waiting = 0;  // at present
  bool blind = false;         // at present
};

class Agent {
 public:
  // `client` must outlive it.
  Agent(kube::Client& client, std::unique_ptr<kernel::PodSource> source, AgentOptions options);
  ~Agent();

  // Until stop() or a signal, or after `samples`. An error if the cluster lacks what is needed,
  // with what to do about it. Once.
  Result<void> run();
  void stop();  // any thread

  // Any thread but that of run(), while it runs: what `show` makes of the last sample. An error if
  // that takes too long.
  Result<std::string> ask(std::function<std::string(const View&, const AgentCounters&)> show,
                          Nanos timeout);

  // After run().
  const View& view();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::agent
