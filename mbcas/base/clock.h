// Time as something that is passed in. Logic takes a time point or a Clock&, never asks the system,
// so that the same code runs on a real node, in a test and in a simulation.
#pragma once

#include <chrono>

#include "mbcas/base/units.h"

namespace mbcas {

// Monotonic time: for intervals. Its zero is arbitrary, and it does not stand still or jump when
// the clock is set.
struct MonotonicEpoch {
  using rep = Nanos::rep;
  using period = Nanos::period;
  using duration = Nanos;
  using time_point = std::chrono::time_point<MonotonicEpoch>;
  static constexpr bool is_steady = true;
};
using MonotonicTime = MonotonicEpoch::time_point;

// Wall time: for people and for Kubernetes objects. It may jump either way.
using WallTime = std::chrono::sys_time<Nanos>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime monotonic() const = 0;
  virtual WallTime wall() const = 0;
};

class SystemClock final : public Clock {
 public:
  MonotonicTime monotonic() const override {
    return MonotonicTime(std::chrono::steady_clock::now().time_since_epoch());
  }
  WallTime wall() const override { return std::chrono::system_clock::now(); }
};

// Moves only when it is set. Not synchronised: one thread owns it.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(WallTime start = WallTime{}) : wall_(start) {}
  MonotonicTime monotonic() const override { return monotonic_; }
  WallTime wall() const override { return wall_; }

  void advance(Nanos by) {
    monotonic_ += by;
    wall_ += by;
  }
  // Sets the wall clock; monotonic time does not change.
  void setWall(WallTime wall) { wall_ = wall; }

 private:
  MonotonicTime monotonic_;
  WallTime wall_;
};

}  // namespace mbcas
