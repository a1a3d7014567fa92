#include "mbcas/cli/words.h"

#include <gtest/gtest.h>

#include "mbcas/policy/fixture_test.h"

namespace mbcas::cli {
namespace {

using namespace std::chrono_literals;
using namespace literals;

TEST(Words, AgesAsKubectlHasThem) {
  EXPECT_EQ(ageText(-5s), "0s");
  EXPECT_EQ(ageText(119s), "119s");
  EXPECT_EQ(ageText(120s), "2m");
  EXPECT_EQ(ageText(192s), "3m12s");
  EXPECT_EQ(ageText(10min), "10m");
  EXPECT_EQ(ageText(179min), "179m");
  EXPECT_EQ(ageText(5h + 20min), "5h20m");
  EXPECT_EQ(ageText(47h), "47h");
  EXPECT_EQ(ageText(76h), "3d4h");
  EXPECT_EQ(ageText(20 * 24h), "20d");
}

TEST(Words, Numbers) {
  EXPECT_EQ(cpuText(750_m), "750m");
  EXPECT_EQ(cpuText(std::optional<Millicores>()), "-");
  EXPECT_EQ(percentText(0.354), "35%");
  EXPECT_EQ(percentText(std::nullopt), "-");
  EXPECT_EQ(priceText(0.25), "0.25");
  EXPECT_EQ(priceText(std::nullopt), "overloaded");
  EXPECT_EQ(countText(1, "pod"), "1 pod");
  EXPECT_EQ(countText(0, "pod"), "0 pods");
}

TEST(Words, LimitsOfAPod) {
  using policy::C, policy::P;
  EXPECT_EQ(limitText(podCpu(*P{}.make())), "500m");
  const auto some = P{.containers = {{"a", "100m", "500m"}, {"b", "50m", ""}}}.make();
  EXPECT_EQ(limitText(podCpu(*some)), "500m+");
  EXPECT_EQ(podCpu(*some).request, 150_m);
  EXPECT_EQ(limitText(podCpu(*P{.containers = {{"a", "100m", ""}}}.make())), "none");
}

TEST(Words, TheMinorVersionOfKubernetes) {
  EXPECT_EQ(minorOf("v1.33.2"), 33);
  EXPECT_EQ(minorOf("v1.9"), 9);
  EXPECT_EQ(minorOf("v1.34.0-gke.12"), 34);
  EXPECT_EQ(minorOf("v2.1"), std::nullopt);
  EXPECT_EQ(minorOf("v1."), std::nullopt);
  EXPECT_EQ(minorOf("v1.99999999999"), std::nullopt);
  EXPECT_EQ(minorOf(""), std::nullopt);
}

}  // namespace
}  // namespace mbcas::cli
