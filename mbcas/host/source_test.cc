#include "mbcas/host/source.h"

#include <gtest/gtest.h>

#include "mbcas/kernel/fake_tree.h"
#include "mbcas/sense/machine.h"
#include "mbcas/sense/sampler.h"

namespace mbcas::host {
namespace {

class SourceTest : public testing::Test {
 protected:
  std::vector<std::string> names(HostSource& source, int seconds) {
    source.refresh(MonotonicTime(std::chrono::seconds(seconds)));
    std::vector<std::string> all;
    for (const auto& [path, pod] : source.pods()) all.push_back(pod.uid);
    return all;
  }
  kernel::FakeTree tree{{"cgroup.controllers", "cpu\n"},
                        {"system.slice/nginx.service/cpu.max", "max 100000\n"},
                        {"system.slice/docker-1.scope/cpu.max", "max 100000\n"},
                        {"system.slice/docker-1.scope/inner/cpu.max", "max 100000\n"},
                        {"system.slice/docker-2.scope/cpu.max", "max 100000\n"}};
  kernel::Mounts mounts = *kernel::detectMounts(tree.root());
};

TEST_F(SourceTest, FindsByNameAndByPattern) {
  HostSource source(mounts, {{"web", "/system.slice/nginx.service"},
                             {"docker", "/system.slice/docker-*.scope"},
                             {"gone", "/nowhere"}});
  EXPECT_EQ(names(source, 1),
            (std::vector<std::string>{"docker/docker-1.scope", "docker/docker-2.scope", "web"}));
  const kernel::PodCgroup& web = source.pods().at("/system.slice/nginx.service");
  ASSERT_EQ(web.containers.size(), 1u);
  EXPECT_EQ(web.containers[0].path, web.path);
  EXPECT_NE(web.inode, 0u);
  EXPECT_EQ(source.selectionOf(web.path), 0u);
  EXPECT_EQ(source.selectionOf("/system.slice/docker-2.scope"), 1u);
}

TEST_F(SourceTest, NoticesComingAndGoing) {
  HostSource source(mounts, {{"", "/system.slice/docker-*.scope"}});
  EXPECT_EQ(names(source, 1).size(), 2u);
  EXPECT_FALSE(source.refresh(MonotonicTime(std::chrono::seconds(10))));
  tree.remove("system.slice/docker-1.scope");
  tree.makeCgroup("system.slice/docker-3.scope");
  EXPECT_TRUE(source.refresh(MonotonicTime(std::chrono::seconds(20))));
  EXPECT_EQ(names(source, 20), (std::vector<std::string>{"docker-2.scope", "docker-3.scope"}));
}

TEST_F(SourceTest, AsksTheKernelRarelyUnlessInDoubt) {
  HostSource source(mounts, {{"web", "/system.slice/nginx.service"}});
  EXPECT_EQ(names(source, 1).size(), 1u);
  tree.remove("system.slice/nginx.service");
  EXPECT_FALSE(source.refresh(MonotonicTime(std::chrono::seconds(2))));
  source.distrust();
  EXPECT_TRUE(source.refresh(MonotonicTime(std::chrono::seconds(2))));
}

TEST_F(SourceTest, WhatIsNotSelectedIsPartOfTheMachineToo) {
  for (const char* path :
       {"system.slice", "system.slice/nginx.service", "system.slice/docker-1.scope",
        "system.slice/docker-2.scope", "user.slice"}) {
    tree.write(std::string(path) + "/cpu.stat", "usage_usec 0\n");
    tree.write(std::string(path) + "/cpu.weight", "200\n");
  }
  SimulatedClock clock;
  sense::Sampler sampler(
      std::make_unique<HostSource>(
          mounts, std::vector<Selection>{{"docker", "/system.slice/docker-*.scope"}}),
      clock, {});
  sense::MachineSampler machine(sampler.source(), clock, {});
  clock.advance(std::chrono::seconds(1));
  std::vector<std::string> found;
  for (const sense::CgroupSignals& signals : machine.tick(sampler.tick()).tree) {
    found.push_back(std::string(name(signals.kind)) + " " + signals.path + " " + signals.uid);
    if (signals.kind != sense::CgroupSignals::Kind::kTasks) {
      EXPECT_EQ(signals.weight, 2048);
    }
  }
  EXPECT_EQ(found,
            (std::vector<std::string>{"inner /system.slice ",
                                      "pod /system.slice/docker-1.scope docker/docker-1.scope",
                                      "pod /system.slice/docker-2.scope docker/docker-2.scope",
                                      "other /system.slice/nginx.service ", "tasks /system.slice ",
                                      "other /user.slice ", "tasks / "}));
  EXPECT_GT(sampler.source().machine()->time()->cpus, 0u);
}

TEST_F(SourceTest, OneLimitPerProcess) {
  HostSource source(mounts, {{"inner", "/system.slice/docker-1.scope/inner"},
                             {"all", "/system.slice/*"},
                             {"again", "/system.slice/nginx.service"}});
  EXPECT_EQ(names(source, 1).size(), 3u);
  EXPECT_EQ(source.nested(), std::vector<std::string>{"/system.slice/docker-1.scope/inner"});
  EXPECT_EQ(source.pods().at("/system.slice/nginx.service").uid, "all/nginx.service");
}

}  // namespace
}  // namespace mbcas::host
