// The four workloads of the demonstration, as processes that do nothing else. Each runs until it
// is ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "mbcas/sim/latencies.h"
#include "mbcas/sim/random.h"

namespace mbcas::app {

// `on` of CPU time in every `period`; what it could not do in time is carried over, two periods at
// most.
[[noreturn]] void runPeriodic(std::chrono::microseconds on, std::chrono::microseconds period);

// Every thread always wants to run.
[[noreturn]] void runGreedy(unsigned threads);

// When requests of the service come: at random, `rate` a second. The same for the same beginning,
// so that they can be counted without asking the service, which may be far behind.
class Arrivals {
 public:
  Arrivals(double rate, std::chrono::nanoseconds began) : mean_(1e9 / rate), next_(began) { pop(); }
  std::chrono::nanoseconds next() const { return next_; }
  void pop();
  std::uint64_t countUntil(std::chrono::nanoseconds time);  // takes them off

 private:
  sim::Random random_{42};
  double mean_;  // ns between two
  std::chrono::nanoseconds next_;
};

// Response times, shared with the process that shows them.
struct Responses {
  static constexpr std::size_t kPhases = 3;
  std::atomic<std::size_t> phase{0};  // which of them to add to
  sim::Latencies of_phase[kPhases];
  std::atomic<std::int64_t> began{0};  // CLOCK_MONOTONIC in ns, of the service; 0: not yet
};
struct Unmap {
  void operator()(Responses* responses) const;
};
using SharedResponses = std::unique_ptr<Responses, Unmap>;
SharedResponses shareResponses();  // null: no memory

// Answers requests one after another: `rate` a second arrive at random (Poisson), each takes `work`
// of CPU time. A response time is counted from the arrival, so waiting in the queue is part of it.
[[noreturn]] void runService(double rate, std::chrono::microseconds work, Responses& responses);

}  // namespace mbcas::app
