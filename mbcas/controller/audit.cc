#include "mbcas/controller/audit.h"

#include <fmt/format.h>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"

namespace mbcas::controller {

std::string auditLine(WallTime now, const kube::Pod& pod,
                      const podallocation::PodAllocation* allocation, const Decision& decision,
                      const resize::Outcome& outcome) {
  const auto cpu = [](Millicores amount) { return fmt::format("{}m", amount.count()); };
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("time").value(formatRfc3339(now, TimePrecision::kMicros));
  json.key("namespace").value(pod.meta.namespace_);
  json.key("pod").value(pod.meta.name);
  json.key("uid").value(pod.meta.uid);
  json.key("node").value(pod.node);
  json.key("purpose").value(name(decision.purpose));
  json.key("from").value(cpu(decision.from));
  json.key("to").value(cpu(decision.to));
  if (allocation != nullptr) json.key("desired").value(cpu(allocation->desired));
  json.key("containers").beginArray();
  for (const resize::ContainerCpu& container : decision.request.containers) {
    json.beginObject().key("name").value(container.name);
    if (container.request) json.key("request").value(cpu(*container.request));
    if (container.limit) json.key("limit").value(cpu(*container.limit));
    json.endObject();
  }
  json.endArray();
  if (allocation != nullptr) json.key("reason").value(allocation->reason);
  json.key("verdict").value(resize::name(outcome.verdict));
  if (outcome.refusal != resize::Refusal::kNone) {
    json.key("refusal").value(resize::name(outcome.refusal));
  }
  json.key("message").value(outcome.message);
  json.endObject();
  return out;
}

std::string logLine(const kube::Pod& pod, const podallocation::PodAllocation* allocation,
                    const Decision& decision, const resize::Outcome& outcome) {
  std::string why = outcome.message;
  if (why.empty() && decision.purpose == Purpose::kManage && allocation != nullptr) {
    why = allocation->reason.string();
  }
  if (why.empty() && decision.status) why = decision.status->reason;
  return fmt::format("resize {}/{} on {} from {}m to {}m ({}): {}{}{}", pod.meta.namespace_.view(),
                     pod.meta.name.view(), pod.node.view(), decision.from.count(),
                     decision.to.count(), name(decision.purpose), resize::name(outcome.verdict),
                     why.empty() ? "" : "; ", why);
}

}  // namespace mbcas::controller
