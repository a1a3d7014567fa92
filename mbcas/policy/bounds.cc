#include "mbcas/policy/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mbcas/base/quantity.h"
#include "mbcas/control/guards.h"
#include "mbcas/policy/left_alone.h"
#include "mbcas/policy/names.h"
#include "mbcas/policy/workload.h"

namespace mbcas::policy {
namespace {

using control::kLimitStep;
using control::roundDown;
using control::roundUp;
using kube::LimitRange;
using podallocation::OriginalCpu;

constexpr Millicores kUnbounded{std::int64_t{1} << 40};

// A bound, and its origin.
struct Named {
  Millicores value;
  std::string by;

  void atLeast(Millicores other, std::string name) {
    if (other > value) *this = {other, std::move(name)};
  }
  void atMost(Millicores other, std::string name) {
    if (other < value) *this = {other, std::move(name)};
  }
};

Millicores scaled(Millicores cpu, double factor) {
  const double product = static_cast<double>(cpu.count()) * factor;
  return Millicores(
      static_cast<std::int64_t>(std::min(product, static_cast<double>(kUnbounded.count()))));
}

std::string rangeName(const LimitRange& range) {
  return fmt::format("LimitRange {}", range.meta.name.view());
}

// An annotation that is not a positive quantity has no effect.
std::optional<Millicores> cpuAnnotation(const kube::Pod& pod, std::string_view key) {
  const std::optional<std::string_view> text = kube::find(pod.meta.annotations, key);
  if (!text) return std::nullopt;
  const Result<Quantity> quantity = Quantity::parse(*text);
  if (!quantity || quantity->milliValue() <= 0) return std::nullopt;
  return std::min(quantity->millicores(), kUnbounded);
}

template <class Visit>
void eachItem(const NamespaceObjects& objects, std::string_view type, const Visit& visit) {
  for (const auto& range : objects.ranges) {
    for (const LimitRange::Item& item : range->limits) {
      if (item.type == type) visit(*range, item);
    }
  }
}

// What the ranges of the namespace allow one container.
void boundContainer(ManagedContainer& container, const NamespaceObjects& objects,
                    bool requests_follow, Named& ceiling) {
  Millicores most = kUnbounded;
  eachItem(objects, "Container", [&](const LimitRange& range, const LimitRange::Item& item) {
    if (item.min.cpu()) container.floor = std::max(container.floor, *item.min.cpu());
    std::optional<Millicores> max = item.max.cpu();
    // The ratio as the API server has it: limit / request. It is 1 where both move together.
    if (item.max_limit_request_ratio.cpu() && !requests_follow) {
      const Millicores by_ratio =
          scaled(container.request, item.max_limit_request_ratio.cpu()->cores());
      max = std::min(max.value_or(by_ratio), by_ratio);
    }
    if (max && *max < most) {
      most = *max;
      ceiling.by = rangeName(range);
    }
  });
  container.floor = roundUp(container.floor);
  container.ceiling = roundDown(most);
}

bool wouldBeGuaranteedAtRequests(const kube::Pod& pod, const PodPolicy& policy) {
  std::int64_t memory_requests = 0;
  std::int64_t memory_limits = 0;
  for (const kube::Container& container : pod.containers) {
    const std::optional<Millicores> limit = container.limits.cpu();
    const std::optional<std::int64_t> memory = container.limits.memoryBytes();
    if (!limit || !memory) return false;
    memory_limits += *memory;
    memory_requests += container.requests.memoryBytes().value_or(*memory);
    const bool managed = std::any_of(
        policy.containers.begin(), policy.containers.end(),
        [&](const ManagedContainer& other) { return other.name == container.name.view(); });
    if (!managed && container.requests.cpu().value_or(*limit) != *limit) return false;
  }
  return memory_requests == memory_limits;
}

// The level at which an HPA that scales on CPU still sees its target exceeded: above it by a
// quarter.
std::optional<Millicores> hpaFloor(const kube::HorizontalPodAutoscaler& hpa, Millicores request) {
  constexpr double kAbove = 1.25;
  std::optional<Millicores> floor;
  for (const auto& metric : hpa.metrics) {
    if (metric.resource != "cpu") continue;
    Millicores target{0};
    if (metric.average_utilization > 0)
      target = scaled(request, metric.average_utilization / 100.0);
    if (metric.average_value.cpu()) target = *metric.average_value.cpu();
    floor = std::max(floor.value_or(Millicores(0)), scaled(target, kAbove));
  }
  return floor;
}

// CPU of the pod's other containers, which run next to the managed ones.
struct Others {
  Millicores limits;
  Millicores requests;
};
Others othersOf(const kube::Pod& pod, const PodPolicy& policy) {
  Others others;
  for (const kube::Container& container : pod.containers) {
    if (container.role == kube::ContainerRole::kInit) continue;
    const bool managed = std::any_of(
        policy.containers.begin(), policy.containers.end(),
        [&](const ManagedContainer& other) { return other.name == container.name.view(); });
    if (managed) continue;
    others.limits += container.limits.cpu().value_or(Millicores(0));
    others.requests += container.requests.cpu().value_or(Millicores(0));
  }
  return others;
}

template <class Field>
Millicores sumOf(const std::vector<ManagedContainer>& containers, Field field) {
  Millicores sum;
  for (const ManagedContainer& container : containers) sum += container.*field;
  return sum;
}

// MBCAS never changes the request of a pod that is not Guaranteed, so what the spec says is what
// its author wrote.
void keepRequests(const kube::Pod& pod, std::vector<OriginalCpu>& original) {
  if (pod.qos == kube::QosClass::kGuaranteed) return;
  for (OriginalCpu& cpu : original) {
    const kube::Container* const container = pod.container(cpu.container);
    cpu.request = container != nullptr ? container->requests.cpu() : std::nullopt;
  }
}

// Lowers limits to what the pod's tenant could have declared.
void clampToDeclarable(const kube::Pod& pod, const NamespaceObjects& objects,
                       const kube::Node* node, std::vector<OriginalCpu>& original) {
  Millicores most = kUnbounded;
  const auto bound = [&](const LimitRange&, const LimitRange::Item& item) {
    if (item.max.cpu()) most = std::min(most, *item.max.cpu());
  };
  eachItem(objects, "Container", bound);
  eachItem(objects, "Pod", bound);
  if (node != nullptr && node->allocatable.cpu()) most = std::min(most, *node->allocatable.cpu());
  for (OriginalCpu& cpu : original) {
    const kube::Container* const container = pod.container(cpu.container);
    if (container == nullptr || !container->limits.cpu()) continue;
    const Millicores allowed = std::max(most, *container->limits.cpu());
    if (cpu.limit) cpu.limit = std::min(*cpu.limit, allowed);
    if (cpu.request) cpu.request = std::min(*cpu.request, allowed);
  }
}

// Collects the containers that can be managed; why none can, if so.
Apart takeContainers(const kube::Pod& pod, const NamespaceObjects& objects, PodPolicy& policy,
                     Named& ceiling) {
  Apart obstacle{"the pod has no container to manage"};
  for (const kube::Container& container : pod.containers) {
    if (std::optional<Apart> apart = leftAlone(container)) {
      if (container.role != kube::ContainerRole::kInit) {
        obstacle = *std::move(apart);
        obstacle.why = fmt::format("container {} {}", container.name.view(), obstacle.why);
      }
      continue;
    }
    ManagedContainer managed = *manageable(container, policy.original);
    managed.floor = kLimitStep;
    if (!policy.requests_follow) managed.floor = std::max(kLimitStep, managed.request);
    boundContainer(managed, objects, policy.requests_follow, ceiling);
    if (managed.ceiling < managed.floor) {
      obstacle = {
          .why = fmt::format("container {} has no room below the maximum of {}", managed.name,
                             ceiling.by),
          .remedy = fmt::format("raise the maximum of {}, or lower the pod's request", ceiling.by)};
      continue;
    }
    policy.containers.push_back(std::move(managed));
  }
  return obstacle;
}

Named floorOf(const kube::Pod& pod, const NamespaceObjects& objects, const Settings& settings,
              PodPolicy& policy) {
  Named floor{settings.law.min_cpu, "the minimum for every pod"};
  Millicores requests = sumOf(policy.containers, &ManagedContainer::floor);
  std::string name = policy.requests_follow ? "LimitRange" : "its request";
  if (!policy.requests_follow && wouldBeGuaranteedAtRequests(pod, policy)) {
    requests = std::max(requests, roundUp(policy.request()) + kLimitStep);
    if (requests == policy.request()) requests += kLimitStep;
    name = "its request: equal to it, the pod would become Guaranteed";
  }
  floor.atLeast(requests, name);
  const Others others = othersOf(pod, policy);
  eachItem(objects, "Pod", [&](const LimitRange& range, const LimitRange::Item& item) {
    if (item.min.cpu()) floor.atLeast(*item.min.cpu() - others.limits, rangeName(range));
  });
  // A floor that a tenant writes on its own objects keeps a limit no higher than the pod's author
  // declared it: more would take CPU from the pods of others. Such a floor counts only where limits
  // are trimmed to what pods need. Where a pod is bound for a pod that matters more, only its
  // request protects it.
  const bool trims =
      settings.law.reclaim == control::Reclaim::kAlways || control::isClassic(settings.law);
  const auto at_most_declared = [&](Millicores cpu) { return std::min(cpu, policy.declared()); };
  if (const auto least = cpuAnnotation(pod, kMinCpu); least && trims) {
    floor.atLeast(at_most_declared(*least), fmt::format("annotation {}", kMinCpu));
  }
  for (const auto& hpa : objects.hpas) {
    if (!targets(hpa->target, pod) || !hpa->scalesOnCpu()) continue;
    policy.scaled_by_hpa = true;
    if (const auto least = hpaFloor(*hpa, policy.request()); least && trims) {
      floor.atLeast(at_most_declared(*least),
                    fmt::format("HorizontalPodAutoscaler {}, which must see its target exceeded",
                                hpa->meta.name.view()));
    }
  }
  if (policy.mode == Mode::kRaiseOnly) floor.atLeast(policy.declared(), "mode raise-only");
  return floor;
}

Named ceilingOf(const kube::Pod& pod, const NamespaceObjects& objects, const kube::Node& node,
                const Settings& settings, const PodPolicy& policy, Named ceiling) {
  ceiling.value = sumOf(policy.containers, &ManagedContainer::ceiling);
  const Millicores allocatable = node.allocatable.cpu().value_or(kUnbounded);
  // A pod that declares more than its node can give keeps it: do no harm.
  const double reserve = control::isClassic(settings.law) ? settings.law.reserve : 0;
  ceiling.atMost(std::max(policy.declared(), scaled(allocatable, 1 - reserve)),
                 fmt::format("node {}", node.meta.name.view()));
  const Others others = othersOf(pod, policy);
  eachItem(objects, "Pod", [&](const LimitRange& range, const LimitRange::Item& item) {
    if (item.max.cpu()) ceiling.atMost(*item.max.cpu() - others.limits, rangeName(range));
    if (item.max_limit_request_ratio.cpu() && !policy.requests_follow) {
      const Millicores requests = policy.request() + others.requests;
      ceiling.atMost(scaled(requests, item.max_limit_request_ratio.cpu()->cores()) - others.limits,
                     rangeName(range));
    }
  });
  if (const auto most = cpuAnnotation(pod, kMaxCpu)) {
    ceiling.atMost(*most, fmt::format("annotation {}", kMaxCpu));
  }
  return ceiling;
}

// The ceiling wins over the floor, but nothing goes below what Kubernetes accepts.
void settle(PodPolicy& policy) {
  const Millicores least = sumOf(policy.containers, &ManagedContainer::floor);
  policy.ceiling = std::max(policy.ceiling, least);
  policy.floor = std::min(std::max(policy.floor, least), policy.ceiling);
}

bool disruptionBlocked(const kube::Pod& pod, const NamespaceObjects& objects) {
  return std::ranges::any_of(objects.budgets, [&](const auto& budget) {
    return budget->current_healthy < budget->desired_healthy &&
           budget->selector.matches(pod.meta.labels);
  });
}

}  // namespace

Millicores PodPolicy::limit() const {
  return sumOf(containers, &ManagedContainer::limit);
}
Millicores PodPolicy::declared() const {
  return sumOf(containers, &ManagedContainer::declared);
}
Millicores PodPolicy::request() const {
  return sumOf(containers, &ManagedContainer::request);
}

Mode effectiveMode(const kube::Namespace& name_space, const Settings& settings) {
  if (settings.paused) return Mode::kOff;
  const std::optional<std::string_view> own = kube::find(name_space.meta.labels, kMode);
  if (!own) return settings.mode;
  return parseMode(*own).value_or(Mode::kOff);
}

std::vector<OriginalCpu> recordedOriginal(const kube::Pod& pod,
                                          const podallocation::PodAllocation* allocation) {
  if (allocation == nullptr) return {};
  std::vector<OriginalCpu> original = allocation->originalValue();
  keepRequests(pod, original);
  return original;
}

Result<std::vector<OriginalCpu>> wayBack(const kube::Pod& pod,
                                         const podallocation::PodAllocation* allocation,
                                         const NamespaceObjects& objects, const kube::Node* node) {
  std::vector<OriginalCpu> recorded = recordedOriginal(pod, allocation);
  if (!recorded.empty()) return recorded;
  const auto annotation = kube::find(pod.meta.annotations, podallocation::kOriginalResources);
  // A spec of generation 1 has never been resized, so nothing can be given back.
  if (!annotation || pod.meta.generation == 1) return std::vector<OriginalCpu>{};
  Result<std::vector<OriginalCpu>> original = podallocation::parseOriginal(*annotation);
  if (!original) return original;
  clampToDeclarable(pod, objects, node, *original);
  keepRequests(pod, *original);
  return original;
}

std::optional<ManagedContainer> manageable(const kube::Container& container,
                                           const std::vector<OriginalCpu>& originals) {
  if (leftAlone(container)) return std::nullopt;
  ManagedContainer managed{.name = container.name.string(), .limit = *container.limits.cpu()};
  managed.declared = managed.limit;
  managed.request = container.requests.cpu().value_or(managed.limit);
  for (const OriginalCpu& original : originals) {
    if (original.container != managed.name) continue;
    managed.declared = original.limit.value_or(managed.declared);
    managed.request = original.request.value_or(managed.request);
  }
  return managed;
}

PodPolicy judgePod(const kube::Pod& pod, const podallocation::PodAllocation* allocation,
                   const NamespaceObjects& objects, const kube::Node* node,
                   const Settings& settings) {
  PodPolicy policy;
  const Result<std::vector<OriginalCpu>> original = wayBack(pod, allocation, objects, node);
  if (original) policy.original = *original;
  if (objects.name_space) policy.mode = effectiveMode(*objects.name_space, settings);
  const auto alone = [&](Apart apart) {
    policy.managed = false;
    policy.let_go = apart.let_go;
    policy.containers.clear();
    policy.reason = std::move(apart.why);
    policy.remedy = std::move(apart.remedy);
    return policy;
  };
  if (std::optional<Apart> apart = leftAlone(pod, objects, settings)) {
    return alone(*std::move(apart));
  }
  if (policy.mode == Mode::kOff) {
    if (settings.paused) return alone({.why = "MBCAS is paused", .remedy = "mbcas resume"});
    return alone({.why = "mode is off",
                  .remedy = fmt::format("set the label {} of its namespace, or mode in the "
                                        "settings, to full, raise-only or recommend",
                                        kMode)});
  }
  if (!original) {
    return alone({fmt::format("annotation {}: {}", podallocation::kOriginalResources,
                              original.error().message()),
                  false, "correct the annotation, or set the pod's CPU by hand and remove it"});
  }
  if (pod.node.empty()) return alone({"the pod is not on a node yet", false});
  if (node == nullptr) return alone({fmt::format("node {} is not known", pod.node.view()), false});

  policy.managed = true;
  policy.requests_follow = pod.qos == kube::QosClass::kGuaranteed;
  Named by_container{kUnbounded, "nothing"};
  Apart obstacle = takeContainers(pod, objects, policy, by_container);
  if (policy.containers.empty()) return alone(std::move(obstacle));

  const Named floor = floorOf(pod, objects, settings, policy);
  const Named ceiling = ceilingOf(pod, objects, *node, settings, policy, by_container);
  policy.floor = roundUp(floor.value);
  policy.ceiling = roundDown(ceiling.value);
  policy.reason = fmt::format("floor: {}; ceiling: {}", floor.by, ceiling.by);
  policy.disruption_blocked = disruptionBlocked(pod, objects);
  settle(policy);
  return policy;
}

void lowerCeiling(PodPolicy& policy, Millicores ceiling, const std::string& by) {
  if (ceiling >= policy.ceiling) return;
  policy.ceiling = roundDown(ceiling);
  const std::size_t at = policy.reason.find("; ceiling: ");
  policy.reason = policy.reason.substr(0, at) + "; ceiling: " + by;
  settle(policy);
}

}  // namespace mbcas::policy
