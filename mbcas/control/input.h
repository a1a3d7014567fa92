// The input of the law: one node and its managed pods at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/control/settings.h"
#include "mbcas/demand/need.h"

namespace mbcas::control {

// A container that has a CPU limit; those without one are not managed.
struct Container {
  std::string name{};
  demand::Need need{};
  Millicores limit;     // in force
  Millicores declared;  // what its owner wrote
  Millicores request;

  friend bool operator==(const Container&, const Container&) = default;
};

struct Pod {
  std::string id{};
  std::vector<Container> containers{};
  double weight = 1;  // see weight.h
  double factor = 1;  // its importance: the part of the weight that is not the request

  // Bounds of the whole pod. No floor: the larger of min_cpu and the request. No ceiling: the
  // node's capacity (in the classic profile less the reserve), or the declared limit where that is
  // more.
  std::optional<Millicores> floor{};
  std::optional<Millicores> ceiling{};
  std::optional<Millicores> start{};  // where a new pod of a known workload begins

  bool may_lower = true;  // its limit may go below the declared one now
  bool memory_or_io_pressure = false;
  double contention = 0;  // share of time it waits for a CPU and no quota of its own explains it

  Millicores limit() const;  // sums over the containers
  Millicores declared() const;
  Millicores request() const;
  friend bool operator==(const Pod&, const Pod&) = default;
};

// One cgroup of the machine's tree: a managed pod, another consumer, or an inner cgroup that has
// children only.
struct Cgroup {
  std::string id{};                     // of a consumer that is not managed: stays with it
  std::optional<std::size_t> parent{};  // an earlier one; nothing: directly below the machine
  double weight = 1024;                 // the kernel's, among its siblings
  std::optional<Millicores> cap{};      // the quota of this very cgroup
  Millicores use{};                     // of a consumer, over the last interval
  std::optional<std::size_t> pod{};     // a managed pod: its place in NodeInput::pods
  bool inner = false;
  // Of a consumer: it cannot use more CPUs than this at once. Nothing: not known.
  std::optional<std::uint64_t> threads{};

  friend bool operator==(const Cgroup&, const Cgroup&) = default;
};

struct NodeInput {
  MonotonicTime now{};
  Millicores capacity;  // of the machine: its CPUs less what interrupts and a hypervisor take
  // Everything that uses CPU. Empty: not sensed, and only the pods are known.
  std::vector<Cgroup> machine{};
  std::optional<Millicores> idle{};  // CPU that no consumer used; nothing: what their use leaves
  bool divisible = true;             // false: cpusets overlap in part, so no division is known
  Millicores unmanaged_use;          // measured, of everything that is not in `pods`
  Millicores unmanaged_requests;     // counts in strict mode
  int pressure_conditions = 0;       // how many of MemoryPressure, DiskPressure, PIDPressure
  std::vector<Pod> pods{};           // managed ones, ids unique

  friend bool operator==(const NodeInput&, const NodeInput&) = default;
};

}  // namespace mbcas::control
