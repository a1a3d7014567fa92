#include "mbcas/policy/quota.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "mbcas/policy/fixture_test.h"

namespace mbcas::policy {
namespace {

using namespace literals;

QuotaMember member(const std::string& id, Millicores declared, Millicores wanted) {
  return {.id = id,
          .managed = true,
          .counted = declared,
          .limit = declared,
          .declared = declared,
          .floor = 100_m,
          .guarantee = 100_m,
          .ceiling = 4000_m,
          .wanted = wanted,
          .weight = 100};
}

std::shared_ptr<const kube::ResourceQuota> quota(const std::string& spec,
                                                 const std::string& status = "{}") {
  return object<kube::ResourceQuota>(fmt::format(
      R"({{"metadata":{{"name":"q","namespace":"shop"}},"spec":{},"status":{}}})", spec, status));
}

TEST(Quota, WhatAdmissionSees) {
  const auto q = quota(R"({"hard":{"limits.cpu":"2"}})",
                       R"({"hard":{"limits.cpu":"1500m"},"used":{"limits.cpu":"0.7"}})");
  EXPECT_EQ(cpuQuota(*q, "limits.cpu")->hard, 1500_m);
  EXPECT_EQ(cpuQuota(*q, "limits.cpu")->used, 700_m);
  EXPECT_FALSE(cpuQuota(*q, "requests.cpu"));
  EXPECT_EQ(cpuQuota(*quota(R"({"hard":{"limits.cpu":"2"}})"), "limits.cpu")->hard, 2000_m);
}

TEST(Quota, Scopes) {
  const auto pod = P{.spec = R"("priorityClassName":"high","activeDeadlineSeconds":60,)"}.make();
  const auto covered = [&](const std::string& spec) { return covers(*quota(spec), *pod); };
  EXPECT_TRUE(covered(R"({"hard":{}})"));
  EXPECT_TRUE(covered(R"({"scopes":["NotBestEffort","Terminating"]})"));
  EXPECT_FALSE(covered(R"({"scopes":["NotTerminating"]})"));
  EXPECT_FALSE(covered(R"({"scopes":["BestEffort"]})"));
  const auto priority = [](const std::string& expression) {
    return R"({"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass",)" + expression +
           "}]}}";
  };
  EXPECT_TRUE(covered(priority(R"("operator":"In","values":["low","high"])")));
  EXPECT_FALSE(covered(priority(R"("operator":"In","values":["low"])")));
  EXPECT_FALSE(covered(priority(R"("operator":"NotIn","values":["high"])")));
  EXPECT_TRUE(covered(priority(R"("operator":"Exists")")));
  EXPECT_FALSE(covered(priority(R"("operator":"DoesNotExist")")));
}

TEST(Quota, CountsTheLargerOfSpecAndStatus) {
  EXPECT_EQ(countedLimit(*P{.containers = {{}, {.name = "b", .limit = "1"}}}.make()), 1500_m);
}

TEST(Quota, RoomForEverybody) {
  const std::vector<QuotaMember> members = {member("a", 500_m, 800_m), member("b", 500_m, 500_m)};
  const std::vector<Millicores> shares = quotaShares(10'000_m, members);
  EXPECT_GE(shares[0], 800_m);
  EXPECT_GE(shares[1], 500_m);
  EXPECT_LE(shares[0] + shares[1], 9000_m) << "a tenth stays free for rollouts";
}

TEST(Quota, HeadroomHoldsRaisesBackOnly) {
  // Everything is declared: there is no headroom, and nobody loses anything for it.
  std::vector<QuotaMember> members = {member("a", 1000_m, 3000_m), member("b", 1000_m, 1000_m)};
  std::vector<Millicores> shares = quotaShares(2000_m, members);
  EXPECT_EQ(shares, (std::vector{1000_m, 1000_m}));
  // One wants less than it declared: the other may have it.
  members[1].wanted = 300_m;
  shares = quotaShares(2000_m, members);
  EXPECT_EQ(shares, (std::vector{1700_m, 300_m}));
}

TEST(Quota, HeadroomIsTheLargestPod) {
  EXPECT_EQ(quotaHeadroom(4000_m, {member("a", 1500_m, 1500_m)}), 1500_m);
  EXPECT_EQ(quotaHeadroom(40'000_m, {member("a", 1500_m, 1500_m)}), 4000_m);
}

TEST(Quota, OthersCount) {
  QuotaMember other{.id = "x", .counted = 1500_m};
  const std::vector<Millicores> shares = quotaShares(3000_m, {member("a", 500_m, 4000_m), other});
  EXPECT_EQ(shares[1], 0_m);
  EXPECT_EQ(shares[0], 500_m) << "3000 less 1500, less a headroom of 1500";
}

TEST(Quota, WeightsDivideWhatIsContested) {
  std::vector<QuotaMember> members = {member("a", 500_m, 4000_m), member("b", 500_m, 4000_m)};
  members[0].weight = 300;
  const std::vector<Millicores> shares = quotaShares(3000_m, members);
  // 2500 after headroom: 500 each, and 1500 as 3 to 1.
  EXPECT_EQ(shares, (std::vector{1625_m, 875_m}));
}

// What an agent writes may be forged: it counts up to the pod's ceiling.
TEST(Quota, NoWantedLimitIsTooLargeToCount) {
  const auto share = [](Millicores wanted) {
    return quotaShares(3000_m, {member("a", 500_m, wanted), member("b", 500_m, 4000_m),
                                member("c", 500_m, wanted)});
  };
  EXPECT_EQ(share(Millicores(std::numeric_limits<std::int64_t>::max())), share(4000_m));
}

TEST(Quota, LoweredBelowWhatIsUsed) {
  std::vector<QuotaMember> members = {member("a", 1000_m, 1000_m), member("b", 1000_m, 1000_m)};
  const std::vector<Millicores> shares = quotaShares(1000_m, members);
  EXPECT_EQ(shares[0] + shares[1], 1000_m);
}

RC_GTEST_PROP(Quota, SharesFit, ()) {
  std::vector<QuotaMember> members;
  const int count = *rc::gen::inRange(1, 12);
  Millicores fixed;
  Millicores declared;
  for (int i = 0; i < count; ++i) {
    const Millicores limit(*rc::gen::inRange(1, 200) * 10);
    QuotaMember m =
        member("p" + std::to_string(i), limit, Millicores(*rc::gen::inRange(1, 400) * 10));
    m.floor = m.guarantee = Millicores(*rc::gen::inRange<std::int64_t>(1, limit.count() + 1));
    m.managed = *rc::gen::inRange(0, 4) != 0;
    m.weight = *rc::gen::inRange(1, 1000);
    if (!m.managed) fixed += m.counted;
    if (m.managed) declared += m.declared;
    members.push_back(std::move(m));
  }
  const Millicores hard = fixed + declared + Millicores(*rc::gen::inRange(0, 5000));
  const std::vector<Millicores> shares = quotaShares(hard, members);
  Millicores sum = fixed;
  for (std::size_t i = 0; i < members.size(); ++i) {
    sum += shares[i];
    if (!members[i].managed) continue;
    RC_ASSERT(shares[i] >= members[i].floor);
    RC_ASSERT(shares[i] <= members[i].ceiling);
    // Nobody loses what he declared and wants.
    RC_ASSERT(shares[i] >= std::min(members[i].declared, members[i].wanted));
  }
  RC_ASSERT(sum <= hard);
}

}  // namespace
}  // namespace mbcas::policy
