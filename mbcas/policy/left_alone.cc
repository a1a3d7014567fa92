#include "mbcas/policy/left_alone.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/policy/names.h"
#include "mbcas/policy/workload.h"

namespace mbcas::policy {

using kube::Pod;
using kube::QosClass;

// The bounds of a PodAllocation.
constexpr std::size_t kMostContainers = 100;
constexpr Millicores kMostCpu{10'000'000};

std::optional<std::string_view> mark(const kube::ObjectMeta& meta, std::string_view key) {
  const std::optional<std::string_view> annotation = kube::find(meta.annotations, key);
  return annotation ? annotation : kube::find(meta.labels, key);
}

std::optional<Apart> leftAlone(const kube::Container& container) {
  const std::optional<Millicores> limit = container.limits.cpu();
  if (container.role == kube::ContainerRole::kInit) return Apart{"is an init container"};
  if (!limit || limit->count() <= 0) {
    return Apart{.why = "has no CPU limit, and one that is added cannot be removed",
                 .remedy = "give its containers CPU limits"};
  }
  if (container.restarts_on_cpu_resize) {
    return Apart{.why = "would be restarted by a resize of its CPU",
                 .remedy = "set the resizePolicy of cpu to NotRequired in its containers"};
  }
  return std::nullopt;
}

namespace {

// Opted out in either place.
bool saysNo(const kube::ObjectMeta& meta) {
  return kube::find(meta.annotations, kManaged) == "false" ||
         kube::find(meta.labels, kManaged) == "false";
}

}  // namespace

std::optional<Apart> leftAlone(const Pod& pod, const Settings& settings) {
  if (pod.meta.beingDeleted()) return Apart{"the pod is being deleted", false};
  if (pod.terminal()) return Apart{"the pod has finished", false};
  const std::string_view name_space = pod.meta.namespace_;
  const std::vector<std::string>& excluded = settings.excluded_namespaces;
  if (std::find(excluded.begin(), excluded.end(), name_space) != excluded.end()) {
    return Apart{
        .why = fmt::format("namespace {} is excluded", name_space),
        .remedy = fmt::format("take {} out of exclude-namespaces in the settings", name_space)};
  }
  if (saysNo(pod.meta)) {
    return Apart{.why = fmt::format("opted out: {}=false on the pod", kManaged),
                 .remedy = fmt::format("remove {} from the pod", kManaged)};
  }
  if (pod.saturated()) {
    return Apart{"the pod asks for more CPU or memory than can be counted", false,
                 "give its containers requests and limits that a machine can have"};
  }
  if (pod.containers.size() > kMostContainers) {
    return Apart{fmt::format("the pod has more than {} containers", kMostContainers), false};
  }
  for (const kube::Container& container : pod.containers) {
    if (std::max(container.limits.cpu(), container.requests.cpu()) > kMostCpu) {
      return Apart{
          fmt::format("container {} declares more CPU than any machine has", container.name.view()),
          false, "declare a CPU request and limit that a node can give"};
    }
  }
  if (pod.mirror()) return Apart{"static pod: the API cannot change it", false};
  if (pod.windows) return Apart{"Windows pods cannot be resized", false};
  if (pod.pod_level_resources) {
    return Apart{"the pod has resources at pod level", false,
                 "declare resources on its containers, not on the pod"};
  }
  if (pod.qos == QosClass::kBestEffort) {
    return Apart{.why = "QoS class BestEffort: nothing to resize",
                 .remedy = "give its containers CPU requests and limits"};
  }
  if (pod.qos == QosClass::kGuaranteed && mark(pod.meta, kManageGuaranteed) != "true") {
    return Apart{.why = fmt::format("QoS class Guaranteed, without {}=true", kManageGuaranteed),
                 .remedy = fmt::format("annotate it {}=true (its request then moves with its "
                                       "limit), or give it requests below its limits",
                                       kManageGuaranteed)};
  }
  if (!pod.nodeSupportsResize()) {
    return Apart{"the node does not support in-place resize", false,
                 "update its node: kubelet 1.33 or later, and a runtime that reports resources "
                 "(containerd 1.6.9 or later)"};
  }
  return std::nullopt;
}

std::optional<Apart> leftAlone(const Pod& pod, const NamespaceObjects& objects,
                               const Settings& settings) {
  if (std::optional<Apart> apart = leftAlone(pod, settings)) return apart;
  if (objects.name_space == nullptr) return Apart{"the namespace is not known yet", false};
  if (objects.name_space->phase == "Terminating") {
    return Apart{"the namespace is being deleted", false};
  }
  if (saysNo(objects.name_space->meta)) {
    return Apart{
        .why = fmt::format("opted out: {}=false on the namespace", kManaged),
        .remedy = fmt::format("remove {} from namespace {}", kManaged, pod.meta.namespace_.view())};
  }
  // The request of a Guaranteed pod moves with its limit. An HPA on utilisation divides by the
  // request, so a raise under load would make it remove pods.
  for (const auto& hpa : objects.hpas) {
    if (pod.qos != QosClass::kGuaranteed || !targets(hpa->target, pod)) continue;
    if (std::ranges::any_of(hpa->metrics, [](const auto& metric) {
          return metric.resource == "cpu" && metric.average_utilization > 0;
        })) {
      return Apart{
          .why = fmt::format("QoS class Guaranteed, and the HorizontalPodAutoscaler {} scales on "
                             "the utilization of its CPU request",
                             hpa->meta.name.view()),
          .remedy =
              "let the autoscaler use an averageValue, or give the pod requests below its "
              "limits"};
    }
  }
  for (const auto& vpa : objects.vpas) {
    if (!targets(vpa->target, pod)) continue;
    for (const kube::Container& container : pod.containers) {
      if (container.role != kube::ContainerRole::kInit && vpa->activeOnCpu(container.name)) {
        const std::string_view vpa_name = vpa->meta.name;
        return Apart{.why = fmt::format("the VerticalPodAutoscaler {} manages the pod", vpa_name),
                     .remedy = fmt::format("set the updateMode of {} to Off, or its "
                                           "controlledResources to [memory]",
                                           vpa_name)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace mbcas::policy
