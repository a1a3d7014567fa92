#include "mbcas/controller/agents.h"

#include <gtest/gtest.h>

namespace mbcas::controller {
namespace {

using namespace std::chrono_literals;
constexpr Nanos kSilence = 60s;

WallTime said(int number) {
  return WallTime(std::chrono::seconds(number));
}

// Whether the agent of n1, a Ready node, looks silent.
bool suspected(AgentWatch& watch, MonotonicTime now) {
  return !watch.review({{"n1", true}}, now, kSilence).suspects.empty();
}

TEST(AgentWatch, SilentAfterAMinuteWithoutRenewal) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverServes(true, start);
  watch.heard("n1", said(1), start);
  EXPECT_FALSE(suspected(watch, start + 59s));
  EXPECT_TRUE(suspected(watch, start + 60s));
  watch.heard("n1", said(2), start + 61s);
  EXPECT_FALSE(suspected(watch, start + 62s));
}

TEST(AgentWatch, TheSameRenewalSeenAgainIsNoNewOne) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverServes(true, start);
  watch.heard("n1", said(1), start);
  watch.heard("n1", said(1), start + 50s);  // after a relist
  EXPECT_TRUE(suspected(watch, start + 60s));
}

TEST(AgentWatch, NeverSeenCountsFromOurOwnBeginning) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  EXPECT_FALSE(suspected(watch, start + 10h)) << "we have not listened yet";
  watch.serverServes(true, start);
  EXPECT_FALSE(suspected(watch, start + 59s));
  EXPECT_TRUE(suspected(watch, start + 60s));
}

TEST(AgentWatch, AnOutageOfTheServerIsNobodysSilence) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverServes(true, start);
  watch.heard("n1", said(1), start);
  watch.serverServes(false, start + 30s);
  EXPECT_FALSE(suspected(watch, start + 5min));
  watch.serverServes(true, start + 5min);
  EXPECT_FALSE(suspected(watch, start + 5min + 59s)) << "the whole time again";
  EXPECT_TRUE(suspected(watch, start + 6min));
}

TEST(AgentWatch, ADeletedLeaseIsSilence) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverServes(true, start);
  watch.heard("n1", said(1), start + 10min);
  watch.leaseGone("n1");
  EXPECT_TRUE(suspected(watch, start + 10min));
}

using Names = std::vector<std::string>;

TEST(AgentWatch, AConfirmedSilenceIsToldOnceAndEndsWithTheNextRenewal) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverServes(true, start);
  EXPECT_EQ(watch.review({{"n1", true}}, start + 60s, kSilence).suspects, Names{"n1"});
  EXPECT_FALSE(watch.isSilent("n1")) << "only suspected";
  watch.confirm("n1");
  EXPECT_TRUE(watch.isSilent("n1"));
  EXPECT_TRUE(watch.review({{"n1", true}}, start + 65s, kSilence).suspects.empty());
  watch.heard("n1", said(1), start + 66s);
  EXPECT_EQ(watch.review({{"n1", true}}, start + 70s, kSilence).back, Names{"n1"});
  EXPECT_EQ(watch.silentAgents(), 0u);
}

TEST(AgentWatch, ADeletedNodeIsForgotten) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverServes(true, start);
  watch.confirm("n1");
  watch.confirm("n2");
  watch.confirm("n3");
  const AgentWatch::Changes changes =
      watch.review({{"n2", false}, {"n3", true}}, start + 60s, kSilence);
  EXPECT_EQ(changes.gone, (Names{"n1", "n2"})) << "deleted, and not Ready";
  EXPECT_TRUE(changes.back.empty());
  EXPECT_EQ(watch.silentAgents(), 1u);
  EXPECT_TRUE(watch.isSilent("n3"));
}

TEST(AgentWatch, AnOutageEndsNoSilence) {
  AgentWatch watch;
  const MonotonicTime start{1h};
  watch.serverServes(true, start);
  watch.confirm("n1");
  watch.serverServes(false, start + 60s);
  EXPECT_TRUE(watch.review({{"n1", true}}, start + 60s, kSilence).back.empty())
      << "it has not been heard";
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
