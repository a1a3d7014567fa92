// The Vertical Pod Autoscaler's arithmetic for CPU, as version 1.x has it with its defaults
// (pkg/recommender: util/histogram.go, logic/estimator.go; pkg/updater/priority). Pure; the policy
// that feeds it is in peers.cc.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"

namespace mbcas::sim {

// CPU usage, counted in buckets that grow by 5 %, in which a sample counts half as much after each
// half-life.
class DecayingHistogram {
 public:
  explicit DecayingHistogram(Nanos half_life = std::chrono::hours(24)) : half_life_(half_life) {}

  void add(double cores, double weight, MonotonicTime at);
  // The end of the bucket in which that share of the weight is reached, cores; 0 without samples.
  double percentile(double share) const;

 private:
  void shiftReference(MonotonicTime to);

  Nanos half_life_;
  MonotonicTime reference_{};
  std::vector<double> weights_;
  double total_ = 0;
};

// Bounds of a container's CPU request.
struct VpaAdvice {
  Millicores lower;
  Millicores target;
  Millicores upper;
};

// Of one container.
class VpaRecommender {
 public:
  // A sample of usage, under this request.
  void add(MonotonicTime at, double cores, Millicores request);
  bool empty() const { return samples_ == 0; }
  VpaAdvice advice() const;

 private:
  DecayingHistogram histogram_;
  MonotonicTime first_{};
  MonotonicTime last_{};
  std::size_t samples_ = 0;
};

// Whether the updater changes a pod of this age.
bool vpaUpdates(Millicores request, const VpaAdvice& advice, Nanos age);

}  // namespace mbcas::sim
