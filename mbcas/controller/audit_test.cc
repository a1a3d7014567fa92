#include "mbcas/controller/audit.h"

#include <gtest/gtest.h>

namespace mbcas::controller {
namespace {

using namespace literals;

class LogLineTest : public testing::Test {
 protected:
  std::string line() const { return logLine(*pod, allocation.get(), decision, outcome); }

  std::shared_ptr<const kube::Pod> pod = *kube::decodeObject<kube::Pod>(
      R"({"metadata":{"name":"web-1","namespace":"shop"},"spec":{"nodeName":"n1"}})");
  std::shared_ptr<const podallocation::PodAllocation> allocation =
      *kube::decodeObject<podallocation::PodAllocation>(
          R"({"metadata":{"name":"u1","namespace":"shop"},"spec":{"namespace":"shop",
          "podName":"web-1","desiredCPULimit":"500m","reason":"throttled in 31 % of periods"}})");
  Decision decision{.act = Act::kResize, .from = 200_m, .to = 500_m};
  resize::Outcome outcome{.verdict = resize::Verdict::kAccepted};
};

TEST_F(LogLineTest, SaysPodFromToVerdictAndWhy) {
  EXPECT_EQ(line(),
            "resize shop/web-1 on n1 from 200m to 500m (manage): Accepted; "
            "throttled in 31 % of periods");
}

TEST_F(LogLineTest, ARefusalSaysWhatTheServerSaid) {
  outcome = {.verdict = resize::Verdict::kRejected, .message = "exceeded quota"};
  EXPECT_EQ(line(), "resize shop/web-1 on n1 from 200m to 500m (manage): Rejected; exceeded quota");
}

TEST_F(LogLineTest, TheWayBackHasNoAgentsReason) {
  decision.purpose = Purpose::kRestore;
  decision.status = podallocation::Status{.reason = "opted out"};
  EXPECT_EQ(line(), "resize shop/web-1 on n1 from 200m to 500m (restore): Accepted; opted out");
  allocation = nullptr;
  decision.status.reset();
  EXPECT_EQ(line(), "resize shop/web-1 on n1 from 200m to 500m (restore): Accepted");
}

}  // namespace
}  // namespace mbcas::controller
