#include "mbcas/cli/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "mbcas/controller/cluster.h"

namespace mbcas::cli {
namespace {

using podallocation::PodAllocation;

void passOver(const kube::Kind& kind, const std::vector<kube::PassedOver>& objects,
              Snapshot& snapshot) {
  for (const kube::PassedOver& object : objects) {
    snapshot.passed_over.push_back(
        {fmt::format("{} {}{}{}", kind.name, object.name_space,
                     object.name_space.empty() ? "" : "/",
                     object.name.empty() ? "of unknown name" : object.name),
         object.why});
  }
}

class Reader {
 public:
  Reader(kube::Client& client, const Selection& selection, Snapshot& snapshot)
      : client_(client), selection_(selection), snapshot_(snapshot) {}

  // Every object of the kind in the namespaces that were chosen; none, with a note, where it may
  // not be read. Kinds that are not installed have no objects.
  template <class T>
  bool each(const std::function<void(std::shared_ptr<const T>)>& visit, bool installed = true) {
    if (lost_) return false;
    auto list = client_.list<T>({.name_space = T::kind().namespaced ? selection_.name_space : ""});
    if (!list) {
      if (!list.error().answered()) lost_ = list.error();
      if (installed || !list.error().notFound()) note(T::kind(), list.error());
      return false;
    }
    for (auto& object : list->items) visit(std::move(object));
    passOver(T::kind(), list->passed_over, snapshot_);
    return true;
  }

  // The server stopped to answer.
  const std::optional<kube::ApiError>& lost() const { return lost_; }

 private:
  void note(const kube::Kind& kind, const kube::ApiError& error) {
    snapshot_.notes.push_back(fmt::format("{} cannot be read: {}", kind.plural, error.describe()));
  }

  kube::Client& client_;
  const Selection& selection_;
  Snapshot& snapshot_;
  std::optional<kube::ApiError> lost_;
};

void readNamespaces(kube::Client& client, Reader& reader, Snapshot& snapshot) {
  if (reader.each<kube::Namespace>([&](auto object) {
        std::string name = object->meta.name.string();
        snapshot.namespaces[std::move(name)].name_space = std::move(object);
      })) {
    return;
  }
  if (reader.lost()) return;
  // Who may not list all of them may perhaps read his own.
  std::set<std::string> names;
  for (const PodPtr& pod : snapshot.pods) names.insert(pod->meta.namespace_.string());
  bool all = true;
  for (const std::string& name : names) {
    auto object = client.get<kube::Namespace>("", name);
    all &= object.has_value();
    if (object) snapshot.namespaces[name].name_space = *std::move(object);
  }
  if (all) snapshot.notes.pop_back();
}

void readSettings(kube::Client& client, const std::string& name_space, Snapshot& snapshot) {
  const auto map = client.get<kube::ConfigMap>(name_space, controller::kSettingsName);
  if (!map) {
    if (!map.error().notFound()) {
      snapshot.notes.push_back(
          fmt::format("the settings cannot be read: {}", map.error().describe()));
    }
    return;
  }
  policy::SettingsData data;
  for (const kube::KeyValue& entry : (*map)->data) {
    data[entry.key.string()] = entry.value.string();
  }
  const Result<policy::ParsedSettings> parsed = policy::parseSettings(data);
  if (parsed) {
    snapshot.settings = parsed->settings;
  } else {
    snapshot.notes.push_back(
        fmt::format("the settings are not valid: {}", parsed.error().message()));
  }
}

}  // namespace

std::string Selection::fieldSelector() const {
  std::string selector;
  if (!node.empty()) selector = "spec.nodeName=" + node;
  if (!pod.empty()) selector += (selector.empty() ? "" : ",") + ("metadata.name=" + pod);
  return selector;
}

const PodAllocation* Snapshot::allocationOf(const kube::Pod& pod) const {
  const auto found = allocations.find(pod.meta.uid.view());
  return found == allocations.end() ? nullptr : found->second.get();
}

kube::ApiResult<Snapshot> takeSnapshot(kube::Client& client, const Selection& selection,
                                       const std::string& system_namespace) {
  Snapshot snapshot;
  auto pods = client.list<kube::Pod>({.name_space = selection.name_space,
                                      .label_selector = selection.label_selector,
                                      .field_selector = selection.fieldSelector()});
  if (!pods) return kube::apiFailure(std::move(pods).error());
  passOver(kube::Pod::kind(), pods->passed_over, snapshot);
  snapshot.pods = std::move(pods->items);
  std::ranges::sort(snapshot.pods, {}, [](const PodPtr& pod) {
    return std::pair(pod->meta.namespace_.view(), pod->meta.name.view());
  });

  Reader reader(client, selection, snapshot);
  reader.each<PodAllocation>(
      [&](auto object) {
        std::string uid = object->meta.name.string();
        snapshot.allocations[std::move(uid)] = std::move(object);
      },
      false);
  snapshot.nodes_known = reader.each<kube::Node>([&](auto object) {
    std::string name = object->meta.name.string();
    snapshot.nodes[std::move(name)] = std::move(object);
  });
  readNamespaces(client, reader, snapshot);
  const auto into = [&](auto list) {
    return [&snapshot, list](auto object) {
      (snapshot.namespaces[object->meta.namespace_.string()].*list).push_back(std::move(object));
    };
  };
  using policy::NamespaceObjects;
  reader.each<kube::LimitRange>(into(&NamespaceObjects::ranges));
  reader.each<kube::ResourceQuota>(into(&NamespaceObjects::quotas));
  reader.each<kube::HorizontalPodAutoscaler>(into(&NamespaceObjects::hpas));
  reader.each<kube::PodDisruptionBudget>(into(&NamespaceObjects::budgets));
  reader.each<kube::VerticalPodAutoscaler>(into(&NamespaceObjects::vpas), false);
  if (!reader.lost()) readSettings(client, system_namespace, snapshot);
  if (reader.lost()) return kube::apiFailure(*reader.lost());
  return snapshot;
}

Verdict judge(const Snapshot& snapshot, const kube::Pod& pod) {
  static const policy::NamespaceObjects kNothing;
  // Where nodes may not be read, they bound nothing.
  static const kube::Node kAnyNode(0);
  const auto objects = snapshot.namespaces.find(pod.meta.namespace_.view());
  const auto node = snapshot.nodes.find(pod.node.view());
  const PodAllocation* const allocation = snapshot.allocationOf(pod);
  Verdict verdict;
  verdict.policy = policy::judgePod(
      pod, allocation, objects == snapshot.namespaces.end() ? kNothing : objects->second,
      node != snapshot.nodes.end()                 ? node->second.get()
      : !snapshot.nodes_known && !pod.node.empty() ? &kAnyNode
                                                   : nullptr,
      snapshot.settings);
  verdict.managed = verdict.policy.managed;
  verdict.reason = verdict.policy.reason;
  verdict.remedy = verdict.policy.remedy;
  if (allocation != nullptr && allocation->bounds() != nullptr) {
    const PodAllocation::BoundsView& bounds = *allocation->bounds();
    verdict.managed = bounds.managed;
    verdict.reason = bounds.reason.string();
  } else if (verdict.managed) {
    verdict.managed = false;
    verdict.expected = true;
    verdict.reason =
        allocation == nullptr ? "no agent has reported it" : "the controller has not reconciled it";
  }
  return verdict;
}

}  // namespace mbcas::cli
