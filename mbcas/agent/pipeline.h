// The agent's decisions, without its connections: kernel signals and the cluster's word in, what
// each PodAllocation should say out. It knows no server, thread or wall-clock sleep, so the same
// code runs on a node, on a recorded capture and on the model kernel.
//
//   Pipeline pipeline(std::make_unique<kernel::PodTree>(mounts), clock, {.node_name = "n1"});
//   pipeline.update(world);                        // whenever the cluster's word changed
//   again and again, `next` after the last: const Outcome& outcome = pipeline.tick();
//     for (const std::string& uid : outcome.ended) outbox.forget(uid);
//     for (const Wish& wish : outcome.wishes) outbox.put(wish, now);
//
// One thread. No data, no decision: a pod of which the kernel or the cluster says nothing good gets
// no wish.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/agent/sight.h"
#include "mbcas/agent/view.h"
#include "mbcas/agent/world.h"
#include "mbcas/base/clock.h"
#include "mbcas/kernel/pod_tree.h"
#include "mbcas/sense/signals.h"

namespace mbcas::agent {

// What a PodAllocation should say from now on.
struct Wish {
  std::string uid{};  // of the pod, the object's name
  podallocation::Spec spec{};
  bool urgent = false;
  double urgency = 0;  // bid times shortfall in millicores; more urgent first
  friend bool operator==(const Wish&, const Wish&) = default;
};

struct Outcome {
  bool sampled = false;  // and decided; false: nothing was sampled, and there is nothing to publish
  std::vector<Wish> wishes{};        // decided at this tick
  std::vector<std::string> ended{};  // UIDs that are to be forgotten, with what waits for them
  std::vector<std::string> notes{};  // for the log, once
  Nanos next{};                      // until tick() is to be called again, from when it was called
};

struct PipelineOptions {
  std::string node_name{};
  unsigned cpus = 1;  // of the machine
  // Look at the machine's CPU use between two samples, and sample at once if it rose so that a pod
  // may have run into its limit.
  bool adaptive = true;
};

class Pipeline {
 public:
  Pipeline(std::unique_ptr<kernel::PodSource> source, const Clock& clock, PipelineOptions options);
  ~Pipeline();

  // The world as it is now, whole. Settings in it take effect at once; what was learned stays.
  void update(World world);
  // Samples, estimates, decides; or looks whether it should already. Valid until the next call.
  const Outcome& tick();

  // Of the last sample; put together when it is asked for.
  const View& view();
  const sense::SenseCounters& counters() const;
  const CgroupEvidence& cgroups() const;
  std::vector<std::string> layouts() const;  // of cgroups, for a person

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::agent
