// Reads all pods once per tick and turns counters into signals.
//
//   Sampler sampler(std::make_unique<kernel::PodTree>(mounts), clock, {});
//   every second: for (const PodSignals& pod : sampler.tick()) ...
//
// The sampler reads only as much as is needed for the same answer. A pod's usage is read every
// tick. While that stands still its containers cannot have run, nor been throttled, and are not
// read; a container that has long been idle is read only when the others do not explain the pod's
// usage. Limits are read when throttled, when usage exceeds what is known, after limitChanged(),
// and every ten seconds; so is pressure. Weight, threads and CPUs are read every ten seconds; all
// of it every minute if the pod is quiet. Counters only grow, so nothing is lost by reading late,
// and the first second of throttling is seen in that second: it needs usage.
//
// One thread. A tick in which no pod or container came or went allocates nothing.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/kernel/cgroup_reader.h"
#include "mbcas/kernel/pod_tree.h"
#include "mbcas/sense/meter.h"
#include "mbcas/sense/signals.h"

namespace mbcas::sense {

class Sampler {
 public:
  struct Options {
    Nanos interval = std::chrono::seconds(1);  // how often tick() is going to be called
    bool read_everything = false;              // all files at every tick, for comparison
  };

  Sampler(std::unique_ptr<kernel::PodSource> source, const Clock& clock, Options options);

  // Valid until the next tick. A pod that could not be read keeps its last signals, whose
  // good_until then passes.
  std::span<const PodSignals> tick();
  std::span<const PodSignals> signals() const { return signals_; }

  void setInterval(Nanos interval) { options_.interval = interval; }

  // Whether a pod or a container came or went since the last tick. The next tick adopts the change.
  // Far cheaper than a tick.
  bool structureChanged();

  // Call after a change of this pod's limits: they are read at the next tick.
  void limitChanged(std::string_view uid);

  const SenseCounters& counters() const { return counters_; }
  const kernel::PodSource& source() const { return *source_; }

  // As CgroupReader::logReads, for every cgroup.
  void logReads(std::vector<int>* log);

 private:
  // The fields that every tick touches come first, because the pod is cold in the cache by then.
  struct Container {
    std::uint64_t inode = 0;
    std::unique_ptr<kernel::CgroupReader> cgroup;
    Meter meter{};
    Nanos unexamined{0};          // usage since throttling was last read
    MonotonicTime pressure_at{};  // last reading of its cpu.pressure
    int idle_ticks = 0;
    bool has_local = true;  // cpu.stat.local exists, as far as is known
  };
  struct Pod {
    std::uint64_t inode = 0;
    std::unique_ptr<kernel::CgroupReader> cgroup;
    Meter meter{};
    Nanos unexplained{0};  // usage not yet seen in a container; signed: readings differ in time
    MonotonicTime details_at{};  // last reading of limits and pressure
    bool details_wanted = true;
    bool throttled = false;               // at the last tick
    std::vector<Container> containers{};  // parallel to PodSignals::containers
    PressureMeter cpu_pressure{};
    PressureMeter memory_pressure{};
    PressureMeter io_pressure{};
    Nanos blocked_since_pressure{0};
  };

  void synchronise();
  bool comparable(MonotonicTime now, WallTime wall);
  void samplePod(Pod& pod, PodSignals& signals);
  bool readPodUsage(Pod& pod, CpuSignals& cpu);
  void sampleContainer(Pod& pod, Container& container, const PodSignals& pod_signals,
                       ContainerSignals& signals, bool details);
  void addPodLevel(Pod& pod, PodSignals& signals, bool details);
  void estimateBlocked(Container& container, const CpuSignals& pod, Nanos pod_usage,
                       CpuSignals& cpu);
  void readLimit(kernel::CgroupReader& cgroup, CpuSignals& cpu, bool details);
  void readPlace(Pod& pod, PodSignals& signals);
  void readPressure(Pod& pod, PodSignals& signals, bool details);
  template <class T>
  bool worked(const kernel::ReadResult<T>& result);

  std::unique_ptr<kernel::PodSource> source_;
  const Clock& clock_;
  Options options_;
  std::vector<Pod> pods_;            // parallel to signals_
  std::vector<PodSignals> signals_;  // in the order of the source: by path
  SenseCounters counters_;
  MonotonicTime last_tick_{};
  Nanos wall_offset_{0};  // wall time minus monotonic time
  bool met_gone_ = false;
  // The pods of the source are others than those here, or a cgroup of one could not be opened.
  bool outdated_ = false;
  std::vector<int>* log_ = nullptr;
};

}  // namespace mbcas::sense
