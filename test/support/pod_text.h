// Every field of a pod that is kept, as text: two decoders agree if their texts do.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

#include "mbcas/base/time.h"
#include "mbcas/kube/types.h"

namespace mbcas::test {

inline std::string textOf(const kube::Amounts& amounts) {
  const auto cpu = amounts.cpu();
  const auto memory = amounts.memoryBytes();
  return fmt::format("{}/{}", cpu ? std::to_string(cpu->count()) : "-",
                     memory ? std::to_string(*memory) : "-");
}

inline std::string textOf(const kube::ResizeCondition& condition) {
  return fmt::format("{} {} {} {}", condition.present, condition.reason.view(),
                     condition.message.view(), condition.observed_generation);
}

inline std::string textOf(const kube::ObjectMeta& meta) {
  std::string text = fmt::format("{}/{} {} version {} generation {} created {} deleted {}\n",
                                 meta.namespace_.view(), meta.name.view(), meta.uid.view(),
                                 meta.resource_version.view(), meta.generation,
                                 formatRfc3339(meta.created), formatRfc3339(meta.deleted));
  // The order of a map says nothing.
  for (const auto* map : {&meta.labels, &meta.annotations}) {
    std::map<std::string_view, std::string_view> sorted;
    for (const kube::KeyValue& entry : *map) sorted[entry.key] = entry.value;
    for (const auto& [key, value] : sorted) text += fmt::format("  {}={}\n", key, value);
    text += "  --\n";
  }
  for (const kube::OwnerReference& owner : meta.owners) {
    text += fmt::format("  owner {} {} {} {}\n", owner.kind.view(), owner.name.view(),
                        owner.uid.view(), owner.controller);
  }
  return text;
}

inline std::string textOf(const kube::Pod& pod) {
  std::string text = textOf(pod.meta);
  text += fmt::format("  node {} observed {} priority {} phase {} qos {} restart {} {}{}{}\n",
                      pod.node.view(), pod.observed_generation, pod.priority,
                      static_cast<int>(pod.phase), static_cast<int>(pod.qos),
                      static_cast<int>(pod.restart_policy), pod.windows ? "windows " : "",
                      pod.pod_level_resources ? "pod-level " : "", pod.ready ? "ready" : "");
  text += fmt::format("  pending {}\n  in progress {}\n", textOf(pod.resizePending()),
                      textOf(pod.resizeInProgress()));
  for (const kube::Container& container : pod.containers) {
    text += fmt::format("  {} role {} requests {} limits {} restarts {} {}\n",
                        container.name.view(), static_cast<int>(container.role),
                        textOf(container.requests), textOf(container.limits),
                        container.restarts_on_cpu_resize, container.restarts_on_memory_resize);
  }
  for (const kube::ContainerStatus& status : pod.statuses) {
    text += fmt::format("  status {} {} requests {} limits {} allocated {} restarts {} {} {}\n",
                        status.name.view(), status.id.view(), textOf(status.requests),
                        textOf(status.limits), textOf(status.allocated), status.restarts,
                        status.running, status.has_resources);
  }
  return text;
}

}  // namespace mbcas::test
