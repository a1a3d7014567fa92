#include "mbcas/kernel/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace mbcas::kernel {
namespace {

std::string errorText(int error) {
  return std::generic_category().message(error);
}

// The longest files read here: cpu.stat of a v2 cgroup has some 300 bytes, a list of CPUs with
// every second CPU of 1024 some 2000.
constexpr std::size_t kBufferSize = 4096;
// A list of tasks has no bound: 7 bytes for each task.
constexpr off_t kMostTaskText = off_t{256} * 1024;

template <class T>
ReadResult<T> understood(const char* file, Result<T> value) {
  if (value) return *std::move(value);
  return std::unexpected(
      ReadError{ReadError::Kind::kFailed, std::move(value).error().within(file).message()});
}

}  // namespace

Result<Cgroup> Cgroup::open(const Mounts& mounts, const std::string& path) {
  Cgroup cgroup;
  cgroup.version_ = mounts.version;
  cgroup.directories_[kCpu] = openDirectory(AT_FDCWD, (mounts.cpu + path).c_str());
  struct ::stat status{};
  if (!cgroup.directories_[kCpu] || ::fstat(cgroup.directories_[kCpu].get(), &status) != 0) {
    return failure(fmt::format("{}{}: {}", mounts.cpu, path, errorText(errno)));
  }
  cgroup.id_ = status.st_ino;
  if (mounts.version == Version::kV1) {
    const auto other = [&](Directory directory, const std::string& hierarchy) {
      if (hierarchy.empty() || hierarchy == mounts.cpu) return;
      cgroup.directories_[directory] = openDirectory(AT_FDCWD, (hierarchy + path).c_str());
    };
    other(kCpuacct, mounts.cpuacct);
    other(kUnified, mounts.unified);
    other(kPidsDir, mounts.pids);
    other(kCpuset, mounts.cpuset);
    // Without this file nothing is known; without the others, less is known.
    if (mounts.cpuacct != mounts.cpu && !cgroup.directories_[kCpuacct]) {
      return failure(fmt::format("{}{}: {}", mounts.cpuacct, path, errorText(errno)));
    }
    cgroup.files_[kCpuPressure].absent = cgroup.files_[kMemoryPressure].absent =
        cgroup.files_[kIoPressure].absent = !cgroup.directories_[kUnified];
    cgroup.files_[kPids].absent = !cgroup.directories_[kPidsDir];
  }
  return cgroup;
}

const Fd& Cgroup::directoryOf(File file) const {
  Directory directory = kCpu;
  if (version_ == Version::kV1) {
    if (file == kUsage && directories_[kCpuacct]) directory = kCpuacct;
    if (file == kPids) directory = kPidsDir;
    if (file == kCpus || file == kCpusOld) directory = kCpuset;
    if (file == kCpuPressure || file == kMemoryPressure || file == kIoPressure) {
      directory = kUnified;
    }
  }
  return directories_[directory];
}

const char* Cgroup::nameOf(File file) const {
  const bool v1 = version_ == Version::kV1;
  switch (file) {
    case kUsage:
      return v1 ? "cpuacct.usage" : "cpu.stat";
    case kStat:
      return "cpu.stat";
    case kStatLocal:
      return "cpu.stat.local";
    case kMax:
      return v1 ? "cpu.cfs_quota_us" : "cpu.max";
    case kPeriod:
      return "cpu.cfs_period_us";
    case kWeight:
      return v1 ? "cpu.shares" : "cpu.weight";
    case kIdle:
      return "cpu.idle";
    case kCpuPressure:
      return "cpu.pressure";
    case kMemoryPressure:
      return "memory.pressure";
    case kIoPressure:
      return "io.pressure";
    case kPids:
      return "pids.current";
    case kTasks:
      return v1 ? "tasks" : "cgroup.threads";
    case kCpus:
      return v1 ? "cpuset.effective_cpus" : "cpuset.cpus.effective";
    case kCpusOld:
      return "cpuset.cpus";
    case kFiles:
      break;
  }
  return "";
}

ReadError Cgroup::openError(File file, int error) const {
  // ENOENT of a file means that the file is missing or that the cgroup is gone. A live cgroup has
  // this file.
  const bool gone =
      error == ENODEV ||
      (error == ENOENT && ::faccessat(directoryOf(file).get(), "cgroup.procs", F_OK, 0) != 0);
  if (gone) return {ReadError::Kind::kGone, {}};
  if (error == ENOENT) return {ReadError::Kind::kAbsent, {}};
  return {ReadError::Kind::kFailed, fmt::format("{}: {}", nameOf(file), errorText(error))};
}

ReadResult<std::string_view> Cgroup::read(File file, std::span<char> buffer) {
  Slot& slot = files_[file];
  if (slot.absent) return std::unexpected(ReadError{ReadError::Kind::kAbsent, {}});
  if (!slot.fd) {
    slot.fd = openFile(directoryOf(file).get(), nameOf(file));
    if (!slot.fd) {
      ReadError error = openError(file, errno);
      slot.absent = error.absent();
      return std::unexpected(std::move(error));
    }
  }
  if (log_ != nullptr) log_->push_back(slot.fd.get());
  int error = 0;
  const std::string_view text = readWhole(slot.fd.get(), buffer, error);
  if (error == 0) return text;
  ReadError failed = readError(file, error);
  slot.absent = failed.absent();
  return std::unexpected(std::move(failed));
}

ReadError Cgroup::readError(File file, int error) const {
  if (error == ENODEV) return {ReadError::Kind::kGone, {}};
  // Pressure files of a kernel booted with psi=0; cgroup.threads above a threaded cgroup.
  if (error == EOPNOTSUPP) return {ReadError::Kind::kAbsent, {}};
  return {ReadError::Kind::kFailed, fmt::format("{}: {}", nameOf(file), errorText(error))};
}

Fd Cgroup::openOnce(File file, ReadError& error) const {
  const Fd& directory = directoryOf(file);
  if (!directory) {
    error = {ReadError::Kind::kAbsent, {}};
    return {};
  }
  Fd opened = openFile(directory.get(), nameOf(file));
  if (!opened) error = openError(file, errno);
  return opened;
}

template <class T>
ReadResult<T> Cgroup::parsed(File file, Result<T> (*parse)(std::string_view)) {
  char buffer[kBufferSize];
  ReadResult<std::string_view> text = read(file, buffer);
  if (!text) return std::unexpected(std::move(text).error());
  return understood(nameOf(file), parse(*text));
}

template <class T>
ReadResult<T> Cgroup::parsedOnce(File file, Result<T> (*parse)(std::string_view)) const {
  ReadError open_error;
  const Fd opened = openOnce(file, open_error);
  if (!opened) return std::unexpected(std::move(open_error));
  char buffer[kBufferSize];
  int error = 0;
  const std::string_view text = readWhole(opened.get(), buffer, error);
  if (error != 0) return std::unexpected(readError(file, error));
  return understood(nameOf(file), parse(text));
}

ReadResult<Nanos> Cgroup::usage() {
  if (version_ == Version::kV1) return parsed(kUsage, parseNanos);
  ReadResult<CpuStat> both = stat();
  if (!both) return std::unexpected(std::move(both).error());
  if (!both->usage) {
    return std::unexpected(ReadError{ReadError::Kind::kFailed, "cpu.stat: no usage_usec"});
  }
  return *both->usage;
}

ReadResult<CpuStat> Cgroup::stat() {
  return parsed(kStat, parseCpuStat);
}
ReadResult<Nanos> Cgroup::throttledLocal() {
  return parsed(kStatLocal, parseCpuStatLocal);
}
ReadResult<std::uint64_t> Cgroup::threads() {
  return parsed(kPids, parseCount);
}

ReadResult<std::uint64_t> Cgroup::weight() {
  ReadResult<std::uint64_t> weight = parsedOnce(kWeight, parseCount);
  if (!weight || version_ == Version::kV1) return weight;  // v1 shows an idle cgroup's 3
  // v2 cannot: it shows 0, and 1 on newer kernels, which also is the least that can be set.
  if (*weight == 0) return kIdleWeight;
  if (*weight == 1) {
    const ReadResult<std::uint64_t> idle = parsedOnce(kIdle, parseCount);
    if (idle && *idle != 0) return kIdleWeight;
  }
  return kernelWeight(*weight);
}

ReadResult<std::uint64_t> Cgroup::tasks() {
  ReadError open_error;
  const Fd opened = openOnce(kTasks, open_error);
  if (!opened) return std::unexpected(std::move(open_error));
  char buffer[kBufferSize];
  std::uint64_t lines = 0;
  for (off_t at = 0; at < kMostTaskText;) {
    const ssize_t length = ::pread(opened.get(), buffer, sizeof buffer, at);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return std::unexpected(readError(kTasks, errno));
    if (length == 0) break;
    lines += static_cast<std::uint64_t>(std::count(buffer, buffer + length, '\n'));
    at += length;
  }
  return lines;
}

ReadResult<CpuSet> Cgroup::cpus() {
  ReadResult<CpuSet> set = parsedOnce(kCpus, parseCpuList);
  if (!set && set.error().absent() && version_ == Version::kV1) {
    return parsedOnce(kCpusOld, parseCpuList);
  }
  return set;
}

ReadResult<CpuLimit> Cgroup::limit() {
  if (version_ == Version::kV2) return parsed(kMax, parseCpuMax);
  ReadResult<std::optional<Nanos>> quota = parsed(kMax, parseCfsQuota);
  if (!quota) return std::unexpected(std::move(quota).error());
  CpuLimit limit{*quota, CpuLimit{}.period};
  if (!limit.quota) return limit;  // the period says nothing then
  ReadResult<Nanos> period = parsed(kPeriod, parseMicros);
  if (!period) return std::unexpected(std::move(period).error());
  limit.period = *period;
  return limit;
}

ReadResult<Pressure> Cgroup::pressure(Resource resource) {
  switch (resource) {
    case Resource::kMemory:
      return parsed(kMemoryPressure, parsePressure);
    case Resource::kIo:
      return parsed(kIoPressure, parsePressure);
    case Resource::kCpu:
      break;
  }
  return parsed(kCpuPressure, parsePressure);
}

Result<void> visitChildren(const Mounts& mounts, const std::string& path,
                           const ChildVisitor& visit) {
  fmt::memory_buffer name_buffer;  // on the stack: no allocation for paths of usual length
  fmt::format_to(fmt::appender(name_buffer), "{}{}", mounts.cpu, path);
  name_buffer.push_back('\0');
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(name_buffer.data()), ::closedir);
  if (!directory) {
    if (errno == ENOENT) return {};  // gone between two readings
    return failure(fmt::format("{}{}: {}", mounts.cpu, path, errorText(errno)));
  }
  // One stream per thread is what readdir needs, and it is local.
  while (const dirent* entry = ::readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") visit(name, entry->d_ino);
  }
  return {};
}

}  // namespace mbcas::kernel
