#include "mbcas/cli/admission.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mbcas::cli {
namespace {

const AdmissionObject* find(const std::vector<AdmissionObject>& objects, std::string_view name) {
  const auto found = std::ranges::find(objects, name, &AdmissionObject::name);
  return found == objects.end() ? nullptr : &*found;
}

// As a server answers, which fills in what is left open.
std::string serverList(const std::string& failure_policy, const std::string& more_match = "",
                       const std::string& more_spec = "") {
  return R"({"kind":"ValidatingAdmissionPolicyList","items":[{"metadata":{"generation":1,
    "name":"mbcas-allocation-namespace","labels":{"a":"b"}},"spec":{"validations":[{"expression":
    "object.spec.namespace == object.metadata.namespace","messageExpression":"'no'"}],
    "matchConstraints":{"resourceRules":[{"apiGroups":["allocation.mbcas.io"],"apiVersions":["*"],
    "operations":["CREATE","UPDATE"],"resources":["podallocations"],"scope":"*"}],)" +
         more_match + R"("namespaceSelector":{},"objectSelector":{},"matchPolicy":"Equivalent"},)" +
         more_spec + R"("failurePolicy":")" + failure_policy +
         R"("},"status":{"typeChecking":{}}}]})";
}

std::vector<std::string> differs(const std::string& list) {
  const Result<std::vector<AdmissionObject>> seen = parseAdmissionList(list);
  EXPECT_TRUE(seen && seen->size() == 1) << list;
  return differences(seen->front(), *find(installedAdmission("mbcas-system").policies,
                                          "mbcas-allocation-namespace"));
}

TEST(Admission, IsInstalledInPairs) {
  const AdmissionObjects objects = installedAdmission("mbcas-system");
  EXPECT_GE(objects.policies.size(), 5u);
  EXPECT_EQ(objects.policies.size(), objects.bindings.size());
  for (const AdmissionObject& policy : objects.policies) {
    ASSERT_NE(find(objects.bindings, policy.name), nullptr) << policy.name;
    for (const char* const field : {"failurePolicy", "resourceRules", "validations"}) {
      EXPECT_TRUE(policy.fields.contains(field)) << policy.name << " " << field;
    }
    const std::map<std::string, std::vector<std::string>> binding = {
        {"policyName", {policy.name}}, {"validationActions", {"Deny"}}};
    EXPECT_EQ(find(objects.bindings, policy.name)->fields, binding);
  }
}

TEST(Admission, SpeaksOfTheNamespaceThatItIsInstalledIn) {
  for (const AdmissionObject& policy : installedAdmission("elsewhere").policies) {
    for (const auto& [field, values] : policy.fields) {
      for (const std::string& value : values) {
        EXPECT_EQ(value.find("mbcas-system"), std::string::npos) << policy.name << " " << field;
      }
    }
  }
  EXPECT_NE(installedAdmission("elsewhere").policies, installedAdmission("mbcas-system").policies);
}

TEST(Admission, WhatAServerFillsInIsNoDifference) {
  EXPECT_EQ(differs(serverList("Fail")), std::vector<std::string>{});
}

TEST(Admission, WhatWeakensItIs) {
  using Fields = std::vector<std::string>;
  EXPECT_EQ(differs(serverList("Ignore")), Fields{"failurePolicy"});
  EXPECT_EQ(differs(serverList("Fail", R"("excludeResourceRules":[{"apiGroups":["*"]}],)")),
            Fields{"excludeResourceRules"});
  EXPECT_EQ(
      differs(serverList("Fail", "", R"("matchConditions":[{"name":"a","expression":"false"}],)")),
      Fields{"matchConditions"});
  std::string list = serverList("Fail");
  list.replace(list.find("=="), 2, "!=");
  EXPECT_EQ(differs(list), Fields{"validations"});
  list = serverList("Fail");
  list.replace(list.find(R"("namespaceSelector":{})"), 22,
               R"("namespaceSelector":{"matchLabels":{"a":"b"}})");
  EXPECT_EQ(differs(list), Fields{"namespaceSelector"});
  list = serverList("Fail");
  list.replace(list.find(R"("scope":"*")"), 11, R"("scope":"Cluster")");
  EXPECT_EQ(differs(list), Fields{"resourceRules"});
  EXPECT_FALSE(parseAdmissionList("{"));
}

}  // namespace
}  // namespace mbcas::cli
