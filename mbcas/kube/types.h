// The kinds of the API that a CPU controller needs, each with the fields that it uses and no other.
// A field that is absent in the JSON is empty, zero or nullopt here.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "mbcas/base/units.h"
#include "mbcas/kube/object.h"

namespace mbcas::kube {

// CPU and memory of a resource list. Other resources are not kept. Both are rounded up, CPU to a
// millicore and memory to a byte, as the API server does. A server accepts any amount ("1e30");
// what is above kMostCpu or kMostMemory reads as that, and sums of such amounts over all containers
// of a pod do not overflow.
class Amounts {
 public:
  static constexpr Millicores kMostCpu{std::int64_t{1} << 40};        // a billion CPUs
  static constexpr std::int64_t kMostMemory = std::int64_t{1} << 50;  // 1 PiB

  std::optional<Millicores> cpu() const {
    if (cpu_ == kAbsent) return std::nullopt;
    return Millicores(cpu_);
  }
  std::optional<std::int64_t> memoryBytes() const {
    if (memory_ == kAbsent) return std::nullopt;
    return memory_;
  }
  bool empty() const { return cpu_ == kAbsent && memory_ == kAbsent; }
  // One of them may stand for a larger amount, so that it must not be written back.
  bool saturated() const { return cpu_ >= kMostCpu.count() || memory_ >= kMostMemory; }
  friend bool operator==(const Amounts&, const Amounts&) = default;

  // {"cpu":"500m","memory":"1Gi","example.com/gpu":1}
  static Amounts decode(JsonCursor resource_list);
  static Amounts ofCpu(Millicores cpu);

 private:
  static constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();
  std::int64_t cpu_ = kAbsent;
  std::int64_t memory_ = kAbsent;
};

enum class PodPhase : std::uint8_t { kUnknown, kPending, kRunning, kSucceeded, kFailed };
enum class QosClass : std::uint8_t { kUnset, kBestEffort, kBurstable, kGuaranteed };
enum class RestartPolicy : std::uint8_t { kAlways, kOnFailure, kNever };

enum class ContainerRole : std::uint8_t {
  kMain,
  kInit,
  kSidecar,  // an init container with restartPolicy Always
};

struct Container {
  Str name;
  Amounts requests;
  Amounts limits;
  ContainerRole role = ContainerRole::kMain;
  bool restarts_on_cpu_resize = false;  // resizePolicy RestartContainer
  bool restarts_on_memory_resize = false;
  std::array<std::uint8_t, 5> unused{};  // no undefined bytes: see Arena::sharedList
};

struct ContainerStatus {
  Str name;
  Str id;             // "containerd://0123..."; empty until it was first started
  Amounts requests;   // actual: what the runtime reports
  Amounts limits;     // actual
  Amounts allocated;  // requests that the kubelet has granted
  std::int32_t restarts = 0;
  bool running = false;
  bool has_resources = false;  // status.resources is there, be it empty: the node can resize
};

// A resize that the kubelet has not finished; see KEP-1287.
struct ResizeCondition {
  Str reason;  // Pending: "Deferred" or "Infeasible". In progress: "" or "Error"
  Str message;
  std::int64_t observed_generation = 0;
  bool present = false;
};

struct Pod : Object {
  using Object::Object;
  Str node;  // empty until scheduled
  Str priority_class;
  List<Container> containers;            // init containers first
  List<ContainerStatus> statuses;        // likewise
  std::int64_t observed_generation = 0;  // 0 before Kubernetes 1.34
  // Rare, so apart from the rest: null unless a resize is pending or in progress.
  struct Resize {
    ResizeCondition pending;
    ResizeCondition in_progress;
  };
  List<Resize> resize;  // none or one
  std::int32_t priority = 0;
  PodPhase phase = PodPhase::kUnknown;
  QosClass qos = QosClass::kUnset;
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  bool windows = false;
  bool pod_level_resources = false;  // spec.resources is set
  bool has_deadline = false;         // spec.activeDeadlineSeconds is set
  bool ready = false;

  // Some container asks for more than Amounts can say.
  bool saturated() const;
  bool terminal() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  // A static pod's shadow: the kubelet owns it, the API cannot change it.
  bool mirror() const;
  const Container* container(std::string_view name) const;
  const ContainerStatus* status(std::string_view container) const;
  ResizeCondition resizePending() const;
  ResizeCondition resizeInProgress() const;
  // No running container says that its node cannot resize (it would lack status.resources).
  bool nodeSupportsResize() const;

  static const Kind& kind();
};

struct Node : Object {
  using Object::Object;
  Amounts capacity;
  Amounts allocatable;
  Str kubelet_version;
  Str operating_system;
  Str internal_ip;
  bool ready = false;
  bool unschedulable = false;
  bool memory_pressure = false;  // conditions that hold
  bool disk_pressure = false;
  bool pid_pressure = false;
  static const Kind& kind();
};

struct Lease : Object {
  using Object::Object;
  Str holder;
  std::int32_t duration_seconds = 0;
  std::int32_t transitions = 0;
  WallTime acquired{};
  WallTime renewed{};
  static const Kind& kind();
};

struct Event : Object {  // core/v1
  using Object::Object;
  Str involved_kind;
  Str involved_namespace;
  Str involved_name;
  Str involved_uid;
  Str type;  // Normal or Warning
  Str reason;
  Str message;
  Str source;
  std::int32_t count = 0;
  WallTime first_seen{};
  WallTime last_seen{};
  static const Kind& kind();
};

struct ConfigMap : Object {
  using Object::Object;
  List<KeyValue> data;
  static const Kind& kind();
};

struct LimitRange : Object {
  using Object::Object;
  struct Item {
    Str type;  // Container, Pod, PersistentVolumeClaim
    Amounts min;
    Amounts max;
    Amounts max_limit_request_ratio;  // "cpu: 2" reads as 2000 millicores
  };
  List<Item> limits;
  static const Kind& kind();
};

struct ResourceQuota : Object {
  using Object::Object;
  List<KeyValue> hard;  // "requests.cpu": "4"; what admission enforces is status.hard
  List<KeyValue> status_hard;
  List<KeyValue> status_used;
  List<Str> scopes;
  struct ScopeExpression {  // spec.scopeSelector
    Str scope;
    Str op;  // In, NotIn, Exists, DoesNotExist
    List<Str> values;
  };
  List<ScopeExpression> scope_selector;
  static const Kind& kind();
};

struct TargetReference {
  Str api_version;
  Str kind;
  Str name;
};

struct HorizontalPodAutoscaler : Object {  // autoscaling/v2
  using Object::Object;
  struct Metric {
    Str type;                              // Resource, ContainerResource, Pods, Object, External
    Str resource;                          // of the first two: cpu, memory
    Str target_type;                       // Utilization, AverageValue, Value
    std::int32_t average_utilization = 0;  // percent
    Amounts average_value;                 // as CPU
  };
  TargetReference target;
  List<Metric> metrics;
  bool scalesOnCpu() const;
  static const Kind& kind();
};

struct VerticalPodAutoscaler : Object {  // autoscaling.k8s.io/v1, a custom resource
  using Object::Object;
  struct ContainerPolicy {
    Str container;  // "*" for all the others
    Str mode;       // Auto (the default, also when empty) or Off
    List<Str> controlled_resources;
  };
  TargetReference target;
  Str update_mode;  // Off, Initial, Recreate, InPlaceOrRecreate, Auto; empty means the default
  List<ContainerPolicy> policies;
  // Whether it may change the CPU of running pods of its target.
  bool activeOnCpu(std::string_view container) const;
  static const Kind& kind();
};

struct LabelSelector {
  struct Expression {
    Str key;
    Str op;  // In, NotIn, Exists, DoesNotExist
    List<Str> values;
  };
  List<KeyValue> labels;
  List<Expression> expressions;
  bool present = false;  // an absent selector matches nothing, an empty one everything
  bool matches(const List<KeyValue>& labels_of_object) const;
  static LabelSelector decode(Arena& arena, JsonCursor value);
};

struct PodDisruptionBudget : Object {
  using Object::Object;
  LabelSelector selector;
  std::int32_t current_healthy = 0;
  std::int32_t desired_healthy = 0;
  static const Kind& kind();
};

struct Namespace : Object {
  using Object::Object;
  Str phase;  // Active, Terminating
  static const Kind& kind();
};

}  // namespace mbcas::kube
