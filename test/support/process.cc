#include "test/support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace mbcas::test {
namespace {

std::string readAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Process::Process(std::vector<std::string> words, const std::string& directory,
                 const std::string& name, const std::map<std::string, std::string>& environment)
    : out_(directory + "/" + name + ".out"), err_(directory + "/" + name + ".err") {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the test
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
  ::dup2(::open(out_.c_str(), kFlags, 0644), STDOUT_FILENO);
  ::dup2(::open(err_.c_str(), kFlags, 0644), STDERR_FILENO);
  for (const auto& [key, value] : environment) {
    ::setenv(key.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): alone after fork
  }
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

Process::~Process() {
  if (pid_ > 0 && !ended()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

bool Process::ended() {
  if (!ended_ && pid_ > 0) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

void Process::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

int Process::wait() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!ended()) {
    if (std::chrono::steady_clock::now() > deadline) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

std::string Process::out() const {
  return readAll(out_);
}
std::string Process::err() const {
  return readAll(err_);
}

std::vector<std::string> Process::lines() const {
  std::vector<std::string> lines;
  const std::string text = out();
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

Process::Cost Process::costOf(pid_t pid) {
  Cost cost;
  const std::string proc = "/proc/" + std::to_string(pid);
  // By the clock of the process, which also counts threads that have ended; what /proc says is in
  // ticks.
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &used) == 0) {
    cost.cpu = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  }
  std::istringstream status(readAll(proc + "/status"));
  for (std::string key; status >> key;) {
    std::size_t kilobytes = 0;
    if (key == "VmRSS:" && status >> kilobytes) cost.rss = kilobytes << 10;
    if (key == "RssAnon:" && status >> kilobytes) cost.anonymous = kilobytes << 10;
  }
  return cost;
}

}  // namespace mbcas::test
