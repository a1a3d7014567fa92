#include "mbcas/host/limit_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "mbcas/kernel/file.h"

namespace mbcas::host {
namespace {

using std::chrono::microseconds;

std::string errorText(int error) {
  return std::generic_category().message(error);
}

Result<void> writeFile(int directory, const char* name, const std::string& text) {
  const kernel::Fd file(::openat(directory, name, O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file) return failure(fmt::format("{}: {}", name, errorText(errno)));
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return {};
  const int error = written < 0 ? errno : EIO;
  // The usual cause on v1, where a child's share may not exceed its parent's.
  const char* hint = error == EINVAL ? " (is a limit of the cgroup above it lower?)" : "";
  return failure(fmt::format("{}: writing {}: {}{}", name, text, errorText(error), hint));
}

std::int64_t micros(Nanos time) {
  return std::chrono::duration_cast<microseconds>(time).count();
}

}  // namespace

Result<void> writeLimit(const kernel::Mounts& mounts, const std::string& path, std::uint64_t cgroup,
                        const kernel::CpuLimit& limit) {
  const kernel::Fd directory = kernel::openDirectory(AT_FDCWD, (mounts.cpu + path).c_str());
  if (!directory) return failure(fmt::format("{}: {}", path, errorText(errno)));
  struct stat status{};
  if (::fstat(directory.get(), &status) != 0 || status.st_ino != cgroup) {
    return failure(fmt::format("{}: another cgroup has taken this name", path));
  }
  const std::string quota = limit.quota ? std::to_string(micros(*limit.quota)) : "";
  const std::string period = std::to_string(micros(limit.period));
  const auto write = [&](const char* name, const std::string& text) -> Result<void> {
    Result<void> written = writeFile(directory.get(), name, text);
    if (!written) return failure(std::move(written).error().within(path));
    return {};
  };
  if (mounts.version == kernel::Version::kV2) {
    return write("cpu.max", (limit.quota ? quota : "max") + " " + period);
  }
  // Two files, and every state in between must be allowed: without a quota any period is.
  char buffer[32];
  int error = 0;
  const kernel::Fd file = kernel::openFile(directory.get(), "cpu.cfs_period_us");
  const auto present = kernel::parseMicros(kernel::readWhole(file.get(), buffer, error));
  if (!present || *present != limit.period) {
    if (auto lifted = write("cpu.cfs_quota_us", "-1"); !lifted) return lifted;
    if (auto changed = write("cpu.cfs_period_us", period); !changed) return changed;
  }
  return write("cpu.cfs_quota_us", limit.quota ? quota : "-1");
}

kernel::CpuLimit limitOf(Millicores millicores, Nanos period) {
  const Nanos quota = period * millicores.count() / 1000;
  return {.quota = std::max<Nanos>(quota, std::chrono::milliseconds(1)), .period = period};
}

}  // namespace mbcas::host
