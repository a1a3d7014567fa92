// A whole cluster at a glance, for `mbcas ui`: how short of CPU its nodes are, and what its
// namespaces have. From PodAllocations and Nodes alone: no agent is asked.
//
//   ClusterView view = clusterOf(allocations, nodes);
//   since.update(view, now);
//   page.setCluster(clusterJson(view));
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/cli/snapshot.h"
#include "mbcas/control/reason.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::cli {

// Of managed pods.
struct PodSum {
  std::size_t pods = 0;
  std::size_t bound = 0;   // held below what they declared, for pods that matter more
  std::size_t failed = 0;  // their limit could not be changed
  Millicores have;         // limits in force
  Millicores wanted;       // limits that they would have without floors, ceilings and scarcity
  Millicores held;         // what of it they do not have, pod by pod
  // What those use, and how many they are, whose last decision tells it: the others are bound, at
  // their ceilings, or new.
  Millicores use{};
  std::size_t use_told = 0;

  friend bool operator==(const PodSum&, const PodSum&) = default;
};

struct NodeTile {
  std::string node;
  PodSum sum;
  // As the decisions about its bound pods say; 0: none is bound.
  double price = 0;
  bool overloaded = false;               // there is no price
  std::optional<Millicores> capacity{};  // allocatable
  bool ready = true;
  std::optional<WallTime> short_since{};  // when its price was first seen above 0

  bool isShort() const { return overloaded || price > 0; }
  friend bool operator==(const NodeTile&, const NodeTile&) = default;
};

struct NamespaceSum {
  std::string name_space;
  PodSum sum;
  friend bool operator==(const NamespaceSum&, const NamespaceSum&) = default;
};

struct ClusterView {
  WallTime time{};              // of a recorded one
  std::vector<NodeTile> nodes;  // by name; those that have an allocation or are Nodes
  std::vector<NamespaceSum> namespaces;
  std::vector<std::string> notes{};  // for a person: what is missing
  // Of a recorded view after the first one: nodes that are no longer there. Its `nodes` are those
  // that are not as before.
  std::vector<std::string> gone{};
  friend bool operator==(const ClusterView&, const ClusterView&) = default;
};

// What was declared for its containers, where MBCAS has recorded it.
std::optional<Millicores> declaredOf(const podallocation::PodAllocation& allocation);
// The price at which the pod is bound below what it declared; nothing: it is not.
std::optional<control::SaidPrice> boundAt(const podallocation::PodAllocation& allocation);

ClusterView clusterOf(const std::vector<AllocationPtr>& allocations,
                      const std::vector<NodePtr>& nodes);

// Remembers since when nodes have been short.
class ShortSince {
 public:
  void update(ClusterView& view, WallTime now);

 private:
  std::map<std::string, WallTime> since_;
};

std::string clusterJson(const ClusterView& view);
// A recorded view, from what clusterJson() has written.
ClusterView readCluster(kube::JsonCursor object);

}  // namespace mbcas::cli
