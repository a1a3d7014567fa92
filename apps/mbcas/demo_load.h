// The four workloads of the demonstration, as processes that do nothing else. Each runs until it
// is ended.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "mbcas/sim/latencies.h"

namespace mbcas::cli {

// `on` of CPU time in every `period`; what it could not do in time is carried over, two periods at
// most.
[[noreturn]] void runPeriodic(std::chrono::microseconds on, std::chrono::microseconds period);

// Every thread always wants to run.
[[noreturn]] void runGreedy(unsigned threads);

// Response times, shared with the process that shows them.
struct Responses {
  std::atomic<int> phase{0};  // which of the two to add to
  sim::Latencies of_phase[2];
};
struct Unmap {
  void operator()(Responses* responses) const;
};
using SharedResponses = std::unique_ptr<Responses, Unmap>;
SharedResponses shareResponses();  // null: no memory

// Answers requests one after another: `rate` a second arrive at random (Poisson), each takes `work`
// of CPU time. A response time is counted from the arrival, so waiting in the queue is part of it.
[[noreturn]] void runService(double rate, std::chrono::microseconds work, Responses& responses);

}  // namespace mbcas::cli
