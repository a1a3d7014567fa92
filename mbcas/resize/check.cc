// Checks a request against a pod, and makes the patch.
#include <fmt/format.h>

#include <algorithm>

#include "mbcas/base/json_writer.h"
#include "mbcas/resize/resize.h"

namespace mbcas::resize {
namespace {

using kube::Container;
using kube::ContainerRole;
using kube::Pod;
using kube::QosClass;

const ContainerCpu* find(const Request& request, std::string_view container) {
  const auto found = std::ranges::find(request.containers, container, &ContainerCpu::name);
  return found == request.containers.end() ? nullptr : &*found;
}

struct Cpu {
  std::optional<Millicores> request;
  std::optional<Millicores> limit;
};

Cpu after(const Container& container, const Request& request) {
  Cpu cpu{container.requests.cpu(), container.limits.cpu()};
  if (const ContainerCpu* change = find(request, container.name)) {
    if (change->request) cpu.request = change->request;
    if (change->limit) cpu.limit = change->limit;
  }
  // The API server gives a container that has only a limit a request of the same size.
  if (!cpu.request) cpu.request = cpu.limit;
  return cpu;
}

// As pkg/apis/core/v1/helper/qos does it: by the sums over all containers, init ones included.
QosClass qosAfter(const Pod& pod, const Request& request) {
  std::int64_t cpu_requests = 0;
  std::int64_t cpu_limits = 0;
  std::int64_t memory_requests = 0;
  std::int64_t memory_limits = 0;
  bool all_limited = true;
  for (const Container& container : pod.containers) {
    const Cpu cpu = after(container, request);
    const std::int64_t cpu_limit = cpu.limit.value_or(Millicores(0)).count();
    const std::int64_t memory_limit = container.limits.memoryBytes().value_or(0);
    if (cpu_limit <= 0 || memory_limit <= 0) all_limited = false;
    cpu_requests += cpu.request.value_or(Millicores(0)).count();
    cpu_limits += cpu_limit;
    memory_requests += container.requests.memoryBytes().value_or(0);
    memory_limits += memory_limit;
  }
  if (cpu_requests == 0 && cpu_limits == 0 && memory_requests == 0 && memory_limits == 0) {
    return QosClass::kBestEffort;
  }
  return all_limited && cpu_requests == cpu_limits && memory_requests == memory_limits
             ? QosClass::kGuaranteed
             : QosClass::kBurstable;
}

std::string_view name(QosClass qos) {
  switch (qos) {
    case QosClass::kBestEffort:
      return "BestEffort";
    case QosClass::kBurstable:
      return "Burstable";
    case QosClass::kGuaranteed:
      return "Guaranteed";
    case QosClass::kUnset:
      break;
  }
  return "unknown";
}

std::optional<Rejection> checkPod(const Pod& pod) {
  if (pod.mirror()) {
    return Rejection{Refusal::kStaticPod, "a static pod belongs to its kubelet"};
  }
  if (pod.windows) {
    return Rejection{Refusal::kWindows, "Windows pods cannot be resized"};
  }
  if (pod.pod_level_resources) {
    return Rejection{Refusal::kPodLevelResources,
                     "the pod has resources of its own besides those of its containers"};
  }
  if (pod.saturated()) {
    return Rejection{Refusal::kInvalid, "a container has more CPU or memory than can be counted"};
  }
  if (!pod.nodeSupportsResize()) {
    return Rejection{Refusal::kNodeWithoutSupport,
                     fmt::format("node {} cannot resize pods in place", pod.node.view())};
  }
  return std::nullopt;
}

std::optional<Rejection> checkContainer(const Pod& pod, const ContainerCpu& change,
                                        const Request& request) {
  const auto reject = [&](Refusal refusal, std::string_view message) {
    return Rejection{refusal, fmt::format("container {}: {}", change.name, message)};
  };
  const Container* container = pod.container(change.name);
  if (container == nullptr) {
    return Rejection{Refusal::kNoSuchContainer, fmt::format("no container {}", change.name)};
  }
  if (!change.limit && !change.request) {
    return reject(Refusal::kEmptyRequest, "neither a request nor a limit is asked for");
  }
  if (container->role == ContainerRole::kInit) {
    return reject(Refusal::kInitContainer, "an init container cannot be resized");
  }
  if ((change.limit && *change.limit <= Millicores(0)) ||
      (change.request && *change.request < Millicores(0))) {
    return reject(Refusal::kNotPositive, "CPU must be positive");
  }
  constexpr Millicores kMost = kube::Amounts::kMostCpu;
  if (change.limit.value_or(Millicores(0)) >= kMost ||
      change.request.value_or(Millicores(0)) >= kMost) {
    return reject(Refusal::kInvalid, "more CPU than can be counted");
  }
  if (change.limit && !container->limits.cpu() && !request.may_add_limit) {
    return reject(Refusal::kNoLimit,
                  "has no CPU limit, and one that is added can never be removed");
  }
  if (container->restarts_on_cpu_resize && !request.may_restart) {
    return reject(Refusal::kRestartsContainer, "its resizePolicy would restart it");
  }
  const Cpu cpu = after(*container, request);
  if (cpu.limit && cpu.request && *cpu.request > *cpu.limit) {
    return reject(Refusal::kRequestAboveLimit,
                  fmt::format("its request {}m would be above its limit {}m", cpu.request->count(),
                              cpu.limit->count()));
  }
  return std::nullopt;
}

void writeContainers(JsonWriter& json, std::string_view list, const Pod& pod,
                     const Request& request, bool sidecars) {
  bool any = false;
  for (const ContainerCpu& change : request.containers) {
    const Container* container = pod.container(change.name);
    if (container == nullptr || (container->role != ContainerRole::kMain) != sidecars) continue;
    if (!any) json.key(list).beginArray();
    any = true;
    json.beginObject().key("name").value(change.name).key("resources").beginObject();
    const auto write = [&](std::string_view kind, std::optional<Millicores> cpu) {
      if (!cpu) return;
      json.key(kind).beginObject().key("cpu").value(fmt::format("{}m", cpu->count())).endObject();
    };
    write("requests", change.request);
    write("limits", change.limit);
    json.endObject().endObject();
  }
  if (any) json.endArray();
}

}  // namespace

std::optional<Rejection> check(const Pod& pod, const Request& request) {
  if (request.containers.empty()) {
    return Rejection{Refusal::kEmptyRequest, "no container is to be resized"};
  }
  if (std::optional<Rejection> rejection = checkPod(pod)) return rejection;
  for (const ContainerCpu& change : request.containers) {
    if (std::optional<Rejection> rejection = checkContainer(pod, change, request)) {
      return rejection;
    }
  }
  const QosClass before = pod.qos == QosClass::kUnset ? qosAfter(pod, {}) : pod.qos;
  if (before == QosClass::kBestEffort) {
    return Rejection{Refusal::kBestEffort, "a BestEffort pod cannot be resized"};
  }
  if (const QosClass wanted = qosAfter(pod, request); wanted != before) {
    return Rejection{
        Refusal::kQosWouldChange,
        fmt::format("the pod's QoS class would change from {} to {}", name(before), name(wanted))};
  }
  return std::nullopt;
}

bool isNoOp(const Pod& pod, const Request& request) {
  return std::ranges::all_of(request.containers, [&](const ContainerCpu& change) {
    const Container* container = pod.container(change.name);
    return container != nullptr && (!change.limit || change.limit == container->limits.cpu()) &&
           (!change.request || change.request == container->requests.cpu());
  });
}

std::string patchBody(const Pod& pod, const Request& request) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("metadata").beginObject().key("uid").value(pod.meta.uid);
  if (!pod.meta.resource_version.empty()) {
    json.key("resourceVersion").value(pod.meta.resource_version);
  }
  json.endObject();
  json.key("spec").beginObject();
  writeContainers(json, "initContainers", pod, request, true);
  writeContainers(json, "containers", pod, request, false);
  json.endObject().endObject();
  return out;
}

}  // namespace mbcas::resize
