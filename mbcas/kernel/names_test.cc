#include "mbcas/kernel/names.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mbcas::kernel {
namespace {

constexpr const char* kUid = "0a1b2c3d-1111-2222-3333-444455556666";
constexpr const char* kUnderscored = "0a1b2c3d_1111_2222_3333_444455556666";
constexpr const char* kHash = "00112233445566778899aabbccddeeff";
const std::string kId(64, 'c');

TEST(PodName, IsReadInEveryShape) {
  struct Case {
    std::string directory;
    std::string uid;
    Driver driver;
  };
  for (const Case& c : std::vector<Case>{
           {std::string("pod") + kUid, kUid, Driver::kCgroupfs},
           {std::string("pod") + kHash, kHash, Driver::kCgroupfs},
           {std::string("kubepods-pod") + kUnderscored + ".slice", kUid, Driver::kSystemd},
           {std::string("kubepods-burstable-pod") + kUnderscored + ".slice", kUid,
            Driver::kSystemd},
           {std::string("kubelet-kubepods-besteffort-pod") + kHash + ".slice", kHash,
            Driver::kSystemd}}) {
    const auto name = parsePodName(c.directory);
    ASSERT_TRUE(name) << c.directory;
    EXPECT_EQ(name->uid, c.uid);
    EXPECT_EQ(name->driver, c.driver);
  }
}

TEST(PodName, NothingElseIs) {
  for (const std::string& directory :
       {std::string(), std::string("pod"), std::string("podman"), std::string("pod.slice"),
        std::string("kubepods.slice"), std::string("pod") + kUnderscored,
        std::string("xpod") + kUid, std::string("kubepods-pod") + kUid + ".slice",
        std::string("pod0A1B2C3D-1111-2222-3333-444455556666"), std::string("pod") + kUid + "x"}) {
    EXPECT_FALSE(parsePodName(directory)) << directory;
  }
}

TEST(ContainerName, IsReadInEveryShape) {
  const auto runtime = [](const std::string& directory) {
    const auto name = parseContainerName(directory);
    EXPECT_TRUE(name) << directory;
    EXPECT_EQ(name ? name->id : "", kId);
    return name ? name->runtime : Runtime::kUnknown;
  };
  EXPECT_EQ(runtime("cri-containerd-" + kId + ".scope"), Runtime::kContainerd);
  EXPECT_EQ(runtime("crio-" + kId + ".scope"), Runtime::kCrio);
  EXPECT_EQ(runtime("crio-" + kId), Runtime::kCrio);
  EXPECT_EQ(runtime("docker-" + kId + ".scope"), Runtime::kDocker);
  EXPECT_EQ(runtime(kId), Runtime::kUnknown);
}

TEST(ContainerName, NothingElseIs) {
  for (const std::string& directory :
       {"crio-conmon-" + kId + ".scope", "crio-conmon-" + kId, std::string("container"),
        kId.substr(1), kId + "0", std::string(64, 'g')}) {
    EXPECT_FALSE(parseContainerName(directory)) << directory;
  }
}

// What a message says was looked for is what is recognised.
TEST(Names, ThatAreLookedForAreThoseThatMatch) {
  const auto each = [](std::string text, const auto& check) {
    text += ", ";
    for (std::size_t end = 0; (end = text.find(", ")) != std::string::npos;) {
      check(text.substr(0, end));
      text.erase(0, end + 2);
    }
  };
  int names = 0;
  each(podNamesOf(kUid), [&](std::string directory) {
    if (directory.starts_with('*')) directory.replace(0, 1, "kubepods-burstable");
    const auto parsed = parsePodName(directory);
    ASSERT_TRUE(parsed) << directory;
    EXPECT_EQ(parsed->uid, kUid);
    ++names;
  });
  each(containerNamesOf(kId), [&](const std::string& directory) {
    const auto parsed = parseContainerName(directory);
    ASSERT_TRUE(parsed) << directory;
    EXPECT_EQ(parsed->id, kId);
    ++names;
  });
  EXPECT_EQ(names, 7);
}

TEST(PodParent, IsKubepodsAndItsClasses) {
  EXPECT_TRUE(isPodParent("kubepods", ""));
  EXPECT_TRUE(isPodParent("kubepods.slice", ""));
  EXPECT_TRUE(isPodParent("kubelet-kubepods-besteffort.slice", "kubelet-kubepods.slice"));
  EXPECT_TRUE(isPodParent("burstable", "kubepods"));
  EXPECT_FALSE(isPodParent("burstable", "system.slice"));
  EXPECT_FALSE(isPodParent("system.slice", ""));
  EXPECT_FALSE(isPodParent("", ""));
  EXPECT_FALSE(isPodParent(std::string("kubepods-pod") + kUnderscored + ".slice", ""));
}

TEST(QosClass, IsToldByNameOrParent) {
  const std::string pod = std::string("pod") + kUid;
  EXPECT_EQ(qosOf(pod, "kubepods"), Qos::kGuaranteed);
  EXPECT_EQ(qosOf(pod, "burstable"), Qos::kBurstable);
  EXPECT_EQ(qosOf(pod, "besteffort"), Qos::kBestEffort);
  EXPECT_EQ(qosOf(std::string("kubepods-burstable-pod") + kUnderscored + ".slice", "x"),
            Qos::kBurstable);
  EXPECT_EQ(qosOf(std::string("kubepods-pod") + kUnderscored + ".slice", "kubepods.slice"),
            Qos::kGuaranteed);
}

RC_GTEST_PROP(Names, AnyTextIsSafe, (const std::string& text)) {
  (void)parsePodName(text);
  (void)parseContainerName(text);
  (void)isPodParent(text, text);
}

}  // namespace
}  // namespace mbcas::kernel
