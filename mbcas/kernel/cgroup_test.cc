#include "mbcas/kernel/cgroup.h"

#include <gtest/gtest.h>

#include "mbcas/kernel/fake_tree.h"

namespace mbcas::kernel {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Cgroup, ReadsV2) {
  FakeTree tree(
      {{"cgroup.controllers", "cpu pids\n"},
       {"a/cpu.stat", "usage_usec 100\nnr_periods 4\nnr_throttled 2\nthrottled_usec 60\n"},
       {"a/cpu.stat.local", "throttled_usec 70\n"},
       {"a/cpu.max", "20000 100000\n"},
       {"a/cpu.weight", "39\n"},
       {"a/pids.current", "3\n"},
       {"a/cpu.pressure", "some avg10=0 avg60=0 avg300=0 total=9\n"}});
  auto cgroup = Cgroup::open(detectMounts(tree.root()).value(), "/a");
  ASSERT_TRUE(cgroup) << cgroup.error().message();
  EXPECT_TRUE(cgroup->usageIsInStat());
  EXPECT_EQ(cgroup->usage().value(), microseconds(100));
  EXPECT_EQ(cgroup->stat()->throttling, (Throttling{4, 2, microseconds(60)}));
  EXPECT_EQ(cgroup->throttledLocal().value(), microseconds(70));
  EXPECT_EQ(cgroup->limit().value(), (CpuLimit{milliseconds(20), milliseconds(100)}));
  EXPECT_EQ(cgroup->weight().value(), 39u);
  EXPECT_EQ(cgroup->threads().value(), 3u);
  EXPECT_EQ(cgroup->pressure(Resource::kCpu)->some, microseconds(9));
  EXPECT_TRUE(cgroup->pressure(Resource::kIo).error().absent());

  tree.write("a/cpu.stat", "usage_usec 200\n");
  EXPECT_EQ(cgroup->usage().value(), microseconds(200)) << "the held descriptor sees new content";
}

TEST(Cgroup, ReadsV1FromItsHierarchies) {
  const FakeTree tree({{"cpu/cpu.shares", "1024\n"},
                       {"cpuacct/cpuacct.usage", "0\n"},
                       {"pids/cgroup.procs", ""},
                       {"unified/cgroup.controllers", ""},
                       {"cpu/a/cpu.stat", "nr_periods 4\nnr_throttled 2\nthrottled_time 60\n"},
                       {"cpu/a/cpu.cfs_quota_us", "20000\n"},
                       {"cpu/a/cpu.cfs_period_us", "50000\n"},
                       {"cpu/a/cpu.shares", "512\n"},
                       {"cpuacct/a/cpuacct.usage", "100\n"},
                       {"pids/a/pids.current", "5\n"},
                       {"unified/a/memory.pressure", "some total=9\nfull total=8\n"}});
  auto cgroup = Cgroup::open(detectMounts(tree.root()).value(), "/a");
  ASSERT_TRUE(cgroup) << cgroup.error().message();
  EXPECT_EQ(cgroup->usage().value(), Nanos(100));
  EXPECT_EQ(cgroup->stat()->throttling, (Throttling{4, 2, Nanos(60)}));
  EXPECT_TRUE(cgroup->throttledLocal().error().absent());
  EXPECT_EQ(cgroup->limit().value(), (CpuLimit{milliseconds(20), milliseconds(50)}));
  EXPECT_EQ(cgroup->weight().value(), 512u);
  EXPECT_EQ(cgroup->threads().value(), 5u);
  EXPECT_EQ(cgroup->pressure(Resource::kMemory)->full, microseconds(8));
}

TEST(Cgroup, WithoutPressureOrPidsHierarchiesTheyAreAbsent) {
  const FakeTree tree({{"cpu,cpuacct/cpu.shares", "1024\n"},
                       {"cpu,cpuacct/cpuacct.usage", "0\n"},
                       {"cpu,cpuacct/a/cpuacct.usage", "100\n"},
                       {"cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n"}});
  auto cgroup = Cgroup::open(detectMounts(tree.root()).value(), "/a");
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->usage().value(), Nanos(100));
  EXPECT_EQ(cgroup->limit()->quota, std::nullopt);
  EXPECT_TRUE(cgroup->threads().error().absent());
  EXPECT_TRUE(cgroup->pressure(Resource::kCpu).error().absent());
}

TEST(Cgroup, OneMadeAnewUnderTheSameNameIsAnother) {
  FakeTree tree({{"cgroup.controllers", "cpu\n"}, {"a/cpu.stat", "usage_usec 100\n"}});
  const Mounts mounts = detectMounts(tree.root()).value();
  auto old = Cgroup::open(mounts, "/a");
  ASSERT_TRUE(old);
  tree.makeCgroup("keeps the inode number busy");
  tree.remove("a");
  tree.write("b/cpu.stat", "");
  tree.write("a/cpu.stat", "usage_usec 7\n");
  // Never opened before the removal: the name is not looked up again.
  EXPECT_TRUE(old->stat().error().gone());
  EXPECT_EQ(Cgroup::open(mounts, "/a")->usage().value(), microseconds(7));
}

TEST(Cgroup, SaysWhatCouldNotBeUnderstood) {
  const FakeTree tree({{"cgroup.controllers", "cpu\n"}, {"a/cpu.stat", "usage_usec lots\n"}});
  auto cgroup = Cgroup::open(detectMounts(tree.root()).value(), "/a");
  ASSERT_TRUE(cgroup);
  const auto stat = cgroup->stat();
  ASSERT_FALSE(stat);
  EXPECT_EQ(stat.error().kind, ReadError::Kind::kFailed);
  EXPECT_NE(stat.error().detail.find("usage_usec lots"), std::string::npos);
  EXPECT_FALSE(Cgroup::open(detectMounts(tree.root()).value(), "/none"));
}

}  // namespace
}  // namespace mbcas::kernel
