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
  if (!limit || limit->count() <= 0)
    return "has no CPU limit, and one that is added cannot be removed";
  if (container.restarts_on_cpu_resize) return "would be restarted by a resize of its CPU";
  return std::nullopt;
}

std::optional<Apart> leftAlone(const Pod& pod, const NamespaceObjects& objects,
                               const Settings& settings) {
  if (pod.meta.beingDeleted()) return Apart{"it is being deleted", false};
  if (pod.terminal()) return Apart{"it has finished", false};
  const std::vector<std::string>& excluded = settings.excluded_namespaces;
  if (std::find(excluded.begin(), excluded.end(), pod.meta.namespace_.view()) != excluded.end()) {
    return Apart{fmt::format("namespace {} is excluded", pod.meta.namespace_.view())};
  }
  if (objects.name_space == nullptr) return Apart{"its namespace is not known yet", false};
  if (objects.name_space->phase == "Terminating") {
    return Apart{"its namespace is being deleted", false};
  }
  // Either place says no.
  const auto says_no = [](const kube::ObjectMeta& meta) {
    return kube::find(meta.annotations, kManaged) == "false" ||
           kube::find(meta.labels, kManaged) == "false";
  };
  if (says_no(pod.meta)) return Apart{fmt::format("opted out: {}=false on the pod", kManaged)};
  if (says_no(objects.name_space->meta)) {
    return Apart{fmt::format("opted out: {}=false on the namespace", kManaged)};
  }
  if (pod.mirror()) return Apart{"static pod: the API cannot change it", false};
  if (pod.windows) return Apart{"Windows pods cannot be resized", false};
  if (pod.pod_level_resources) return Apart{"it has resources at the level of the pod", false};
  if (pod.qos == QosClass::kBestEffort) return Apart{"QoS class BestEffort: nothing to resize"};
  if (pod.qos == QosClass::kGuaranteed && mark(pod.meta, kManageGuaranteed) != "true") {
    return Apart{fmt::format("QoS class Guaranteed, without {}=true", kManageGuaranteed)};
  }
  if (!pod.nodeSupportsResize()) return Apart{"its node does not support in-place resize", false};
  for (const auto& vpa : objects.vpas) {
    if (!targets(vpa->target, pod)) continue;
    for (const kube::Container& container : pod.containers) {
      if (container.role != kube::ContainerRole::kInit && vpa->activeOnCpu(container.name)) {
        return Apart{fmt::format("the VerticalPodAutoscaler {} manages it", vpa->meta.name.view())};
      }
    }
  }
  return std::nullopt;
}

}  // namespace mbcas::policy
