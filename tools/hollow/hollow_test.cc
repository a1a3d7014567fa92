#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mbcas/base/time.h"
#include "tools/hollow/kernel.h"
#include "tools/hollow/ledger.h"

namespace mbcas::hollow {
namespace {

using namespace literals;
using namespace std::chrono_literals;

TEST(HollowKernel, CountsAsTheKernelWould) {
  SimulatedClock clock;
  HollowKernel kernel(clock);
  kernel.start("u1", "c1", 200_m);
  const std::unique_ptr<kernel::PodSource> source = kernel.source();
  ASSERT_TRUE(source->refresh({}));
  EXPECT_FALSE(source->refresh({}));
  ASSERT_EQ(source->pods().size(), 1u);
  const kernel::PodCgroup& pod = source->pods().begin()->second;
  EXPECT_EQ(pod.uid, "u1");
  const auto container = source->open(pod.containers.at(0).path);
  const auto machine = source->open("/");
  ASSERT_TRUE(container && machine);

  kernel.load("u1", 100_m);
  clock.advance(10s);
  EXPECT_EQ((*container)->usage(), Nanos(1s));
  EXPECT_EQ((*container)->throttledLocal(), Nanos(0));
  kernel.load("u1", 1000_m);
  clock.advance(10s);
  EXPECT_EQ((*container)->usage(), Nanos(3s)) << "up to its limit";
  EXPECT_EQ((*container)->throttledLocal(), Nanos(8s));
  EXPECT_EQ((*container)->stat()->throttling->periods, 200u);
  EXPECT_EQ((*container)->stat()->throttling->throttled_periods, 100u);
  kernel.setLimit("u1", 1500_m);
  EXPECT_EQ((*container)->limit()->millicores(), 1500_m);
  clock.advance(1s);
  EXPECT_EQ((*container)->usage(), Nanos(4s));
  EXPECT_EQ((*machine)->usage(), Nanos(4s));

  kernel.end("u1");
  EXPECT_TRUE((*container)->usage().error().gone());
  clock.advance(1s);
  EXPECT_EQ((*machine)->usage(), Nanos(4s)) << "what was used stays used";
  EXPECT_TRUE(source->refresh({}));
  EXPECT_TRUE(source->pods().empty());
}

TEST(Ledger, FollowsADecisionUntilItIsInForce) {
  const WallTime start{1000s};
  const auto line = [&](Nanos after, int limit, int desired) {
    return fmt::format(R"({{"time":"{}","uid":"u1","limit":{},"desired":{},"weight":100}})",
                       formatRfc3339(start + after, TimePrecision::kMicros), limit, desired);
  };
  Ledger ledger;
  ledger.inForce("u1", 200_m, start);
  ledger.decided(line(0s, 200, 200));
  EXPECT_EQ(ledger.take().decisions, 0u) << "it changes nothing";
  ledger.decided(line(1s, 200, 300));
  ledger.decided(line(2s, 200, 500));
  EXPECT_EQ(ledger.open(), 1u);
  ledger.inForce("u1", 500_m, start + 4s);
  // The log may be slower than the kubelet.
  ledger.inForce("u1", 400_m, start + 7s);
  ledger.decided(line(5s, 500, 400));

  const Ledger::Summary summary = ledger.take();
  EXPECT_EQ(summary.decisions, 3u);
  EXPECT_EQ(summary.replaced, 1u);
  ASSERT_EQ(summary.changes.size(), 2u);
  EXPECT_TRUE(summary.changes[0].raise);
  EXPECT_EQ(summary.changes[0].urgency, 30'000);
  EXPECT_EQ(summary.changes[0].in_force - summary.changes[0].decided, Nanos(2s));
  EXPECT_FALSE(summary.changes[1].raise);
  EXPECT_EQ(summary.changes[1].in_force - summary.changes[1].decided, Nanos(2s));
  EXPECT_EQ(ledger.open(), 0u);
  EXPECT_EQ(ledger.take().decisions, 0u);

  ledger.decided(line(8s, 400, 500));
  ledger.decided(line(9s, 400, 400));
  EXPECT_EQ(ledger.open(), 0u) << "withdrawn";
  ledger.ended("u1");
  ledger.decided(line(10s, 400, 500));
  EXPECT_EQ(ledger.open(), 0u) << "no process will fulfil it";
}

TEST(Ledger, Quantiles) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({3, 1, 2}, 0.99), 3);
  EXPECT_EQ(quantile({3, 1, 2}, 0), 1);
}

}  // namespace
}  // namespace mbcas::hollow
