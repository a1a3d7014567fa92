#include "mbcas/agent/member.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/control/weight.h"
#include "mbcas/policy/bounds.h"
#include "mbcas/policy/left_alone.h"

namespace mbcas::agent {
namespace {

// "containerd://0123..." is what the runtime calls 0123...
std::string_view withoutScheme(std::string_view id) {
  const std::size_t scheme = id.find("://");
  return scheme == std::string_view::npos ? id : id.substr(scheme + 3);
}

std::string_view cgroupUid(const kube::Pod& pod) {
  const auto hash = kube::find(pod.meta.annotations, "kubernetes.io/config.hash");
  if (pod.mirror() && hash) return *hash;
  return pod.meta.uid.view();
}

// Its containers that can be managed; why none can, if so.
std::string takeContainers(const kube::Pod& pod, const podallocation::PodAllocation* allocation,
                           Member& member) {
  const std::vector<podallocation::OriginalCpu> original =
      policy::recordedOriginal(pod, allocation);
  const bool requests_follow = pod.qos == kube::QosClass::kGuaranteed;
  std::string obstacle = "the pod has no container to manage";
  Millicores request;
  for (const kube::Container& container : pod.containers) {
    if (container.role == kube::ContainerRole::kInit) continue;
    const std::optional<policy::ManagedContainer> managed = policy::manageable(container, original);
    if (!managed) {
      obstacle =
          fmt::format("container {} {}", container.name.view(), policy::leftAlone(container)->why);
      continue;
    }
    MemberContainer& taken = member.containers.emplace_back();
    taken.name = managed->name;
    taken.limit = taken.spec_limit = managed->limit;
    taken.distinct = std::ranges::count_if(pod.containers, [&](const kube::Container& other) {
                       return other.limits.cpu() == managed->limit;
                     }) == 1;
    taken.declared = managed->declared;
    taken.request = requests_follow ? Millicores(0) : managed->request;
    request += managed->request;
    if (const kube::ContainerStatus* const status = pod.status(managed->name)) {
      taken.reported = true;
      taken.running = status->running;
      if (status->running) taken.id = withoutScheme(status->id);
      if (status->limits.cpu()) taken.limit = *status->limits.cpu();
    }
  }
  const double factor = member.bounds ? member.bounds->weight : 1;
  member.factor = control::priorityFactor(pod.priority) * factor;
  member.weight = control::weightOf(request, pod.priority, factor);
  return member.containers.empty() ? obstacle : "";
}

}  // namespace

Millicores Member::declared() const {
  Millicores sum;
  for (const MemberContainer& container : containers) sum += container.declared;
  return sum;
}

Member memberOf(const kube::Pod& pod, const podallocation::PodAllocation* allocation,
                const policy::Settings& settings) {
  Member member;
  member.uid = pod.meta.uid.view();
  member.name_space = pod.meta.namespace_.view();
  member.name = pod.meta.name.view();
  member.cgroup = cgroupUid(pod);
  member.priority = pod.priority;
  member.ready = pod.ready;
  member.started = pod.phase == kube::PodPhase::kRunning;
  for (const kube::Container& container : pod.containers) {
    if (container.role == kube::ContainerRole::kInit || pod.terminal()) continue;
    member.all_requests += container.requests.cpu().value_or(Millicores(0));
  }
  if (allocation != nullptr) {
    member.spec = allocation->specValue();
    member.bounds = allocation->statusValue().bounds;
    member.applied = allocation->applied.value_or(Millicores(0));
  }

  const std::string obstacle = takeContainers(pod, allocation, member);
  if (settings.paused) {
    member.left_alone = "MBCAS is paused";
  } else if (const auto apart = policy::leftAlone(pod, settings)) {
    member.left_alone = apart->why;
  } else if (!obstacle.empty()) {
    member.left_alone = obstacle;
  } else if (member.bounds && !member.bounds->managed) {
    member.left_alone = member.bounds->reason.empty() ? "the cluster's policy leaves it alone"
                                                      : member.bounds->reason;
  }
  return member;
}

}  // namespace mbcas::agent
