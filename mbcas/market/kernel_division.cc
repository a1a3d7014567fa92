#include "mbcas/market/kernel_division.h"

#include <algorithm>
#include <cmath>

namespace mbcas::market {
namespace {

// The market counts in whole units. Here they are microcores, so that rounding does not matter.
constexpr double kMicrocoresPerCore = 1e6;

// At most `most`; what is not a number counts as `otherwise`.
std::int64_t microcores(double cores, std::int64_t most, std::int64_t otherwise) {
  if (std::isnan(cores)) return otherwise;
  const double count = cores * kMicrocoresPerCore;
  if (count <= 0) return 0;
  return count < static_cast<double>(most) ? std::llround(count) : most;
}

// As the market accepts it for a bid.
double effectiveWeight(double weight) {
  if (!(weight > 0)) return kLeastKernelWeight;
  return std::clamp(weight, kSmallestBid, kLargestBid / 2);
}

}  // namespace

std::span<const double> KernelDivision::divide(double capacity, std::span<const CgroupNode> nodes) {
  const std::int64_t most = microcores(capacity, kLargestAmount.count(), 0);
  // The children of a cgroup are later than the cgroup itself: backwards for what they want,
  // forwards for what they get. How far a sum exceeds the capacity does not matter, so sums stay
  // small.
  cgroups_.assign(nodes.size() + 1, {});
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const CgroupNode& node = nodes[i];
    Cgroup& cgroup = cgroups_[i + 1];
    cgroup.own = std::min(microcores(node.demand, most, 0), microcores(node.threads, most, most));
    cgroup.wanted = std::min(cgroup.wanted + cgroup.own, most + 1);
    cgroup.want = std::min(cgroup.wanted, microcores(node.cap, most, most));
    cgroup.weight = effectiveWeight(node.weight);
    Cgroup& parent = cgroups_[node.parent && *node.parent < i ? *node.parent + 1 : 0];
    parent.wanted = std::min(parent.wanted + cgroup.want, most + 1);
    cgroup.next_sibling = parent.first_child;
    parent.first_child = i + 1;
  }
  cgroups_[0].share = std::min(cgroups_[0].wanted, most);

  problem_.pods.reserve(nodes.size() + 1);
  for (const Cgroup& cgroup : cgroups_) divideWithin(cgroup);

  shares_.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    shares_[i] = static_cast<double>(cgroups_[i + 1].share) / kMicrocoresPerCore;
  }
  return shares_;
}

void KernelDivision::divideWithin(const Cgroup& cgroup) {
  // Most cgroups have as much as they want.
  if (cgroup.wanted <= cgroup.share) {
    for (std::size_t i = cgroup.first_child; i != kNone; i = cgroups_[i].next_sibling) {
      cgroups_[i].share = cgroups_[i].want;
    }
    return;
  }
  problem_.capacity = Millicores(cgroup.share);
  problem_.pods.clear();
  for (std::size_t i = cgroup.first_child; i != kNone; i = cgroups_[i].next_sibling) {
    problem_.pods.push_back({.bid = cgroups_[i].weight, .max = Millicores(cgroups_[i].want)});
  }
  if (cgroup.own > 0) problem_.pods.push_back({.bid = kTaskWeight, .max = Millicores(cgroup.own)});
  if (!solver_.solve(problem_, clearing_)) return;
  std::size_t next = 0;
  for (std::size_t i = cgroup.first_child; i != kNone; i = cgroups_[i].next_sibling) {
    cgroups_[i].share = clearing_.pods[next++].cpu.count();
  }
}

std::vector<double> divideAsKernel(double capacity, std::span<const CgroupNode> nodes) {
  KernelDivision division;
  const std::span<const double> shares = division.divide(capacity, nodes);
  return {shares.begin(), shares.end()};
}

}  // namespace mbcas::market
