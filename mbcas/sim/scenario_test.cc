#include "mbcas/sim/scenario.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace mbcas::sim {
namespace {

using namespace literals;
using namespace std::chrono_literals;

std::string errorOf(std::string_view yaml) {
  const Result<Scenario> scenario = parseScenario(yaml);
  return scenario ? "none" : scenario.error().message();
}

TEST(Scenario, EveryField) {
  const Result<Scenario> scenario = parseScenario(R"(
name: all
description: everything
cpus: 8
duration: 1h
settle: 30s
seed: 9
interval: 500ms
cpuStatLocal: false
actuation: {min: 50ms, max: 1.5s}
pods:
  - name: web
    count: 2
    request: 100m
    limit: 1.5
    priority: -5
    managed: false
    start: 10s
    end: 2m
    ready: 20s
    restarts: [15s, 1m]
    min: 50m
    max: 2
    workload:
      kind: service
      threads: 3
      rate: 12.5
      work: 4ms
      sizes: fixed
      queue: 10
      phase: 1s
      load: {steps: [[0s, 1], [30s, 2.5]]}
  - name: pair
    ready: never
    containers:
      - name: a
        workload: {kind: spin, threads: 2, on: 5s, period: 30s}
      - name: b
        request: 10m
        limit: 20m
        workload: {kind: bursty, on: 40ms, period: 1s, load: {diurnal: {low: 0.5, high: 2, period: 1m}}}
)");
  ASSERT_TRUE(scenario) << scenario.error().message();
  EXPECT_EQ(scenario->name, "all");
  EXPECT_EQ(scenario->cpus, 8u);
  EXPECT_EQ(scenario->duration, 1h);
  EXPECT_EQ(scenario->settle, 30s);
  EXPECT_EQ(scenario->seed, 9u);
  EXPECT_EQ(scenario->interval, 500ms);
  EXPECT_FALSE(scenario->stat_local);
  EXPECT_EQ(scenario->delay_min, 50ms);
  EXPECT_EQ(scenario->delay_max, 1500ms);
  ASSERT_EQ(scenario->pods.size(), 3u);
  const PodSpec& web = scenario->pods[1];
  EXPECT_EQ(web.name, "web-1");
  EXPECT_EQ(web.priority, -5);
  EXPECT_FALSE(web.managed);
  EXPECT_EQ(web.start, 10s);
  EXPECT_EQ(web.end, 2min);
  EXPECT_EQ(web.ready_after, 20s);
  EXPECT_EQ(web.restarts, (std::vector<Nanos>{15s, 1min}));
  EXPECT_EQ(web.floor, 50_m);
  EXPECT_EQ(web.ceiling, 2000_m);
  ASSERT_EQ(web.containers.size(), 1u);
  EXPECT_EQ(web.containers[0].limit, 1500_m);
  EXPECT_EQ(web.containers[0].request, 100_m);
  const WorkloadSpec& service = web.containers[0].workload;
  EXPECT_EQ(service.kind, WorkloadSpec::Kind::kService);
  EXPECT_EQ(service.threads, 3);
  EXPECT_EQ(service.rate, 12.5);
  EXPECT_EQ(service.work, 4ms);
  EXPECT_EQ(service.sizes, WorkloadSpec::Sizes::kFixed);
  EXPECT_EQ(service.queue, 10);
  EXPECT_EQ(service.profile.at(29s), 1);
  EXPECT_EQ(service.profile.at(30s), 2.5);
  const PodSpec& pair = scenario->pods[2];
  EXPECT_EQ(pair.name, "pair");
  EXPECT_FALSE(pair.ready_after);
  ASSERT_EQ(pair.containers.size(), 2u);
  EXPECT_FALSE(pair.containers[0].limit);
  EXPECT_EQ(pair.containers[0].workload.on, 5s);
  EXPECT_EQ(pair.containers[1].workload.profile.highest(), 2);
  EXPECT_EQ(pair.request(), 10_m);
}

TEST(Scenario, ErrorsNameTheFieldAndTheLine) {
  EXPECT_EQ(errorOf("cpus: 4\n"), "line 1: pods: is missing");
  EXPECT_EQ(errorOf("[]"), "line 1: must be a mapping");
  EXPECT_EQ(errorOf("cpus: 4\nspeed: 3\npods: []\n"), "line 2: speed: is not a known field");
  EXPECT_EQ(errorOf("cpus: 0\npods: []\n"), "line 1: cpus: must be a whole number from 1 to 1024");
  EXPECT_EQ(errorOf("pods: []\nduration: 10\n"),
            "line 2: duration: must be a time such as 250ms, 30s or 10m");
  EXPECT_EQ(errorOf("pods:\n  - request: 1\n"), "line 2: pods[0].name: is missing");
  EXPECT_EQ(errorOf("pods:\n  - name: A\n"),
            "line 2: pods[0].name: must be lower-case letters, digits and dashes, at most 63");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    limit: lots\n"),
            "line 3: pods[0].limit: must be an amount of CPU such as 250m or 1.5");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    request: 2\n    limit: 1\n"),
            "line 4: pods[0].limit: is below the request, or below 10m");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    workload:\n      kind: service\n      rate: -1\n"),
            "line 5: pods[0].workload.rate: must be a number from 0 to 100000");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    workload: {kind: dance}\n"),
            "line 3: pods[0].workload.kind: must be one of idle, spin, periodic, bursty, service");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    workload: {kind: spin, rate: 3}\n"),
            "line 3: pods[0].workload.rate: is not a known field");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    workload: {kind: spin, on: 1s}\n"),
            "line 3: pods[0].workload.period: is missing");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    workload:\n      kind: spin\n"
                    "      load: {steps: [[5s, 1], [5s, 2]]}\n"),
            "line 5: pods[0].workload.load.steps[1]: is not after the one before");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n  - name: a\n"), "pods: two are called a");
  EXPECT_EQ(errorOf("actuation: {min: 2s}\npods: []\n"), "line 1: actuation.max: is below min");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    count: 2001\n"),
            "line 3: pods[0].count: must be a whole number from 1 to 2000");
  EXPECT_EQ(errorOf("pods: [\n"), "line 2: end of sequence flow not found");
}

PodSpec podOf(std::string_view fields) {
  const Result<Scenario> scenario = parseScenario("pods:\n  - name: a\n" + std::string(fields));
  EXPECT_TRUE(scenario) << scenario.error().message();
  return scenario ? scenario->pods.at(0) : PodSpec{};
}

TEST(Scenario, ClassesOfPodsAndWhatIsManaged) {
  using kernel::Qos;
  const PodSpec burstable = podOf("    request: 100m\n    limit: 200m\n");
  EXPECT_EQ(burstable.qos(), Qos::kBurstable);
  EXPECT_TRUE(burstable.managed);
  EXPECT_FALSE(podOf("    request: 100m\n    limit: 200m\n    managed: false\n").managed);
  const PodSpec no_limit = podOf("    request: 100m\n");
  EXPECT_EQ(no_limit.qos(), Qos::kBurstable);
  EXPECT_FALSE(no_limit.managed);
  const PodSpec guaranteed = podOf("    request: 200m\n    limit: 200m\n");
  EXPECT_EQ(guaranteed.qos(), Qos::kGuaranteed);
  EXPECT_FALSE(guaranteed.managed);
  const PodSpec best_effort = podOf("    workload: {kind: spin}\n");
  EXPECT_EQ(best_effort.qos(), Qos::kBestEffort);
  EXPECT_FALSE(best_effort.managed);
  EXPECT_EQ(podOf("    containers:\n      - {name: a, request: 1, limit: 1}\n"
                  "      - {name: b, request: 1, limit: 2}\n")
                .qos(),
            Qos::kBurstable);
  const PodSpec outside = podOf("    outside: true\n    workload: {kind: spin}\n");
  EXPECT_TRUE(outside.outside);
  EXPECT_FALSE(outside.managed);

  EXPECT_EQ(errorOf("pods:\n  - name: a\n    managed: true\n"),
            "line 3: pods[0].managed: a pod without a limit cannot be managed");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    request: 1\n    limit: 1\n    managed: true\n"),
            "line 5: pods[0].managed: a Guaranteed pod, whose limits equal its requests, cannot be "
            "managed");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    outside: true\n    request: 1\n"),
            "line 4: pods[0].request: belongs to pods, and this process is outside");
  EXPECT_EQ(errorOf("pods:\n  - name: a\n    managed: true\n    outside: true\n"),
            "line 3: pods[0].managed: a process outside cannot be managed");
}

TEST(Scenario, RefusesWhatIsTooLong) {
  EXPECT_EQ(errorOf(std::string(kLongestScenario + 1, ' ')), "longer than 1048576 bytes");
}

TEST(Scenario, Traces) {
  const auto points = parseTrace("seconds,cores\n0,0.5\n\n10.5,2\r\n");
  ASSERT_TRUE(points);
  EXPECT_EQ(*points, (std::vector<Profile::Point>{{0s, 0.5}, {10500ms, 2}}));
  EXPECT_EQ(parseTrace("0,1\n0,2\n").error().message(), "line 2: is not after the one before");
  EXPECT_EQ(parseTrace("0,1\nx,2\n").error().message(), "line 2: must be seconds,cores");
  EXPECT_EQ(parseTrace("5\n").error().message(), "line 1: must be seconds,cores");
  EXPECT_EQ(parseTrace("").error().message(), "no lines of seconds,cores");
}

TEST(Scenario, ATraceIsReadFromBesideTheScenario) {
  const std::string yaml = "pods:\n  - name: a\n    workload: {kind: trace, file: FILE}\n";
  const auto with = [&](std::string_view file) {
    std::string text = yaml;
    return text.replace(text.find("FILE"), 4, file);
  };
  EXPECT_EQ(errorOf(with("x.csv")),
            "line 3: pods[0].workload.file: must be a file next to the scenario");
  const auto folder = std::filesystem::temp_directory_path() /
                      ("mbcas-scenario-test-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "x.csv") << "0,0.5\n60,1.5\n";
  const Result<Scenario> scenario = parseScenario(with("x.csv"), folder);
  EXPECT_FALSE(parseScenario(with("../x.csv"), folder));
  EXPECT_FALSE(parseScenario(with("y.csv"), folder));
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(scenario) << scenario.error().message();
  const WorkloadSpec& spec = scenario->pods[0].containers[0].workload;
  EXPECT_EQ(spec.threads, 2);
  EXPECT_EQ(spec.profile.at(59s), 0.5);
  EXPECT_EQ(spec.profile.at(61s), 1.5);
}

TEST(Scenario, TheOnesThatCome) {
  int files = 0;
  for (const char* folder :
       {"evaluation/scenarios", "evaluation/held-out", "evaluation/sharing", "evaluation/size"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      const Result<Scenario> scenario = parseScenario(text.str(), entry.path().parent_path());
      ASSERT_TRUE(scenario) << entry.path() << ": " << scenario.error().message();
      EXPECT_EQ(scenario->name, entry.path().stem());
      EXPECT_FALSE(scenario->description.empty());
      ++files;
    }
  }
  EXPECT_GE(files, 24);
}

TEST(Profile, Shapes) {
  const Profile linear{.shape = Profile::Shape::kLinear, .points = {{10s, 1}, {20s, 3}}};
  EXPECT_EQ(linear.at(0s), 1);
  EXPECT_EQ(linear.at(15s), 2);
  EXPECT_EQ(linear.at(30s), 3);
  EXPECT_EQ(linear.nextChange(30s), Nanos::max());
  const Profile day{.shape = Profile::Shape::kDiurnal, .low = 1, .high = 3, .period = 100s};
  EXPECT_NEAR(day.at(0s), 1, 1e-9);
  EXPECT_NEAR(day.at(50s), 3, 1e-9);
  EXPECT_NEAR(day.at(125s), 2, 1e-9);
  EXPECT_EQ(day.highest(), 3);
  EXPECT_EQ(Profile{}.at(5s), 1);
  const Profile steps{.shape = Profile::Shape::kSteps, .points = {{10s, 1}, {20s, 3}}};
  EXPECT_EQ(steps.nextChange(10s), 20s);
}

TEST(Latencies, SinceAnEarlierTime) {
  Latencies latencies;
  for (int i = 0; i < 100; ++i) latencies.add(std::chrono::milliseconds(900));
  const Latencies earlier = latencies;
  EXPECT_EQ(latencies.since(earlier), Latencies());
  Latencies later;
  later.add(std::chrono::milliseconds(10));
  latencies.add(later);
  EXPECT_EQ(latencies.since(earlier), later);
}

TEST(Latencies, PercentilesAreWithinTwoPercent) {
  Latencies latencies;
  EXPECT_EQ(latencies.percentile(0.5), 0ns);
  for (int i = 1; i <= 1000; ++i) latencies.add(i * 1ms);
  for (const double p : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    EXPECT_NEAR(static_cast<double>(latencies.percentile(p).count()), p * 1e9, p * 2e7) << p;
  }
  Latencies small;
  small.add(5ns);
  small.add(Nanos::max());
  EXPECT_EQ(small.percentile(0.5), 5ns);
  EXPECT_GT(small.percentile(1), std::chrono::hours(24 * 365 * 200));
}

}  // namespace
}  // namespace mbcas::sim
