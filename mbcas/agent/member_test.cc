#include "mbcas/agent/member.h"

#include <gtest/gtest.h>

#include "mbcas/agent/fixture_test.h"

namespace mbcas::agent {
namespace {

std::shared_ptr<const kube::Pod> podWith(const std::string& meta, const std::string& spec,
                                         const std::string& status) {
  return object<kube::Pod>(
      fmt::format(R"({{"metadata":{{"name":"web","namespace":"shop","uid":"u1"{}}},
                      "spec":{{"nodeName":"n1"{}}},"status":{{{}}}}})",
                  meta, spec, status));
}

constexpr const char* kTwo =
    R"(,"priority":2000,"containers":[
       {"name":"main","resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"800m"}}},
       {"name":"proxy","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"200m"}}},
       {"name":"free","resources":{"requests":{"cpu":"25m"}}}])";
constexpr const char* kRunning =
    R"("phase":"Running","qosClass":"Burstable","conditions":[{"type":"Ready","status":"True"}],
       "containerStatuses":[
       {"name":"main","containerID":"containerd://abc","state":{"running":{}},
        "resources":{"limits":{"cpu":"700m"}}},
       {"name":"proxy","containerID":"containerd://def","state":{"waiting":{}},"resources":{}}])";

TEST(Member, HasWhatThePodSays) {
  const Member member = memberOf(*podWith("", kTwo, kRunning), nullptr, {});
  EXPECT_EQ(member.left_alone, "");
  EXPECT_EQ(member.uid, "u1");
  EXPECT_EQ(member.cgroup, "u1");
  EXPECT_EQ(member.name_space + "/" + member.name, "shop/web");
  EXPECT_TRUE(member.ready);
  EXPECT_FALSE(member.managed()) << "nobody has judged it yet";
  ASSERT_EQ(member.containers.size(), 2u) << "one has no limit";
  const MemberContainer main{.name = "main",
                             .id = "abc",
                             .running = true,
                             .reported = true,
                             .limit = 700_m,
                             .spec_limit = 800_m,
                             .distinct = true,
                             .declared = 800_m,
                             .request = 100_m};
  EXPECT_EQ(member.containers[0], main) << "its status tells what is in force";
  const MemberContainer proxy{.name = "proxy",
                              .reported = true,
                              .limit = 200_m,
                              .spec_limit = 200_m,
                              .distinct = true,
                              .declared = 200_m,
                              .request = 50_m};
  EXPECT_EQ(member.containers[1], proxy);
  EXPECT_EQ(member.all_requests, 175_m);
  EXPECT_DOUBLE_EQ(member.weight, 150 * 1.5) << "request times the factor of its priority";
  EXPECT_EQ(member.declared(), 1000_m);

  const auto ended = podWith("", kTwo, R"("phase":"Succeeded","qosClass":"Burstable")");
  EXPECT_EQ(memberOf(*ended, nullptr, {}).all_requests, 0_m) << "it has let go of them";
}

TEST(Member, KnowsWhichLimitsAreDistinct) {
  const Member member = memberOf(*podWith("",
                                          R"(,"initContainers":[
                           {"name":"init","resources":{"limits":{"cpu":"300m"}}}],"containers":[
                           {"name":"a","resources":{"limits":{"cpu":"200m"}}},
                           {"name":"b","resources":{"limits":{"cpu":"0.2"}}},
                           {"name":"c","resources":{"limits":{"cpu":"300m"}}},
                           {"name":"d","resources":{"limits":{"cpu":"400m"}}},
                           {"name":"e"}])",
                                          kRunning),
                                 nullptr, {});
  ASSERT_EQ(member.containers.size(), 4u);
  EXPECT_FALSE(member.containers[0].distinct);
  EXPECT_FALSE(member.containers[1].distinct);
  EXPECT_FALSE(member.containers[2].distinct) << "an init container has the same";
  EXPECT_TRUE(member.containers[3].distinct);
}

TEST(Member, WhatItDeclaredIsInTheStatusOfItsAllocation) {
  // A tenant may write the annotation, so it says nothing here.
  const auto pod = podWith(
      R"(,"annotations":{"mbcas.io/original-resources":
         "{\"main\":{\"request\":\"64\",\"limit\":\"64\"},\"proxy\":{\"limit\":\"64\"}}"})",
      kTwo, kRunning);
  const Member unrecorded = memberOf(*pod, nullptr, {});
  EXPECT_EQ(unrecorded.declared(), 1000_m);
  EXPECT_DOUBLE_EQ(unrecorded.weight, 150 * 1.5);

  const auto allocation = kube::decodeObject<podallocation::PodAllocation>(
      R"({"metadata":{"name":"u"},"spec":{"desiredCPULimit":"1"},"status":{"original":[
          {"name":"main","request":"80m","limit":"300m"},{"name":"proxy","limit":"250m"}]}})");
  ASSERT_TRUE(allocation) << allocation.error().message();
  const Member member = memberOf(*pod, allocation->get(), {});
  EXPECT_EQ(member.containers[0].declared, 300_m);
  EXPECT_EQ(member.containers[0].request, 100_m) << "of a Burstable pod the spec's";
  EXPECT_EQ(member.containers[1].declared, 250_m);
  EXPECT_EQ(member.containers[1].request, 50_m);
  EXPECT_DOUBLE_EQ(member.weight, 150 * 1.5);
}

TEST(Member, WhatTheControllerSaysCounts) {
  const auto allocation = object<podallocation::PodAllocation>(
      R"({"metadata":{"name":"u1"},"spec":{"namespace":"shop","podName":"web","nodeName":"n1",
          "desiredCPULimit":"900m","wantedCPULimit":"1100m"},
          "status":{"appliedCPULimit":"850m","bounds":{"managed":true,"floor":"200m",
          "ceiling":"3","weight":2,"reason":"x"}}})");
  const auto pod = podWith("", kTwo, kRunning);
  Member member = memberOf(*pod, allocation.get(), {});
  EXPECT_TRUE(member.managed());
  EXPECT_EQ(member.bounds->ceiling, 3000_m);
  EXPECT_EQ(member.spec->desired, 900_m);
  EXPECT_EQ(member.spec->wanted, 1100_m);
  EXPECT_EQ(member.applied, 850_m);
  EXPECT_DOUBLE_EQ(member.weight, 150 * 1.5 * 2);

  const auto unmanaged = object<podallocation::PodAllocation>(
      R"({"metadata":{"name":"u1"},"spec":{"desiredCPULimit":"900m"},
          "status":{"bounds":{"managed":false,"reason":"a VPA manages it"}}})");
  member = memberOf(*pod, unmanaged.get(), {});
  EXPECT_EQ(member.left_alone, "a VPA manages it");
  EXPECT_FALSE(member.managed());
}

TEST(Member, IsLeftAloneWhereItCannotBeManaged) {
  const auto why = [](const std::string& meta, const std::string& spec, const std::string& status,
                      const policy::Settings& settings = {}) {
    return memberOf(*podWith(meta, spec, status), nullptr, settings).left_alone;
  };
  EXPECT_EQ(why("", kTwo, kRunning), "");
  EXPECT_EQ(why("", kTwo, kRunning, {.paused = true}), "MBCAS is paused");
  EXPECT_EQ(why("", kTwo, kRunning, {.mode = policy::Mode::kOff}), "")
      << "a namespace may have a mode of its own: the controller knows";
  EXPECT_EQ(why("", kTwo, kRunning, {.excluded_namespaces = {"shop"}}),
            "namespace shop is excluded");
  EXPECT_EQ(why("", kTwo, R"("phase":"Pending","qosClass":"Burstable")"), "") << "it is prepared";
  EXPECT_EQ(why("", kTwo, R"("phase":"Succeeded","qosClass":"Burstable")"), "the pod has finished");
  EXPECT_EQ(why("", kTwo, R"("phase":"Running","qosClass":"BestEffort")"),
            "QoS class BestEffort: nothing to resize");
  EXPECT_EQ(why(R"(,"annotations":{"mbcas.io/managed":"false"})", kTwo, kRunning),
            "opted out: mbcas.io/managed=false on the pod");
  EXPECT_EQ(why(R"(,"annotations":{"kubernetes.io/config.mirror":"h"})", kTwo, kRunning),
            "static pod: the API cannot change it");
  EXPECT_EQ(
      why("", R"(,"containers":[{"name":"main"}])", R"("phase":"Running","qosClass":"Burstable")"),
      "container main has no CPU limit, and one that is added cannot be removed");
}

TEST(Member, AStaticPodsCgroupIsNamedByItsManifest) {
  const Member member = memberOf(
      *podWith(R"(,"annotations":{"kubernetes.io/config.mirror":"0123456789abcdef0123456789abcdef",
                  "kubernetes.io/config.hash":"0123456789abcdef0123456789abcdef"})",
               kTwo, kRunning),
      nullptr, {});
  EXPECT_EQ(member.uid, "u1");
  EXPECT_EQ(member.cgroup, "0123456789abcdef0123456789abcdef");
}

TEST(Member, OfAGuaranteedPodRequestAndLimitMoveTogether) {
  const auto pod = podWith(
      R"(,"annotations":{"mbcas.io/manage-guaranteed":"true"})",
      R"(,"containers":[{"name":"main","resources":{"requests":{"cpu":"800m","memory":"1Gi"},
         "limits":{"cpu":"800m","memory":"1Gi"}}}])",
      R"("phase":"Running","qosClass":"Guaranteed")");
  const Member member = memberOf(*pod, nullptr, {});
  EXPECT_EQ(member.left_alone, "");
  EXPECT_EQ(member.containers[0].request, 0_m);
  EXPECT_DOUBLE_EQ(member.weight, 800);
}

}  // namespace
}  // namespace mbcas::agent
