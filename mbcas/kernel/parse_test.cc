#include "mbcas/kernel/parse.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mbcas::kernel {
namespace {

using namespace literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(CpuStat, V1CountsNanoseconds) {
  const auto stat = parseCpuStat(
      "nr_periods 31\nnr_throttled 30\nthrottled_time 2320000001\nnr_bursts 0\nburst_time 0\n");
  ASSERT_TRUE(stat) << stat.error().message();
  EXPECT_EQ(*stat, (CpuStat{{}, Throttling{31, 30, Nanos(2'320'000'001)}}));
}

TEST(CpuStat, V2CountsMicrosecondsAndHoldsTheUsage) {
  const auto stat = parseCpuStat(
      "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnice_usec 0\ncore_sched.force_idle_usec "
      "0\nnr_periods 7\nnr_throttled 3\nthrottled_usec 250\nnr_bursts 0\nburst_usec 0\n");
  ASSERT_TRUE(stat) << stat.error().message();
  EXPECT_EQ(*stat, (CpuStat{microseconds(1500), Throttling{7, 3, microseconds(250)}}));
}

TEST(CpuStat, V2WithoutTheCpuControllerHasOnlyUsage) {
  EXPECT_EQ(parseCpuStat("usage_usec 12\nuser_usec 12\nsystem_usec 0\n"),
            (CpuStat{microseconds(12), {}}));
}

TEST(CpuStat, AnErrorQuotesTheLine) {
  const auto bad = parseCpuStat("nr_periods 31\nnr_throttled many\nthrottled_time 1\n");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message(), "cpu.stat: \"nr_throttled many\"");
  EXPECT_FALSE(parseCpuStat(""));
  EXPECT_FALSE(parseCpuStat("usage_usec -1\n"));
  EXPECT_FALSE(parseCpuStat("usage_usec 18446744073709551615\n")) << "does not fit nanoseconds";
  EXPECT_FALSE(parseCpuStat("nr_periods 1\nnr_throttled 1\n")) << "half of it is nothing";
}

TEST(CpuStat, AnErrorIsBoundedAndPrintable) {
  const auto bad = parseCpuStat("usage_usec " + std::string(5000, '\x01'));
  ASSERT_FALSE(bad);
  EXPECT_LT(bad.error().message().size(), 200u);
  EXPECT_EQ(bad.error().message().find('\x01'), std::string::npos);
}

TEST(CpuStatLocal, HasTheUnitOfItsVersion) {
  EXPECT_EQ(parseCpuStatLocal("throttled_time 17\n"), Nanos(17));
  EXPECT_EQ(parseCpuStatLocal("throttled_usec 17\n"), microseconds(17));
  EXPECT_FALSE(parseCpuStatLocal("usage_usec 1\n"));
  EXPECT_FALSE(parseCpuStatLocal("throttled_usec x\n"));
}

TEST(CpuMax, ReadsQuotaAndPeriod) {
  EXPECT_EQ(parseCpuMax("20000 100000\n"), (CpuLimit{milliseconds(20), milliseconds(100)}));
  EXPECT_EQ(parseCpuMax("max 100000\n"), (CpuLimit{std::nullopt, milliseconds(100)}));
  EXPECT_EQ((CpuLimit{milliseconds(20), milliseconds(100)}.millicores()), 200_m);
  EXPECT_EQ((CpuLimit{}.millicores()), std::nullopt);
  for (const char* text : {"", "max", "20000", "20000 0", "-1 100000", "20000 100000 7"}) {
    EXPECT_FALSE(parseCpuMax(text)) << text;
  }
}

TEST(CfsQuota, MinusOneIsNone) {
  EXPECT_EQ(parseCfsQuota("-1\n").value(), std::nullopt);
  EXPECT_EQ(parseCfsQuota("50000\n").value(), milliseconds(50));
  EXPECT_FALSE(parseCfsQuota("-2\n"));
}

TEST(SingleValues, AreWholeNumbers) {
  EXPECT_EQ(parseNanos("123456789012\n"), Nanos(123'456'789'012));
  EXPECT_EQ(parseMicros("100000\n"), milliseconds(100));
  EXPECT_EQ(parseCount("1024\n"), 1024u);
  EXPECT_FALSE(parseCount("max\n"));
  EXPECT_FALSE(parseNanos("1 2\n"));
}

TEST(Pressure, ReadsTotals) {
  EXPECT_EQ(parsePressure("some avg10=1.00 avg60=0.50 avg300=0.10 total=4800000\n"
                          "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"),
            (Pressure{milliseconds(4800), microseconds(7)}));
  EXPECT_EQ(parsePressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"),
            (Pressure{microseconds(3), std::nullopt}));
  EXPECT_FALSE(parsePressure(""));
  EXPECT_FALSE(parsePressure("some avg10=0.00\n"));
  EXPECT_FALSE(parsePressure("full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"));
}

TEST(ProcStat, TellsWhatTheCpusDid) {
  const auto time =
      parseProcStat("cpu  10 20 30 400 50 6 7 8 9 1\ncpu0 1 2\ncpu1 1 2\nintr 5 cpu\nctxt 1\n");
  EXPECT_EQ(time, (MachineTime{.tasks = 60, .idle = 450, .interrupts = 13, .steal = 8, .cpus = 2}));
  EXPECT_EQ(time->busy(), 81u);
  EXPECT_EQ(time->all(), 531u);
  EXPECT_EQ(parseProcStat("cpu 1 2 3 4\n"), (MachineTime{.tasks = 6, .idle = 4}));
  EXPECT_FALSE(parseProcStat("intr 5\n"));
  EXPECT_FALSE(parseProcStat("cpu  1 x\n"));
  EXPECT_FALSE(parseProcStat(""));
}

TEST(KernelWeight, IsOnTheScaleOfShares) {
  EXPECT_EQ(kernelWeight(100), kDefaultWeight);
  EXPECT_EQ(kernelWeight(1), 10u);  // 10.24: the kernel rounds
  EXPECT_EQ(kernelWeight(39), 399u);
  EXPECT_EQ(kernelWeight(10'000), 102'400u);
  EXPECT_EQ(kernelWeight(~std::uint64_t{0}), 102'400u) << "no more than the file can say";
}

RC_GTEST_PROP(Parsers, SayShortlyWhatIsWrongWithAnyText, (const std::string& text)) {
  const auto bounded = [](const auto& result) {
    return result || (!result.error().message().empty() && result.error().message().size() < 200);
  };
  RC_ASSERT(bounded(parseCpuStat(text)));
  RC_ASSERT(bounded(parseCpuStatLocal(text)));
  RC_ASSERT(bounded(parseCpuMax(text)));
  RC_ASSERT(bounded(parseCfsQuota(text)));
  RC_ASSERT(bounded(parsePressure(text)));
  RC_ASSERT(bounded(parseProcStat(text)));
}

RC_GTEST_PROP(CpuStat, RoundTrips, ()) {
  const auto value = [] { return *rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000); };
  const std::int64_t usage = value(), time = value();
  const auto periods = static_cast<std::uint64_t>(value());
  const auto stat = parseCpuStat("usage_usec " + std::to_string(usage) + "\nnr_periods " +
                                 std::to_string(periods) + "\nnr_throttled 1\nthrottled_usec " +
                                 std::to_string(time) + "\n");
  RC_ASSERT(stat.value() ==
            (CpuStat{microseconds(usage), Throttling{periods, 1, microseconds(time)}}));
}

}  // namespace
}  // namespace mbcas::kernel
