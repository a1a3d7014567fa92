// Random trees of cgroups for tests and benchmarks: the same seed gives the same tree everywhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "mbcas/market/kernel_division.h"

namespace mbcas::market::reference {

struct Tree {
  double capacity = 0;
  std::vector<CgroupNode> nodes = {};
};

class TreeGenerator {
 public:
  explicit TreeGenerator(std::uint64_t seed) : random_(seed) {}

  // A tree of any shape, deep or flat, with little or much demand. Amounts are whole microcores,
  // as far as doubles can say it.
  Tree any(std::size_t most_nodes) {
    Tree tree;
    const std::size_t count = 1 + below(most_nodes);
    const double scale = std::pow(10.0, static_cast<double>(below(4)) - 2);  // 0.01 to 10 cores
    const std::uint64_t shape = below(4);
    const std::uint64_t weights = below(4);
    const std::uint64_t caps = below(4);
    const bool own_tasks = below(3) == 0;  // of inner cgroups
    const std::uint64_t hungry = below(2);
    std::vector<bool> inner(count);
    for (std::size_t i = 0; i < count; ++i) {
      CgroupNode node;
      if (i > 0 && below(4) < shape) {
        node.parent = shape == 1 ? below(i) : i - 1 - below(std::min<std::size_t>(i, 3));
        inner[*node.parent] = true;
      }
      node.weight = weight(weights);
      if (caps > 0 && below(4) < caps) node.cap = amount(2 * scale);
      tree.nodes.push_back(node);
    }
    for (std::size_t i = 0; i < count; ++i) {
      CgroupNode& node = tree.nodes[i];
      if (inner[i] && (!own_tasks || below(2) == 0)) continue;
      const std::uint64_t kind = below(10);
      if (kind > 0) node.demand = kind * hungry > 7 ? kUncapped : amount(2 * scale);
      if (below(4) == 0) node.threads = std::ceil(scale) * static_cast<double>(1 + below(3));
    }
    tree.capacity =
        amount(scale * static_cast<double>(count) * std::pow(2.0, -static_cast<double>(below(4))));
    return tree;
  }

  // A typical node of a cluster: pods with their containers below the cgroups of their classes,
  // some with limits, next to what else runs on the machine. About half of the demand can be met.
  Tree ordinary(std::size_t pods, std::size_t containers_each) {
    Tree tree{.capacity = std::max(2.0, std::round(0.1 * static_cast<double>(pods)))};
    tree.nodes = {{.weight = kTaskWeight * tree.capacity},       // kubepods
                  {.weight = kTaskWeight, .demand = 0.3},        // the system
                  {.parent = 0, .weight = kLeastKernelWeight},   // burstable
                  {.parent = 0, .weight = kLeastKernelWeight}};  // best effort
    const std::size_t containers = pods * containers_each;
    for (std::size_t i = 0; i < pods; ++i) {
      const std::uint64_t kind = below(8);
      const std::size_t parent = kind == 0 ? 0 : kind == 1 ? 3 : 2;
      const double request = 0.01 * static_cast<double>(1 + below(20));
      CgroupNode pod{.parent = parent, .weight = std::round(request * kTaskWeight)};
      if (parent == 3) pod.weight = kLeastKernelWeight;
      if (parent == 2) tree.nodes[2].weight += pod.weight;
      if (kind < 5) pod.cap = kind == 0 ? request : 3 * request;
      tree.nodes.push_back(pod);
      const std::size_t index = tree.nodes.size() - 1;
      for (std::size_t c = 0; c < containers_each; ++c) {
        const double mean = 2 * tree.capacity / static_cast<double>(containers);
        tree.nodes.push_back({.parent = index,
                              .weight = std::max(kLeastKernelWeight, pod.weight / 2),
                              .demand = amount(2 * mean)});
      }
    }
    return tree;
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  // Up to `most` cores.
  double amount(double most) {
    const auto microcores = static_cast<std::uint64_t>(most * 1e6);
    return static_cast<double>(below(microcores + 1)) / 1e6;
  }

 private:
  double weight(std::uint64_t kind) {
    switch (kind) {
      case 0:
        return kTaskWeight;
      case 1:
        return static_cast<double>(1 + below(4)) * 512;
      case 2:
        return static_cast<double>(2 + below(10'000));
      default:
        return std::round(std::exp2(1 + 17 * static_cast<double>(below(1001)) / 1000));
    }
  }

  std::mt19937_64 random_;
};

}  // namespace mbcas::market::reference
