#include "mbcas/kube/access.h"

#include <algorithm>

#include "mbcas/kube/json_cursor.h"

namespace mbcas::kube {
namespace {

constexpr std::string_view kAnything = "*";

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::any_of(list, [&](const std::string& each) { return each == text; });
}
bool allows(const std::vector<std::string>& list, std::string_view text) {
  return contains(list, kAnything) || contains(list, text);
}

bool concerns(const AccessRule& rule, const AccessQuestion& question) {
  if (question.subresource.empty()) return allows(rule.resources, question.resource);
  return allows(rule.resources, question.resource + "/" + question.subresource) ||
         contains(rule.resources, "*/" + question.subresource);
}

}  // namespace

Result<std::vector<AccessRule>> readAccessRules(std::string json) {
  std::vector<AccessRule> rules;
  JsonParser parser;
  const Result<void> parsed = parser.parse(json, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor status) {
      if (key != "status") return;
      status.members([&](std::string_view name, JsonCursor list) {
        if (name != "resourceRules") return;
        list.elements([&](JsonCursor element) {
          AccessRule& rule = rules.emplace_back();
          element.members([&](std::string_view field, JsonCursor values) {
            std::vector<std::string>* const into = field == "verbs"           ? &rule.verbs
                                                   : field == "apiGroups"     ? &rule.groups
                                                   : field == "resources"     ? &rule.resources
                                                   : field == "resourceNames" ? &rule.names
                                                                              : nullptr;
            if (into == nullptr) return;
            values.elements([&](JsonCursor value) { into->emplace_back(value.text()); });
          });
        });
      });
    });
  });
  if (!parsed) return failure(parsed.error());
  return rules;
}

bool granted(const std::vector<AccessRule>& rules, const AccessQuestion& question) {
  return std::ranges::any_of(rules, [&](const AccessRule& rule) {
    const bool named = rule.names.empty() || contains(rule.names, question.name);
    return named && allows(rule.verbs, question.verb) && allows(rule.groups, question.group) &&
           concerns(rule, question);
  });
}

}  // namespace mbcas::kube
