#include "mbcas/kernel/cpu_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mbcas::kernel {
namespace {

TEST(CpuList, ReadsRangesAndSingleCpus) {
  const CpuSet set = parseCpuList("0-3,8\n").value();
  EXPECT_EQ(set.count(), 5u);
  EXPECT_TRUE(set.contains(3));
  EXPECT_FALSE(set.contains(4));
  EXPECT_TRUE(set.contains(8));
  EXPECT_FALSE(set.contains(5000));
  EXPECT_EQ(set.toString(), "0-3,8");
  EXPECT_EQ(parseCpuList("5").value().count(), 1u);
  EXPECT_EQ(parseCpuList("0-1023\n").value().count(), CpuSet::kMost);
}

TEST(CpuList, AnEmptyLineIsTheEmptySet) {
  EXPECT_TRUE(parseCpuList("\n").value().empty());
  EXPECT_TRUE(parseCpuList("").value().empty());
  EXPECT_EQ(CpuSet().toString(), "");
}

TEST(CpuList, RefusesWhatItCannotHold) {
  for (const char* text : {"a", "1-", "-1", "3-1", "0,", ",0", "0,,1", "1024", "0-99999999999",
                           "0-18446744073709551615", "99999999999999999999", "0 1", "1-2-3"}) {
    EXPECT_FALSE(parseCpuList(text)) << text;
  }
}

TEST(CpuSet, TellsExclusiveFromOverlapping) {
  const CpuSet a = parseCpuList("0-3").value();
  const CpuSet b = parseCpuList("2-5").value();
  EXPECT_EQ((a & b).toString(), "2-3");
  EXPECT_EQ((a | b).toString(), "0-5");
  EXPECT_TRUE((a & parseCpuList("4-5").value()).empty());
}

RC_GTEST_PROP(CpuList, RoundTrips, ()) {
  CpuSet set;
  for (const unsigned cpu :
       *rc::gen::container<std::vector<unsigned>>(rc::gen::inRange<unsigned>(0, CpuSet::kMost))) {
    set.add(cpu, cpu);
  }
  RC_ASSERT(parseCpuList(set.toString() + "\n").value() == set);
}

RC_GTEST_PROP(CpuList, SaysShortlyWhatIsWrongWithAnyText, (const std::string& text)) {
  const auto set = parseCpuList(text);
  RC_ASSERT(set || (!set.error().message().empty() && set.error().message().size() < 200));
}

}  // namespace
}  // namespace mbcas::kernel
