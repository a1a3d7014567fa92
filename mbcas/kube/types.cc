#include "mbcas/kube/types.h"

#include <algorithm>

#include "mbcas/base/quantity.h"

namespace mbcas::kube {
namespace {

constexpr ProtobufField kConfigMapFields[] = {
    {1, "metadata", ProtobufType::kMessage, ProtobufShape::kOne, &kProtobufObjectMeta},
    {2, "data", ProtobufType::kText, ProtobufShape::kMap},
};
constexpr ProtobufMessage kConfigMap{kConfigMapFields};

std::int32_t int32(JsonCursor value) {
  return static_cast<std::int32_t>(value.integer());
}

// Visits the types of the conditions that hold.
template <class Visit>
void eachCondition(JsonCursor conditions, const Visit& visit) {
  conditions.elements([&](JsonCursor element) {
    std::string type;
    bool holds = false;
    element.members([&](std::string_view key, JsonCursor field) {
      if (key == "type") type = field.text();
      if (key == "status") holds = field.text() == "True";
    });
    if (holds) visit(std::string_view(type));
  });
}

TargetReference decodeTarget(Arena& arena, JsonCursor value) {
  TargetReference target;
  value.members([&](std::string_view key, JsonCursor field) {
    if (key == "apiVersion") target.api_version = arena.text(field.text());
    if (key == "kind") target.kind = arena.text(field.text());
    if (key == "name") target.name = arena.text(field.text());
  });
  return target;
}

void decodeNode(Node& node, std::string_view key, JsonCursor value) {
  if (key == "spec") {
    value.members([&](std::string_view name, JsonCursor field) {
      if (name == "unschedulable") node.unschedulable = field.boolean();
    });
  }
  if (key != "status") return;
  value.members([&](std::string_view name, JsonCursor field) {
    if (name == "capacity") {
      node.capacity = Amounts::decode(field);
    } else if (name == "allocatable") {
      node.allocatable = Amounts::decode(field);
    } else if (name == "conditions") {
      eachCondition(field, [&](std::string_view type) {
        if (type == "Ready") node.ready = true;
        if (type == "MemoryPressure") node.memory_pressure = true;
        if (type == "DiskPressure") node.disk_pressure = true;
        if (type == "PIDPressure") node.pid_pressure = true;
      });
    } else if (name == "nodeInfo") {
      field.members([&](std::string_view info, JsonCursor text) {
        if (info == "kubeletVersion") node.kubelet_version = node.arena.text(text.text());
        if (info == "operatingSystem") node.operating_system = node.arena.text(text.text());
      });
    } else if (name == "addresses") {
      field.elements([&](JsonCursor element) {
        std::string type;
        std::string address;
        element.members([&](std::string_view part, JsonCursor text) {
          if (part == "type") type = text.text();
          if (part == "address") address = text.text();
        });
        if (type == "InternalIP" && node.internal_ip.empty()) {
          node.internal_ip = node.arena.text(address);
        }
      });
    }
  });
}

void decodeLease(Lease& lease, std::string_view key, JsonCursor value) {
  if (key != "spec") return;
  value.members([&](std::string_view name, JsonCursor field) {
    if (name == "holderIdentity") lease.holder = lease.arena.text(field.text());
    if (name == "leaseDurationSeconds") lease.duration_seconds = int32(field);
    if (name == "leaseTransitions") lease.transitions = int32(field);
    if (name == "acquireTime") lease.acquired = decodeTime(field);
    if (name == "renewTime") lease.renewed = decodeTime(field);
  });
}

void decodeEvent(Event& event, std::string_view key, JsonCursor value) {
  Arena& arena = event.arena;
  if (key == "type") {
    event.type = arena.text(value.text());
  } else if (key == "reason") {
    event.reason = arena.text(value.text());
  } else if (key == "message") {
    event.message = arena.text(value.text());
  } else if (key == "count") {
    event.count = int32(value);
  } else if (key == "firstTimestamp") {
    event.first_seen = decodeTime(value);
  } else if (key == "lastTimestamp") {
    event.last_seen = decodeTime(value);
  } else if (key == "source") {
    value.members([&](std::string_view name, JsonCursor field) {
      if (name == "component") event.source = arena.text(field.text());
    });
  } else if (key == "involvedObject") {
    value.members([&](std::string_view name, JsonCursor field) {
      if (name == "kind") event.involved_kind = arena.text(field.text());
      if (name == "namespace") event.involved_namespace = arena.text(field.text());
      if (name == "name") event.involved_name = arena.text(field.text());
      if (name == "uid") event.involved_uid = arena.text(field.text());
    });
  }
}

void decodeLimitRange(LimitRange& range, std::string_view key, JsonCursor value) {
  if (key != "spec") return;
  value.members([&](std::string_view name, JsonCursor limits) {
    if (name != "limits") return;
    std::vector<LimitRange::Item> items;
    limits.elements([&](JsonCursor element) {
      LimitRange::Item item;
      element.members([&](std::string_view part, JsonCursor field) {
        if (part == "type") item.type = range.arena.text(field.text());
        if (part == "min") item.min = Amounts::decode(field);
        if (part == "max") item.max = Amounts::decode(field);
        if (part == "maxLimitRequestRatio") item.max_limit_request_ratio = Amounts::decode(field);
      });
      items.push_back(item);
    });
    range.limits = range.arena.list(items);
  });
}

void decodeScopeSelector(ResourceQuota& quota, JsonCursor value) {
  value.members([&](std::string_view key, JsonCursor expressions) {
    if (key != "matchExpressions") return;
    std::vector<ResourceQuota::ScopeExpression> decoded;
    expressions.elements([&](JsonCursor element) {
      ResourceQuota::ScopeExpression expression;
      element.members([&](std::string_view name, JsonCursor field) {
        if (name == "scopeName") expression.scope = quota.arena.text(field.text());
        if (name == "operator") expression.op = quota.arena.text(field.text());
        if (name == "values") expression.values = decodeTexts(quota.arena, field);
      });
      decoded.push_back(expression);
    });
    quota.scope_selector = quota.arena.list(decoded);
  });
}

void decodeQuota(ResourceQuota& quota, std::string_view key, JsonCursor value) {
  value.members([&](std::string_view name, JsonCursor field) {
    if (key == "spec" && name == "scopeSelector") decodeScopeSelector(quota, field);
    if (key == "spec" && name == "hard") quota.hard = decodeMap(quota.arena, field);
    if (key == "spec" && name == "scopes") quota.scopes = decodeTexts(quota.arena, field);
    if (key == "status" && name == "hard") quota.status_hard = decodeMap(quota.arena, field);
    if (key == "status" && name == "used") quota.status_used = decodeMap(quota.arena, field);
  });
}

HorizontalPodAutoscaler::Metric decodeMetric(Arena& arena, JsonCursor value) {
  HorizontalPodAutoscaler::Metric metric;
  value.members([&](std::string_view key, JsonCursor field) {
    if (key == "type") metric.type = arena.text(field.text());
    if (key != "resource" && key != "containerResource") return;
    field.members([&](std::string_view name, JsonCursor part) {
      if (name == "name") metric.resource = arena.text(part.text());
      if (name != "target") return;
      part.members([&](std::string_view target, JsonCursor amount) {
        if (target == "type") metric.target_type = arena.text(amount.text());
        if (target == "averageUtilization") metric.average_utilization = int32(amount);
        if (target == "averageValue") {
          const Result<Quantity> quantity = Quantity::parseSaturating(amount.scalar());
          if (quantity) metric.average_value = Amounts::ofCpu(quantity->millicores());
        }
      });
    });
  });
  return metric;
}

void decodeHpa(HorizontalPodAutoscaler& hpa, std::string_view key, JsonCursor value) {
  if (key != "spec" && key != "status") return;
  value.members([&](std::string_view name, JsonCursor field) {
    if (name == "scaleTargetRef") hpa.target = decodeTarget(hpa.arena, field);
    if (name == "metrics") {
      std::vector<HorizontalPodAutoscaler::Metric> metrics;
      field.elements(
          [&](JsonCursor metric) { metrics.push_back(decodeMetric(hpa.arena, metric)); });
      hpa.metrics = hpa.arena.list(metrics);
    }
  });
}

void decodeVpa(VerticalPodAutoscaler& vpa, std::string_view key, JsonCursor value) {
  if (key != "spec") return;
  Arena& arena = vpa.arena;
  value.members([&](std::string_view name, JsonCursor field) {
    if (name == "targetRef") {
      vpa.target = decodeTarget(arena, field);
    } else if (name == "updatePolicy") {
      field.members([&](std::string_view part, JsonCursor mode) {
        if (part == "updateMode") vpa.update_mode = arena.text(mode.text());
      });
    } else if (name == "resourcePolicy") {
      field.members([&](std::string_view part, JsonCursor list) {
        if (part != "containerPolicies") return;
        std::vector<VerticalPodAutoscaler::ContainerPolicy> policies;
        list.elements([&](JsonCursor element) {
          VerticalPodAutoscaler::ContainerPolicy policy;
          element.members([&](std::string_view member, JsonCursor text) {
            if (member == "containerName") policy.container = arena.text(text.text());
            if (member == "mode") policy.mode = arena.text(text.text());
            if (member == "controlledResources") {
              policy.controlled_resources = decodeTexts(arena, text);
            }
          });
          policies.push_back(policy);
        });
        vpa.policies = arena.list(policies);
      });
    }
  });
}

void decodePdb(PodDisruptionBudget& pdb, std::string_view key, JsonCursor value) {
  if (key != "spec" && key != "status") return;
  value.members([&](std::string_view name, JsonCursor field) {
    if (name == "selector") pdb.selector = LabelSelector::decode(pdb.arena, field);
    if (name == "currentHealthy") pdb.current_healthy = int32(field);
    if (name == "desiredHealthy") pdb.desired_healthy = int32(field);
  });
}

bool contains(const List<Str>& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(), [&](Str entry) { return entry == text; });
}

}  // namespace

LabelSelector LabelSelector::decode(Arena& arena, JsonCursor value) {
  LabelSelector selector;
  selector.present = !value.isNull();
  value.members([&](std::string_view key, JsonCursor field) {
    if (key == "matchLabels") selector.labels = decodeMap(arena, field);
    if (key != "matchExpressions") return;
    std::vector<Expression> expressions;
    field.elements([&](JsonCursor element) {
      Expression expression;
      element.members([&](std::string_view name, JsonCursor part) {
        if (name == "key") expression.key = arena.text(part.text());
        if (name == "operator") expression.op = arena.text(part.text());
        if (name == "values") expression.values = decodeTexts(arena, part);
      });
      expressions.push_back(expression);
    });
    selector.expressions = arena.list(expressions);
  });
  return selector;
}

bool LabelSelector::matches(const List<KeyValue>& labels_of_object) const {
  if (!present) return false;
  for (const KeyValue& label : labels) {
    if (find(labels_of_object, label.key) != label.value.view()) return false;
  }
  return std::all_of(expressions.begin(), expressions.end(), [&](const Expression& expression) {
    const std::optional<std::string_view> value = find(labels_of_object, expression.key);
    if (expression.op == "In") return value && contains(expression.values, *value);
    if (expression.op == "NotIn") return !value || !contains(expression.values, *value);
    if (expression.op == "Exists") return value.has_value();
    return expression.op == "DoesNotExist" && !value;
  });
}

bool HorizontalPodAutoscaler::scalesOnCpu() const {
  return std::any_of(metrics.begin(), metrics.end(),
                     [](const Metric& metric) { return metric.resource == "cpu"; });
}

bool VerticalPodAutoscaler::activeOnCpu(std::string_view container) const {
  if (update_mode == "Off" || update_mode == "Initial") return false;
  const ContainerPolicy* chosen = nullptr;
  for (const ContainerPolicy& policy : policies) {
    if (policy.container == container) chosen = &policy;
    if (policy.container == "*" && chosen == nullptr) chosen = &policy;
  }
  if (chosen == nullptr) return true;
  if (chosen->mode == "Off") return false;
  return chosen->controlled_resources.empty() || contains(chosen->controlled_resources, "cpu");
}

const Kind& Node::kind() {
  static const Kind kKind = makeKind<Node>(
      {.group = "", .version = "v1", .plural = "nodes", .name = "Node", .namespaced = false},
      [](Node& node, std::string_view key, JsonCursor value) { decodeNode(node, key, value); });
  return kKind;
}

const Kind& Lease::kind() {
  static const Kind kKind = makeKind<Lease>(
      {.group = "coordination.k8s.io", .version = "v1", .plural = "leases", .name = "Lease"},
      [](Lease& lease, std::string_view key, JsonCursor value) { decodeLease(lease, key, value); });
  return kKind;
}

const Kind& Event::kind() {
  static const Kind kKind = makeKind<Event>(
      {.group = "", .version = "v1", .plural = "events", .name = "Event"},
      [](Event& event, std::string_view key, JsonCursor value) { decodeEvent(event, key, value); });
  return kKind;
}

const Kind& ConfigMap::kind() {
  static const Kind kKind =
      makeKind<ConfigMap>({.group = "",
                           .version = "v1",
                           .plural = "configmaps",
                           .name = "ConfigMap",
                           .protobuf = &kConfigMap},
                          [](ConfigMap& map, std::string_view key, JsonCursor value) {
                            if (key != "data") return;
                            std::vector<KeyValue> entries;
                            value.members([&](std::string_view name, JsonCursor text) {
                              const Str kept = map.arena.text(name);
                              entries.push_back({kept, map.arena.text(text.text())});
                            });
                            map.data = map.arena.list(entries);
                          });
  return kKind;
}

const Kind& LimitRange::kind() {
  static const Kind kKind = makeKind<LimitRange>(
      {.group = "", .version = "v1", .plural = "limitranges", .name = "LimitRange"},
      [](LimitRange& range, std::string_view key, JsonCursor value) {
        decodeLimitRange(range, key, value);
      });
  return kKind;
}

const Kind& ResourceQuota::kind() {
  static const Kind kKind = makeKind<ResourceQuota>(
      {.group = "", .version = "v1", .plural = "resourcequotas", .name = "ResourceQuota"},
      [](ResourceQuota& quota, std::string_view key, JsonCursor value) {
        if (key == "spec" || key == "status") decodeQuota(quota, key, value);
      });
  return kKind;
}

const Kind& HorizontalPodAutoscaler::kind() {
  static const Kind kKind =
      makeKind<HorizontalPodAutoscaler>({.group = "autoscaling",
                                         .version = "v2",
                                         .plural = "horizontalpodautoscalers",
                                         .name = "HorizontalPodAutoscaler"},
                                        [](HorizontalPodAutoscaler& hpa, std::string_view key,
                                           JsonCursor value) { decodeHpa(hpa, key, value); });
  return kKind;
}

const Kind& VerticalPodAutoscaler::kind() {
  static const Kind kKind =
      makeKind<VerticalPodAutoscaler>({.group = "autoscaling.k8s.io",
                                       .version = "v1",
                                       .plural = "verticalpodautoscalers",
                                       .name = "VerticalPodAutoscaler"},
                                      [](VerticalPodAutoscaler& vpa, std::string_view key,
                                         JsonCursor value) { decodeVpa(vpa, key, value); });
  return kKind;
}

const Kind& PodDisruptionBudget::kind() {
  static const Kind kKind =
      makeKind<PodDisruptionBudget>({.group = "policy",
                                     .version = "v1",
                                     .plural = "poddisruptionbudgets",
                                     .name = "PodDisruptionBudget"},
                                    [](PodDisruptionBudget& pdb, std::string_view key,
                                       JsonCursor value) { decodePdb(pdb, key, value); });
  return kKind;
}

const Kind& Namespace::kind() {
  static const Kind kKind =
      makeKind<Namespace>({.group = "",
                           .version = "v1",
                           .plural = "namespaces",
                           .name = "Namespace",
                           .namespaced = false},
                          [](Namespace& name_space, std::string_view key, JsonCursor value) {
                            if (key != "status") return;
                            value.members([&](std::string_view name, JsonCursor field) {
                              if (name == "phase")
                                name_space.phase = name_space.arena.text(field.text());
                            });
                          });
  return kKind;
}

}  // namespace mbcas::kube
