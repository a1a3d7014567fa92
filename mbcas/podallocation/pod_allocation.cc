#include "mbcas/podallocation/pod_allocation.h"

#include <algorithm>
#include <charconv>

#include "mbcas/base/quantity.h"
#include "mbcas/base/time.h"
#include "mbcas/kube/types.h"

namespace mbcas::podallocation {
namespace {

using kube::Arena;
using kube::JsonCursor;

std::optional<Millicores> decodeCpu(JsonCursor value) {
  if (value.isNull()) return std::nullopt;
  const Result<Quantity> quantity = Quantity::parse(value.scalar());
  if (!quantity) {
    value.fail(quantity.error().message());
    return std::nullopt;
  }
  // No agent and no controller writes such an amount, and what is read here may be written back.
  if (quantity->millicores() >= kube::Amounts::kMostCpu ||
      quantity->millicores() <= -kube::Amounts::kMostCpu) {
    value.fail("more CPU than can be counted");
    return std::nullopt;
  }
  return quantity->millicores();
}

// Times that may be further away than they read are unknown: statusValue() is written back.
WallTime exact(WallTime time) {
  return saturated(time) ? WallTime{} : time;
}

constexpr double kGreatestWeight = 1e6;  // the schema allows less

double decodeWeight(JsonCursor value) {
  if (value.isNull()) return 1;
  const std::string_view text = value.scalar();
  double weight = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !(weight >= 0 && weight <= kGreatestWeight)) {
    value.fail("not a weight");
    return 1;
  }
  return weight;
}

Phase decodePhase(JsonCursor value) {
  const std::string_view text = value.text();
  for (const Phase phase : {Phase::kPending, Phase::kApplied, Phase::kClamped, Phase::kRecommended,
                            Phase::kLeftAlone, Phase::kFailed}) {
    if (text == name(phase)) return phase;
  }
  return Phase::kUnset;
}

// The pod is the owner, too: its name is kept once.
kube::Str ownName(PodAllocation& allocation, std::string_view name) {
  for (const kube::OwnerReference& owner : allocation.meta.owners) {
    if (owner.name == name) return owner.name;
  }
  return allocation.arena.text(name);
}

void decodeSpec(PodAllocation& allocation, JsonCursor spec) {
  Arena& arena = allocation.arena;
  spec.members([&](std::string_view key, JsonCursor field) {
    if (key == "namespace") {
      allocation.pod_namespace = arena.shared(field.text());
    } else if (key == "podName") {
      allocation.pod_name = ownName(allocation, field.text());
    } else if (key == "nodeName") {
      allocation.node = arena.shared(field.text());
    } else if (key == "reason") {
      allocation.reason = arena.text(field.text());
    } else if (key == "desiredCPULimit") {
      allocation.desired = decodeCpu(field).value_or(Millicores(0));
    } else if (key == "wantedCPULimit") {
      allocation.wanted = decodeCpu(field);
    } else if (key == "containers") {
      std::vector<PodAllocation::Container> containers;
      field.elements([&](JsonCursor element) {
        PodAllocation::Container container;
        element.members([&](std::string_view member, JsonCursor value) {
          if (member == "name") container.name = arena.shared(value.text());
          if (member == "desiredCPULimit") {
            container.desired = decodeCpu(value).value_or(Millicores(0));
          }
        });
        containers.push_back(container);
      });
      allocation.containers = arena.list(containers);
    }
  });
}

PodAllocation::BoundsView decodeBounds(Arena& arena, JsonCursor value) {
  PodAllocation::BoundsView bounds;
  value.members([&](std::string_view key, JsonCursor field) {
    if (key == "managed") bounds.managed = field.boolean();
    if (key == "floor") bounds.floor = decodeCpu(field);
    if (key == "ceiling") bounds.ceiling = decodeCpu(field);
    if (key == "start") bounds.start = decodeCpu(field);
    if (key == "weight") bounds.weight = decodeWeight(field);
    if (key == "reason") bounds.reason = arena.shared(field.text());
  });
  return bounds;
}

PodAllocation::OriginalView decodeOriginal(Arena& arena, JsonCursor value) {
  PodAllocation::OriginalView original;
  value.members([&](std::string_view key, JsonCursor field) {
    if (key == "name") original.container = arena.shared(field.text());
    if (key == "request") original.request = decodeCpu(field);
    if (key == "limit") original.limit = decodeCpu(field);
  });
  return original;
}

PodAllocation::ConditionView decodeCondition(Arena& arena, JsonCursor value) {
  PodAllocation::ConditionView condition;
  value.members([&](std::string_view key, JsonCursor field) {
    if (key == "type") {
      condition.type = arena.shared(field.text());
    } else if (key == "status") {
      const std::string_view text = field.text();
      condition.status = text == "True"    ? ConditionStatus::kTrue
                         : text == "False" ? ConditionStatus::kFalse
                                           : ConditionStatus::kUnknown;
    } else if (key == "reason") {
      condition.reason = arena.shared(field.text());
    } else if (key == "message") {
      condition.message = arena.text(field.text());
    } else if (key == "observedGeneration") {
      condition.observed_generation = field.integer();
    } else if (key == "lastTransitionTime") {
      condition.last_transition = kube::decodeTime(field);
    }
  });
  return condition;
}

void decodeStatus(PodAllocation& allocation, JsonCursor status) {
  Arena& arena = allocation.arena;
  status.members([&](std::string_view key, JsonCursor field) {
    if (key == "phase") {
      allocation.phase = decodePhase(field);
    } else if (key == "observedGeneration") {
      allocation.observed_generation = field.integer();
    } else if (key == "observedDesired") {
      allocation.observed_desired = decodeCpu(field);
    } else if (key == "appliedCPULimit") {
      allocation.applied = decodeCpu(field);
    } else if (key == "reason") {
      // Of a limit that is in force it is what the agent has said.
      const std::string_view text = field.text();
      allocation.status_reason =
          !text.empty() && allocation.reason == text ? allocation.reason : arena.text(text);
    } else if (key == "lastAppliedTime") {
      allocation.last_applied = kube::decodeTime(field);
    } else if (key == "lastAttemptTime") {
      allocation.last_attempt = kube::decodeTime(field);
    } else if (key == "bounds") {
      if (field.isNull()) return;
      allocation.bounds_list = arena.list(std::vector{decodeBounds(arena, field)});
    } else if (key == "original") {
      std::vector<PodAllocation::OriginalView> original;
      field.elements(
          [&](JsonCursor element) { original.push_back(decodeOriginal(arena, element)); });
      allocation.original = arena.list(original);
    } else if (key == "conditions") {
      std::vector<PodAllocation::ConditionView> conditions;
      field.elements(
          [&](JsonCursor element) { conditions.push_back(decodeCondition(arena, element)); });
      allocation.conditions = arena.list(conditions);
    }
  });
}

}  // namespace

std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::kUnset:
      return "";
    case Phase::kPending:
      return "Pending";
    case Phase::kApplied:
      return "Applied";
    case Phase::kClamped:
      return "Clamped";
    case Phase::kRecommended:
      return "Recommended";
    case Phase::kLeftAlone:
      return "LeftAlone";
    case Phase::kFailed:
      return "Failed";
  }
  return "";
}

const kube::Kind& PodAllocation::kind() {
  static const kube::Kind kKind = kube::makeKind<PodAllocation>(
      {.group = "allocation.mbcas.io",
       .version = "v1alpha1",
       .plural = "podallocations",
       .name = "PodAllocation"},
      [](PodAllocation& allocation, std::string_view key, JsonCursor value) {
        if (key == "spec") decodeSpec(allocation, value);
        if (key == "status") decodeStatus(allocation, value);
      });
  return kKind;
}

Spec PodAllocation::specValue() const {
  Spec spec{.name_space = pod_namespace.string(),
            .pod_name = pod_name.string(),
            .node = node.string(),
            .desired = desired,
            .containers = {},
            .wanted = wanted,
            .reason = reason.string()};
  for (const Container& container : containers) {
    spec.containers.push_back({container.name.string(), container.desired});
  }
  return spec;
}

Status PodAllocation::statusValue() const {
  Status status{.phase = phase,
                .observed_generation = observed_generation,
                .observed_desired = observed_desired,
                .applied = applied,
                .reason = status_reason.string(),
                .last_applied = exact(last_applied),
                .last_attempt = exact(last_attempt),
                .bounds = {},
                .original = originalValue(),
                .conditions = {}};
  if (const BoundsView* view = bounds()) {
    status.bounds = Bounds{.managed = view->managed,
                           .floor = view->floor,
                           .ceiling = view->ceiling,
                           .start = view->start,
                           .weight = view->weight,
                           .reason = view->reason.string()};
  }
  for (const ConditionView& view : conditions) {
    status.conditions.push_back({.type = view.type.string(),
                                 .status = view.status,
                                 .reason = view.reason.string(),
                                 .message = view.message.string(),
                                 .observed_generation = view.observed_generation,
                                 .last_transition = exact(view.last_transition)});
  }
  return status;
}

std::vector<OriginalCpu> PodAllocation::originalValue() const {
  std::vector<OriginalCpu> values;
  values.reserve(original.size());
  for (const OriginalView& view : original) {
    values.push_back({view.container.string(), view.request, view.limit});
  }
  return values;
}

const Condition* Status::condition(std::string_view type) const {
  const auto found = std::ranges::find(conditions, type, &Condition::type);
  return found == conditions.end() ? nullptr : &*found;
}

void Status::setCondition(Condition condition) {
  const auto found = std::ranges::find(conditions, condition.type, &Condition::type);
  if (found == conditions.end()) {
    conditions.push_back(std::move(condition));
    return;
  }
  if (found->status == condition.status) condition.last_transition = found->last_transition;
  *found = std::move(condition);
}

}  // namespace mbcas::podallocation
