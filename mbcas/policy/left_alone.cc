#include "mbcas/policy/left_alone.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/policy/names.h"
#include "mbcas/policy/workload.h"

namespace mbcas::policy {

using kube::Pod;
using kube::QosClass;

std::optional<std::string_view> mark(const kube::ObjectMeta& meta, std::string_view key) {
  const std::optional<std::string_view> annotation = kube::find(meta.annotations, key);
  return annotation ? annotation : kube::find(meta.labels, key);
}

std::optional<std::string> leftAlone(const kube::Container& container) {
  const std::optional<Millicores> limit = container.limits.cpu();
  if (container.role == kube::ContainerRole::kInit) return "is an init container";
  if (!limit || limit->count() <= 0) return "has no CPU limit, and one that is added cannot be removed";
  if (container.restarts_on_cpu_resize) return "would be restarted by a resize of its CPU";
  return std::nullopt;
}

std::optional<std::string> leftAlone(const Pod& pod, const NamespaceObjects& objects,
                                     const Settings& settings) {
  const std::vector<std::string>& excluded = settings.excluded_namespaces;
  if (std::find(excluded.begin(), excluded.end(), pod.meta.namespace_.view()) != excluded.end()) {
    return fmt::format("namespace {} is excluded", pod.meta.namespace_.view());
  }
  // Either place says no.
  const auto says_no = [](const kube::ObjectMeta& meta) {
    return kube::find(meta.annotations, kManaged) == "false" ||
           kube::find(meta.labels, kManaged) == "false";
  };
  if (says_no(pod.meta)) return fmt::format("opted out: {}=false on the pod", kManaged);
  if (objects.name_space == nullptr) return "its namespace is not known yet";
  if (says_no(objects.name_space->meta)) {
    return fmt::format("opted out: {}=false on the namespace", kManaged);
  }
  if (pod.meta.beingDeleted()) return "it is being deleted";
  if (pod.terminal()) return "it has finished";
  if (pod.mirror()) return "static pod: the API cannot change it";
  if (pod.windows) return "Windows pods cannot be resized";
  if (pod.pod_level_resources) return "it has resources at the level of the pod";
  if (pod.qos == QosClass::kBestEffort) return "QoS class BestEffort: nothing to resize";
  if (pod.qos == QosClass::kGuaranteed && mark(pod.meta, kManageGuaranteed) != "true") {
    return fmt::format("QoS class Guaranteed, without {}=true", kManageGuaranteed);
  }
  if (!pod.nodeSupportsResize()) return "its node does not support in-place resize";
  for (const auto& vpa : objects.vpas) {
    if (!targets(vpa->target, pod)) continue;
    for (const kube::Container& container : pod.containers) {
      if (container.role != kube::ContainerRole::kInit && vpa->activeOnCpu(container.name)) {
        return fmt::format("the VerticalPodAutoscaler {} manages it", vpa->meta.name.view());
      }
    }
  }
  return std::nullopt;
}

}  // namespace mbcas::policy
