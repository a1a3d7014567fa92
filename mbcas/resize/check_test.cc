#include <gtest/gtest.h>

#include "mbcas/resize/pod_text.h"
#include "mbcas/resize/resize.h"

namespace mbcas::resize {
namespace {

using namespace literals;

Refusal refusalOf(const kube::Pod& pod, const Request& request) {
  const std::optional<Rejection> rejection = check(pod, request);
  if (rejection) {
    EXPECT_NE(rejection->message, "");
  }
  return rejection ? rejection->refusal : Refusal::kNone;
}

Request limit(const std::string& container, Millicores cpu) {
  return {.containers = {{.name = container, .limit = cpu}}};
}

TEST(Check, WhatTheServerWouldTake) {
  const auto pod = podText({.main = resources("100m", "200m")});
  EXPECT_EQ(refusalOf(*pod, limit("main", 300_m)), Refusal::kNone);
  EXPECT_EQ(refusalOf(*pod, limit("main", 110_m)), Refusal::kNone);
  EXPECT_EQ(refusalOf(*pod, {.containers = {{.name = "main", .request = 50_m}}}), Refusal::kNone);
}

TEST(Check, Requests) {
  const auto pod = podText({.main = resources("100m", "200m")});
  EXPECT_EQ(refusalOf(*pod, {}), Refusal::kEmptyRequest);
  EXPECT_EQ(refusalOf(*pod, {.containers = {{.name = "main"}}}), Refusal::kEmptyRequest);
  EXPECT_EQ(refusalOf(*pod, limit("other", 300_m)), Refusal::kNoSuchContainer);
  EXPECT_EQ(refusalOf(*pod, limit("main", 0_m)), Refusal::kNotPositive);
  EXPECT_EQ(refusalOf(*pod, limit("main", Millicores(-5))), Refusal::kNotPositive);
  EXPECT_EQ(refusalOf(*pod, limit("main", kube::Amounts::kMostCpu)), Refusal::kInvalid);
  EXPECT_EQ(refusalOf(*podText({.main = resources("100m", "1e30")}), limit("main", 300_m)),
            Refusal::kInvalid);
  EXPECT_EQ(refusalOf(*pod, limit("main", 90_m)), Refusal::kRequestAboveLimit);
  EXPECT_EQ(refusalOf(*pod, {.containers = {{.name = "main", .request = 300_m}}}),
            Refusal::kRequestAboveLimit);
  EXPECT_EQ(refusalOf(*pod, {.containers = {{.name = "main", .request = 300_m, .limit = 400_m}}}),
            Refusal::kNone);
}

TEST(Check, Containers) {
  const auto pod = podText({.main = resources("100m", "200m"),
                            .init = R"({"name":"setup",)" + resources("10m", "20m") +
                                    R"(},{"name":"proxy","restartPolicy":"Always",)" +
                                    resources("10m", "20m") + "}"});
  EXPECT_EQ(refusalOf(*pod, limit("setup", 30_m)), Refusal::kInitContainer);
  EXPECT_EQ(refusalOf(*pod, limit("proxy", 30_m)), Refusal::kNone);

  const auto restarting = podText(
      {.main = resources("100m", "200m") +
               R"(,"resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}])"});
  Request request = limit("main", 300_m);
  EXPECT_EQ(refusalOf(*restarting, request), Refusal::kRestartsContainer);
  request.may_restart = true;
  EXPECT_EQ(refusalOf(*restarting, request), Refusal::kNone);

  const auto unlimited = podText({.main = R"("resources":{"requests":{"cpu":"100m"}})"});
  request = limit("main", 300_m);
  EXPECT_EQ(refusalOf(*unlimited, request), Refusal::kNoLimit);
  request.may_add_limit = true;
  EXPECT_EQ(refusalOf(*unlimited, request), Refusal::kNone);
}

TEST(Check, QosMustStay) {
  // Memory is equal already: CPU must not become so.
  const auto burstable = podText({.main = resources("100m", "200m")});
  EXPECT_EQ(refusalOf(*burstable, limit("main", 100_m)), Refusal::kQosWouldChange);
  const auto guaranteed = podText({.main = resources("100m", "100m")});
  EXPECT_EQ(refusalOf(*guaranteed, limit("main", 200_m)), Refusal::kQosWouldChange);
  EXPECT_EQ(
      refusalOf(*guaranteed, {.containers = {{.name = "main", .request = 200_m, .limit = 200_m}}}),
      Refusal::kNone);
  // It counts sums, and every container must have all limits.
  const auto other = podText({.main = resources("100m", "200m"),
                              .more = R"(,{"name":"b","resources":{"requests":{"cpu":"10m"}}})"});
  EXPECT_EQ(refusalOf(*other, limit("main", 100_m)), Refusal::kNone);
  const auto nothing = podText({.main = R"("resources":{})"});
  Request request = limit("main", 100_m);
  request.may_add_limit = true;
  EXPECT_EQ(refusalOf(*nothing, request), Refusal::kBestEffort);
  // Adding only a limit makes the request equal to it.
  const auto half =
      podText({.main = R"("resources":{"limits":{"memory":"1Gi"},"requests":{"memory":"1Gi"}})"});
  EXPECT_EQ(refusalOf(*half, request), Refusal::kQosWouldChange);
}

TEST(Check, Pods) {
  const std::string main = resources("100m", "200m");
  const Request request = limit("main", 300_m);
  EXPECT_EQ(refusalOf(*podText({.main = main,
                                .meta = R"("annotations":{"kubernetes.io/config.mirror":"x"},)"}),
                      request),
            Refusal::kStaticPod);
  EXPECT_EQ(refusalOf(*podText({.main = main, .spec = R"("os":{"name":"windows"},)"}), request),
            Refusal::kWindows);
  EXPECT_EQ(refusalOf(*podText({.main = main, .spec = R"("resources":{"limits":{"cpu":"1"}},)"}),
                      request),
            Refusal::kPodLevelResources);
  EXPECT_EQ(refusalOf(*podText({.main = main,
                                .status = R"("containerStatuses":[{"name":"main","state":{"running":
                                  {"startedAt":"2026-01-01T00:00:00Z"}}}])"}),
                      request),
            Refusal::kNodeWithoutSupport);
}

TEST(Patch, NamesTheIncarnationAndOnlyWhatChanges) {
  const auto pod = podText(
      {.main = resources("100m", "200m"),
       .init = R"({"name":"proxy","restartPolicy":"Always",)" + resources("10m", "20m") + "}"});
  EXPECT_EQ(patchBody(*pod, limit("main", 1500_m)),
            R"({"metadata":{"uid":"u1","resourceVersion":"100"},"spec":{"containers":[)"
            R"({"name":"main","resources":{"limits":{"cpu":"1500m"}}}]}})");
  EXPECT_EQ(patchBody(*pod, {.containers = {{"main", 50_m, 60_m}, {"proxy", {}, 30_m}}}),
            R"({"metadata":{"uid":"u1","resourceVersion":"100"},"spec":{"initContainers":[)"
            R"({"name":"proxy","resources":{"limits":{"cpu":"30m"}}}],"containers":[)"
            R"({"name":"main","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"60m"}}}]}})");
}

TEST(Patch, NoOp) {
  const auto pod = podText({.main = resources("0.1", "0.2")});
  EXPECT_TRUE(isNoOp(*pod, limit("main", 200_m)));
  EXPECT_TRUE(isNoOp(*pod, {.containers = {{"main", 100_m, 200_m}}}));
  EXPECT_FALSE(isNoOp(*pod, {.containers = {{"main", 110_m, 200_m}}}));
  EXPECT_FALSE(isNoOp(*pod, limit("main", 210_m)));
  EXPECT_FALSE(isNoOp(*pod, limit("other", 200_m)));
}

struct Answer {
  int code;
  const char* message;
  Verdict verdict;
  Refusal refusal = Refusal::kNone;
};

TEST(Interpret, Answers) {
  for (const Answer& answer : std::vector<Answer>{
           {404, "pods \"p\" not found", Verdict::kGone},
           {404, "the server could not find the requested resource", Verdict::kRejected,
            Refusal::kServerWithoutResize},
           {409, "Precondition failed: UID in precondition: a, UID in object meta: b",
            Verdict::kGone},
           {409, "the object has been modified", Verdict::kUnreachable},
           {0, "connection refused", Verdict::kUnreachable},
           {429, "too many requests", Verdict::kUnreachable},
           {500, "etcd leader changed", Verdict::kUnreachable},
           {403, "pods \"p\" is forbidden: exceeded quota: q, requested: limits.cpu=1",
            Verdict::kRejected, Refusal::kQuota},
           {403, "pods \"p\" is forbidden: maximum cpu usage per Container is 1, but limit is 2",
            Verdict::kRejected, Refusal::kLimitRange},
           {403, "pods \"p\" is forbidden: User \"u\" cannot patch resource \"pods/resize\"",
            Verdict::kRejected, Refusal::kForbidden},
           {401, "Unauthorized", Verdict::kRejected, Refusal::kForbidden},
           {403, "something else", Verdict::kRejected, Refusal::kPolicy},
           {422, "ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no",
            Verdict::kRejected, Refusal::kPolicy},
           {422, "Pod \"p\" is invalid: metadata.uid: Invalid value", Verdict::kGone},
           {422, "Pod QOS Class may not change as a result of resizing", Verdict::kRejected,
            Refusal::kQosWouldChange},
           {422, "something new", Verdict::kRejected, Refusal::kInvalid},
           {415, "unsupported media type", Verdict::kRejected, Refusal::kInvalid},
       }) {
    const Outcome outcome = interpret({.code = answer.code, .message = answer.message});
    EXPECT_EQ(outcome.verdict, answer.verdict) << answer.message << ": " << name(outcome.verdict);
    EXPECT_EQ(outcome.refusal, answer.refusal) << answer.message << ": " << name(outcome.refusal);
    EXPECT_TRUE(outcome.message.contains(answer.message)) << outcome.message;
  }
}

}  // namespace
}  // namespace mbcas::resize
