#include "mbcas/kernel/cgroup.h"

#include <gtest/gtest.h>

#include <map>

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
       {"a/cpu.idle", "0\n"},
       {"a/cgroup.threads", "7\n8\n0\n"},
       {"a/cpuset.cpus.effective", "0-1,3\n"},
       {"a/pids.current", "3\n"},
       {"a/cpu.pressure", "some avg10=0 avg60=0 avg300=0 total=9\n"}});
  auto cgroup = Cgroup::open(detectMounts(tree.root()).value(), "/a");
  ASSERT_TRUE(cgroup) << cgroup.error().message();
  EXPECT_TRUE(cgroup->usageIsInStat());
  EXPECT_EQ(cgroup->usage().value(), microseconds(100));
  EXPECT_EQ(cgroup->stat()->throttling, (Throttling{4, 2, microseconds(60)}));
  EXPECT_EQ(cgroup->throttledLocal().value(), microseconds(70));
  EXPECT_EQ(cgroup->limit().value(), (CpuLimit{milliseconds(20), milliseconds(100)}));
  EXPECT_EQ(cgroup->weight().value(), kernelWeight(39));
  EXPECT_EQ(cgroup->tasks().value(), 3u) << "those of other PID namespaces, shown as 0, count";
  EXPECT_EQ(cgroup->cpus()->toString(), "0-1,3");
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
                       {"cpu/a/tasks", "17\n"},
                       {"cpuset/cpuset.cpus", "0-3\n"},
                       {"cpuset/a/cpuset.effective_cpus", "2\n"},
                       {"cpuset/b/cpuset.cpus", "3\n"},
                       {"cpu/b/cpu.shares", "3\n"},
                       {"cpuacct/b/cpuacct.usage", "0\n"},
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
  EXPECT_EQ(cgroup->tasks().value(), 1u);
  EXPECT_EQ(cgroup->cpus()->toString(), "2");
  EXPECT_EQ(cgroup->threads().value(), 5u);
  EXPECT_EQ(cgroup->pressure(Resource::kMemory)->full, microseconds(8));

  auto other = Cgroup::open(detectMounts(tree.root()).value(), "/b");
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_EQ(other->cpus()->toString(), "3") << "an old kernel has cpuset.cpus alone";
  EXPECT_EQ(other->weight().value(), kIdleWeight) << "cpu.shares shows it";
}

TEST(Cgroup, ACgroupForIdleTimeHasItsOwnWeight) {
  FakeTree tree({{"cgroup.controllers", "cpu\n"}, {"a/cpu.weight", "0\n"}});
  auto cgroup = Cgroup::open(detectMounts(tree.root()).value(), "/a");
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->weight().value(), kIdleWeight) << "as Linux 5.15 shows it";
  tree.write("a/cpu.weight", "1\n");
  EXPECT_EQ(cgroup->weight().value(), 10u) << "no cpu.idle";
  tree.write("a/cpu.idle", "1\n");
  EXPECT_EQ(cgroup->weight().value(), kIdleWeight) << "as Linux 6.12 shows it";
  tree.write("a/cpu.idle", "0\n");
  EXPECT_EQ(cgroup->weight().value(), 10u);
}

TEST(Cgroup, CountsManyTasksButNotWithoutEnd) {
  std::string tasks;
  for (int i = 0; i < 5000; ++i) tasks += std::to_string(i) + "\n";
  FakeTree tree({{"cgroup.controllers", "cpu\n"}, {"cgroup.procs", ""}, {"cgroup.threads", tasks}});
  auto root = Cgroup::open(detectMounts(tree.root()).value(), "/");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->tasks().value(), 5000u);
  tree.write("cgroup.threads", std::string(1'000'000, '\n'));
  EXPECT_EQ(root->tasks().value(), 256u * 1024u);
  EXPECT_TRUE(root->weight().error().absent()) << "the root has none";
}

TEST(Cgroup, VisitsItsChildren) {
  FakeTree tree({{"cgroup.controllers", "cpu\n"}});
  for (const char* path : {"b", "a/x"}) tree.makeCgroup(path);
  const Mounts mounts = detectMounts(tree.root()).value();
  std::map<std::string, std::uint64_t> found;
  const auto note = [&](std::string_view name, std::uint64_t inode) { found.emplace(name, inode); };
  ASSERT_TRUE(visitChildren(mounts, "", note));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found["a"], Cgroup::open(mounts, "/a")->id());
  found.clear();
  EXPECT_TRUE(visitChildren(mounts, "/gone", note));
  EXPECT_TRUE(found.empty());
  EXPECT_FALSE(visitChildren(mounts, "/cgroup.controllers", note)) << "not a directory";
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
  EXPECT_TRUE(cgroup->cpus().error().absent());
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
