#include "mbcas/kernel/pod_tree.h"

#include <gtest/gtest.h>

#include "mbcas/kernel/fake_tree.h"

namespace mbcas::kernel {
namespace {

using std::chrono::seconds;

const std::string kUid = "0a1b2c3d-1111-2222-3333-444455556666";
const std::string kUidSystemd = "0a1b2c3d_1111_2222_3333_444455556666";
const std::string kHash = "00112233445566778899aabbccddeeff";
const std::string kId(64, 'c');
const std::string kPause(64, 'a');

struct Layout {
  std::string name;
  std::string pod;        // below the hierarchy
  std::string container;  // below the pod
  std::string uid;
  Qos qos;
  Runtime runtime;
  std::string said;  // part of layouts()
};

std::vector<Layout> layouts() {
  const std::string slice =
      "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kUidSystemd + ".slice";
  return {
      {"KubeadmContainerdSystemd", slice, "cri-containerd-" + kId + ".scope", kUid, Qos::kBurstable,
       Runtime::kContainerd, "systemd driver, containerd, below /"},
      {"OpenShiftCrioSystemd", slice, "crio-" + kId + ".scope", kUid, Qos::kBurstable,
       Runtime::kCrio, "systemd driver, cri-o, below /"},
      {"CrioWithCrun", slice, "crio-" + kId + ".scope/container", kUid, Qos::kBurstable,
       Runtime::kCrio, "cri-o"},
      {"CriDockerdSystemd", slice, "docker-" + kId + ".scope", kUid, Qos::kBurstable,
       Runtime::kDocker, "docker"},
      {"GuaranteedSystemd", "kubepods.slice/kubepods-pod" + kUidSystemd + ".slice",
       "cri-containerd-" + kId + ".scope", kUid, Qos::kGuaranteed, Runtime::kContainerd, "below /"},
      {"CgroupfsContainerdTalosK3s", "kubepods/besteffort/pod" + kUid, kId, kUid, Qos::kBestEffort,
       Runtime::kUnknown, "cgroupfs driver, containerd or docker, below /"},
      {"GuaranteedCgroupfs", "kubepods/pod" + kUid, kId, kUid, Qos::kGuaranteed, Runtime::kUnknown,
       "cgroupfs driver"},
      {"CrioCgroupfs", "kubepods/burstable/pod" + kUid, "crio-" + kId, kUid, Qos::kBurstable,
       Runtime::kCrio, "cgroupfs driver, cri-o"},
      {"StaticPodSystemd",
       "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kHash + ".slice",
       "cri-containerd-" + kId + ".scope", kHash, Qos::kBurstable, Runtime::kContainerd, "systemd"},
      {"StaticPodCgroupfs", "kubepods/burstable/pod" + kHash, kId, kHash, Qos::kBurstable,
       Runtime::kUnknown, "cgroupfs"},
      {"KindInsideItsNode",
       "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
       "kubelet-kubepods-burstable-pod" +
           kUidSystemd + ".slice",
       "cri-containerd-" + kId + ".scope", kUid, Qos::kBurstable, Runtime::kContainerd,
       "below /kubelet.slice"},
      {"KindFromTheHost",
       "system.slice/docker-" + std::string(64, 'd') +
           ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + kUidSystemd +
           ".slice",
       "cri-containerd-" + kId + ".scope", kUid, Qos::kGuaranteed, Runtime::kContainerd,
       ".scope/kubelet.slice"},
      {"KindCgroupfsFromTheHost",
       "docker/" + std::string(64, 'd') + "/kubelet/kubepods/burstable/pod" + kUid, kId, kUid,
       Qos::kBurstable, Runtime::kUnknown, "/kubelet"},
      {"MinikubeFromTheHost", "system.slice/docker-" + std::string(64, 'd') + ".scope/" + slice,
       "docker-" + kId + ".scope", kUid, Qos::kBurstable, Runtime::kDocker, ".scope"},
      {"UnknownLevelBelowThePod", "kubepods/burstable/pod" + kUid, "sandbox/" + kId, kUid,
       Qos::kBurstable, Runtime::kUnknown, "cgroupfs"},
      {"UnknownParent", "workloads/tenant/pod" + kUid, kId, kUid, Qos::kGuaranteed,
       Runtime::kUnknown, "below /workloads/tenant"},
  };
}

struct Host {
  std::string name;
  std::string cpu;  // where the cpu hierarchy is below the root
  std::vector<std::pair<std::string, std::string>> files;
};

std::vector<Host> hosts() {
  return {{"V2", "", {{"cgroup.controllers", "cpu\n"}}},
          {"V1",
           "cpu,cpuacct/",
           {{"cpu,cpuacct/cpu.shares", "2\n"}, {"cpu,cpuacct/cpuacct.usage", "0\n"}}},
          {"Hybrid",
           "cpu/",
           {{"cpu/cpu.shares", "2\n"},
            {"cpuacct/cpuacct.usage", "0\n"},
            {"unified/cgroup.controllers", "\n"}}}};
}

class EachLayout : public ::testing::TestWithParam<std::tuple<Layout, Host>> {};

TEST_P(EachLayout, IsFound) {
  const auto& [layout, host] = GetParam();
  FakeTree tree;
  for (const auto& [path, content] : host.files) tree.write(path, content);
  const std::string pod_path = host.cpu + layout.pod;
  const std::string leaf = layout.container.substr(0, layout.container.find("/container"));
  tree.write(pod_path + "/" + layout.container + "/cpu.stat", "");
  // What stands beside pods and containers on a real host.
  tree.makeCgroup(host.cpu + "system.slice/kubelet.service");
  tree.makeCgroup(host.cpu + "user.slice/user-0.slice/session-1.scope");
  tree.makeCgroup(pod_path + "/crio-conmon-" + kId + ".scope");
  tree.makeCgroup(pod_path + "/init.scope");

  PodTree pods(detectMounts(tree.root()).value());
  pods.scan();
  ASSERT_EQ(pods.pods().size(), 1u);
  const PodCgroup& pod = pods.pods().begin()->second;
  EXPECT_EQ(pod.uid, layout.uid);
  EXPECT_EQ(pod.path, "/" + layout.pod);
  EXPECT_EQ(pod.qos, layout.qos);
  ASSERT_EQ(pod.containers.size(), 1u);
  EXPECT_EQ(pod.containers[0].id, kId);
  EXPECT_EQ(pod.containers[0].runtime, layout.runtime);
  EXPECT_EQ(pod.containers[0].path, "/" + layout.pod + "/" + leaf)
      << "statistics are read at the container, not below it";
  ASSERT_EQ(pods.layouts().size(), 1u);
  EXPECT_NE(pods.layouts()[0].find(layout.said), std::string::npos) << pods.layouts()[0];
  EXPECT_EQ(pods.unreadable(), 0u);
}

INSTANTIATE_TEST_SUITE_P(PodTree, EachLayout,
                         ::testing::Combine(::testing::ValuesIn(layouts()),
                                            ::testing::ValuesIn(hosts())),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + std::get<1>(param.param).name;
                         });

struct V2Host : FakeTree {
  V2Host() : FakeTree({{"cgroup.controllers", "cpu\n"}}) {}
  Mounts mounts() const { return detectMounts(root()).value(); }
};

TEST(PodTree, AnEmptyHostHasNone) {
  const V2Host tree;
  PodTree pods(tree.mounts());
  EXPECT_FALSE(pods.refresh(MonotonicTime(seconds(1))));
  EXPECT_TRUE(pods.pods().empty());
  EXPECT_TRUE(pods.layouts().empty());
}

TEST(PodTree, APodWithoutContainersIsNoLayoutOfItsOwn) {
  V2Host tree;
  const std::string first = "kubepods/burstable/pod11111111-2222-3333-4444-555555555555";
  tree.makeCgroup(first);
  PodTree pods(tree.mounts());
  pods.scan();
  EXPECT_EQ(pods.layouts(),
            std::vector<std::string>{"cgroup v2, cgroupfs driver, no containers yet, below /"});
  tree.makeCgroup(first + "/" + kId);
  tree.makeCgroup("kubepods/burstable/pod11111111-2222-3333-4444-666666666666");
  pods.scan();
  EXPECT_EQ(pods.layouts(),
            std::vector<std::string>{"cgroup v2, cgroupfs driver, containerd or docker, below /"});
}

TEST(PodTree, SaysWhetherItsRootCanBeRead) {
  V2Host tree;
  const PodTree pods(tree.mounts());
  EXPECT_TRUE(pods.readable());
  tree.remove("");
  const Result<void> gone = pods.readable();
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message().find(tree.root()), std::string::npos) << gone.error().message();
}

class EachWatch : public ::testing::TestWithParam<DirectoryWatch::Method> {};

TEST_P(EachWatch, FollowsPodsAndContainers) {
  V2Host tree;
  tree.makeCgroup("kubepods/burstable");
  PodTree pods(tree.mounts(), GetParam());
  MonotonicTime now(seconds(100));
  pods.refresh(now);
  // A pod elsewhere ends the frequent walks that look for the first one.
  tree.makeCgroup("kubepods/pod" + kHash + "/" + kPause);
  EXPECT_TRUE(pods.refresh(now += seconds(1)));
  EXPECT_TRUE(pods.pods().contains("/kubepods/pod" + kHash));
  EXPECT_FALSE(pods.refresh(now += seconds(1)));

  const std::string pod = "kubepods/burstable/pod" + kUid;
  tree.makeCgroup(pod);
  EXPECT_TRUE(pods.refresh(now += seconds(1)));
  ASSERT_TRUE(pods.pods().contains("/" + pod));
  tree.makeCgroup(pod + "/" + kId);
  EXPECT_TRUE(pods.refresh(now += seconds(1)));
  EXPECT_EQ(pods.pods().at("/" + pod).containers.size(), 1u);

  tree.remove(pod + "/" + kId);
  EXPECT_TRUE(pods.refresh(now += seconds(1)));
  EXPECT_TRUE(pods.pods().at("/" + pod).containers.empty());
  tree.remove(pod);
  EXPECT_TRUE(pods.refresh(now += seconds(1)));
  EXPECT_FALSE(pods.pods().contains("/" + pod));
  EXPECT_FALSE(pods.refresh(now += seconds(1)));
  EXPECT_EQ(pods.missedByEvents(), 0u);
}

INSTANTIATE_TEST_SUITE_P(PodTree, EachWatch,
                         ::testing::Values(DirectoryWatch::Method::kInotify,
                                           DirectoryWatch::Method::kLinkCount));

TEST(PodTree, APodMadeAnewUnderTheSameNameIsAnother) {
  V2Host tree;
  const std::string pod = "kubepods/pod" + kUid;
  tree.makeCgroup(pod + "/" + kId);
  PodTree pods(tree.mounts());
  pods.refresh(MonotonicTime(seconds(1)));
  const std::uint64_t inode = pods.pods().begin()->second.inode;
  std::filesystem::rename(tree.root() + "/" + pod, tree.root() + "/kept");
  tree.makeCgroup(pod + "/" + kPause);
  EXPECT_TRUE(pods.refresh(MonotonicTime(seconds(2))));
  EXPECT_NE(pods.pods().begin()->second.inode, inode);
  EXPECT_EQ(pods.pods().begin()->second.containers[0].id, kPause);
}

TEST(PodTree, FindsATreeThatComesLater) {
  V2Host tree;
  PodTree pods(tree.mounts());
  EXPECT_FALSE(pods.refresh(MonotonicTime(seconds(1))));
  tree.makeCgroup("kubelet/kubepods/pod" + kUid);
  EXPECT_FALSE(pods.refresh(MonotonicTime(seconds(2))));
  EXPECT_TRUE(pods.refresh(MonotonicTime(seconds(8))));
  EXPECT_EQ(pods.pods().size(), 1u);
}

}  // namespace
}  // namespace mbcas::kernel
