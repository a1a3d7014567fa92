#include "mbcas/controller/agents.h"

#include <gtest/gtest.h>

namespace mbcas::controller {
namespace {

using namespace std::chrono_literals;
constexpr Nanos kSilence = 60s;

WallTime said(int number) {
  return WallTime(std::chrono::seconds(number));
}

TEST(AgentWatch, SilentAfterAMinuteWithoutRenewal) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverAnswers(true, start);
  watch.heard("n1", said(1), start);
  EXPECT_FALSE(watch.silent("n1", start + 59s, kSilence));
  EXPECT_TRUE(watch.silent("n1", start + 60s, kSilence));
  watch.heard("n1", said(2), start + 61s);
  EXPECT_FALSE(watch.silent("n1", start + 62s, kSilence));
}

TEST(AgentWatch, TheSameRenewalSeenAgainIsNoNewOne) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverAnswers(true, start);
  watch.heard("n1", said(1), start);
  watch.heard("n1", said(1), start + 50s);  // after a relist
  EXPECT_TRUE(watch.silent("n1", start + 60s, kSilence));
}

TEST(AgentWatch, NeverSeenCountsFromOurOwnBeginning) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  EXPECT_FALSE(watch.silent("n1", start + 10h, kSilence)) << "we have not listened yet";
  watch.serverAnswers(true, start);
  EXPECT_FALSE(watch.silent("n1", start + 59s, kSilence));
  EXPECT_TRUE(watch.silent("n1", start + 60s, kSilence));
}

TEST(AgentWatch, AnOutageOfTheServerIsNobodysSilence) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverAnswers(true, start);
  watch.heard("n1", said(1), start);
  watch.serverAnswers(false, start + 30s);
  EXPECT_FALSE(watch.silent("n1", start + 5min, kSilence));
  watch.serverAnswers(true, start + 5min);
  EXPECT_FALSE(watch.silent("n1", start + 5min + 59s, kSilence)) << "the whole time anew";
  EXPECT_TRUE(watch.silent("n1", start + 6min, kSilence));
}

TEST(AgentWatch, ADeletedLeaseIsSilence) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverAnswers(true, start);
  watch.heard("n1", said(1), start + 10min);
  watch.leaseGone("n1");
  EXPECT_TRUE(watch.silent("n1", start + 10min, kSilence));
}

TEST(AgentWatch, NodeOfALease) {
  const auto lease = [](const char* name) {
    return nodeOfLease(**kube::decodeObject<kube::Lease>(std::string(R"({"metadata":{"name":")") +
                                                         name + R"("}})"));
  };
  EXPECT_EQ(lease("mbcas-agent-n1"), "n1");
  EXPECT_EQ(lease("mbcas-controller"), "");
}

}  // namespace
}  // namespace mbcas::controller
