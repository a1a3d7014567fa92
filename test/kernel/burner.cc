#include "test/kernel/burner.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace mbcas::test {
namespace {

using std::chrono::nanoseconds;

nanoseconds now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

void burnUntil(nanoseconds cpu_time) {
  while (now(CLOCK_THREAD_CPUTIME_ID) < cpu_time) {
  }
}

[[noreturn]] void runThread(const LoadShape& shape) {
  // Against the thread's own clock since its start, so that sleeping and waking up, which cost
  // CPU time too, are part of what it is owed.
  nanoseconds owed = now(CLOCK_THREAD_CPUTIME_ID);
  nanoseconds due = now(CLOCK_MONOTONIC);
  while (true) {
    const nanoseconds time = now(CLOCK_MONOTONIC);
    if (!shape.saturated() && time > due + 2 * shape.period) {
      due = time;
      owed = now(CLOCK_THREAD_CPUTIME_ID);
    }
    if (due > time) std::this_thread::sleep_for(due - time);
    burnUntil(owed += shape.on);
    due += shape.period;
  }
}

}  // namespace

double LoadShape::demand(unsigned cpus) const {
  const double wanted =
      threads * static_cast<double>(on.count()) / static_cast<double>(period.count());
  return std::min(wanted, static_cast<double>(cpus));
}

Burner::Burner(const LoadShape& shape, const std::vector<std::string>& cgroups) {
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const std::string& cgroup : cgroups) {
    if (!(std::ofstream(cgroup + "/cgroup.procs") << ::getpid() << std::flush)) ::_exit(2);
  }
  std::this_thread::sleep_for(shape.delay);
  for (int i = 1; i < shape.threads; ++i) std::thread([&] { runThread(shape); }).detach();
  runThread(shape);
}

Burner::~Burner() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace mbcas::test
