// The cgroup tree of a model node as an agent can sense it: every slice, every pod and every
// process outside kubepods, with its weight, its limit and what it used.
//
//   Tree tree;
//   for (...) {                              // once per sample
//     node.advanceTo(...);
//     for (const TreeEntry& entry : tree.sense(node)) ...
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/sim/node.h"

namespace mbcas::sim {

struct TreeEntry {
  enum class Kind : std::uint8_t {
    kSlice,    // contains other entries: kubepods and its slices for QoS classes
    kPod,      // a consumer below kubepods
    kOutside,  // a consumer next to kubepods
  };

  std::string path{};  // of the cgroup
  Kind kind = Kind::kSlice;
  std::optional<std::size_t> parent{};  // a lower place in the same list; nothing: the top
  double weight = 1;                    // the kernel's, among entries with the same parent
  std::optional<Millicores> cap{};      // the limit in force of this very cgroup
  // CPU time over the last interval. An entry that appeared within it has an interval of 0.
  Nanos usage{0};
  Nanos interval{0};
  int threads = 0;                   // of the whole subtree, running or not
  std::optional<std::size_t> pod{};  // place in NodeView::pods; only of managed pods

  Millicores use() const { return rate(usage, interval); }
  friend bool operator==(const TreeEntry&, const TreeEntry&) = default;
};

// Below kubepods. On a node without slices every pod is.
bool inKubepods(const Node& node, int pod);
std::string pathOf(const Node& node, int pod);

class Tree {
 public:
  // Parents come before their children. Valid until the next call.
  std::span<TreeEntry> sense(const Node& node);
  // The place of a pod of the node in what sense() returned; the pod is present.
  std::size_t placeOf(int pod) const { return places_[static_cast<std::size_t>(pod)]; }

 private:
  void build(const Node& node);

  std::uint64_t structure_ = 0;             // Node::structure() that entries_ are of
  Nanos at_{0};                             // of the last call
  std::vector<TreeEntry> entries_;          // all slices, then the pods that are present
  std::vector<int> pods_;                   // of the entries after the slices
  std::vector<std::size_t> places_;         // of each pod of the node
  std::vector<std::optional<Nanos>> last_;  // usage of each pod of the node
  std::vector<std::optional<Nanos>> last_slice_;
};

}  // namespace mbcas::sim
