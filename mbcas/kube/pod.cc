#include <fmt/format.h>

#include <algorithm>

#include "mbcas/base/quantity.h"
#include "mbcas/kube/types.h"

namespace mbcas::kube {
namespace {

using enum ProtobufType;
using enum ProtobufShape;

constexpr ProtobufMessage kPresent{};  // that it is there is all that counts
constexpr ProtobufField kRequirementsFields[] = {
    {1, "limits", kQuantity, kMap},
    {2, "requests", kQuantity, kMap},
    {3, "claims", kMessage, kRepeated, &kPresent},
};
constexpr ProtobufMessage kRequirements{kRequirementsFields};
constexpr ProtobufField kResizePolicyFields[] = {{1, "resourceName"}, {2, "restartPolicy"}};
constexpr ProtobufMessage kResizePolicy{kResizePolicyFields};
constexpr ProtobufField kContainerFields[] = {
    {1, "name"},
    {8, "resources", kMessage, kOne, &kRequirements},
    {23, "resizePolicy", kMessage, kRepeated, &kResizePolicy},
    {24, "restartPolicy"},
};
constexpr ProtobufMessage kContainer{kContainerFields};
constexpr ProtobufField kOsFields[] = {{1, "name"}};
constexpr ProtobufMessage kOs{kOsFields};
constexpr ProtobufField kSpecFields[] = {
    {2, "containers", kMessage, kRepeated, &kContainer},
    {3, "restartPolicy"},
    {5, "activeDeadlineSeconds", kInteger},
    {10, "nodeName"},
    {20, "initContainers", kMessage, kRepeated, &kContainer},
    {24, "priorityClassName"},
    {25, "priority", kInteger},
    {36, "os", kMessage, kOne, &kOs},
    {40, "resources", kMessage, kOne, &kRequirements},
};
constexpr ProtobufMessage kSpec{kSpecFields};
constexpr ProtobufField kStateFields[] = {{2, "running", kMessage, kOne, &kPresent}};
constexpr ProtobufMessage kState{kStateFields};
constexpr ProtobufField kContainerStatusFields[] = {
    {1, "name"},
    {2, "state", kMessage, kOne, &kState},
    {5, "restartCount", kInteger},
    {8, "containerID"},
    {10, "allocatedResources", kQuantity, kMap},
    {11, "resources", kMessage, kOne, &kRequirements},
};
constexpr ProtobufMessage kContainerStatus{kContainerStatusFields};
constexpr ProtobufField kConditionFields[] = {
    {1, "type"}, {2, "status"}, {5, "reason"}, {6, "message"}, {7, "observedGeneration", kInteger},
};
constexpr ProtobufMessage kCondition{kConditionFields};
constexpr ProtobufField kStatusFields[] = {
    {1, "phase"},
    {2, "conditions", kMessage, kRepeated, &kCondition},
    {8, "containerStatuses", kMessage, kRepeated, &kContainerStatus},
    {9, "qosClass"},
    {10, "initContainerStatuses", kMessage, kRepeated, &kContainerStatus},
    {17, "observedGeneration", kInteger},
};
constexpr ProtobufMessage kStatus{kStatusFields};
constexpr ProtobufField kPodFields[] = {
    {1, "metadata", kMessage, kOne, &kProtobufObjectMeta},
    {2, "spec", kMessage, kOne, &kSpec},
    {3, "status", kMessage, kOne, &kStatus},
};
constexpr ProtobufMessage kPod{kPodFields};

struct Requirements {
  Amounts requests;
  Amounts limits;
};

Requirements decodeRequirements(JsonCursor value) {
  Requirements found;
  value.members([&](std::string_view key, JsonCursor amounts) {
    if (key == "requests") found.requests = Amounts::decode(amounts);
    if (key == "limits") found.limits = Amounts::decode(amounts);
  });
  return found;
}

void decodeResizePolicy(Container& container, JsonCursor value) {
  value.elements([&](JsonCursor element) {
    bool cpu = false;
    bool restart = false;
    element.members([&](std::string_view key, JsonCursor field) {
      if (key == "resourceName") cpu = field.text() == "cpu";
      if (key == "restartPolicy") restart = field.text() == "RestartContainer";
    });
    (cpu ? container.restarts_on_cpu_resize : container.restarts_on_memory_resize) = restart;
  });
}

void decodeContainers(Arena& arena, JsonCursor value, bool init, std::vector<Container>& out) {
  value.elements([&](JsonCursor element) {
    Container container;
    if (init) container.role = ContainerRole::kInit;
    element.members([&](std::string_view key, JsonCursor field) {
      if (key == "name") {
        container.name = arena.shared(field.text());
      } else if (key == "resources") {
        const Requirements resources = decodeRequirements(field);
        container.requests = resources.requests;
        container.limits = resources.limits;
      } else if (key == "resizePolicy") {
        decodeResizePolicy(container, field);
      } else if (key == "restartPolicy" && init && field.text() == "Always") {
        container.role = ContainerRole::kSidecar;
      }
    });
    out.push_back(container);
  });
}

void decodeStatuses(Arena& arena, JsonCursor value, std::vector<ContainerStatus>& out) {
  value.elements([&](JsonCursor element) {
    ContainerStatus status;
    element.members([&](std::string_view key, JsonCursor field) {
      if (key == "name") {
        status.name = arena.shared(field.text());
      } else if (key == "containerID") {
        status.id = arena.text(field.text());
      } else if (key == "restartCount") {
        status.restarts = static_cast<std::int32_t>(field.integer());
      } else if (key == "allocatedResources") {
        status.allocated = Amounts::decode(field);
      } else if (key == "resources") {
        status.has_resources = !field.isNull();
        const Requirements resources = decodeRequirements(field);
        status.requests = resources.requests;
        status.limits = resources.limits;
      } else if (key == "state") {
        field.members([&](std::string_view state, JsonCursor detail) {
          if (state == "running") status.running = !detail.isNull();
        });
      }
    });
    out.push_back(status);
  });
}

void decodeConditions(Pod& pod, JsonCursor value) {
  Pod::Resize resize;
  value.elements([&](JsonCursor element) {
    // The members come in any order, so all are read before the type says what they mean.
    std::string type;
    std::string reason;
    std::string message;
    bool holds = false;
    std::int64_t generation = 0;
    element.members([&](std::string_view key, JsonCursor field) {
      if (key == "type") type = field.text();
      if (key == "status") holds = field.text() == "True";
      if (key == "reason") reason = field.text();
      if (key == "message") message = field.text();
      if (key == "observedGeneration") generation = field.integer();
    });
    if (type == "Ready") pod.ready = holds;
    ResizeCondition* const condition = type == "PodResizePending"      ? &resize.pending
                                       : type == "PodResizeInProgress" ? &resize.in_progress
                                                                       : nullptr;
    if (condition == nullptr || !holds) return;
    *condition = {pod.arena.text(reason), pod.arena.text(message), generation, true};
  });
  if (resize.pending.present || resize.in_progress.present) {
    pod.resize = pod.arena.list(std::vector{resize});
  }
}

PodPhase phaseOf(std::string_view text) {
  if (text == "Pending") return PodPhase::kPending;
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

QosClass qosOf(std::string_view text) {
  if (text == "BestEffort") return QosClass::kBestEffort;
  if (text == "Burstable") return QosClass::kBurstable;
  if (text == "Guaranteed") return QosClass::kGuaranteed;
  return QosClass::kUnset;
}

void decodeSpec(Pod& pod, JsonCursor spec) {
  std::vector<Container> init;
  std::vector<Container> main;
  spec.members([&](std::string_view key, JsonCursor field) {
    if (key == "containers") {
      decodeContainers(pod.arena, field, false, main);
    } else if (key == "initContainers") {
      decodeContainers(pod.arena, field, true, init);
    } else if (key == "nodeName") {
      pod.node = pod.arena.shared(field.text());
    } else if (key == "priorityClassName") {
      pod.priority_class = pod.arena.shared(field.text());
    } else if (key == "activeDeadlineSeconds") {
      pod.has_deadline = !field.isNull();
    } else if (key == "priority") {
      pod.priority = static_cast<std::int32_t>(field.integer());
    } else if (key == "restartPolicy") {
      const std::string_view policy = field.text();
      if (policy == "Never") pod.restart_policy = RestartPolicy::kNever;
      if (policy == "OnFailure") pod.restart_policy = RestartPolicy::kOnFailure;
    } else if (key == "os") {
      field.members([&](std::string_view name, JsonCursor value) {
        if (name == "name") pod.windows = value.text() == "windows";
      });
    } else if (key == "resources") {
      field.members([&](std::string_view, JsonCursor) { pod.pod_level_resources = true; });
    }
  });
  init.insert(init.end(), main.begin(), main.end());
  pod.containers = pod.arena.sharedList(init);
}

void decodeStatusOfPod(Pod& pod, JsonCursor value) {
  std::vector<ContainerStatus> init;
  std::vector<ContainerStatus> main;
  value.members([&](std::string_view key, JsonCursor field) {
    if (key == "phase") {
      pod.phase = phaseOf(field.text());
    } else if (key == "qosClass") {
      pod.qos = qosOf(field.text());
    } else if (key == "observedGeneration") {
      pod.observed_generation = field.integer();
    } else if (key == "conditions") {
      decodeConditions(pod, field);
    } else if (key == "containerStatuses") {
      decodeStatuses(pod.arena, field, main);
    } else if (key == "initContainerStatuses") {
      decodeStatuses(pod.arena, field, init);
    }
  });
  init.insert(init.end(), main.begin(), main.end());
  pod.statuses = pod.arena.list(init);
}

}  // namespace

Amounts Amounts::decode(JsonCursor resource_list) {
  Amounts amounts;
  resource_list.members([&](std::string_view key, JsonCursor value) {
    if (key != "cpu" && key != "memory") return;
    const Result<Quantity> quantity = Quantity::parseSaturating(value.scalar());
    if (!quantity) return value.fail(quantity.error().message());
    if (key == "cpu") amounts.cpu_ = ofCpu(quantity->millicores()).cpu_;
    if (key == "memory") amounts.memory_ = std::clamp(quantity->value(), -kMostMemory, kMostMemory);
  });
  return amounts;
}

Amounts Amounts::ofCpu(Millicores cpu) {
  Amounts amounts;
  amounts.cpu_ = std::clamp(cpu, -kMostCpu, kMostCpu).count();
  return amounts;
}

const Kind& Pod::kind() {
  static const Kind kKind = makeKind<Pod>(
      {.group = "", .version = "v1", .plural = "pods", .name = "Pod", .protobuf = &kPod},
      [](Pod& pod, std::string_view key, JsonCursor value) {
        if (key == "spec") decodeSpec(pod, value);
        if (key == "status") decodeStatusOfPod(pod, value);
      });
  return kKind;
}

bool Pod::saturated() const {
  return std::any_of(containers.begin(), containers.end(), [](const Container& container) {
    return container.requests.saturated() || container.limits.saturated();
  });
}

bool Pod::mirror() const {
  return find(meta.annotations, "kubernetes.io/config.mirror").has_value();
}

const Container* Pod::container(std::string_view name) const {
  for (const Container& container : containers) {
    if (container.name == name) return &container;
  }
  return nullptr;
}

const ContainerStatus* Pod::status(std::string_view container) const {
  for (const ContainerStatus& status : statuses) {
    if (status.name == container) return &status;
  }
  return nullptr;
}

ResizeCondition Pod::resizePending() const {
  return resize.empty() ? ResizeCondition{} : resize[0].pending;
}

ResizeCondition Pod::resizeInProgress() const {
  return resize.empty() ? ResizeCondition{} : resize[0].in_progress;
}

bool Pod::nodeSupportsResize() const {
  for (const ContainerStatus& status : statuses) {
    if (status.running) return status.has_resources;
  }
  return true;
}

}  // namespace mbcas::kube
