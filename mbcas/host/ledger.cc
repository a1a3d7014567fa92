#include "mbcas/host/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ranges>
#include <system_error>
#include <thread>

#include "mbcas/host/limit_file.h"

namespace mbcas::host {
namespace {

using std::chrono::microseconds;

constexpr std::size_t kMaxFile = 16 << 20;

std::string errorText(int error) {
  return std::generic_category().message(error);
}

std::string_view takeWord(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

template <class T>
std::optional<T> number(std::string_view word) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<Nanos> time(std::string_view word) {
  constexpr std::int64_t kMost = 1'000'000'000'000;  // 11 days: no quota comes near
  const auto micros = number<std::int64_t>(word);
  if (!micros || *micros <= 0 || *micros > kMost) return std::nullopt;
  return microseconds(*micros);
}

std::optional<Original> parseLimit(std::string_view line) {
  const auto cgroup = number<std::uint64_t>(takeWord(line));
  const std::string_view quota_word = takeWord(line);
  const auto quota = time(quota_word);
  const auto period = time(takeWord(line));
  if (!cgroup || !period || (!quota && quota_word != "max") || !line.starts_with('/')) {
    return std::nullopt;
  }
  return Original{.path = std::string(line), .cgroup = *cgroup, .limit = {quota, *period}};
}

void add(LedgerContent& content, Original original) {
  const auto known = std::ranges::find(content.limits, original.cgroup, &Original::cgroup);
  if (known != content.limits.end()) {
    *known = std::move(original);
  } else {
    content.limits.push_back(std::move(original));
  }
}

std::string readAll(int fd) {
  std::string text;
  char buffer[4096];
  while (text.size() < kMaxFile) {
    const ssize_t got = ::pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()));
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

// What still runs in a cgroup that MBCAS made was started by it. The kernel is a moment late to let
// go of a process that ended.
bool removeCgroup(const std::string& directory) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::ifstream procs(directory + "/cgroup.procs");
    for (pid_t pid = 0; procs >> pid;) {
      if (pid > 0 && pid != ::getpid()) ::kill(pid, SIGKILL);
    }
    if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return true;
    if (errno != EBUSY) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

bool exists(const kernel::Mounts& mounts, const Original& original) {
  struct stat status{};
  return ::stat((mounts.cpu + original.path).c_str(), &status) == 0 &&
         status.st_ino == original.cgroup;
}

}  // namespace

LedgerContent parseLedger(std::string_view text) {
  LedgerContent content;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // cut short
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::string_view kind = takeWord(line);
    if (kind == "made" && line.starts_with('/')) {
      content.made.emplace_back(line);
    } else if (kind == "limit") {
      if (auto original = parseLimit(line)) add(content, *std::move(original));
    }
  }
  return content;
}

std::string ledgerLine(const Original& original) {
  const auto micros = [](Nanos time) {
    return std::chrono::duration_cast<microseconds>(time).count();
  };
  return fmt::format("limit {} {} {} {}\n", original.cgroup,
                     original.limit.quota ? std::to_string(micros(*original.limit.quota)) : "max",
                     micros(original.limit.period), original.path);
}

Result<Ledger> Ledger::open(const std::string& file) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
  Ledger ledger;
  ledger.file_ = file;
  ledger.fd_ = kernel::Fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!ledger.fd_) return failure(fmt::format("state file {}: {}", file, errorText(errno)));
  if (::flock(ledger.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    return failure(fmt::format(
        "state file {}: another mbcas is running on this host; stop it (it restores every limit "
        "then), or name another file with --state",
        file));
  }
  ledger.content_ = parseLedger(readAll(ledger.fd_.get()));
  return ledger;
}

Result<void> Ledger::append(const std::string& line) {
  const off_t end = ::lseek(fd_.get(), 0, SEEK_END);
  const ssize_t written = ::write(fd_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size()) && ::fsync(fd_.get()) == 0) return {};
  const int error = written >= 0 && errno == 0 ? EIO : errno;
  if (end >= 0) (void)::ftruncate(fd_.get(), end);  // no half line before the next one
  return failure(
      fmt::format("state file {}: {}; no limit is changed without it", file_, errorText(error)));
}

Result<void> Ledger::record(const Original& original) {
  if (std::ranges::find(content_.limits, original) != content_.limits.end()) return {};
  if (original.path.find('\n') != std::string::npos) {
    return failure(fmt::format("{}: a line break in its name", original.path));
  }
  if (Result<void> done = append(ledgerLine(original)); !done) return done;
  add(content_, original);
  return {};
}

Result<void> Ledger::recordMade(const std::string& path) {
  if (std::ranges::find(content_.made, path) != content_.made.end()) return {};
  if (Result<void> done = append("made " + path + "\n"); !done) return done;
  content_.made.push_back(path);
  return {};
}

Restored Ledger::restore(const kernel::Mounts& mounts) {
  Restored result;
  LedgerContent left;
  for (const Original& original : content_.limits) {
    if (!exists(mounts, original)) {
      ++result.gone;
    } else if (auto done = writeLimit(mounts, original.path, original.cgroup, original.limit)) {
      ++result.limits;
    } else {
      result.failures.push_back(done.error().message());
      left.limits.push_back(original);
    }
  }
  std::vector<std::string> made = content_.made;
  std::ranges::sort(made, std::greater<>());  // a child sorts after its parent
  for (const std::string& path : made) {
    bool removed = true;
    for (const std::string& hierarchy : kernel::hierarchies(mounts)) {
      removed &= removeCgroup(hierarchy + path);
    }
    if (removed) continue;
    result.failures.push_back(fmt::format("{}: cannot be removed", path));
    left.made.push_back(path);
  }
  content_ = std::move(left);
  std::string text;
  for (const Original& original : content_.limits) text += ledgerLine(original);
  for (const std::string& path : content_.made) text += "made " + path + "\n";
  // Overwritten before it is cut: whenever this is interrupted, no line that is left is lost.
  if (::pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(fd_.get(), static_cast<off_t>(text.size())) != 0) {
    result.failures.push_back(fmt::format("state file {}: {}", file_, errorText(errno)));
  }
  return result;
}

}  // namespace mbcas::host
