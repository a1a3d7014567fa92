#include "mbcas/sim/workload.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mbcas::sim {
namespace {

double seconds(Nanos time) {
  return static_cast<double>(time.count()) * 1e-9;
}
Nanos nanos(double count) {
  return Nanos(static_cast<std::int64_t>(std::llround(count)));
}

class Idle final : public Workload {
 public:
  explicit Idle(int threads) : Workload(threads) {}
  Nanos step(Nanos, std::span<double>) override { return Nanos::max(); }
  double offered(Nanos) const override { return 0; }
};

class Spin final : public Workload {
 public:
  explicit Spin(const WorkloadSpec& spec) : Workload(spec.threads), spec_(spec) {}

  Nanos step(Nanos now, std::span<double> work) override {
    offered_ = offered(now);
    since_ = now;
    Nanos next = spec_.profile.nextChange(now);
    bool on = now >= spec_.phase;
    if (!on) {
      next = std::min(next, spec_.phase);
    } else if (spec_.period > Nanos(0)) {
      const Nanos into = (now - spec_.phase) % spec_.period;
      on = into < spec_.on;
      next = std::min(next, now - into + (on ? spec_.on : spec_.period));
    }
    const double share = on ? spec_.profile.at(now) : 0;
    spinning_ = static_cast<std::size_t>(
        std::clamp(std::lround(share * spec_.threads), 0L, static_cast<long>(work.size())));
    for (std::size_t i = 0; i < work.size(); ++i) work[i] = i < spinning_ ? kEndless : 0;
    return next;
  }
  double offered(Nanos now) const override {
    return offered_ + static_cast<double>(spinning_) * static_cast<double>((now - since_).count());
  }

 private:
  WorkloadSpec spec_;
  Nanos since_{0};
  std::size_t spinning_ = 0;
  double offered_ = 0;
};

// Every thread on its own: it works off what it is owed, then sleeps until its next turn.
class Periodic final : public Workload {
 public:
  explicit Periodic(const WorkloadSpec& spec)
      : Workload(spec.threads),
        spec_(spec),
        due_(static_cast<std::size_t>(spec.threads), spec.phase),
        busy_(due_.size(), false) {}

  Nanos step(Nanos now, std::span<double> work) override {
    account(now);
    Nanos next = Nanos::max();
    for (std::size_t i = 0; i < work.size(); ++i) {
      if (busy_[i] && work[i] == 0) {
        latencies_.add(now - due_[i]);
        due_[i] += spec_.period;
        busy_[i] = false;
      }
      if (busy_[i]) continue;
      if (now > due_[i] + 2 * spec_.period) {
        refused_ += static_cast<std::uint64_t>((now - due_[i]) / spec_.period);
        due_[i] = now;
      }
      for (; due_[i] <= now; due_[i] += spec_.period) {
        work[i] = static_cast<double>(spec_.on.count()) * spec_.profile.at(now);
        busy_[i] = work[i] > 0;
        if (busy_[i]) break;
      }
      if (!busy_[i]) next = std::min(next, due_[i]);
    }
    return std::min(next, spec_.profile.nextChange(now));
  }
  double offered(Nanos now) const override {
    const Nanos from = std::max(since_, spec_.phase);
    if (now <= from) return offered_;
    const double wanted = spec_.threads * static_cast<double>(spec_.on.count()) *
                          spec_.profile.at(since_) / static_cast<double>(spec_.period.count());
    return offered_ + wanted * static_cast<double>((now - from).count());
  }

 private:
  void account(Nanos now) {
    offered_ = offered(now);
    since_ = now;
  }

  WorkloadSpec spec_;
  std::vector<Nanos> due_;  // of each thread: when what it works on, or will, was due
  std::vector<bool> busy_;
  Nanos since_{0};
  double offered_ = 0;
};

// Jobs that arrive whether or not the last are done, in one queue for all threads.
class Queue : public Workload {
 public:
  explicit Queue(int threads) : Workload(threads) {}
  Nanos step(Nanos now, std::span<double> work) override {
    if (jobs_.empty()) {
      jobs_.resize(work.size());
      if (next_ == Nanos::max()) next_ = nextArrival(Nanos(0));
    }
    for (; next_ <= now; next_ = nextArrival(next_)) arrive(next_);
    for (std::size_t i = 0; i < work.size(); ++i) {
      if (work[i] > 0) continue;
      if (std::exchange(jobs_[i].busy, false)) latencies_.add(now - jobs_[i].arrived);
      if (waiting_.empty()) continue;
      jobs_[i] = {waiting_.front().arrived, true};
      work[i] = waiting_.front().size;
      waiting_.pop_front();
    }
    return next_;
  }
  double offered(Nanos) const override { return offered_; }

 protected:
  virtual Nanos nextArrival(Nanos after) = 0;
  virtual void arrive(Nanos at) = 0;

  void add(Nanos at, double size, std::size_t longest) {
    offered_ += size;
    if (waiting_.size() >= longest) {
      ++refused_;
      return;
    }
    waiting_.push_back({at, std::max(size, 1.0)});
  }

 private:
  struct Waiting {
    Nanos arrived;
    double size;
  };
  struct Job {
    Nanos arrived{0};
    bool busy = false;
  };
  std::deque<Waiting> waiting_;
  std::vector<Job> jobs_;  // of each thread
  Nanos next_ = Nanos::max();
  double offered_ = 0;
};

class Service final : public Queue {
 public:
  Service(const WorkloadSpec& spec, Random random, Replica replica)
      : Queue(spec.threads), spec_(spec), random_(random), replica_(std::move(replica)) {}

 private:
  // By thinning: candidates at the highest rate, of which a share is taken.
  Nanos nextArrival(Nanos after) override {
    const double highest = spec_.profile.highest();
    if (spec_.rate * highest <= 0) return Nanos::max();
    Nanos at = std::max(after, spec_.phase);
    while (true) {
      at += nanos(random_.exponential(1e9 / (spec_.rate * highest))) + Nanos(1);
      if (random_.uniform() * highest < spec_.profile.at(at)) return at;
      if (seconds(at) > 1e9) return Nanos::max();
    }
  }
  void arrive(Nanos at) override {
    const auto mean = static_cast<double>(spec_.work.count());
    const double size =
        spec_.sizes == WorkloadSpec::Sizes::kFixed ? mean : random_.exponential(mean);
    ++requests_;
    if (isOwn(at)) add(at, size, static_cast<std::size_t>(spec_.queue));
  }
  // By the request's number, not by chance: all replicas must agree.
  bool isOwn(Nanos at) const {
    if (at < replica_.since) return false;
    const auto ready = static_cast<std::uint64_t>(*replica_.ready);
    if (ready <= 1) return replica_.number == 0;
    return Random(requests_).next() % ready == static_cast<std::uint64_t>(replica_.number);
  }

  WorkloadSpec spec_;
  Random random_;
  Replica replica_;
  std::uint64_t requests_ = 0;
};

class Bursty final : public Queue {
 public:
  Bursty(const WorkloadSpec& spec, Random random)
      : Queue(spec.threads), spec_(spec), random_(random) {}

 private:
  Nanos nextArrival(Nanos after) override {
    return std::max(after, spec_.phase) +
           nanos(random_.exponential(static_cast<double>(spec_.period.count()))) + Nanos(1);
  }
  void arrive(Nanos at) override {
    const double size =
        random_.exponential(static_cast<double>(spec_.on.count())) * spec_.profile.at(at);
    for (int i = 0; i < spec_.threads; ++i) {
      add(at, size, static_cast<std::size_t>(spec_.queue));
    }
  }

  WorkloadSpec spec_;
  Random random_;
};

}  // namespace

std::unique_ptr<Workload> makeWorkload(const WorkloadSpec& spec, Random random,
                                       const Replica& replica) {
  switch (spec.kind) {
    case WorkloadSpec::Kind::kSpin:
      return std::make_unique<Spin>(spec);
    case WorkloadSpec::Kind::kPeriodic:
      return std::make_unique<Periodic>(spec);
    case WorkloadSpec::Kind::kBursty:
      return std::make_unique<Bursty>(spec, random);
    case WorkloadSpec::Kind::kService:
      return std::make_unique<Service>(spec, random, replica);
    case WorkloadSpec::Kind::kIdle:
      break;
  }
  return std::make_unique<Idle>(spec.threads);
}

}  // namespace mbcas::sim
