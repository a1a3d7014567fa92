// What the kernel would do: how the Linux scheduler divides a machine's CPU over a tree of cgroups
// in the long run, that is, over seconds.
//
//   const std::vector<CgroupNode> nodes = {
//       {.weight = 3072},                            // 0: an inner cgroup
//       {.parent = 0, .demand = 0.5},                // 1: a consumer in it that needs half a core
//       {.parent = 0, .demand = kUncapped},          // 2: one that takes whatever it can get
//       {.weight = 1024, .cap = 0.8, .demand = 2},   // 3: next to 0, with a quota
//   };
//   divideAsKernel(2, nodes);    // 1.5, 0.5, 1.0, 0.5: the weights of 0 and 3 decide, 3 to 1
//
// The tasks of a cgroup compete only with its siblings, by weight, for what the cgroup above has.
// In the long run that is weighted max-min fairness, x_i = min(want_i, weight_i * t) with one level
// t for all siblings, which is the welfare clearing of the market (solver.h) with the weights as
// bids. So there is one clearing for each inner cgroup, top-down. What a cgroup wants is what its
// subtree demands within its caps. test/kernel/division_test.cc compares this with the real kernel.
// One effect is left out: the kernel divides each CPU separately, so a group of one thread next to
// groups of many has less or more than this.
//
// Pure: no I/O, clock, log, randomness or global state. Time is linear in the number of nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "mbcas/market/solver.h"

namespace mbcas::market {

inline constexpr double kUncapped = std::numeric_limits<double>::infinity();

// The weight of a task of nice 0, and of a cgroup with cpu.weight 100 or cpu.shares 1024.
inline constexpr double kTaskWeight = 1024;
// The kernel's smallest (cpu.shares 2).
inline constexpr double kLeastKernelWeight = 2;

// One cgroup of the machine's tree, or a group of tasks. Amounts are in cores.
//
// No value is an error. An amount below 0 counts as 0, and so does a demand that is not a number; a
// cap or a number of threads that is not a number counts as none. A weight that is not above 0
// counts as kLeastKernelWeight.
struct CgroupNode {
  // The index of an earlier node. Nothing, or an index that is not earlier: directly below the
  // machine.
  std::optional<std::size_t> parent{};
  double weight = kTaskWeight;  // kernel weight among its siblings
  double cap = kUncapped;       // the quota of this very cgroup
  // What its own tasks would use if no cap and no neighbour held them back. Inner cgroups usually
  // have 0. Infinite: the tasks use whatever they get.
  double demand = 0;
  double threads = kUncapped;  // the most CPUs that its own tasks can use at once

  friend bool operator==(const CgroupNode&, const CgroupNode&) = default;
};

// Keeps no state but its buffers, so any sequence of trees gives the same answers. It allocates
// nothing once it has seen a tree with as many nodes and as many siblings. Not for use by two
// threads at once.
class KernelDivision {
 public:
  // What each node gets, in the order of the input; an inner cgroup: the sum of its subtree. Valid
  // until the next call.
  //
  // - The sum of the top level is min(capacity, what all nodes want), and no node has more than its
  //   cap or than its subtree can use.
  // - Amounts are whole microcores: demands and caps are rounded to the nearest, and the rest that
  //   rounding leaves in a division goes to the largest fractions. So the order of siblings matters
  //   by one microcore at most for each level of the tree.
  // - A node with demand and children: its own tasks are one more sibling of its children, of
  //   weight kTaskWeight together. In the kernel each of these tasks competes by itself, with the
  //   weight of its nice value (and only cgroup v1 and the root of v2 allow such tasks). A caller
  //   that knows them gives each a node of its own, with one thread. The own tasks get what the
  //   node gets less the sum of its children.
  // - A capacity that is not a number counts as 0; a capacity above 2^40 microcores (a million
  //   cores) counts as that. A cgroup with kMostPods children or more gives them nothing.
  std::span<const double> divide(double capacity, std::span<const CgroupNode> nodes);

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  // A cgroup in whole microcores. Cgroups are numbered from 1, 0 is the machine.
  struct Cgroup {
    std::int64_t own = 0;     // what its own tasks want
    std::int64_t wanted = 0;  // with what its children want; at most one above the capacity
    std::int64_t want = 0;    // of that what its cap allows
    std::int64_t share = 0;
    double weight = kTaskWeight;
    std::size_t first_child = kNone;
    std::size_t next_sibling = kNone;
  };
  void divideWithin(const Cgroup& cgroup);

  std::vector<Cgroup> cgroups_;
  std::vector<double> shares_;
  Solver solver_;
  Problem problem_{.objective = Objective::kWelfare};
  Clearing clearing_;
};

// The same for a single tree.
std::vector<double> divideAsKernel(double capacity, std::span<const CgroupNode> nodes);

}  // namespace mbcas::market
