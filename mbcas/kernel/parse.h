// The text of cgroup files, as typed facts. Pure: no I/O, no clock. An error quotes the line that
// could not be understood (at most 80 characters of it). Unknown keys are skipped, because newer
// kernels add keys. Times are converted to nanoseconds whatever unit the file uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"

namespace mbcas::kernel {

// cpu.stat, the part that bandwidth control writes. All counters only grow, stand still while
// there is no quota, and start at zero with the cgroup.
struct Throttling {
  std::uint64_t periods = 0;            // nr_periods: periods in which anything was runnable
  std::uint64_t throttled_periods = 0;  // nr_throttled
  Nanos time{0};                        // throttled_time (v1, ns) or throttled_usec (v2): summed
                                        // over CPUs, so it can exceed the wall time

  friend bool operator==(const Throttling&, const Throttling&) = default;
};

// cpu.stat. v1 has no usage there (it is in cpuacct.usage); v2 has no throttling in a cgroup
// without the cpu controller.
struct CpuStat {
  std::optional<Nanos> usage;  // usage_usec
  std::optional<Throttling> throttling;

  friend bool operator==(const CpuStat&, const CpuStat&) = default;
};
Result<CpuStat> parseCpuStat(std::string_view text);

// cpu.stat.local (Linux 6.5 on v2, 6.18 seen on v1): time that tasks of this very cgroup stood
// throttled by a quota at any level, its own or an ancestor's; summed over CPUs.
Result<Nanos> parseCpuStatLocal(std::string_view text);

// A CPU limit: `quota` of CPU time in every `period`; no quota, no limit.
struct CpuLimit {
  std::optional<Nanos> quota;
  Nanos period = std::chrono::milliseconds(100);

  std::optional<Millicores> millicores() const {
    if (!quota) return std::nullopt;
    return rate(*quota, period);
  }
  friend bool operator==(const CpuLimit&, const CpuLimit&) = default;
};
Result<CpuLimit> parseCpuMax(std::string_view text);                // v2 cpu.max
Result<std::optional<Nanos>> parseCfsQuota(std::string_view text);  // v1 cpu.cfs_quota_us
Result<Nanos> parseMicros(std::string_view text);                   // v1 cpu.cfs_period_us
Result<Nanos> parseNanos(std::string_view text);                    // v1 cpuacct.usage
Result<std::uint64_t> parseCount(std::string_view text);  // cpu.shares, cpu.weight, pids.current

// The kernel's weight of a cgroup among its siblings, on the scale of cpu.shares: 1024 is a task of
// nice 0, and a cgroup that was never given another. `cpu_weight` is that of v2, where 100 is the
// same; the rounding is the kernel's.
std::uint64_t kernelWeight(std::uint64_t cpu_weight);
inline constexpr std::uint64_t kDefaultWeight = 1024;
inline constexpr std::uint64_t kIdleWeight = 3;  // of a cgroup with cpu.idle

// cpu.pressure, memory.pressure, io.pressure: wall time in which some, or all, of the tasks that
// were not idle had to wait. `full` is missing from cpu.pressure before Linux 5.13.
struct Pressure {
  Nanos some{0};
  std::optional<Nanos> full;

  friend bool operator==(const Pressure&, const Pressure&) = default;
};
Result<Pressure> parsePressure(std::string_view text);

// /proc/stat: what all CPUs of the machine did since it started, in ticks. Idle time may go down by
// a few ticks: the kernel sums it up while CPUs fall asleep and wake up.
struct MachineTime {
  std::uint64_t tasks = 0;       // user, nice, system; guests are part of the first two
  std::uint64_t idle = 0;        // idle, iowait
  std::uint64_t interrupts = 0;  // irq, softirq
  std::uint64_t steal = 0;       // a hypervisor gave it to others
  unsigned cpus = 0;             // that are online; 0: the text ends before it says so

  std::uint64_t busy() const { return tasks + interrupts + steal; }
  std::uint64_t all() const { return busy() + idle; }
  friend bool operator==(const MachineTime&, const MachineTime&) = default;
};
// USER_HZ is 100 wherever Linux runs on 64 bits, whatever HZ the kernel was built with.
inline constexpr Nanos kTick = std::chrono::milliseconds(10);
Result<MachineTime> parseProcStat(std::string_view text);

}  // namespace mbcas::kernel
