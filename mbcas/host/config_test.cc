#include "mbcas/host/config.h"

#include <gtest/gtest.h>

namespace mbcas::host {
namespace {

using namespace literals;

TEST(HostConfig, ReadsEveryField) {
  const auto config = parseConfig(R"(
settings:
  profile: classic
  reserve: 0.2
pods:
  - name: web
    cgroup: /system.slice/nginx.service
    request: 200m
    limit: 500m
    min: 0.1
    max: 2
    priority: 2000
  - cgroup: /system.slice/docker-*.scope
  - name: batch
    command: [./crunch, --all]
    limit: 1
)");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->settings,
            (std::map<std::string, std::string>{{"profile", "classic"}, {"reserve", "0.2"}}));
  ASSERT_EQ(config->pods.size(), 3u);
  EXPECT_EQ(config->pods[0], (PodConfig{.name = "web",
                                        .cgroup = "/system.slice/nginx.service",
                                        .command = {},
                                        .request = 200_m,
                                        .limit = 500_m,
                                        .min = 100_m,
                                        .max = 2000_m,
                                        .priority = 2000}));
  EXPECT_EQ(config->pods[1].cgroup, "/system.slice/docker-*.scope");
  EXPECT_EQ(config->pods[1].request, 100_m);
  EXPECT_FALSE(config->pods[1].limit);
  EXPECT_EQ(config->pods[2].command, (std::vector<std::string>{"./crunch", "--all"}));
}

struct Refused {
  const char* yaml;
  const char* error;
};
class HostConfigRefuses : public testing::TestWithParam<Refused> {};

TEST_P(HostConfigRefuses, WithLineAndField) {
  const auto config = parseConfig(GetParam().yaml);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message(), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    , HostConfigRefuses,
    testing::Values(
        Refused{"pods: []", "line 1: pods: a list of 1 to 10,000 pods is expected"},
        Refused{"", "line 1: : a mapping is expected"},
        Refused{"pod:\n - name: a", "line 1: pod: unknown; one of pods, settings is expected"},
        Refused{"pods:\n - name: a\n   cgroup: /a\n   limit: 5x",
                "line 4: pods[0].limit: not a quantity: \"5x\": unknown suffix"},
        Refused{"pods:\n - name: a\n   cgroup: /a\n   limit: -1",
                "line 4: pods[0].limit: -1 is not between 1m and 1000"},
        Refused{"pods:\n - name: a\n   cgroup: ../a",
                "line 3: pods[0].cgroup: a path below the cgroup root is expected, such as "
                "/system.slice/a.service"},
        Refused{"pods:\n - name: a\n   cgroup: /a/../b",
                "line 3: pods[0].cgroup: a path below the cgroup root is expected, such as "
                "/system.slice/a.service"},
        Refused{"pods:\n - name: a", "line 2: pods[0]: either cgroup or command is expected"},
        Refused{"pods:\n - cgroup: /a", "line 2: pods[0].name: is missing"},
        Refused{"pods:\n - name: a/b\n   command: [x]\n   limit: 1",
                "line 2: pods[0].name: names a cgroup, so it has no / and no leading ."},
        Refused{"pods:\n - name: a\n   command: x",
                "line 3: pods[0].command: a list of words is expected: [./server, --port, 80]"},
        Refused{"pods:\n - name: a\n   command: [x]",
                "line 2: pods[0].limit: is missing: a command is started with one"},
        Refused{"pods:\n - name: a\n   cgroup: /a\n   min: 2\n   max: 1",
                "line 5: pods[0].max: is below min"},
        Refused{"pods:\n - name: a\n   cgroup: /a\n   priority: high",
                "line 4: pods[0].priority: a whole number is expected"},
        Refused{"pods:\n - {name: a, cgroup: /a}\n - {name: a, cgroup: /b}",
                "line 3: pods[1].name: is repeated"}));

}  // namespace
}  // namespace mbcas::host
