#include "mbcas/cli/workload.h"

#include <gtest/gtest.h>

namespace mbcas::cli {
namespace {

TEST(Target, AsKubectlNamesThings) {
  EXPECT_EQ(parseTarget("web-1"), (Target{"", "", "web-1"}));
  EXPECT_EQ(parseTarget("shop/web-1"), (Target{"shop", "", "web-1"}));
  for (const char* words : {"pod/web-1", "pods/web-1", "po/web-1"}) {
    EXPECT_EQ(parseTarget(words), (Target{"", "", "web-1"})) << words;
  }
  for (const char* words : {"deploy/web", "deployment/web", "deployments/web"}) {
    EXPECT_EQ(parseTarget(words), (Target{"", "deployments", "web"})) << words;
  }
  EXPECT_EQ(parseTarget("sts/db"), (Target{"", "statefulsets", "db"}));
  for (const char* words : {"", "/", "/x", "a/", "a/b/c", "pod/", "deploy/a/b"}) {
    EXPECT_FALSE(parseTarget(words)) << words;
  }
}

TEST(Workload, TheSelectorOfItsPods) {
  EXPECT_EQ(podSelectorOf(R"({"spec":{"selector":{"matchLabels":{"app":"web","tier":"front"}}}})")
                .value(),
            "app=web,tier=front");
  EXPECT_EQ(podSelectorOf(R"({"spec":{"replicas":3,"selector":{"matchExpressions":[
                {"key":"app","operator":"In","values":["a","b"]},
                {"key":"old","operator":"DoesNotExist"},{"key":"new","operator":"Exists"},
                {"key":"zone","operator":"NotIn","values":["x"]}]}}})")
                .value(),
            "app in (a,b),!old,new,zone notin (x)");
}

TEST(Workload, NeverAllPods) {
  for (const char* text : {"{}", R"({"spec":{}})", R"({"spec":{"selector":{}}})", "[]", "x",
                           R"({"spec":{"selector":{"matchLabels":{}}}})"}) {
    EXPECT_FALSE(podSelectorOf(text)) << text;
  }
}

}  // namespace
}  // namespace mbcas::cli
