#include "mbcas/controller/restore.h"

#include "mbcas/base/json_writer.h"

namespace mbcas::controller {
namespace {

using podallocation::OriginalCpu;

}  // namespace

bool hasOriginal(const kube::Pod& pod) {
  return kube::find(pod.meta.annotations, podallocation::kOriginalResources).has_value();
}

resize::Request restoreRequest(const kube::Pod& pod, const std::vector<OriginalCpu>& original) {
  resize::Request request;
  for (const OriginalCpu& cpu : original) {
    const kube::Container* const container = pod.container(cpu.container);
    if (container == nullptr) continue;
    resize::ContainerCpu change{.name = cpu.container};
    // A container that has no limit never had one, because Kubernetes does not remove any; the same
    // is true of requests. So an original that says otherwise is wrong.
    const auto differs = [](std::optional<Millicores> was, std::optional<Millicores> now) {
      return was && now && *was != *now;
    };
    if (differs(cpu.limit, container->limits.cpu())) change.limit = cpu.limit;
    if (differs(cpu.request, container->requests.cpu())) change.request = cpu.request;
    if (change.limit || change.request) request.containers.push_back(std::move(change));
  }
  return request;
}

resize::Request giveBackRequest(const kube::Pod& pod, const std::vector<OriginalCpu>& original) {
  resize::Request request = restoreRequest(pod, original);
  std::erase_if(request.containers, [&](const resize::ContainerCpu& change) {
    return !change.limit || *change.limit < *pod.container(change.name)->limits.cpu();
  });
  return request;
}

std::string forgetOriginal(const kube::Pod& pod) {
  std::string out;
  JsonWriter json(out);
  json.beginObject().key("metadata").beginObject();
  json.key("uid").value(pod.meta.uid);
  json.key("resourceVersion").value(pod.meta.resource_version);
  json.key("annotations").beginObject().key(podallocation::kOriginalResources).null();
  json.endObject().endObject().endObject();
  return out;
}

}  // namespace mbcas::controller
