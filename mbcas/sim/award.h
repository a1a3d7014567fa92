// What the market gives each pod of a scenario where it knows what they truly want: the kernel's
// division of the whole node over the kubelet's tree, with the weight of each managed pod times its
// factor, and never less than its request. The law knows only what it measures, so this is what it
// is judged by.
//
//   Awards awards(scenario);
//   awards.divide(demands)[i];    // cores
#pragma once

#include <span>
#include <vector>

#include "mbcas/market/kernel_division.h"
#include "mbcas/sim/scenario.h"

namespace mbcas::sim {

class Awards {
 public:
  explicit Awards(const Scenario& scenario);

  // In the order of the scenario's pods, in cores; a pod that is not there has no demand, but its
  // request counts. Valid until the next call.
  std::span<const double> divide(std::span<const double> demands);

 private:
  double cpus_;
  std::vector<double> requests_;  // of managed pods, else 0
  std::vector<market::CgroupNode> nodes_;
  std::size_t first_;  // of the pods among the nodes
  market::KernelDivision division_;
  std::vector<double> awards_;
};

}  // namespace mbcas::sim
