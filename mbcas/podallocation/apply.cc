#include <fmt/format.h>

#include <cmath>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/podallocation/pod_allocation.h"

namespace mbcas::podallocation {
namespace {

void writeCpu(JsonWriter& json, std::string_view key, std::optional<Millicores> cpu) {
  if (cpu) json.key(key).value(fmt::format("{}m", cpu->count()));
}

void writeText(JsonWriter& json, std::string_view key, std::string_view text) {
  if (!text.empty()) json.key(key).value(text);
}

void writeTime(JsonWriter& json, std::string_view key, WallTime time) {
  if (time != WallTime{}) json.key(key).value(formatRfc3339(time));
}

// Up to within metadata.
void beginObject(JsonWriter& json, std::string_view name, std::string_view name_space) {
  json.beginObject();
  json.key("apiVersion").value(PodAllocation::kind().apiVersion());
  json.key("kind").value(PodAllocation::kind().name);
  json.key("metadata").beginObject();
  json.key("name").value(name).key("namespace").value(name_space);
}

// The beginning of a text, whole characters of UTF-8 only.
std::string_view firstCharacters(std::string_view text, std::size_t count) {
  const auto begins_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && count-- == 0) return text.substr(0, i);
  }
  return text;
}

std::string_view name(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kTrue:
      return "True";
    case ConditionStatus::kFalse:
      return "False";
    case ConditionStatus::kUnknown:
      break;
  }
  return "Unknown";
}

void writeBounds(JsonWriter& json, const Bounds& bounds) {
  json.key("bounds").beginObject();
  json.key("managed").value(bounds.managed);
  writeCpu(json, "floor", bounds.floor);
  writeCpu(json, "ceiling", bounds.ceiling);
  writeCpu(json, "start", bounds.start);
  json.key("weight").value(std::round(bounds.weight * 1000) / 1000);
  writeText(json, "reason", bounds.reason);
  json.endObject();
}

void writeOriginal(JsonWriter& json, const std::vector<OriginalCpu>& original) {
  json.key("original").beginArray();
  for (const OriginalCpu& cpu : original) {
    json.beginObject().key("name").value(cpu.container);
    writeCpu(json, "request", cpu.request);
    writeCpu(json, "limit", cpu.limit);
    json.endObject();
  }
  json.endArray();
}

void writeCondition(JsonWriter& json, const Condition& condition) {
  json.beginObject();
  json.key("type").value(condition.type);
  json.key("status").value(name(condition.status));
  json.key("reason").value(condition.reason);
  json.key("message").value(condition.message);
  json.key("lastTransitionTime").value(formatRfc3339(condition.last_transition));
  if (condition.observed_generation > 0) {
    json.key("observedGeneration").value(condition.observed_generation);
  }
  json.endObject();
}

}  // namespace

std::string applySpec(const Owner& pod, const Spec& spec) {
  std::string out;
  JsonWriter json(out);
  beginObject(json, pod.uid, spec.name_space);
  json.key("labels").beginObject().key(kNodeLabel).value(spec.node).endObject();
  json.key("ownerReferences").beginArray().beginObject();
  json.key("apiVersion").value("v1").key("kind").value("Pod");
  json.key("name").value(pod.name).key("uid").value(pod.uid);
  json.endObject().endArray().endObject();
  json.key("spec").beginObject();
  json.key("namespace").value(spec.name_space);
  json.key("podName").value(spec.pod_name);
  json.key("nodeName").value(spec.node);
  writeCpu(json, "desiredCPULimit", spec.desired);
  if (!spec.containers.empty()) {
    json.key("containers").beginArray();
    for (const ContainerLimit& container : spec.containers) {
      json.beginObject().key("name").value(container.name);
      writeCpu(json, "desiredCPULimit", container.desired);
      json.endObject();
    }
    json.endArray();
  }
  writeCpu(json, "wantedCPULimit", spec.wanted);
  writeText(json, "reason", firstCharacters(spec.reason, kLongestReason));
  json.endObject().endObject();
  return out;
}

Status trimmed(Status status) {
  const auto cut = [](std::string& text) {
    text.resize(firstCharacters(text, kLongestStatusReason).size());
  };
  cut(status.reason);
  if (status.bounds) cut(status.bounds->reason);
  for (Condition& condition : status.conditions) cut(condition.message);
  // Amounts have nine digits: more is not an amount of CPU but one that could not be counted.
  constexpr Millicores kMost{999'999'999};
  for (std::optional<Millicores>* cpu : {&status.observed_desired, &status.applied}) {
    if (*cpu > kMost) cpu->reset();
  }
  return status;
}

std::string applyStatus(const kube::ObjectMeta& allocation, const Status& untrimmed) {
  const Status status = trimmed(untrimmed);
  std::string out;
  JsonWriter json(out);
  beginObject(json, allocation.name, allocation.namespace_);
  json.endObject();
  json.key("status").beginObject();
  writeText(json, "phase", podallocation::name(status.phase));
  if (status.observed_generation > 0) {
    json.key("observedGeneration").value(status.observed_generation);
  }
  writeCpu(json, "observedDesired", status.observed_desired);
  writeCpu(json, "appliedCPULimit", status.applied);
  writeText(json, "reason", status.reason);
  writeTime(json, "lastAppliedTime", status.last_applied);
  writeTime(json, "lastAttemptTime", status.last_attempt);
  if (status.bounds) writeBounds(json, *status.bounds);
  if (!status.original.empty()) writeOriginal(json, status.original);
  if (!status.conditions.empty()) {
    json.key("conditions").beginArray();
    for (const Condition& condition : status.conditions) writeCondition(json, condition);
    json.endArray();
  }
  json.endObject().endObject();
  return out;
}

}  // namespace mbcas::podallocation
