// What the kernel says about a pod and its containers over the last interval: the output of this
// stage, plain values, meant to be printed, compared and handed on.
//
// Differences cover `interval`, which ends at `at`. The first reading of a cgroup, and the first
// after a gap, has no earlier one to compare with: its interval is zero and so are its differences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/kernel/cpu_set.h"
#include "mbcas/kernel/names.h"
#include "mbcas/kernel/parse.h"

namespace mbcas::sense {

// Where the figure for blocked work comes from, best first.
enum class BlockedSource {
  kNone,      // no quota acted
  kLocal,     // cpu.stat.local of the container: throttling at every level, exact
  kStat,      // the larger of both levels of cpu.stat: their split is arbitrary
  kPressure,  // cpu.pressure while throttled: at least one thread waited so long
};
std::string_view name(BlockedSource source);

// One cgroup, pod or container.
struct CpuSignals {
  MonotonicTime at{};
  Nanos interval{0};
  MonotonicTime good_until{};  // after this time, no decision may use it

  Nanos usage{0};                         // CPU time, so usage / interval is in cores
  kernel::Throttling throttling;          // this level's own cpu.stat
  std::optional<kernel::CpuLimit> limit;  // in force at this level; nothing: not readable
  Nanos blocked{0};                       // thread time that quotas held back, over all levels
  BlockedSource blocked_source = BlockedSource::kNone;

  bool known() const { return interval > Nanos(0); }
  bool throttled() const { return blocked > Nanos(0) || throttling.throttled_periods > 0; }
  Millicores usageRate() const { return rate(usage, interval); }
  Millicores blockedRate() const { return rate(blocked, interval); }
  friend bool operator==(const CpuSignals&, const CpuSignals&) = default;
};

struct ContainerSignals {
  std::uint64_t cgroup = 0;  // the kernel's number of it: a new one for a restarted container
  CpuSignals cpu{};
  std::string id{};
  std::string path{};
  std::optional<std::uint64_t> threads{};  // read while it is throttled
  std::optional<kernel::CpuSet> cpus{};    // where it may run; nothing: not readable

  friend bool operator==(const ContainerSignals&, const ContainerSignals&) = default;
};

// Shares of wall time, 0 to 1, over their own interval: pressure is read less often.
struct PressureSignals {
  MonotonicTime at{};
  Nanos interval{0};
  double some = 0;
  double full = 0;

  friend bool operator==(const PressureSignals&, const PressureSignals&) = default;
};

struct PodSignals {
  std::uint64_t cgroup = 0;  // the kernel's number of it
  CpuSignals cpu{};          // of the pod's cgroup; blocked is the sum over its containers
  std::vector<ContainerSignals> containers{};
  std::string uid{};
  std::string path{};
  kernel::Qos qos = kernel::Qos::kBurstable;

  // Read as often as limits are; nothing where they cannot be read.
  std::optional<std::uint64_t> weight{};   // of its cgroup, on the scale of kernel::kernelWeight()
  std::optional<std::uint64_t> threads{};  // of all its containers
  // Where its containers may run. The kubelet's static CPU manager gives CPUs to containers, not to
  // the pod's cgroup, and none to the pause container, so containers that hardly run do not count.
  std::optional<kernel::CpuSet> cpus{};

  // Nothing where the kernel has no pressure files for it.
  std::optional<PressureSignals> cpu_pressure{};
  std::optional<PressureSignals> memory_pressure{};  // these two hold a decrease back and are
  std::optional<PressureSignals> io_pressure{};      // reported; they never raise a bid

  // Share of wall time in which some thread waited for a CPU and no quota of its own explains it:
  // neighbours, or more threads than CPUs. A lower bound; no higher limit cures it.
  std::optional<double> contention{};

  friend bool operator==(const PodSignals&, const PodSignals&) = default;
};

// What happened to the readings since the start.
struct SenseCounters {
  std::uint64_t ticks = 0;
  std::uint64_t late_ticks = 0;    // came more than half an interval late
  std::uint64_t missed_ticks = 0;  // whole intervals without one
  std::uint64_t gaps = 0;          // so long that the comparison was given up
  std::uint64_t suspensions = 0;   // the machine slept, or its clock was set
  std::uint64_t resets = 0;        // counters that went down
  std::uint64_t limits_changed = 0;
  std::uint64_t pods_started = 0;
  std::uint64_t pods_ended = 0;
  std::uint64_t containers_started = 0;
  std::uint64_t containers_ended = 0;
  std::uint64_t gone = 0;      // readings that met a removed cgroup
  std::uint64_t failures = 0;  // readings that failed otherwise
  std::uint64_t reads = 0;
  std::string last_failure;

  friend bool operator==(const SenseCounters&, const SenseCounters&) = default;
};

}  // namespace mbcas::sense
