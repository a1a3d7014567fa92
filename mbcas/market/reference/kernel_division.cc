#include "mbcas/market/reference/kernel_division.h"

#include <algorithm>

namespace mbcas::market::reference {
namespace {

// Either a cgroup, or the tasks directly in one, which fill up like a cgroup without children.
struct Vessel {
  std::optional<std::size_t> parent;  // of an earlier vessel
  double weight;
  double room;  // until its cap, or the demand of its tasks
  bool tasks;
  double poured = 0;
  bool full = false;
  bool flows = false;  // whether more would find a place below
  double rate = 0;     // of the CPU that is poured now
};

// What flows into this one now, of every core poured into the machine.
double rateOf(const std::vector<Vessel>& all, const Vessel& vessel) {
  if (!vessel.flows) return 0;
  double weights = 0;
  for (const Vessel& other : all) {
    if (other.flows && other.parent == vessel.parent) weights += other.weight;
  }
  return vessel.weight / weights * (vessel.parent ? all[*vessel.parent].rate : 1);
}

}  // namespace

std::vector<double> divideAsKernel(double capacity, std::span<const CgroupNode> nodes) {
  std::vector<Vessel> all;
  for (const CgroupNode& node : nodes) all.push_back({node.parent, node.weight, node.cap, false});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    all.push_back({i, kTaskWeight, std::min(nodes[i].demand, nodes[i].threads), true});
  }

  double left = capacity;
  while (left > 0) {
    for (Vessel& vessel : all) vessel.flows = false;
    for (std::size_t i = all.size(); i-- > 0;) {
      Vessel& vessel = all[i];
      vessel.flows = (vessel.flows || vessel.tasks) && !vessel.full && vessel.room > 0;
      if (vessel.flows && vessel.parent) all[*vessel.parent].flows = true;
    }
    // Pours until the first is full, or nothing is left.
    double amount = left;
    const Vessel* first = nullptr;
    bool any = false;
    for (Vessel& vessel : all) {
      vessel.rate = rateOf(all, vessel);
      any = any || vessel.flows;
      if (vessel.flows && (vessel.room - vessel.poured) / vessel.rate < amount) {
        amount = (vessel.room - vessel.poured) / vessel.rate;
        first = &vessel;
      }
    }
    if (!any) break;
    for (Vessel& vessel : all) {
      vessel.poured += vessel.rate * amount;
      if (&vessel == first) vessel.full = true;
    }
    left = first == nullptr ? 0 : left - amount;
  }

  std::vector<double> shares;
  shares.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) shares.push_back(all[i].poured);
  return shares;
}

}  // namespace mbcas::market::reference
