// For tests of the law: a node as a liquid. CPU flows second by second, by kernel weight, to the
// pods and other consumers that want it, up to their limits. There are no slices, periods, threads
// or queues, only what the counters would say of them. That is coarse next to the model kernel of
// mbcas/sim, but a thousand pod-seconds take a millisecond, so that thousands of random nodes can
// be tried.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mbcas/control/actuation.h"
#include "mbcas/control/law.h"
#include "mbcas/control/weight.h"
#include "mbcas/demand/estimator.h"

namespace mbcas::control {

struct FluidPod {
  // What it would use in this second with no limit and no neighbours.
  std::function<Millicores(int second)> wants = [](int) { return Millicores(0); };
  Millicores burst{0};   // the limit below which its bursts are cut off; 0: it runs evenly
  bool backlog = false;  // work not done waits, and all threads wait with it
  std::uint64_t threads = 4;
  bool ready = true;
  Pod pod{};  // as it is added; from then on see FluidNode::pod()
};

// A consumer that is not managed.
struct FluidOther {
  std::string id{};
  double weight = 2;  // the kernel's; 2 is that of all BestEffort pods together
  std::function<Millicores(int second)> wants = [](int) { return Millicores(0); };
  Millicores usage{};  // of the last second
};

class FluidNode {
 public:
  FluidNode(unsigned cpus, const Settings& settings, Nanos actuation_delay = Nanos(0))
      : cpus_(cpus), delay_(actuation_delay), law_(settings), actuator_(settings) {
    input_.capacity = Millicores(static_cast<std::int64_t>(cpus) * 1000);
    estimation_.cpus = cpus;
    if (settings.bid_rule == BidRule::kPressure) estimation_.kind = demand::Kind::kClassic;
  }

  void add(FluidPod pod) {
    input_.pods.push_back(std::move(pod.pod));
    pods_.push_back({std::move(pod), demand::makeEstimator(estimation_)});
  }

  void add(FluidOther other) { others_.push_back(std::move(other)); }

  // One second of work, then one decision. What it lets move is in force in the next second, or
  // after the delay.
  const NodeDecision& second() {
    ++second_;
    input_.now += std::chrono::seconds(1);
    applyDue();
    run();
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      main(i).need = pods_[i].sample(input_.now, main(i).limit);
    }
    senseMachine();
    const NodeDecision& decision = law_.decide(input_);
    std::vector<NodeActuator::Facts> facts;
    facts.reserve(pods_.size());
    for (const Running& pod : pods_) facts.push_back({.ready = pod.spec.ready});
    moves_ = actuator_.next(input_, decision, facts);
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      if (moves_[i].moves) due_.push_back({input_.now + delay_, i, moves_[i].limit});
    }
    return decision;
  }
  // Of the last second, in the order of the pods.
  const std::vector<Move>& moves() const { return moves_; }

  Pod& pod(std::size_t i) { return input_.pods[i]; }
  FluidPod& spec(std::size_t i) { return pods_[i].spec; }
  Millicores used(std::size_t i) const { return pods_[i].usage; }
  FluidOther& other(std::size_t i) { return others_[i]; }
  Millicores usedByAll() const { return input_.capacity - idle(); }
  Millicores blocked(std::size_t i) const { return pods_[i].blocked; }
  const demand::Need& need(std::size_t i) { return main(i).need; }
  // Limits that were decided and are not in force yet, of all pods, in order.
  struct Due {
    MonotonicTime at;
    std::size_t pod;
    Millicores limit;
  };
  const std::deque<Due>& inFlight() const { return due_; }
  std::size_t size() const { return pods_.size(); }
  NodeInput& input() { return input_; }
  NodeLaw& law() { return law_; }

 private:
  struct Running {
    FluidPod spec;
    std::unique_ptr<demand::Estimator> estimator;
    double waiting = 0;  // backlog, millicore-seconds
    Millicores offered{};
    Millicores want{};
    Millicores usage{};
    Millicores blocked{};
    std::uint64_t throttled_periods = 0;

    demand::Need sample(MonotonicTime now, Millicores limit) {
      demand::Sample sample;
      sample.at = now;
      sample.interval = std::chrono::seconds(1);
      sample.usage = usage;
      sample.blocked = blocked;
      sample.limit = limit;
      sample.periods = 10;
      sample.throttled_periods = throttled_periods;
      sample.threads = spec.threads;
      sample.at_limit = usage * 10 >= limit * 9;
      demand::Need need = estimator->update(sample);
      need.good_until = now + std::chrono::seconds(3);
      return need;
    }
  };

  Container& main(std::size_t i) { return input_.pods[i].containers[0]; }

  void applyDue() {
    while (!due_.empty() && due_.front().at < input_.now) {
      main(due_.front().pod).limit = due_.front().limit;
      due_.pop_front();
    }
  }

  // What a pod or another consumer may use in this second, and what it gets.
  struct Thirst {
    double weight;
    Millicores cap;
    Millicores* usage;
  };

  void run() {
    std::vector<Thirst> thirsty;
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      Running& running = pods_[i];
      const auto most = Millicores(
          static_cast<std::int64_t>(std::min<std::uint64_t>(cpus_, running.spec.threads) * 1000));
      running.offered = running.spec.wants(second_);
      running.want =
          std::min(running.offered + Millicores(static_cast<std::int64_t>(running.waiting)), most);
      thirsty.push_back({kernelShares(input_.pods[i].request()),
                         std::min(running.want, main(i).limit), &running.usage});
    }
    for (FluidOther& other : others_) {
      thirsty.push_back(
          {other.weight, std::min(other.wants(second_), input_.capacity), &other.usage});
    }
    divide(std::move(thirsty));
    for (std::size_t i = 0; i < pods_.size(); ++i) throttle(pods_[i], main(i).limit);
  }

  // Water-filling by weight: a satiated consumer leaves its share to the others.
  void divide(std::vector<Thirst> thirsty) const {
    auto left = static_cast<double>(input_.capacity.count());
    while (!thirsty.empty()) {
      double weights = 0;
      for (const Thirst& consumer : thirsty) weights += consumer.weight;
      const double level = left / weights;
      const auto satiated =
          std::partition(thirsty.begin(), thirsty.end(), [&](const Thirst& consumer) {
            return static_cast<double>(consumer.cap.count()) > level * consumer.weight;
          });
      if (satiated == thirsty.end()) {
        for (const Thirst& consumer : thirsty) {
          *consumer.usage = Millicores(std::llround(level * consumer.weight));
        }
        return;
      }
      for (auto it = satiated; it != thirsty.end(); ++it) {
        *it->usage = it->cap;
        left -= static_cast<double>(it->cap.count());
      }
      thirsty.erase(satiated, thirsty.end());
    }
  }

  Millicores idle() const {
    Millicores idle = input_.capacity;
    for (const Running& running : pods_) idle -= running.usage;
    for (const FluidOther& other : others_) idle -= other.usage;
    return std::max(idle, Millicores(0));
  }

  void senseMachine() {
    input_.idle = idle();
    input_.unmanaged_use = Millicores(0);
    input_.machine.clear();
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      input_.machine.push_back({.weight = kernelShares(input_.pods[i].request()), .pod = i});
    }
    for (const FluidOther& other : others_) {
      input_.unmanaged_use += other.usage;
      input_.machine.push_back({.id = other.id, .weight = other.weight, .use = other.usage});
    }
  }

  static void throttle(Running& running, Millicores limit) {
    const Millicores missing = running.want - running.usage;
    const bool binds = running.usage * 100 >= limit * 99 && missing > Millicores(0);
    running.blocked = Millicores(0);
    running.throttled_periods = 0;
    if (binds) {
      running.throttled_periods = 10;
      running.blocked = missing;
      // With a backlog every thread waits, however little there is to do.
      if (running.spec.backlog) {
        running.blocked =
            Millicores(static_cast<std::int64_t>(running.spec.threads) * 1000) - running.usage;
      }
    } else if (running.spec.burst > limit && running.usage > Millicores(0)) {
      running.throttled_periods = 2;
      running.blocked = Millicores((running.spec.burst - limit).count() / 5);
    }
    if (running.spec.backlog) {
      // Up to two seconds of a core wait; what comes then is refused.
      const auto missed = static_cast<double>((running.offered - running.usage).count());
      running.waiting = std::clamp(running.waiting + missed, 0.0, 2'000.0);
    }
  }

  unsigned cpus_;
  Nanos delay_;
  int second_ = 0;
  demand::Settings estimation_{};
  NodeLaw law_;
  NodeActuator actuator_;
  std::vector<Move> moves_;
  NodeInput input_{};
  std::vector<Running> pods_;
  std::vector<FluidOther> others_;
  std::deque<Due> due_;
};

// A pod of one container, whose limit in force is the declared one.
inline FluidPod fluidPod(std::string id, Millicores request, Millicores declared,
                         std::function<Millicores(int)> wants) {
  FluidPod fluid;
  fluid.wants = std::move(wants);
  fluid.pod.id = std::move(id);
  fluid.pod.weight = static_cast<double>(std::max<std::int64_t>(request.count(), 1));
  fluid.pod.containers.push_back(
      {.name = "main", .limit = declared, .declared = declared, .request = request});
  return fluid;
}

// The same pod, `factor` times as important.
inline FluidPod important(FluidPod fluid, double factor) {
  fluid.pod.factor = factor;
  fluid.pod.weight *= factor;
  return fluid;
}

}  // namespace mbcas::control
