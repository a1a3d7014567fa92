// The best there is to have: the market cleared every instant, for what pods truly want, without
// delay. A policy is compared with it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/market/solver.h"

namespace mbcas::sim {

class Ideal {
 public:
  struct Pod {
    std::string name{};
    double weight = 1;
    double floor = 0;  // cores
    double most = 0;   // cores that it can use at once: its threads, the node's CPUs
  };
  // What a pod newly wants in an interval, in CPU seconds: `lasting` waits until it is done,
  // `passing` is lost where it is not done at once (a thread that spins).
  struct Want {
    double lasting = 0;
    double passing = 0;
  };

  explicit Ideal(std::vector<Pod> pods);

  // CPU seconds that each pod gets in an interval of so many seconds, of so many cores. Valid until
  // the next call.
  std::span<const double> divide(std::span<const Want> wants, double seconds, double cores);
  // A pod got (nearly) all it wanted, in the last interval.
  bool satisfied(std::size_t pod) const;
  // Some pod wanted more than there was, in the last interval.
  bool scarce() const { return scarce_; }

 private:
  std::vector<Pod> pods_;
  std::vector<double> waiting_;  // CPU seconds, of each pod
  std::vector<double> gets_;
  market::Problem problem_;
  market::Clearing clearing_;
  market::Solver solver_;
  bool scarce_ = false;
};

}  // namespace mbcas::sim
