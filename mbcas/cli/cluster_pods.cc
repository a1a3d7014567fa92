#include "mbcas/cli/cluster_pods.h"

#include <algorithm>
#include <utility>

#include "mbcas/cli/cluster_view.h"
#include "mbcas/cli/words.h"

namespace mbcas::cli {
namespace {

using kube::JsonCursor;
using podallocation::PodAllocation;

constexpr std::size_t kLongestText = 253;  // as a name of Kubernetes

char small(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool contains(std::string_view text, std::string_view part) {
  const auto equal = [](char a, char b) { return small(a) == small(b); };
  return std::ranges::search(text, part, equal).begin() != text.end() || part.empty();
}

bool isManaged(const PodAllocation& allocation) {
  return allocation.bounds() == nullptr || allocation.bounds()->managed;
}

AllocatedPod rowOf(const PodAllocation& allocation) {
  return {.name_space = allocation.meta.namespace_.string(),
          .pod = allocation.pod_name.string(),
          .node = allocation.node.string(),
          .declared = declaredOf(allocation),
          .have = allocation.applied.value_or(allocation.desired),
          .wanted = allocation.wanted.value_or(allocation.desired),
          .desired = allocation.desired,
          .bound = boundAt(allocation).has_value(),
          .phase = std::string(podallocation::name(allocation.phase)),
          .reason = allocation.reason.string()};
}
AllocatedPod rowOf(const AllocatedPod& row) {
  return row;
}

std::pair<std::string_view, std::string_view> nameOf(const PodAllocation& allocation) {
  return {allocation.meta.namespace_.view(), allocation.pod_name.view()};
}
std::pair<std::string_view, std::string_view> nameOf(const AllocatedPod& row) {
  return {row.name_space, row.pod};
}

template <class Thing>
PodAnswer firstOf(std::vector<const Thing*> found, std::size_t most) {
  PodAnswer answer{.pods = {}, .all = found.size()};
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
  std::partial_sort(found.begin(), end, found.end(),
                    [](const Thing* a, const Thing* b) { return nameOf(*a) < nameOf(*b); });
  answer.pods.reserve(std::min(most, found.size()));
  for (auto thing = found.begin(); thing != end; ++thing) answer.pods.push_back(rowOf(**thing));
  return answer;
}

}  // namespace

std::size_t PodQuestion::most() const {
  return !text.empty() ? kMostPodsFound : !node.empty() ? kMostPodsOfNode : kMostPodsSaved;
}

bool PodQuestion::asksFor(std::string_view name_space, std::string_view pod,
                          std::string_view on) const {
  if (!node.empty() && node != on) return false;
  if (contains(pod, text)) return true;
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return contains(name_space, text);
  std::string whole(name_space);
  whole.append("/").append(pod);
  return contains(whole, text);
}

PodAnswer answerPods(const PodQuestion& question, const std::vector<AllocationPtr>& allocations,
                     std::size_t most) {
  std::vector<const PodAllocation*> found;
  for (const AllocationPtr& allocation : allocations) {
    if (isManaged(*allocation) && question.asksFor(allocation->meta.namespace_.view(),
                                                   allocation->pod_name, allocation->node)) {
      found.push_back(allocation.get());
    }
  }
  return firstOf(std::move(found), most);
}

PodAnswer answerPods(const PodQuestion& question, const std::vector<AllocatedPod>& rows,
                     std::size_t most) {
  std::vector<const AllocatedPod*> found;
  for (const AllocatedPod& row : rows) {
    if (question.asksFor(row.name_space, row.pod, row.node)) found.push_back(&row);
  }
  return firstOf(std::move(found), most);
}

Result<PodQuestion> parsePodQuestion(std::string json) {
  PodQuestion question;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(json, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key == "node") question.node = value.text();
      if (key == "text") question.text = value.text();
    });
  });
  if (!parsed) return failure(parsed.error());
  if (question.node.size() > kLongestText || question.text.size() > kLongestText) {
    return failure("no name is that long");
  }
  return question;
}

std::string answerJson(const PodAnswer& answer) {
  std::string text;
  JsonWriter json(text);
  json.beginObject().key("pods").beginArray();
  for (const AllocatedPod& row : answer.pods) writeAllocatedPod(json, row);
  json.endArray().key("all").value(answer.all).endObject();
  return text;
}

void writeAllocatedPod(JsonWriter& json, const AllocatedPod& row) {
  json.beginObject();
  json.key("namespace").value(row.name_space);
  json.key("pod").value(row.pod);
  json.key("node").value(row.node);
  writeCpu(json, "declared", row.declared);
  writeCpu(json, "have", row.have);
  writeCpu(json, "wanted", row.wanted);
  writeCpu(json, "desired", row.desired);
  json.key("bound").value(row.bound);
  json.key("phase").value(row.phase);
  json.key("reason").value(row.reason);
  json.endObject();
}

AllocatedPod readAllocatedPod(JsonCursor object) {
  AllocatedPod row;
  object.members([&](std::string_view key, JsonCursor value) {
    if (key == "namespace") row.name_space = value.text();
    if (key == "pod") row.pod = value.text();
    if (key == "node") row.node = value.text();
    if (key == "declared" && !value.isNull()) row.declared = Millicores(value.integer());
    if (key == "have") row.have = Millicores(value.integer());
    if (key == "wanted") row.wanted = Millicores(value.integer());
    if (key == "desired") row.desired = Millicores(value.integer());
    if (key == "bound") row.bound = value.boolean();
    if (key == "phase") row.phase = value.text();
    if (key == "reason") row.reason = value.text();
  });
  return row;
}

}  // namespace mbcas::cli
