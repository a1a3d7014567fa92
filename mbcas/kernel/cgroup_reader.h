// The readings of one cgroup and of the machine, from either source: the kernel's files (cgroup.h,
// proc_stat.h), or a model of the kernel. A reading that a model does not have is absent.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/kernel/cpu_set.h"
#include "mbcas/kernel/parse.h"

namespace mbcas::kernel {

// Why a reading has no value.
struct ReadError {
  enum class Kind {
    kGone,    // the cgroup has been removed
    kAbsent,  // this kernel or configuration has no such file
    kFailed,  // anything else: permission, malformed content, too many open files
  };
  Kind kind = Kind::kFailed;
  std::string detail{};  // of kFailed: which file, and why

  bool gone() const { return kind == Kind::kGone; }
  bool absent() const { return kind == Kind::kAbsent; }
};

template <class T>
using ReadResult = std::expected<T, ReadError>;

enum class Resource { kCpu, kMemory, kIo };

class CgroupReader {
 public:
  virtual ~CgroupReader() = default;

  // The kernel's number of this cgroup in the cpu hierarchy; never used again by another one.
  virtual std::uint64_t id() const = 0;

  // True where one file holds usage and throttling (v2), so that stat() makes usage() needless.
  virtual bool usageIsInStat() const = 0;

  virtual ReadResult<Nanos> usage() = 0;           // v1 cpuacct.usage, v2 cpu.stat
  virtual ReadResult<CpuStat> stat() = 0;          // cpu.stat
  virtual ReadResult<Nanos> throttledLocal() = 0;  // cpu.stat.local
  virtual ReadResult<CpuLimit> limit() = 0;  // v1 cpu.cfs_quota_us, cpu.cfs_period_us, v2 cpu.max
  virtual ReadResult<Pressure> pressure(Resource resource) = 0;
  virtual ReadResult<std::uint64_t> threads() = 0;  // pids.current: threads, of descendants too

  // The kernel's weight of the cgroup among its siblings, on the scale of kernelWeight(): v1
  // cpu.shares, v2 cpu.weight and cpu.idle. The root has none.
  virtual ReadResult<std::uint64_t> weight() { return missing(); }
  // v1 tasks, v2 cgroup.threads: tasks in this very cgroup, not in descendants. On v1 only tasks
  // that the reader's PID namespace shows are counted. At most about 30,000 are counted.
  virtual ReadResult<std::uint64_t> tasks() { return missing(); }
  // Where its tasks may run: v2 cpuset.cpus.effective, v1 cpuset.effective_cpus or cpuset.cpus.
  virtual ReadResult<CpuSet> cpus() { return missing(); }

  // Every descriptor read is appended to `log` from now on; null ends it. For benchmarks, which
  // compare with the bare readings of the same files.
  virtual void logReads(std::vector<int>* log) = 0;

 protected:
  static std::unexpected<ReadError> missing() {
    return std::unexpected(ReadError{ReadError::Kind::kAbsent, {}});
  }
};

class MachineReader {
 public:
  virtual ~MachineReader() = default;
  virtual ReadResult<MachineTime> time() = 0;
};

// Called for a cgroup below another one, with its name and with the number that CgroupReader::id()
// returns.
using ChildVisitor = std::function<void(std::string_view name, std::uint64_t inode)>;

}  // namespace mbcas::kernel
