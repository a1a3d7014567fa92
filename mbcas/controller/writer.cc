#include "mbcas/controller/writer.h"

#include "mbcas/kube/json_cursor.h"

namespace mbcas::controller {
namespace {

using kube::JsonCursor;

// k:{"name":"main"} -> main; empty for any other key.
std::string containerOfKey(std::string_view key) {
  constexpr std::string_view kBegin = R"(k:{"name":")";
  constexpr std::string_view kEnd = R"("})";
  if (!key.starts_with(kBegin) || !key.ends_with(kEnd)) return {};
  if (key.size() < kBegin.size() + kEnd.size()) return {};
  return std::string(key.substr(kBegin.size(), key.size() - kBegin.size() - kEnd.size()));
}

// Calls `visit` with the member of that name, if it is there.
template <class Visit>
void member(JsonCursor value, std::string_view name, const Visit& visit) {
  value.members([&](std::string_view key, JsonCursor found) {
    if (key == name) visit(found);
  });
}

void readContainers(JsonCursor list, std::vector<std::string>& containers) {
  list.members([&](std::string_view key, JsonCursor container) {
    const std::string name = containerOfKey(key);
    if (name.empty()) return;
    member(container, "f:resources", [&](JsonCursor resources) {
      member(resources, "f:limits", [&](JsonCursor limits) {
        member(limits, "f:cpu", [&](JsonCursor) { containers.push_back(name); });
      });
    });
  });
}

void readFields(JsonCursor fields, std::vector<std::string>& containers) {
  member(fields, "f:spec", [&](JsonCursor spec) {
    spec.members([&](std::string_view key, JsonCursor list) {
      if (key == "f:containers" || key == "f:initContainers") readContainers(list, containers);
    });
  });
}

}  // namespace

Result<std::vector<std::string>> limitsWrittenBy(std::string_view manager, std::string pod_json) {
  std::vector<std::string> containers;
  kube::JsonParser parser;
  Result<void> parsed = parser.parse(pod_json, [&](JsonCursor root) {
    member(root, "metadata", [&](JsonCursor metadata) {
      member(metadata, "managedFields", [&](JsonCursor entries) {
        entries.elements([&](JsonCursor entry) {
          // The members come in any order: the fields are read before it is known whose they are.
          std::string who;
          std::vector<std::string> found;
          entry.members([&](std::string_view key, JsonCursor value) {
            if (key == "manager") who = value.text();
            if (key == "fieldsV1") readFields(value, found);
          });
          if (who == manager) containers.insert(containers.end(), found.begin(), found.end());
        });
      });
    });
  });
  if (!parsed) return failure(std::move(parsed).error().within("managedFields"));
  return containers;
}

}  // namespace mbcas::controller
