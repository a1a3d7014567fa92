#include "mbcas/kernel/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace mbcas::kernel {
namespace {

std::string errorText(int error) {
  return std::generic_category().message(error);
}

// The longest file read here, cpu.stat of a v2 cgroup, has some 300 bytes.
constexpr std::size_t kBufferSize = 1024;

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
    // Without this one nothing can be known; without the others, less.
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
    case kCpuPressure:
      return "cpu.pressure";
    case kMemoryPressure:
      return "memory.pressure";
    case kIoPressure:
      return "io.pressure";
    case kPids:
      return "pids.current";
    case kFiles:
      break;
  }
  return "";
}

ReadError Cgroup::openError(File file, int error) const {
  // ENOENT of a file means that it is missing or that the cgroup is gone: one that lives has this.
  const bool gone =
      error == ENODEV ||
      (error == ENOENT && ::faccessat(directoryOf(file).get(), "cgroup.procs", F_OK, 0) != 0);
  if (gone) return {ReadError::Kind::kGone, {}};
  if (error == ENOENT) return {ReadError::Kind::kAbsent, nameOf(file)};
  return {ReadError::Kind::kFailed, fmt::format("{}: {}", nameOf(file), errorText(error))};
}

ReadResult<std::string_view> Cgroup::read(File file, std::span<char> buffer) {
  Slot& slot = files_[file];
  if (slot.absent) return std::unexpected(ReadError{ReadError::Kind::kAbsent, nameOf(file)});
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
  if (error == ENODEV) return std::unexpected(ReadError{ReadError::Kind::kGone, {}});
  if (error == EOPNOTSUPP) {  // pressure files of a kernel booted with psi=0
    slot.absent = true;
    return std::unexpected(ReadError{ReadError::Kind::kAbsent, nameOf(file)});
  }
  return std::unexpected(
      ReadError{ReadError::Kind::kFailed, fmt::format("{}: {}", nameOf(file), errorText(error))});
}

template <class T>
ReadResult<T> Cgroup::parsed(File file, Result<T> (*parse)(std::string_view)) {
  char buffer[kBufferSize];
  ReadResult<std::string_view> text = read(file, buffer);
  if (!text) return std::unexpected(std::move(text).error());
  Result<T> value = parse(*text);
  if (!value) {
    return std::unexpected(ReadError{ReadError::Kind::kFailed,
                                     std::move(value).error().within(nameOf(file)).message()});
  }
  return *std::move(value);
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
ReadResult<std::uint64_t> Cgroup::weight() {
  return parsed(kWeight, parseCount);
}
ReadResult<std::uint64_t> Cgroup::threads() {
  return parsed(kPids, parseCount);
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

}  // namespace mbcas::kernel
