// The kernel of a hollow node: cgroups that are in memory only. CPU flows evenly: a pod uses its
// load, up to its limit, and stands still for what is beyond. So counters are not moved by anybody
// but computed when they are read, and thousands of pods cost what their readers cost. The model
// kernel of mbcas/sim has periods, threads and neighbours, at a price for each period; here only
// the traffic that decisions cause is of interest.
//
//   HollowKernel kernel(clock);
//   kernel.start(uid, container_id, 200_m);
//   kernel.load(uid, 1000_m);                  // 200m used, 800m throttled
//   Agent agent(client, kernel.source(), ...);
//
// A pod has one container. The machine is never short of CPU. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/kernel/pod_tree.h"

namespace mbcas::hollow {

class HollowKernel {
 public:
  explicit HollowKernel(const Clock& clock);  // which must outlive it

  void start(const std::string& uid, const std::string& container_id, Millicores limit);
  void end(const std::string& uid);
  // Of pods that run; others are passed over.
  void setLimit(const std::string& uid, Millicores limit);
  void load(const std::string& uid, Millicores load);
  Millicores limit(const std::string& uid) const;  // 0: it does not run

  // For one agent after the other, each on its own thread. It may outlive this object.
  std::unique_ptr<kernel::PodSource> source() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace mbcas::hollow
