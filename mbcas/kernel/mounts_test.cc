#include "mbcas/kernel/mounts.h"

#include <gtest/gtest.h>

#include "mbcas/kernel/fake_tree.h"

namespace mbcas::kernel {
namespace {

TEST(Mounts, V2) {
  const FakeTree tree({{"cgroup.controllers", "cpuset cpu io memory pids\n"}});
  const auto mounts = detectMounts(tree.root());
  ASSERT_TRUE(mounts) << mounts.error().message();
  EXPECT_EQ(mounts->version, Version::kV2);
  EXPECT_EQ(mounts->cpu, tree.root());
  EXPECT_EQ(mounts->unified, tree.root());
  EXPECT_EQ(describe(*mounts), "cgroup v2");
}

TEST(Mounts, V1WithControllersTogetherOrApart) {
  const FakeTree together(
      {{"cpu,cpuacct/cpu.shares", "1024\n"}, {"cpu,cpuacct/cpuacct.usage", "0\n"}});
  auto mounts = detectMounts(together.root());
  ASSERT_TRUE(mounts);
  EXPECT_EQ(mounts->version, Version::kV1);
  EXPECT_EQ(mounts->cpu, together.root() + "/cpu,cpuacct");
  EXPECT_EQ(mounts->cpuacct, mounts->cpu);
  EXPECT_EQ(describe(*mounts), "cgroup v1");

  const FakeTree apart({{"cpu/cpu.shares", "1024\n"}, {"cpuacct/cpuacct.usage", "0\n"}});
  mounts = detectMounts(apart.root());
  ASSERT_TRUE(mounts);
  EXPECT_EQ(mounts->cpu, apart.root() + "/cpu");
  EXPECT_EQ(mounts->cpuacct, apart.root() + "/cpuacct");
}

TEST(Mounts, HybridTakesPressureFromTheUnifiedTree) {
  const FakeTree tree({{"cpu/cpu.shares", "1024\n"},
                       {"cpuacct/cpuacct.usage", "0\n"},
                       {"unified/cgroup.controllers", "\n"}});
  const auto mounts = detectMounts(tree.root());
  ASSERT_TRUE(mounts);
  EXPECT_EQ(mounts->version, Version::kV1);
  EXPECT_EQ(mounts->unified, tree.root() + "/unified");
  EXPECT_EQ(describe(*mounts), "cgroup v1 (hybrid)");
}

TEST(Mounts, HybridWithTheCpuControllerOnV2IsV2) {
  const FakeTree tree({{"memory/cgroup.procs", ""}, {"unified/cgroup.controllers", "cpu\n"}});
  const auto mounts = detectMounts(tree.root());
  ASSERT_TRUE(mounts);
  EXPECT_EQ(mounts->version, Version::kV2);
  EXPECT_EQ(mounts->cpu, tree.root() + "/unified");
}

TEST(Mounts, SaysWhatIsMissing) {
  const auto message = [](const FakeTree& tree) {
    return detectMounts(tree.root()).error().message();
  };
  EXPECT_NE(message(FakeTree()).find("no cgroup tree"), std::string::npos);
  EXPECT_NE(message(FakeTree({{"cgroup.controllers", "memory cpuset\n"}}))
                .find("without the cpu controller"),
            std::string::npos);
  EXPECT_NE(message(FakeTree({{"cpu.shares", "1024\n"}})).find("holds them all"),
            std::string::npos);
  EXPECT_NE(detectMounts("/nonexistent").error().message().find("--cgroup-root"),
            std::string::npos);
}

}  // namespace
}  // namespace mbcas::kernel
