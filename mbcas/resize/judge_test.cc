#include <gtest/gtest.h>

#include "mbcas/resize/pod_text.h"
#include "mbcas/resize/resize.h"

namespace mbcas::resize {
namespace {

using namespace literals;

// A resize of main from 200m to 300m: the patch's answer was version 105, generation 2.
const Attempt kAttempt{.name_space = "n",
                       .pod = "p",
                       .uid = "u1",
                       .generation = 2,
                       .resource_version = "105",
                       .containers = {{.name = "main", .limit = 300_m}}};

struct Seen {
  int generation = 2;
  int observed = 2;  // 0: a kubelet that does not say
  std::string spec = "300m";
  std::string actual = "300m";
  std::string conditions{};
  std::string version = "110";
  std::string meta{};
  std::string phase = "Running";
};

std::string condition(const std::string& type, const std::string& reason, int generation) {
  return fmt::format(
      R"({{"type":"{}","status":"True","reason":"{}","message":"because","observedGeneration":{}}})",
      type, reason, generation);
}

Outcome judged(const Seen& seen, const Attempt& attempt = kAttempt) {
  const auto pod = podText(
      {.main = resources("100m", seen.spec),
       .meta = seen.meta,
       .status = fmt::format(
           R"("phase":"{}",{}"conditions":[{}],"containerStatuses":[{{"name":"main","state":{{"running":{{}}}},{}}}])",
           seen.phase,
           seen.observed == 0 ? "" : fmt::format(R"("observedGeneration":{},)", seen.observed),
           seen.conditions, resources("100m", seen.actual)),
       .generation = seen.generation,
       .version = seen.version});
  return judge(*pod, attempt);
}

TEST(Judge, Done) {
  EXPECT_EQ(judged({}).verdict, Verdict::kDone);
  EXPECT_EQ(judged({.actual = "0.3"}).verdict, Verdict::kDone) << "quantities, not texts";
  EXPECT_EQ(judged({.generation = 5, .observed = 5}).verdict, Verdict::kDone)
      << "somebody changed something else since";
}

TEST(Judge, NotYet) {
  const auto so_far = [](const Seen& seen) {
    const Outcome outcome = judged(seen);
    EXPECT_EQ(outcome.verdict, Verdict::kAccepted) << name(outcome.verdict);
    EXPECT_FALSE(isFinal(outcome.verdict));
    return outcome.message;
  };
  EXPECT_EQ(so_far({.observed = 1}), "the kubelet has not seen the resize yet");
  EXPECT_EQ(so_far({.actual = "200m"}), "container main still has the limit 200m");
  EXPECT_EQ(so_far({.conditions = condition("PodResizeInProgress", "", 2)}),
            "the kubelet is applying the resize: because");
  EXPECT_EQ(so_far({.conditions = condition("PodResizeInProgress", "Error", 2)}),
            "the kubelet failed and retries: because");
  EXPECT_EQ(so_far({.generation = 1, .spec = "200m"}), "an older version of the pod");
  EXPECT_EQ(so_far({.conditions = condition("PodResizePending", "Infeasible", 1)}),
            "an earlier resize is pending");
}

TEST(Judge, Pending) {
  EXPECT_EQ(judged({.conditions = condition("PodResizePending", "Deferred", 2)}).verdict,
            Verdict::kDeferred);
  const Outcome never = judged({.conditions = condition("PodResizePending", "Infeasible", 2)});
  EXPECT_EQ(never.verdict, Verdict::kInfeasible);
  EXPECT_EQ(never.message, "the kubelet says Infeasible: because");
  EXPECT_TRUE(isFinal(never.verdict));
  EXPECT_FALSE(isFinal(Verdict::kDeferred));
}

TEST(Judge, WithoutObservedGeneration) {
  EXPECT_EQ(judged({.observed = 0}).verdict, Verdict::kDone);
  EXPECT_EQ(judged({.observed = 0, .version = "1000"}).verdict, Verdict::kDone)
      << "versions are numbers";
  EXPECT_EQ(judged({.observed = 0, .version = "105"}).verdict, Verdict::kAccepted)
      << "the answer to the patch proves nothing";
  EXPECT_EQ(judged({.observed = 0, .actual = "200m"}).verdict, Verdict::kAccepted);
  const std::string pending = condition("PodResizePending", "Deferred", 0);
  EXPECT_EQ(judged({.observed = 0, .conditions = pending}).verdict, Verdict::kDeferred);
  EXPECT_EQ(judged({.observed = 0, .conditions = pending, .version = "105"}).verdict,
            Verdict::kAccepted);
  Attempt unchanged = kAttempt;
  unchanged.changed = false;
  EXPECT_EQ(judged({.observed = 0, .version = "105"}, unchanged).verdict, Verdict::kDone)
      << "nothing was changed, so no newer version will come";
}

TEST(Judge, Superseded) {
  const Outcome outcome = judged({.generation = 3, .observed = 3, .spec = "400m"});
  EXPECT_EQ(outcome.verdict, Verdict::kSuperseded);
  EXPECT_TRUE(isFinal(outcome.verdict));
}

TEST(Judge, Gone) {
  Attempt other = kAttempt;
  other.uid = "u2";
  EXPECT_EQ(judged({}, other).verdict, Verdict::kGone);
  EXPECT_EQ(judged({.meta = R"("deletionTimestamp":"2026-01-01T00:00:00Z",)"}).verdict,
            Verdict::kGone);
  EXPECT_EQ(judged({.phase = "Succeeded"}).verdict, Verdict::kGone);
}

TEST(Judge, LooksAtWhatWasAskedForOnly) {
  Attempt requests = kAttempt;
  requests.containers = {{.name = "main", .request = 100_m}};
  EXPECT_EQ(judged({.actual = "200m"}, requests).verdict, Verdict::kDone);
  requests.containers = {{.name = "main", .request = 110_m}};
  EXPECT_EQ(judged({}, requests).verdict, Verdict::kSuperseded);
}

TEST(Judge, ContainersWithoutStatus) {
  const auto pod = podText({.main = resources("100m", "300m"),
                            .status = R"("observedGeneration":2)",
                            .generation = 2,
                            .version = "110"});
  EXPECT_EQ(judge(*pod, kAttempt).verdict, Verdict::kAccepted);
}

TEST(Adopt, TakesUpWhatThePodIsAt) {
  const auto pod = podText({.main = resources("100m", "300m"), .generation = 7, .version = "42"});
  const Attempt attempt = adopt(*pod, {.containers = {{.name = "main", .limit = 300_m}}});
  EXPECT_EQ(attempt.generation, 7);
  EXPECT_EQ(attempt.resource_version, "42");
  EXPECT_EQ(attempt.uid, "u1");
  EXPECT_EQ(attempt.name_space, "n");
  EXPECT_EQ(attempt.pod, "p");
  EXPECT_FALSE(attempt.changed);
}

}  // namespace
}  // namespace mbcas::resize
