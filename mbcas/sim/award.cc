#include "mbcas/sim/award.h"

#include <algorithm>

#include "mbcas/control/weight.h"

namespace mbcas::sim {
namespace {

constexpr std::size_t kKubepods = 0;
constexpr std::size_t kBurstable = 1;
constexpr std::size_t kBestEffort = 2;
constexpr std::size_t kSlices = 3;

double threadsOf(const PodSpec& spec) {
  double threads = 0;
  for (const ContainerSpec& container : spec.containers) threads += container.workload.threads;
  return threads;
}

// The limit that a pod's owner set; a managed pod's own is only where MBCAS begins, so its ceiling
// counts instead.
double capOf(const PodSpec& spec) {
  if (spec.managed) return spec.ceiling ? spec.ceiling->cores() : market::kUncapped;
  double cap = 0;
  for (const ContainerSpec& container : spec.containers) {
    if (!container.limit) return market::kUncapped;
    cap += container.limit->cores();
  }
  return cap;
}

}  // namespace

Awards::Awards(const Scenario& scenario)
    : cpus_(scenario.cpus), nodes_(kSlices), first_(kSlices), awards_(scenario.pods.size()) {
  nodes_[kKubepods].weight = scenario.cpus * market::kTaskWeight;
  nodes_[kBurstable].parent = kKubepods;
  nodes_[kBestEffort].parent = kKubepods;
  nodes_[kBestEffort].weight = control::kernelShares(Millicores(0));
  Millicores burstable;
  for (const PodSpec& spec : scenario.pods) {
    market::CgroupNode& node = nodes_.emplace_back();
    node.threads = threadsOf(spec);
    node.cap = capOf(spec);
    requests_.push_back(spec.managed ? spec.request().cores() : 0);
    if (spec.outside) continue;
    node.weight = control::kernelShares(spec.request());
    if (spec.managed) node.weight *= control::priorityFactor(spec.priority);
    switch (spec.qos()) {
      case kernel::Qos::kGuaranteed:
        node.parent = kKubepods;
        break;
      case kernel::Qos::kBestEffort:
        node.parent = kBestEffort;
        break;
      case kernel::Qos::kBurstable:
        node.parent = kBurstable;
        burstable += spec.request();
    }
  }
  nodes_[kBurstable].weight = control::kernelShares(burstable);
}

std::span<const double> Awards::divide(std::span<const double> demands) {
  for (std::size_t i = 0; i < demands.size(); ++i) nodes_[first_ + i].demand = demands[i];
  const std::span<const double> shares = division_.divide(cpus_, nodes_);
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const double least =
        std::min({requests_[i], demands[i], nodes_[first_ + i].cap, nodes_[first_ + i].threads});
    awards_[i] = std::max(shares[first_ + i], least);
  }
  return awards_;
}

}  // namespace mbcas::sim
