#include "mbcas/cli/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "mbcas/kube/json_cursor.h"

namespace mbcas::cli {
namespace {

using kube::JsonCursor;

// Names that kubectl takes, each with the plural of its kind; pods have none here.
constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
    {"pod", ""},
    {"pods", ""},
    {"po", ""},
    {"deploy", "deployments"},
    {"deployment", "deployments"},
    {"deployments", "deployments"},
    {"sts", "statefulsets"},
    {"statefulset", "statefulsets"},
    {"statefulsets", "statefulsets"},
    {"ds", "daemonsets"},
    {"daemonset", "daemonsets"},
    {"daemonsets", "daemonsets"},
    {"rs", "replicasets"},
    {"replicaset", "replicasets"},
    {"replicasets", "replicasets"},
};

std::string requirement(JsonCursor expression) {
  std::string key;
  std::string op;
  std::vector<std::string> values;
  expression.members([&](std::string_view name, JsonCursor value) {
    if (name == "key") key = value.text();
    if (name == "operator") op = value.text();
    if (name != "values") return;
    value.elements([&](JsonCursor element) { values.emplace_back(element.text()); });
  });
  if (op == "Exists") return key;
  if (op == "DoesNotExist") return "!" + key;
  return fmt::format("{} {} ({})", key, op == "In" ? "in" : "notin", fmt::join(values, ","));
}

}  // namespace

std::optional<Target> parseTarget(std::string_view words) {
  const std::size_t slash = words.find('/');
  if (slash == std::string_view::npos) {
    if (words.empty()) return std::nullopt;
    return Target{.name_space = "", .plural = "", .name = std::string(words)};
  }
  const std::string_view first = words.substr(0, slash);
  const std::string_view second = words.substr(slash + 1);
  if (first.empty() || second.empty() || second.find('/') != second.npos) return std::nullopt;
  for (const auto& [name, plural] : kKinds) {
    if (name != first) continue;
    return Target{.name_space = "", .plural = std::string(plural), .name = std::string(second)};
  }
  return Target{.name_space = std::string(first), .plural = "", .name = std::string(second)};
}

Result<std::string> podSelectorOf(std::string workload) {
  std::vector<std::string> terms;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(workload, [&](JsonCursor root) {
    root.members([&](std::string_view part, JsonCursor spec) {
      if (part != "spec") return;
      spec.members([&](std::string_view field, JsonCursor selector) {
        if (field != "selector") return;
        selector.members([&](std::string_view kind, JsonCursor what) {
          if (kind == "matchLabels") {
            what.members([&](std::string_view key, JsonCursor value) {
              terms.push_back(fmt::format("{}={}", key, value.text()));
            });
          }
          if (kind == "matchExpressions") {
            what.elements([&](JsonCursor expression) { terms.push_back(requirement(expression)); });
          }
        });
      });
    });
  });
  if (!parsed) return failure(parsed.error());
  if (terms.empty()) return failure("it has no selector for its pods");
  return fmt::format("{}", fmt::join(terms, ","));
}

}  // namespace mbcas::cli
