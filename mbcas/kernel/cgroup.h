// One cgroup, opened once and read many times.
//
//   Result<Cgroup> cgroup = Cgroup::open(mounts, "/kubepods/burstable/pod<uid>");
//   ReadResult<Nanos> usage = cgroup->usage();
//   if (!usage && usage.error().gone()) ...   // removed; even if one of the same name exists now
//
// Directories are held by descriptor and a file's descriptor is kept from its first reading on, so
// nothing is looked up by name twice and a cgroup recreated under the same name is never mistaken
// for this one. A reading that succeeds allocates nothing (after the first of its file). Files that
// are read every few seconds at most (weight, tasks, cpus) are opened for each reading, by the
// directory's descriptor: an open file costs the kernel up to 4 KB.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/kernel/cgroup_reader.h"
#include "mbcas/kernel/file.h"
#include "mbcas/kernel/mounts.h"
#include "mbcas/kernel/parse.h"

namespace mbcas::kernel {

class Cgroup final : public CgroupReader {
 public:
  // `path` is relative to the hierarchies, with a leading slash ("/" is the root).
  static Result<Cgroup> open(const Mounts& mounts, const std::string& path);

  std::uint64_t id() const override { return id_; }
  bool usageIsInStat() const override { return version_ == Version::kV2; }
  ReadResult<Nanos> usage() override;
  ReadResult<CpuStat> stat() override;
  ReadResult<Nanos> throttledLocal() override;
  ReadResult<CpuLimit> limit() override;
  ReadResult<Pressure> pressure(Resource resource) override;
  ReadResult<std::uint64_t> threads() override;
  ReadResult<std::uint64_t> weight() override;
  ReadResult<std::uint64_t> tasks() override;
  ReadResult<CpuSet> cpus() override;
  void logReads(std::vector<int>* log) override { log_ = log; }

 private:
  enum File {
    kUsage,
    kStat,
    kStatLocal,
    kMax,
    kPeriod,
    kWeight,
    kIdle,
    kCpuPressure,
    kMemoryPressure,
    kIoPressure,
    kPids,
    kTasks,
    kCpus,
    kCpusOld,
    kFiles
  };
  struct Slot {
    Fd fd;
    bool absent = false;
  };
  enum Directory { kCpu, kCpuacct, kUnified, kPidsDir, kCpuset, kDirectories };

  Cgroup() = default;
  const Fd& directoryOf(File file) const;
  const char* nameOf(File file) const;
  ReadResult<std::string_view> read(File file, std::span<char> buffer);
  ReadError openError(File file, int error) const;
  Fd openOnce(File file, ReadError& error) const;
  ReadError readError(File file, int error) const;
  template <class T>
  ReadResult<T> parsedOnce(File file, Result<T> (*parse)(std::string_view)) const;
  template <class T>
  ReadResult<T> parsed(File file, Result<T> (*parse)(std::string_view));

  Version version_ = Version::kV2;
  std::uint64_t id_ = 0;
  std::array<Fd, kDirectories> directories_;
  std::array<Slot, kFiles> files_;
  std::vector<int>* log_ = nullptr;
};

// Calls the visitor for each cgroup directly below this one, in the kernel's order, and for none if
// this cgroup has been removed.
Result<void> visitChildren(const Mounts& mounts, const std::string& path,
                           const ChildVisitor& visit);

}  // namespace mbcas::kernel
