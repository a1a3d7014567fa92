#include "mbcas/cli/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "mbcas/base/json_writer.h"
#include "mbcas/cli/words.h"
#include "mbcas/view/text.h"

namespace mbcas::cli {
namespace {

using podallocation::PodAllocation;

constexpr std::pair<std::string_view, std::string_view> kApis[] = {
    {"Deployment", "apps/v1"},
    {"StatefulSet", "apps/v1"},
    {"DaemonSet", "apps/v1"},
    {"ReplicaSet", "apps/v1"},
    {"ReplicationController", "v1"},
    {"Job", "batch/v1"},
    {"Rollout", "argoproj.io/v1alpha1"},
    {"Pod", "v1"}};

std::string_view apiOf(const std::string& kind) {
  for (const auto& [name, api] : kApis) {
    if (name == kind) return api;
  }
  return "";
}

std::optional<Millicores> declaredOf(const kube::Pod& pod, const PodAllocation& allocation,
                                     std::string_view container) {
  for (const PodAllocation::OriginalView& original : allocation.original) {
    if (original.container.view() == container) return original.limit;
  }
  const kube::Container* const found = pod.container(container);
  return found == nullptr ? std::nullopt : found->limits.cpu();
}

// By container; where the agent has written no split, only a single container's share is known.
std::vector<std::pair<std::string, Millicores>> desiredOf(const kube::Pod& pod,
                                                          const PodAllocation& allocation) {
  std::vector<std::pair<std::string, Millicores>> desired;
  for (const PodAllocation::Container& container : allocation.containers) {
    desired.emplace_back(container.name.string(), container.desired);
  }
  if (!desired.empty()) return desired;
  for (const kube::Container& container : pod.containers) {
    if (container.role != kube::ContainerRole::kMain || !container.limits.cpu()) continue;
    desired.emplace_back(container.name.string(), allocation.desired);
  }
  if (desired.size() != 1) desired.clear();
  return desired;
}

struct Gathered {
  std::size_t pods = 0;
  std::map<std::string, LimitChange> containers;
};

}  // namespace

Diff diffOf(const Snapshot& snapshot) {
  std::map<std::tuple<std::string, policy::Workload>, Gathered> all;
  for (const PodPtr& pod : snapshot.pods) {
    const PodAllocation* const allocation = snapshot.allocationOf(*pod);
    if (pod->terminal() || allocation == nullptr) continue;
    if (allocation->bounds() == nullptr || !allocation->bounds()->managed) continue;
    const policy::Workload workload =
        policy::workloadOf(*pod).value_or(policy::Workload{"Pod", pod->meta.name.string()});
    Gathered& gathered = all[{pod->meta.namespace_.string(), workload}];
    ++gathered.pods;
    for (const auto& [name, desired] : desiredOf(*pod, *allocation)) {
      const std::optional<Millicores> declared = declaredOf(*pod, *allocation, name);
      if (!declared) continue;
      LimitChange& change = gathered.containers[name];
      change.container = name;
      change.declared = std::max(change.declared, *declared);
      change.desired = std::max({change.desired, desired, *declared});
    }
  }
  Diff diff;
  for (auto& [key, gathered] : all) {
    const auto& [name_space, workload] = key;
    WorkloadDiff entry{name_space, workload, gathered.pods, {}};
    for (auto& [name, change] : gathered.containers) {
      if (change.desired != change.declared) entry.changes.push_back(std::move(change));
    }
    if (entry.changes.empty()) continue;
    if (apiOf(workload.kind).empty()) {
      diff.notes.push_back(fmt::format("{}/{} is of kind {}, for which no patch is known",
                                       name_space, workload.name, workload.kind));
    }
    diff.workloads.push_back(std::move(entry));
  }
  return diff;
}

std::string diffTable(const Diff& diff, bool namespaces, bool colours) {
  using view::Table;
  std::vector<Table::Column> columns;
  if (namespaces) columns.push_back({"NAMESPACE", Table::Align::kLeft});
  columns.insert(columns.end(), {{"WORKLOAD", Table::Align::kLeft},
                                 {"CONTAINER", Table::Align::kLeft},
                                 {"DECLARED"},
                                 {"DESIRED"},
                                 {"PODS"}});
  Table table(std::move(columns));
  for (const WorkloadDiff& entry : diff.workloads) {
    for (const LimitChange& change : entry.changes) {
      std::vector<std::string> cells;
      if (namespaces) cells.push_back(entry.name_space);
      cells.insert(cells.end(), {fmt::format("{}/{}", entry.workload.kind, entry.workload.name),
                                 change.container, cpuText(change.declared),
                                 cpuText(change.desired), fmt::format("{}", entry.pods)});
      table.row(std::move(cells));
    }
  }
  return table.toString(colours);
}

std::string diffJson(const Diff& diff) {
  std::string text;
  JsonWriter json(text);
  json.beginObject().key("workloads").beginArray();
  for (const WorkloadDiff& entry : diff.workloads) {
    json.beginObject();
    json.key("namespace").value(entry.name_space);
    json.key("kind").value(entry.workload.kind);
    json.key("name").value(entry.workload.name);
    json.key("pods").value(entry.pods);
    json.key("containers").beginArray();
    for (const LimitChange& change : entry.changes) {
      json.beginObject();
      json.key("name").value(change.container);
      json.key("declared").value(change.declared.count());
      json.key("desired").value(change.desired.count());
      json.endObject();
    }
    json.endArray().endObject();
  }
  json.endArray().key("notes").beginArray();
  for (const std::string& note : diff.notes) json.value(note);
  json.endArray().endObject();
  return text;
}

std::vector<std::string> patchesOf(const Diff& diff) {
  std::vector<std::string> patches;
  for (const WorkloadDiff& entry : diff.workloads) {
    const std::string_view api = apiOf(entry.workload.kind);
    if (api.empty()) continue;
    std::string text;
    JsonWriter json(text);
    json.beginObject();
    json.key("apiVersion").value(api);
    json.key("kind").value(entry.workload.kind);
    json.key("metadata").beginObject();
    json.key("name").value(entry.workload.name);
    json.key("namespace").value(entry.name_space);
    json.endObject().key("spec").beginObject();
    const bool bare = entry.workload.kind == "Pod";
    if (!bare) json.key("template").beginObject().key("spec").beginObject();
    json.key("containers").beginArray();
    for (const LimitChange& change : entry.changes) {
      json.beginObject();
      json.key("name").value(change.container);
      json.key("resources").beginObject().key("limits").beginObject();
      json.key("cpu").value(cpuText(change.desired));
      json.endObject().endObject().endObject();
    }
    json.endArray();
    if (!bare) json.endObject().endObject();
    json.endObject().endObject();
    patches.push_back(std::move(text));
  }
  return patches;
}

}  // namespace mbcas::cli
