#include "mbcas/controller/restore.h"

#include <gtest/gtest.h>

#include "mbcas/policy/fixture_test.h"

namespace mbcas::controller {
namespace {

using namespace literals;
using podallocation::OriginalCpu;

std::shared_ptr<const kube::Pod> pod(const std::string& resources) {
  return policy::object<kube::Pod>(
      R"({"metadata":{"name":"p","namespace":"shop","uid":"u"},"spec":{"containers":[
          {"name":"main","resources":)" +
      resources + "}]}}");
}

TEST(Restore, OnlyWhatDiffers) {
  const auto now = pod(R"({"requests":{"cpu":"100m"},"limits":{"cpu":"500m"}})");
  EXPECT_TRUE(restoreRequest(*now, {{"main", 100_m, 500_m}}).containers.empty());
  const resize::Request back = restoreRequest(*now, {{"main", 100_m, 200_m}, {"gone", 1_m, 1_m}});
  ASSERT_EQ(back.containers.size(), 1u);
  EXPECT_EQ(back.containers[0].limit, 200_m);
  EXPECT_EQ(back.containers[0].request, std::nullopt);
  EXPECT_TRUE(giveBackRequest(*now, {{"main", 100_m, 200_m}}).containers.empty()) << "no decrease";
  EXPECT_EQ(giveBackRequest(*now, {{"main", 100_m, 900_m}}).containers.size(), 1u);
}

// Such an original is a mistake or a lie: Kubernetes removes no limit, so there never was one.
TEST(Restore, AContainerWithoutALimitIsGivenNone) {
  for (const char* const resources : {"{}", R"({"requests":{"cpu":"100m"}})"}) {
    const auto now = pod(resources);
    for (const auto& original :
         std::vector<std::vector<OriginalCpu>>{{{"main", 100_m, 64000_m}}, {{"main", {}, 1_m}}}) {
      EXPECT_TRUE(restoreRequest(*now, original).containers.empty()) << resources;
      EXPECT_TRUE(giveBackRequest(*now, original).containers.empty()) << resources;
    }
  }
  EXPECT_TRUE(restoreRequest(*pod("{}"), {{"main", 64000_m, std::nullopt}}).containers.empty());
}

}  // namespace
}  // namespace mbcas::controller
