// What the threads of a container want to do. A workload hands out CPU work and is told, by what is
// left of it, how far its threads came; it knows nothing of CPUs and limits. What it draws at
// random depends on its seed and on time only, so it offers the same work under every limit.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/sim/latencies.h"
#include "mbcas/sim/profile.h"
#include "mbcas/sim/random.h"

namespace mbcas::sim {

struct WorkloadSpec {
  enum class Kind {
    kIdle,      // nothing
    kSpin,      // every thread wants a CPU: always, or `on` in every `period`
    kPeriodic,  // every thread is owed `on` of CPU time each `period`; work is carried over, but a
                // thread more than two periods late drops its backlog
    kBursty,    // bursts of `on` on average (exponential) on every thread, `period` apart on
                // average (exponential)
    kService,   // `rate` requests a second (Poisson) of `work` CPU time each, first come first
                // served by the threads
  };
  enum class Sizes { kExponential, kFixed };  // of requests

  Kind kind = Kind::kIdle;
  int threads = 1;
  Nanos on{0};
  Nanos period{0};
  Nanos phase{0};   // when it begins
  double rate = 0;  // requests a second
  Nanos work{0};    // mean CPU time of a request
  Sizes sizes = Sizes::kExponential;
  int queue = 1000;  // requests that may wait; more are refused
  // Factor of: requests a second (service), `on` (periodic, bursty), threads (spin).
  Profile profile{};

  friend bool operator==(const WorkloadSpec&, const WorkloadSpec&) = default;
};

class Workload {
 public:
  static constexpr double kEndless = std::numeric_limits<double>::infinity();

  explicit Workload(int threads) : threads_(threads) {}
  virtual ~Workload() = default;

  int threads() const { return threads_; }

  // Called first at the start, then whenever a thread has finished, and at the time it returned.
  // `work`: for each thread the CPU time (ns) that it still wants; 0 is idle. Gives idle threads
  // work, if there is any, and returns when it is to be called next at the latest.
  virtual Nanos step(Nanos now, std::span<double> work) = 0;

  // CPU time (ns) that it wanted from the start until now, whether or not it got it. A thread that
  // spins wants all there is.
  virtual double offered(Nanos now) const = 0;

  const Latencies& latencies() const { return latencies_; }
  void forgetLatencies() {
    latencies_ = {};
    refused_ = 0;
  }
  std::uint64_t refused() const { return refused_; }  // requests, or periods of backlog dropped

 protected:
  Latencies latencies_;
  std::uint64_t refused_ = 0;

 private:
  int threads_;
};

// One of several that share the requests of a service, each as likely as the others. All draw the
// same requests, and each takes its own, so that together they are offered what one would be.
struct Replica {
  int number = 0;
  std::shared_ptr<const int> ready = std::make_shared<const int>(1);  // so many take requests now
  Nanos since{0};                                                     // what came before is not its
};

std::unique_ptr<Workload> makeWorkload(const WorkloadSpec& spec, Random random,
                                       const Replica& replica = {});

}  // namespace mbcas::sim
