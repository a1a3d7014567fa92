#include "mbcas/host/workload.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <system_error>
#include <thread>

#include "mbcas/host/ledger.h"

namespace mbcas::host {
namespace {

std::string errorText(int error) {
  return std::generic_category().message(error);
}

// Into the cgroup, in every hierarchy; only system calls, as it runs after fork().
bool enter(const std::vector<std::string>& directories) {
  char text[16];
  const auto [end, failed] = std::to_chars(text, text + sizeof text, ::getpid());
  for (const std::string& directory : directories) {
    const int at = ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int file = ::openat(at, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    const bool moved = file >= 0 && ::write(file, text, static_cast<std::size_t>(end - text)) > 0;
    if (file >= 0) ::close(file);
    if (at >= 0) ::close(at);
    if (!moved) return false;
  }
  return true;
}

// The child tells through a pipe why it could not begin, and closes it when it has. `begin` gets
// the writing end, and returns only an errno.
Result<pid_t> startChild(const std::vector<std::string>& directories,
                         const std::function<int(int)>& begin) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure("pipe: " + errorText(errno));
  const kernel::Fd reader(ends[0]);
  kernel::Fd writer(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return failure("fork: " + errorText(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGINT, SIG_IGN);  // Ctrl-C is for mbcas, which then ends its workloads
    const int error = enter(directories) ? begin(ends[1]) : errno;
    (void)::write(ends[1], &error, sizeof error);
    ::_exit(127);
  }
  writer = kernel::Fd();
  int error = 0;
  if (::read(reader.get(), &error, sizeof error) == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    return failure(errorText(error));
  }
  return pid;
}

std::vector<std::string> directoriesOf(const kernel::Mounts& mounts, const std::string& cgroup) {
  std::vector<std::string> directories;
  for (const std::string& hierarchy : kernel::hierarchies(mounts)) {
    directories.push_back(hierarchy + cgroup);
  }
  return directories;
}

void enableCpu(const std::string& directory) {
  std::ofstream(directory + "/cgroup.subtree_control") << "+cpu +pids" << std::flush;
}

}  // namespace

Result<void> makeCgroup(const kernel::Mounts& mounts, Ledger& ledger, const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    for (const std::string& hierarchy : kernel::hierarchies(mounts)) {
      const std::string directory = hierarchy + part;
      if (::access(directory.c_str(), F_OK) == 0) continue;
      if (Result<void> noted = ledger.recordMade(part); !noted) return noted;
      if (mounts.version == kernel::Version::kV2) {
        enableCpu(directory.substr(0, directory.rfind('/')));
      }
      if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
        return failure(fmt::format("{}: {}", directory, errorText(errno)));
      }
    }
    if (end == std::string::npos) return {};
  }
}

Result<Workload> Workload::start(const kernel::Mounts& mounts, const std::string& cgroup,
                                 const std::vector<std::string>& command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<std::string> directories = directoriesOf(mounts, cgroup);
  const Result<pid_t> pid = startChild(directories, [&](int) {
    ::execvp(words[0], words.data());
    return errno;
  });
  if (!pid) return failure(Error(pid.error()).within(fmt::format("starting {}", command.front())));
  return Workload(std::move(directories), *pid);
}

Result<Workload> Workload::start(const kernel::Mounts& mounts, const std::string& cgroup,
                                 const std::function<void()>& body) {
  std::vector<std::string> directories = directoriesOf(mounts, cgroup);
  const Result<pid_t> pid = startChild(directories, [&](int report) {
    ::close(report);
    body();
    ::_exit(0);
    return 0;
  });
  if (!pid) return failure(Error(pid.error()).within("starting a workload"));
  return Workload(std::move(directories), *pid);
}

Workload::Workload(Workload&& other) noexcept
    : directories_(std::move(other.directories_)), pid_(std::exchange(other.pid_, -1)) {}

Workload::~Workload() {
  stop();
}

bool Workload::running() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

void Workload::stop() {
  if (directories_.empty()) return;
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  // Until none is left: one may be starting another right now.
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::ifstream procs(directories_.front() + "/cgroup.procs");
    bool any = false;
    for (pid_t pid = 0; procs >> pid;) any |= pid != ::getpid() && ::kill(pid, SIGKILL) == 0;
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
    if (!any && pid_ <= 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  directories_.clear();
}

}  // namespace mbcas::host
