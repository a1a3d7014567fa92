#include "mbcas/agent/requests.h"

#include <gtest/gtest.h>

#include "mbcas/kube/types.h"

namespace mbcas::agent {
namespace {

using namespace literals;

Wish wish() {
  return {.uid = "u-1",
          .spec = {.name_space = "shop", .pod_name = "web", .node = "n1", .desired = 500_m}};
}

TEST(Requests, AWriteIsAForcedApplyThatIsNotRepeated) {
  const kube::Call call = writeCall(wish());
  EXPECT_EQ(call.method, "PATCH");
  EXPECT_EQ(call.path, "/apis/allocation.mbcas.io/v1alpha1/namespaces/shop/podallocations/u-1");
  EXPECT_EQ(call.content_type, "application/apply-patch+yaml");
  const std::vector<std::pair<std::string, std::string>> query{{"fieldManager", "mbcas-agent"},
                                                               {"force", "true"}};
  EXPECT_EQ(call.query, query);
  EXPECT_FALSE(call.retry) << "by then there may be a newer wish";
  EXPECT_GT(call.timeout.value_or(Nanos(0)), Nanos(0));
  const auto read = kube::decodeObject<podallocation::PodAllocation>(call.body);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ((*read)->specValue(), wish().spec);
  EXPECT_EQ((*read)->meta.owners[0].uid, "u-1");
  EXPECT_EQ(kube::find((*read)->meta.labels, podallocation::kNodeLabel), "n1");
}

TEST(Requests, TheLeaseNamesNodeHolderAndTime) {
  const WallTime now = WallTime(std::chrono::seconds(1'800'000'000));
  const kube::Call call = leaseCall("mbcas-system", "n1", "agent-x", std::chrono::seconds(60), now);
  EXPECT_EQ(call.path,
            "/apis/coordination.k8s.io/v1/namespaces/mbcas-system/leases/mbcas-agent-n1");
  const auto lease = kube::decodeObject<kube::Lease>(call.body);
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_EQ((*lease)->holder, "agent-x");
  EXPECT_EQ((*lease)->duration_seconds, 60);
  EXPECT_EQ((*lease)->renewed, now);
}

kube::ApiError answer(int code, std::string cause = "") {
  kube::ApiError error;
  error.code = code;
  if (!cause.empty()) error.causes.push_back({.reason = std::move(cause)});
  return error;
}

TEST(Requests, WhatAnAnswerMeans) {
  EXPECT_EQ(writeResultOf(answer(0)), WriteResult::kFailed) << "no answer";
  EXPECT_EQ(writeResultOf(answer(429)), WriteResult::kFailed);
  EXPECT_EQ(writeResultOf(answer(503)), WriteResult::kFailed);
  EXPECT_EQ(writeResultOf(answer(401)), WriteResult::kFailed) << "tokens are renewed";
  EXPECT_EQ(writeResultOf(answer(409)), WriteResult::kFailed);
  EXPECT_EQ(writeResultOf(answer(404)), WriteResult::kGone) << "the namespace";
  EXPECT_EQ(writeResultOf(answer(403, "NamespaceTerminating")), WriteResult::kGone);
  EXPECT_EQ(writeResultOf(answer(403)), WriteResult::kFailed) << "roles may not be known yet";
  EXPECT_EQ(writeResultOf(answer(422)), WriteResult::kRefused) << "the schema or a policy";
  EXPECT_EQ(writeResultOf(answer(400)), WriteResult::kRefused);
}

TEST(Requests, ADryRunNeedsOnlyToRead) {
  for (const kube::AccessQuestion& question : neededPermissions("mbcas-system", true)) {
    EXPECT_TRUE(question.verb == "get" || question.verb == "list" || question.verb == "watch")
        << question.verb;
  }
  int writes = 0;
  for (const kube::AccessQuestion& question : neededPermissions("mbcas-system", false)) {
    writes += question.verb == "create" || question.verb == "patch" ? 1 : 0;
    EXPECT_NE(question.verb, "delete");
  }
  EXPECT_EQ(writes, 4) << "PodAllocations and the Lease";
}

}  // namespace
}  // namespace mbcas::agent
