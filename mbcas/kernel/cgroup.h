// One cgroup, opened once and read many times.
//
//   Result<Cgroup> cgroup = Cgroup::open(mounts, "/kubepods/burstable/pod<uid>");
//   ReadResult<Nanos> usage = cgroup->usage();
//   if (!usage && usage.error().gone()) ...   // removed; even if one of the same name exists now
//
// Directories are held by descriptor and a file's descriptor is kept from its first reading on, so
// nothing is looked up by name twice and a cgroup recreated under the same name is never mistaken
// for this one. A reading that succeeds allocates nothing (after the first of its file).
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/kernel/file.h"
#include "mbcas/kernel/mounts.h"
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

class Cgroup {
 public:
  // `path` is relative to the hierarchies, with a leading slash ("/" is the root).
  static Result<Cgroup> open(const Mounts& mounts, const std::string& path);

  // The kernel's number of this cgroup in the cpu hierarchy; never used again by another one.
  std::uint64_t id() const { return id_; }

  // True where one file holds usage and throttling (v2), so that stat() makes usage() needless.
  bool usageIsInStat() const { return version_ == Version::kV2; }

  ReadResult<Nanos> usage();           // v1 cpuacct.usage, v2 cpu.stat
  ReadResult<CpuStat> stat();          // cpu.stat
  ReadResult<Nanos> throttledLocal();  // cpu.stat.local
  ReadResult<CpuLimit> limit();        // v1 cpu.cfs_quota_us, cpu.cfs_period_us, v2 cpu.max
  ReadResult<std::uint64_t> weight();  // v1 cpu.shares, v2 cpu.weight: different scales
  ReadResult<Pressure> pressure(Resource resource);
  ReadResult<std::uint64_t> threads();  // pids.current: threads, of descendants too

  // Every descriptor read is appended to `log` from now on; null ends it. For benchmarks, which
  // put the bare readings of the same files beside.
  void logReads(std::vector<int>* log) { log_ = log; }

 private:
  enum File {
    kUsage,
    kStat,
    kStatLocal,
    kMax,
    kPeriod,
    kWeight,
    kCpuPressure,
    kMemoryPressure,
    kIoPressure,
    kPids,
    kFiles
  };
  struct Slot {
    Fd fd;
    bool absent = false;
  };
  enum Directory { kCpu, kCpuacct, kUnified, kPidsDir, kDirectories };

  Cgroup() = default;
  const Fd& directoryOf(File file) const;
  const char* nameOf(File file) const;
  ReadResult<std::string_view> read(File file, std::span<char> buffer);
  ReadError openError(File file, int error) const;
  template <class T>
  ReadResult<T> parsed(File file, Result<T> (*parse)(std::string_view));

  Version version_ = Version::kV2;
  std::uint64_t id_ = 0;
  std::array<Fd, kDirectories> directories_;
  std::array<Slot, kFiles> files_;
  std::vector<int>* log_ = nullptr;
};

}  // namespace mbcas::kernel
