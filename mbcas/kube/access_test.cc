#include "mbcas/kube/access.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mbcas::kube {
namespace {

// As a real server answers for the account of an agent, shortened.
constexpr const char* kReview = R"({
  "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
  "metadata": {}, "spec": {},
  "status": {
    "resourceRules": [
      {"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["pods", "nodes"]},
      {"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["configmaps"],
       "resourceNames": ["mbcas"]},
      {"verbs": ["get"], "apiGroups": ["allocation.mbcas.io"], "resources": ["*"]},
      {"verbs": ["*"], "apiGroups": ["*"], "resources": ["pods/resize", "*/scale"]}
    ],
    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version"]}],
    "incomplete": false
  }
})";

bool may(const AccessQuestion& question) {
  static const auto rules = readAccessRules(kReview);
  EXPECT_TRUE(rules);
  return granted(*rules, question);
}

TEST(Access, RulesGrantWhatTheyName) {
  EXPECT_TRUE(may({.verb = "list", .resource = "pods"}));
  EXPECT_TRUE(may({.verb = "watch", .resource = "nodes"}));
  EXPECT_FALSE(may({.verb = "get", .resource = "pods"})) << "another verb";
  EXPECT_FALSE(may({.verb = "list", .group = "apps", .resource = "pods"})) << "another group";
  EXPECT_FALSE(may({.verb = "list", .resource = "secrets"}));
}

TEST(Access, ARuleForANameGrantsOnlyThat) {
  EXPECT_TRUE(may({.verb = "watch", .resource = "configmaps", .name = "mbcas"}));
  EXPECT_FALSE(may({.verb = "watch", .resource = "configmaps", .name = "other"}));
  EXPECT_FALSE(may({.verb = "watch", .resource = "configmaps"})) << "any name";
}

TEST(Access, StarsStandForAnything) {
  const std::string group = "allocation.mbcas.io";
  EXPECT_TRUE(may({.verb = "get", .group = group, .resource = "podallocations"}));
  EXPECT_TRUE(
      may({.verb = "get", .group = group, .resource = "podallocations", .subresource = "status"}));
  EXPECT_TRUE(may({.verb = "patch", .resource = "pods", .subresource = "resize"}));
  EXPECT_TRUE(
      may({.verb = "update", .group = "apps", .resource = "deployments", .subresource = "scale"}));
  EXPECT_FALSE(may({.verb = "patch", .resource = "pods", .subresource = "exec"}));
  EXPECT_FALSE(may({.verb = "patch", .resource = "pods"})) << "not the resource itself";
}

TEST(Access, WhatIsNoReviewGrantsNothing) {
  EXPECT_FALSE(readAccessRules("{"));
  EXPECT_FALSE(readAccessRules(R"({"status": {"resourceRules": [{"verbs": "list"}]}})"));
  for (const char* text : {"{}", R"({"status": {}})", R"({"status": {"resourceRules": [{}]}})"}) {
    const auto rules = readAccessRules(text);
    ASSERT_TRUE(rules) << text;
    EXPECT_FALSE(granted(*rules, {.verb = "list", .resource = "pods"})) << text;
  }
}

// A rule that lists exactly what is asked grants it, and more rules take nothing away.
RC_GTEST_PROP(AccessProperty, MoreRulesGrantMore,
              (const std::string& verb, const std::string& group, const std::string& resource)) {
  const AccessQuestion question{.verb = verb, .group = group, .resource = resource};
  std::vector<AccessRule> rules = {{.verbs = {verb}, .groups = {group}, .resources = {resource}}};
  RC_ASSERT(granted(rules, question));
  rules.insert(rules.begin(), {.verbs = {"get"}, .groups = {""}, .resources = {"pods"}});
  RC_ASSERT(granted(rules, question));
}

}  // namespace
}  // namespace mbcas::kube
