// Several markets at once: pods sit on nodes, and some of them also count against the quota of
// their namespace, which spans nodes. Neither a node's capacity nor a quota is ever exceeded.
//
//   Cluster cluster{.nodes = {Millicores(4000), Millicores(4000)}, .quotas = {Millicores(3000)}};
//   cluster.pods.push_back({{.id = "web-0"}, .node = 0, .quota = 0});
//   cluster.pods.push_back({{.id = "web-1"}, .node = 1, .quota = 0});
//   cluster.pods.push_back({{.id = "batch"}, .node = 1});
//   Result<ClusterClearing> clearing = clear(cluster);
//
// One pass clears every node, and then every quota that its pods exceed, with what the nodes gave
// as their max. So after one pass both hold already. It is enough when no quota took anything, or
// when nobody on the nodes concerned can use what it took. Otherwise another pass hands that out:
// the nodes concerned are cleared again, with the quota's answer as the max of its pods. Those stay
// within the quota for good; but others rise, and may now exceed a quota that held before. Every
// pass but the last thus makes one more quota bind, and there are at most as many passes as quotas,
// plus one.
//
// In the end every pod has its max, or its node has nothing left, or its quota has nothing left, to
// within a millicore per pod. It is not the joint optimum, in which a pod would pay the sum of both
// prices; docs/market.md shows the difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/market/solver.h"

namespace mbcas::market {

struct PlacedPod {
  Pod pod;
  std::size_t node = 0;                             // index into Cluster::nodes
  std::optional<std::size_t> quota = std::nullopt;  // index into Cluster::quotas
};

struct Cluster {
  Objective objective = Objective::kBargaining;
  std::vector<Millicores> nodes = {};   // capacities
  std::vector<Millicores> quotas = {};  // of which the pods' sum is to stay within
  std::vector<PlacedPod> pods = {};
};

// What kept a pod from having more.
enum class Limit : std::uint8_t { kItsMax, kNode, kQuota };

struct ClusterClearing {
  struct Market {
    Mode mode = Mode::kUncongested;
    std::optional<double> price = 0.0;
    Millicores allocated{0};
  };
  struct Outcome {
    Millicores cpu{0};
    Limit limit = Limit::kItsMax;
  };
  std::vector<Market> nodes;
  std::vector<Market> quotas;  // uncongested where the quota does not bind
  std::vector<Outcome> pods;
  std::size_t passes = 0;
  bool settled = false;  // whether another pass would change nothing
};

// Fails as validate() does, or when a pod's node or quota does not exist. With fewer passes than
// are needed, what quotas took from pods on busy nodes stays unused until the next clearing.
Result<ClusterClearing> clear(const Cluster& cluster,
                              std::size_t most_passes = std::numeric_limits<std::size_t>::max());

}  // namespace mbcas::market
