// PodAllocation, allocation.mbcas.io/v1alpha1: the only contract between the agents, which write
// spec, and the controller, which writes status. One per pod: same namespace, named by the pod's
// UID, owned by the pod. config/crd has its schema, docs/podallocation.md explains it to users.
//
//   Informer<PodAllocation> allocations(client);
//   client.apply<PodAllocation>(ns, uid, applySpec(pod, spec), {.field_manager = kAgentManager});
//   client.apply<PodAllocation>(ns, uid, applyStatus(allocation.meta, status),
//                               {.subresource = "status", .field_manager = kControllerManager});
//
// CPU is in whole millicores, as the API server itself rounds it (up); written as "750m".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/kube/object.h"

namespace mbcas::podallocation {

inline constexpr std::string_view kNodeLabel = "mbcas.io/node";
// Field managers of server-side apply.
inline constexpr const char* kAgentManager = "mbcas-agent";
inline constexpr const char* kControllerManager = "mbcas-controller";
inline constexpr std::size_t kLongestReason = 256;  // of spec.reason, in characters
// Of the reasons and messages in status, in characters.
inline constexpr std::size_t kLongestStatusReason = 1024;

// What a writer means. Values, comparable, to be written by the functions below.

struct ContainerLimit {
  std::string name;
  Millicores desired;
  friend bool operator==(const ContainerLimit&, const ContainerLimit&) = default;
};

struct Spec {
  std::string name_space;  // of the pod, and of the object
  std::string pod_name;
  std::string node;
  Millicores desired;                      // sum over the managed containers
  std::vector<ContainerLimit> containers;  // empty: the controller splits
  std::optional<Millicores> wanted;        // without cluster bounds, in coarse steps
  std::string reason;                      // one sentence; what is too long is cut off
  friend bool operator==(const Spec&, const Spec&) = default;
};

enum class Phase : std::uint8_t {
  kUnset,
  kPending,      // work in progress
  kApplied,      // the desired limit is in force
  kClamped,      // a bound changed the desired limit, and what is left of it is in force
  kRecommended,  // the controller only says what it would set
  kLeftAlone,    // the controller does not act on this pod now
  kFailed,       // tried again, later each time
};
std::string_view name(Phase phase);  // "", "Pending", ...

// What cluster policy allows.
struct Bounds {
  bool managed = false;  // false: the pod is left alone, and reason says why
  std::optional<Millicores> floor;
  std::optional<Millicores> ceiling;
  std::optional<Millicores> start;  // where a new pod of a known workload begins
  double weight = 1;                // a factor on the agent's own; written with 3 decimals
  std::string reason;
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

// What the pod's author declared for one container, from before the first resize.
struct OriginalCpu {
  std::string container;
  std::optional<Millicores> request;
  std::optional<Millicores> limit;
  friend bool operator==(const OriginalCpu&, const OriginalCpu&) = default;
};

enum class ConditionStatus : std::uint8_t { kFalse, kTrue, kUnknown };

inline constexpr std::string_view kClamped = "Clamped";  // a bound changed the desired value

struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason;  // CamelCase; required by the schema
  std::string message;
  std::int64_t observed_generation = 0;  // 0: not written
  WallTime last_transition{};            // whole seconds
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Status {
  Phase phase = Phase::kUnset;
  std::int64_t observed_generation = 0;        // 0: not written
  std::optional<Millicores> observed_desired;  // what phase and applied speak of
  std::optional<Millicores> applied;           // last limit seen actuated
  std::string reason;
  WallTime last_applied{};  // whole seconds; zero: not written
  WallTime last_attempt{};
  std::optional<Bounds> bounds;
  // Recorded before the first resize, and removed once the pod has these resources again. Empty:
  // MBCAS has not changed the pod.
  std::vector<OriginalCpu> original;
  std::vector<Condition> conditions;

  const Condition* condition(std::string_view type) const;
  // Adds or replaces it. The time of transition moves only if its status changes, as Kubernetes
  // wants it.
  void setCondition(Condition condition);
  friend bool operator==(const Status&, const Status&) = default;
};

// What is read, kept small: a controller caches one per pod. Absent fields are empty.
struct PodAllocation : kube::Object {
  using Object::Object;

  struct Container {
    kube::Str name;
    Millicores desired;
  };
  struct BoundsView {
    std::optional<Millicores> floor;
    std::optional<Millicores> ceiling;
    std::optional<Millicores> start;
    double weight = 1;
    kube::Str reason;
    bool managed = false;
  };
  struct OriginalView {
    kube::Str container;
    std::optional<Millicores> request;
    std::optional<Millicores> limit;
  };
  struct ConditionView {
    kube::Str type;
    kube::Str reason;
    kube::Str message;
    std::int64_t observed_generation = 0;
    WallTime last_transition{};
    ConditionStatus status = ConditionStatus::kUnknown;
  };

  // spec
  kube::Str pod_namespace;
  kube::Str pod_name;
  kube::Str node;
  kube::Str reason;
  Millicores desired;
  std::optional<Millicores> wanted;
  kube::List<Container> containers;
  // status
  Phase phase = Phase::kUnset;
  std::int64_t observed_generation = 0;
  std::optional<Millicores> observed_desired;
  std::optional<Millicores> applied;
  kube::Str status_reason;
  WallTime last_applied{};
  WallTime last_attempt{};
  kube::List<BoundsView> bounds_list;  // none or one
  kube::List<OriginalView> original;
  kube::List<ConditionView> conditions;

  const BoundsView* bounds() const { return bounds_list.empty() ? nullptr : &bounds_list[0]; }
  // The same as values, to be changed and written back.
  Spec specValue() const;
  Status statusValue() const;
  std::vector<OriginalCpu> originalValue() const;

  static const kube::Kind& kind();
};

// The pod that an allocation is for.
struct Owner {
  std::string_view name;
  std::string_view uid;  // becomes the name of the allocation
};

// Bodies for server-side apply, which owns what it names and drops what it no longer names.
std::string applySpec(const Owner& pod, const Spec& spec);
// Whatever object has the name by then: its name is a UID, so it speaks of the same pod. (The API
// server ignores a UID in a patch of status.) What is written is trimmed().
std::string applyStatus(const kube::ObjectMeta& allocation, const Status& status);

// The status with its texts cut, and amounts left out, to what the schema takes: a status that the
// schema refuses would be refused for ever.
Status trimmed(Status status);

}  // namespace mbcas::podallocation
