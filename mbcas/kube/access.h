// What an account may do, as questions and as the rules that an API server answers with. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"

namespace mbcas::kube {

struct AccessQuestion {
  std::string verb;
  std::string group;
  std::string resource;
  std::string subresource;
  std::string name_space;  // empty: all
  std::string name{};      // empty: any
};
struct AccessAnswer {
  bool allowed = false;
  std::string reason;
};

// One rule of a SelfSubjectRulesReview. "*" stands for anything.
struct AccessRule {
  std::vector<std::string> verbs{};
  std::vector<std::string> groups{};
  std::vector<std::string> resources{};  // "pods", "pods/resize", "*/scale"
  std::vector<std::string> names{};      // empty: any
};

// The rules that such a review, in JSON, lists.
Result<std::vector<AccessRule>> readAccessRules(std::string json);
// Whether one of them grants it. A review lists the rules of one namespace together with those of
// the whole cluster, so this cannot tell one from the other: the namespace of the question is left
// out of account.
bool granted(const std::vector<AccessRule>& rules, const AccessQuestion& question);

}  // namespace mbcas::kube
