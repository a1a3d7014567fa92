// The readings of one cgroup, wherever they come from: the kernel's files (cgroup.h), or a model of
// the kernel.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "mbcas/kernel/parse.h"

namespace mbcas::kernel {

// Why a reading gave nothing.
struct ReadError {
  enum class Kind {
    kGone,    // the cgroup has been removed
    kAbsent,  // this kernel or configuration has no such file
    kFailed,  // anything else: permission, malformed content, too many open files
  };
  Kind kind = Kind::kFailed;
  std::string detail;

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

  // Every descriptor read is appended to `log` from now on; null ends it. For benchmarks, which
  // put the bare readings of the same files beside.
  virtual void logReads(std::vector<int>* log) = 0;
};

}  // namespace mbcas::kernel
