// From signals to needs, for all pods of a node: one estimator per container, kept for its
// lifetime.
//
//   Demand demand({.cpus = 8});
//   for (const PodNeed& pod : demand.update(sampler.tick())) ...
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "mbcas/demand/estimator.h"
#include "mbcas/demand/need.h"
#include "mbcas/sense/signals.h"

namespace mbcas::demand {

// A container's interval, together with the throttling and the limit of its pod's cgroup.
Sample sampleOf(const sense::ContainerSignals& container, const sense::PodSignals& pod);

class Demand {
 public:
  explicit Demand(const Settings& settings) : settings_(settings) {}

  // In the order of the signals; valid until the next update. A container without a new interval
  // keeps its need, whose good_until then passes. Allocates only for what is new.
  std::span<const PodNeed> update(std::span<const sense::PodSignals> signals);

  // Take effect at once. What was learned stays, unless another kind of estimator begins.
  void configure(const Settings& settings);
  // See Estimator::resume(). `cgroup` is a container's number, as in the last update.
  void resume(std::uint64_t cgroup, Millicores limit, MonotonicTime now);

 private:
  using Estimators = std::vector<std::unique_ptr<Estimator>>;  // of one pod's containers, in order

  bool matches(std::span<const sense::PodSignals> signals) const;
  void follow(std::span<const sense::PodSignals> signals);

  Settings settings_;
  std::vector<PodNeed> needs_;
  std::vector<Estimators> estimators_;  // parallel to needs_
};

}  // namespace mbcas::demand
