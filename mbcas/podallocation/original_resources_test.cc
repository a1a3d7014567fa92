#include "mbcas/podallocation/original_resources.h"

#include <gtest/gtest.h>

namespace mbcas::podallocation {
namespace {

using namespace literals;

TEST(OriginalResources, ThereAndBack) {
  const std::vector<OriginalCpu> original = {{"main", 100_m, 500_m},
                                             {"proxy", std::nullopt, 1000_m},
                                             {"free", std::nullopt, std::nullopt}};
  const std::string text = encodeOriginal(original);
  EXPECT_EQ(text,
            R"({"main":{"request":"100m","limit":"500m"},"proxy":{"limit":"1000m"},"free":{}})");
  const auto parsed = parseOriginal(text);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(*parsed, original);
}

TEST(OriginalResources, AnyFormOfAQuantity) {
  const auto parsed = parseOriginal(R"({"main":{"request":0.1,"limit":"5e-1","memory":"1Gi"}})");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(*parsed, (std::vector<OriginalCpu>{{"main", 100_m, 500_m}}));
}

TEST(OriginalResources, RefusesWhatSomebodyElseWrote) {
  for (const char* text :
       {"", "[]", "1", "null", "{", R"({"main":1})", R"({"main":{"limit":"x"}})",
        R"({"main":{"limit":"-1"}})", R"({"main":{"limit":null}})", R"({"main":{"limit":"1e30"}})",
        R"({"main":{"request":"9223372036854775807"}})"}) {
    const auto parsed = parseOriginal(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message().rfind("mbcas.io/original-resources: ", 0), 0u)
        << parsed.error().message();
  }
}

TEST(OriginalResources, LeavesOutWhatIsNotKnownExactly) {
  const auto pod = kube::decodeObject<kube::Pod>(
      R"({"metadata":{"name":"p","uid":"u"},"spec":{"containers":[
          {"name":"main","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1e30"}}}]}})");
  ASSERT_TRUE(pod) << pod.error().message();
  EXPECT_EQ(encodeOriginal(currentCpu(**pod)), R"({"main":{"request":"1000m"}})");
}

TEST(OriginalResources, OfAPod) {
  const auto pod = kube::decodeObject<kube::Pod>(
      R"({"metadata":{"name":"p","uid":"u","resourceVersion":"7"},"spec":{
          "initContainers":[{"name":"setup","resources":{"limits":{"cpu":"3"}}},
            {"name":"proxy","restartPolicy":"Always","resources":{"limits":{"cpu":"50m"}}}],
          "containers":[{"name":"main","resources":{"requests":{"cpu":"0.1"},"limits":{"cpu":"1"}}}]}})");
  ASSERT_TRUE(pod) << pod.error().message();
  EXPECT_EQ(annotateOriginal(**pod, currentCpu(**pod)),
            R"({"metadata":{"uid":"u","resourceVersion":"7","annotations":{)"
            R"("mbcas.io/original-resources":"{\"proxy\":{\"limit\":\"50m\"},)"
            R"(\"main\":{\"request\":\"100m\",\"limit\":\"1000m\"}}"}}})");
}

}  // namespace
}  // namespace mbcas::podallocation
