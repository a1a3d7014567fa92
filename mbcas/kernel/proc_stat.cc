#include "mbcas/kernel/proc_stat.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace mbcas::kernel {
namespace {

// Some 30 CPUs have room at first. Each has a line, and after those comes "intr".
constexpr std::size_t kFirstSize = 4096;
constexpr std::size_t kLastSize = 1'048'576;

std::unexpected<ReadError> failed(ReadError::Kind kind, const std::string& path,
                                  const std::string& why) {
  return std::unexpected(ReadError{kind, fmt::format("{}: {}", path, why)});
}

}  // namespace

ReadResult<MachineTime> ProcStat::time() {
  if (!file_) {
    file_ = openFile(AT_FDCWD, path_.c_str());
    if (!file_) {
      const ReadError::Kind kind =
          errno == ENOENT ? ReadError::Kind::kAbsent : ReadError::Kind::kFailed;
      return failed(kind, path_, std::generic_category().message(errno));
    }
    buffer_.resize(kFirstSize);
  }
  std::string_view text;
  while (true) {
    int error = 0;
    text = readWhole(file_.get(), buffer_, error);
    if (error != 0) {
      return failed(ReadError::Kind::kFailed, path_, std::generic_category().message(error));
    }
    const bool complete = text.size() < buffer_.size() || text.find("\nintr") != text.npos;
    if (complete || buffer_.size() >= kLastSize) break;
    buffer_.resize(buffer_.size() * 2);
  }
  Result<MachineTime> time = parseProcStat(text);
  if (!time) return failed(ReadError::Kind::kFailed, path_, time.error().message());
  return *time;
}

}  // namespace mbcas::kernel
