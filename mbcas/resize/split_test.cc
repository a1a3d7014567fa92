#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mbcas/resize/pod_text.h"
#include "mbcas/resize/resize.h"

namespace mbcas::resize {
namespace {

using namespace literals;
using Split = std::vector<ContainerCpu>;

std::shared_ptr<const kube::Pod> twoContainers() {
  return podText({.main = resources("100m", "300m"),
                  .more = R"(,{"name":"b",)" + resources("50m", "100m") + "}",
                  .init = R"({"name":"setup",)" + resources("1", "1") + "}"});
}

TEST(Step, RoundsUp) {
  EXPECT_EQ(roundUpToStep(0_m), 10_m);
  EXPECT_EQ(roundUpToStep(Millicores(-7)), 10_m);
  EXPECT_EQ(roundUpToStep(10_m), 10_m);
  EXPECT_EQ(roundUpToStep(11_m), 20_m);
}

TEST(Split, InProportionToTodaysLimits) {
  EXPECT_EQ(*split(*twoContainers(), 800_m), (Split{{"main", {}, 600_m}, {"b", {}, 200_m}}));
  EXPECT_EQ(*split(*twoContainers(), 401_m), (Split{{"main", {}, 310_m}, {"b", {}, 100_m}}))
      << "rounded up to 410m, the odd step to the larger remainder";
}

TEST(Split, NoneBelowItsRequest) {
  EXPECT_EQ(*split(*twoContainers(), 160_m), (Split{{"main", {}, 110_m}, {"b", {}, 50_m}}));
  EXPECT_EQ(*split(*twoContainers(), 100_m), (Split{{"main", {}, 100_m}, {"b", {}, 50_m}}))
      << "more than asked for: less would be refused";
}

TEST(Split, OtherPolicies) {
  EXPECT_EQ(*split(*twoContainers(), 300_m, Policy::kRequests),
            (Split{{"main", 200_m, {}}, {"b", 100_m, {}}}));
  EXPECT_EQ(*split(*twoContainers(), 80_m, Policy::kBoth),
            (Split{{"main", 60_m, 60_m}, {"b", 20_m, 20_m}}));
}

TEST(Split, ASubset) {
  EXPECT_EQ(*split(*twoContainers(), 70_m, Policy::kLimits, {"b"}), (Split{{"b", {}, 70_m}}));
  EXPECT_EQ(split(*twoContainers(), 70_m, Policy::kLimits, {"c"}).error().message(),
            "no container c");
}

TEST(Split, OnlyContainersThatHaveALimit) {
  const auto pod = podText({.main = R"("resources":{"requests":{"cpu":"1"}})",
                            .more = R"(,{"name":"b",)" + resources("50m", "100m") + "}"});
  EXPECT_EQ(*split(*pod, 200_m), (Split{{"b", {}, 200_m}}));
  const auto none = podText({.main = R"("resources":{})"});
  EXPECT_EQ(split(*none, 200_m).error().message(), "no container has a CPU limit");
  EXPECT_EQ(split(*none, 200_m, Policy::kRequests).error().message(),
            "no container has a CPU request");
}

RC_GTEST_PROP(SplitProperty, ExactWheneverRequestsAllowIt, ()) {
  std::string more;
  std::vector<std::int64_t> requests;
  std::int64_t least = 0;
  const int count = *rc::gen::inRange(1, 6);
  for (int i = 0; i < count; ++i) {
    const std::int64_t request = *rc::gen::inRange(1, 2000);
    requests.push_back(request);
    least += roundUpToStep(Millicores(request)).count();
    more += fmt::format(R"(,{{"name":"c{}",{}}})", i,
                        resources(fmt::format("{}m", request),
                                  fmt::format("{}m", request + *rc::gen::inRange(0, 5000))));
  }
  const auto pod = podText({.main = R"("resources":{})", .more = more});
  const Millicores total(*rc::gen::inRange<std::int64_t>(1, 40000));
  const Result<Split> result = split(*pod, total);
  RC_ASSERT(result.has_value());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < result->size(); ++i) {
    const std::int64_t limit = (*result)[i].limit->count();
    RC_ASSERT(limit % kStep.count() == 0);
    RC_ASSERT(limit >= requests[i]);
    sum += limit;
  }
  RC_ASSERT(sum == std::max(roundUpToStep(total).count(), least));
}

}  // namespace
}  // namespace mbcas::resize
