#include "mbcas/market/hierarchy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mbcas::market {
namespace {

class Clearer {
 public:
  explicit Clearer(const Cluster& cluster)
      : cluster_(cluster),
        on_node_(cluster.nodes.size()),
        in_quota_(cluster.quotas.size()),
        binds_(cluster.quotas.size()),
        stale_(cluster.nodes.size(), true) {
    result_.nodes.resize(cluster.nodes.size());
    result_.quotas.resize(cluster.quotas.size());
    result_.pods.resize(cluster.pods.size());
    for (std::size_t i = 0; i < cluster.pods.size(); ++i) {
      const PlacedPod& placed = cluster.pods[i];
      ceilings_.push_back(placed.pod.max);
      on_node_[placed.node].push_back(i);
      if (placed.quota) in_quota_[*placed.quota].push_back(i);
    }
  }

  Result<ClusterClearing> run(std::size_t most_passes) && {
    while (!result_.settled && result_.passes < most_passes) {
      if (Result<void> ok = pass(); !ok) return failure(std::move(ok).error());
    }
    return std::move(result_);
  }

 private:
  // Clears the stale nodes and the quotas exceeded by that.
  Result<void> pass() {
    ++result_.passes;
    for (std::size_t node = 0; node < stale_.size(); ++node) {
      if (!stale_[node]) continue;
      stale_[node] = false;
      const auto& members = on_node_[node];
      Result<void> ok = solve(cluster_.nodes[node], members, result_.nodes[node]);
      if (!ok) return failure(std::move(ok).error().within(fmt::format("node {}", node)));
      for (std::size_t i = 0; i < members.size(); ++i) {
        ClusterClearing::Outcome& pod = result_.pods[members[i]];
        pod.cpu = clearing_.pods[i].cpu;
        if (pod.cpu < ceilings_[members[i]]) {
          pod.limit = Limit::kNode;
        } else {
          pod.limit = pod.cpu < cluster_.pods[members[i]].pod.max ? Limit::kQuota : Limit::kItsMax;
        }
      }
    }
    result_.settled = true;
    for (std::size_t quota = 0; quota < in_quota_.size(); ++quota) {
      const auto& members = in_quota_[quota];
      Millicores sum;
      for (const std::size_t pod : members) sum += result_.pods[pod].cpu;
      result_.quotas[quota].allocated = sum;
      if (binds_[quota] || sum <= cluster_.quotas[quota]) continue;
      binds_[quota] = true;
      for (const std::size_t pod : members) ceilings_[pod] = result_.pods[pod].cpu;
      Result<void> ok = solve(cluster_.quotas[quota], members, result_.quotas[quota]);
      if (!ok) return failure(std::move(ok).error().within(fmt::format("quota {}", quota)));
      for (std::size_t i = 0; i < members.size(); ++i) {
        const std::size_t pod = members[i];
        if (clearing_.pods[i].cpu < result_.pods[pod].cpu) {
          result_.pods[pod] = {clearing_.pods[i].cpu, Limit::kQuota};
          stale_[cluster_.pods[pod].node] = true;
          result_.settled = false;
        }
        ceilings_[pod] = clearing_.pods[i].cpu;
      }
    }
    return {};
  }

  // Clears one market among some of the pods, within their ceilings, into clearing_.
  Result<void> solve(Millicores capacity, const std::vector<std::size_t>& members,
                     ClusterClearing::Market& market) {
    Millicores mins;
    Millicores guarantees;
    for (const std::size_t member : members) {
      const Pod& pod = cluster_.pods[member].pod;
      mins += std::min(pod.min, ceilings_[member]);
      guarantees += std::min(pod.guarantee, ceilings_[member]);
    }
    const bool overloaded = mins > capacity;
    problem_.capacity = capacity;
    problem_.objective = overloaded ? Objective::kBargaining : cluster_.objective;
    problem_.pods.clear();
    for (const std::size_t member : members) {
      Pod pod = cluster_.pods[member].pod;
      if (overloaded) {
        // base + s * (top - base) for all is a market too, and one in which ceilings have their
        // usual effect: what a pod cannot take goes to the others.
        const bool honoured = guarantees <= capacity;
        const Millicores base = honoured ? pod.guarantee : Millicores(0);
        const Millicores top = honoured ? pod.min : pod.guarantee;
        pod.bid = static_cast<double>((top - base).count());
        pod.min = base;
        pod.max = top;
      }
      pod.max = std::min(pod.max, ceilings_[member]);
      pod.min = std::min(pod.min, pod.max);
      pod.guarantee = Millicores(0);
      problem_.pods.push_back(std::move(pod));
    }
    if (Result<void> ok = solver_.solve(problem_, clearing_); !ok) return ok;
    market.allocated = clearing_.allocated;
    market.mode = overloaded ? Mode::kOverloaded : clearing_.mode;
    market.price = overloaded ? std::nullopt : clearing_.price;
    return {};
  }

  const Cluster& cluster_;
  std::vector<std::vector<std::size_t>> on_node_;
  std::vector<std::vector<std::size_t>> in_quota_;
  std::vector<Millicores> ceilings_;  // the pods' own, or what a binding quota gave
  std::vector<bool> binds_;
  std::vector<bool> stale_;  // nodes to be cleared (again)
  Solver solver_;
  Problem problem_;
  Clearing clearing_;
  ClusterClearing result_;
};

}  // namespace

Result<ClusterClearing> clear(const Cluster& cluster, std::size_t most_passes) {
  Problem all;
  for (std::size_t i = 0; i < cluster.pods.size(); ++i) {
    const PlacedPod& placed = cluster.pods[i];
    if (placed.node >= cluster.nodes.size()) {
      return failure(fmt::format("pods[{}].node: there is no node {}", i, placed.node));
    }
    if (placed.quota && *placed.quota >= cluster.quotas.size()) {
      return failure(fmt::format("pods[{}].quota: there is no quota {}", i, *placed.quota));
    }
    all.pods.push_back(placed.pod);
  }
  if (Result<void> ok = validate(all); !ok) return failure(std::move(ok).error());
  return Clearer(cluster).run(most_passes);
}

}  // namespace mbcas::market
