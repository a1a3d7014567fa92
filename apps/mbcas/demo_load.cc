#include "apps/mbcas/demo_load.h"

#include <sys/mman.h>
#include <time.h>

#include <new>
#include <thread>
#include <vector>

namespace mbcas::app {
namespace {

using std::chrono::nanoseconds;

nanoseconds now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

void burn(nanoseconds cpu_time) {
  const nanoseconds end = now(CLOCK_THREAD_CPUTIME_ID) + cpu_time;
  while (now(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

void sleepUntil(nanoseconds time) {
  const nanoseconds left = time - now(CLOCK_MONOTONIC);
  if (left > nanoseconds(0)) std::this_thread::sleep_for(left);
}

}  // namespace

void runPeriodic(std::chrono::microseconds on, std::chrono::microseconds period) {
  nanoseconds due = now(CLOCK_MONOTONIC);
  while (true) {
    sleepUntil(due);
    burn(on);
    due = std::max(due + period, now(CLOCK_MONOTONIC) - 2 * period);
  }
}

void runGreedy(unsigned threads) {
  const auto spin = [] {
    while (true) burn(std::chrono::seconds(1));
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(spin);
  while (true) burn(std::chrono::seconds(1));
}

void Arrivals::pop() {
  next_ += nanoseconds(static_cast<std::int64_t>(random_.exponential(mean_)));
}

std::uint64_t Arrivals::countUntil(nanoseconds time) {
  std::uint64_t count = 0;
  for (; next_ <= time; pop()) ++count;
  return count;
}

void Unmap::operator()(Responses* responses) const {
  ::munmap(responses, sizeof *responses);
}

SharedResponses shareResponses() {
  void* memory =
      ::mmap(nullptr, sizeof(Responses), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return SharedResponses(new (memory) Responses);
}

void runService(double rate, std::chrono::microseconds work, Responses& responses) {
  const nanoseconds began = now(CLOCK_MONOTONIC);
  responses.began = began.count();
  for (Arrivals arrivals(rate, began);; arrivals.pop()) {
    const nanoseconds arrival = arrivals.next();
    sleepUntil(arrival);
    burn(work);
    const std::size_t phase = responses.phase.load(std::memory_order_relaxed);
    responses.of_phase[phase].add(now(CLOCK_MONOTONIC) - arrival);
  }
}

}  // namespace mbcas::app
