#include "mbcas/sense/sampler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mbcas/kernel/fake_tree.h"
#include "test/support/count_allocations.h"

namespace mbcas::sense {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kUid = "0a1b2c3d-1111-2222-3333-444455556666";
const std::string kMain(64, 'c');
const std::string kSide(64, 'd');

// The counters of one cgroup, in the kernel's own terms.
struct Counters {
  Nanos usage{0};
  kernel::Throttling throttling;
  Nanos local{0};
  Nanos some{0};  // cpu.pressure
};

// A host with one pod of two containers, on either version; the test moves counters and time.
class Host {
 public:
  Host(kernel::Version version, bool local) : version_(version), local_(local) {
    if (version == kernel::Version::kV2) {
      tree.write("cgroup.controllers", "cpu pids\n");
    } else {
      tree.write("cpu/cpu.shares", "1024\n");
      tree.write("cpuacct/cpuacct.usage", "0\n");
    }
    for (const std::string& path : {pod, main, side}) {
      setLimit(path, "-1");
      put(path);
    }
    sampler_ = std::make_unique<Sampler>(
        std::make_unique<kernel::PodTree>(kernel::detectMounts(tree.root()).value()), clock,
        Sampler::Options{});
  }

  Counters& operator[](const std::string& path) { return counters_[path]; }

  // Writes what changed and makes one tick.
  const PodSignals& tick(Nanos after = seconds(1)) {
    for (const auto& [path, counters] : counters_) put(path);
    clock.advance(after);
    sampler().tick();
    return sampler().signals().front();
  }
  Sampler& sampler() { return *sampler_; }
  const SenseCounters& counters() const { return sampler_->counters(); }

  void put(const std::string& path) {
    const Counters& c = counters_[path];
    const auto micros = [](Nanos time) { return time.count() / 1000; };
    if (version_ == kernel::Version::kV2) {
      tree.write(path + "/cpu.stat",
                 fmt::format("usage_usec {}\nnr_periods {}\nnr_throttled {}\nthrottled_usec {}\n",
                             micros(c.usage), c.throttling.periods, c.throttling.throttled_periods,
                             micros(c.throttling.time)));
      if (local_) {
        tree.write(path + "/cpu.stat.local", fmt::format("throttled_usec {}\n", micros(c.local)));
      }
      for (const char* resource : {"cpu", "memory", "io"}) {
        tree.write(fmt::format("{}/{}.pressure", path, resource),
                   fmt::format("some total={}\nfull total=0\n", micros(c.some)));
      }
      tree.write(path + "/pids.current", "4\n");
      return;
    }
    tree.write("cpuacct/" + path + "/cpuacct.usage", fmt::format("{}\n", c.usage.count()));
    tree.write(
        "cpu/" + path + "/cpu.stat",
        fmt::format("nr_periods {}\nnr_throttled {}\nthrottled_time {}\n", c.throttling.periods,
                    c.throttling.throttled_periods, c.throttling.time.count()));
    if (local_) {
      tree.write("cpu/" + path + "/cpu.stat.local",
                 fmt::format("throttled_time {}\n", c.local.count()));
    }
  }

  void setLimit(const std::string& path, const std::string& quota) {
    if (version_ == kernel::Version::kV2) {
      tree.write(path + "/cpu.max", (quota == "-1" ? "max" : quota) + " 100000\n");
    } else {
      tree.write("cpu/" + path + "/cpu.cfs_quota_us", quota + "\n");
      tree.write("cpu/" + path + "/cpu.cfs_period_us", "100000\n");
    }
  }

  std::string hierarchy() const { return version_ == kernel::Version::kV2 ? "" : "cpu/"; }

  // One second in which `path` used `usage` and was throttled in 8 of 10 periods.
  void throttle(const std::string& path, Nanos usage, Nanos blocked) {
    for (const std::string& level : {pod, path}) counters_[level].usage += usage;
    counters_[path].throttling.periods += 10;
    counters_[path].throttling.throttled_periods += 8;
    counters_[path].throttling.time += blocked;
    counters_[path].local += blocked;
    counters_[pod].some += blocked;
  }

  const std::string pod = "kubepods/burstable/pod" + kUid;
  const std::string main = pod + "/" + kMain;
  const std::string side = pod + "/" + kSide;
  kernel::FakeTree tree;
  SimulatedClock clock{WallTime(seconds(1'000'000))};

 private:
  kernel::Version version_;
  bool local_;
  std::map<std::string, Counters> counters_;
  std::unique_ptr<Sampler> sampler_;
};

struct Kind {
  std::string name;
  kernel::Version version;
  bool local;
};

class EachKernel : public ::testing::TestWithParam<Kind> {
 protected:
  Host host{GetParam().version, GetParam().local};
};

INSTANTIATE_TEST_SUITE_P(Sampler, EachKernel,
                         ::testing::Values(Kind{"V1Local", kernel::Version::kV1, true},
                                           Kind{"V1", kernel::Version::kV1, false},
                                           Kind{"V2Local", kernel::Version::kV2, true},
                                           Kind{"V2", kernel::Version::kV2, false}),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(EachKernel, TheFirstReadingHasNothingToCompareWith) {
  host[host.pod].usage = host[host.main].usage = seconds(100);
  const PodSignals& signals = host.tick();
  EXPECT_EQ(signals.uid, kUid);
  EXPECT_FALSE(signals.cpu.known());
  EXPECT_EQ(signals.cpu.usage, Nanos(0));
  ASSERT_EQ(signals.containers.size(), 2u);
  EXPECT_EQ(signals.containers[0].id, kMain);
  EXPECT_FALSE(signals.containers[0].cpu.known());
}

TEST_P(EachKernel, TellsUsageThrottlingAndLimit) {
  host.setLimit(host.main, "20000");
  host.tick();
  host.throttle(host.main, milliseconds(200), milliseconds(800));
  const PodSignals& signals = host.tick();
  const CpuSignals& main = signals.containers[0].cpu;
  EXPECT_EQ(main.interval, seconds(1));
  EXPECT_EQ(main.usageRate(), 200_m);
  EXPECT_EQ(main.throttling, (kernel::Throttling{10, 8, milliseconds(800)}));
  EXPECT_EQ(main.blockedRate(), 800_m);
  EXPECT_EQ(main.blocked_source, GetParam().local ? BlockedSource::kLocal : BlockedSource::kStat);
  EXPECT_EQ(main.limit->millicores(), 200_m);
  EXPECT_EQ(signals.cpu.usageRate(), 200_m);
  EXPECT_EQ(signals.cpu.blocked, milliseconds(800));
  EXPECT_EQ(signals.cpu.throttling, kernel::Throttling{}) << "its own quota did nothing";
  EXPECT_EQ(signals.containers[1].cpu.usage, Nanos(0));
  EXPECT_EQ(signals.containers[1].cpu.interval, seconds(1));
  EXPECT_GT(main.good_until, host.clock.monotonic());
  if (GetParam().version == kernel::Version::kV2) {
    EXPECT_EQ(signals.containers[0].threads, 4u);
    ASSERT_TRUE(signals.cpu_pressure);
    EXPECT_DOUBLE_EQ(signals.cpu_pressure->some, 0.8);
    EXPECT_DOUBLE_EQ(*signals.contention, 0);
  } else {
    EXPECT_FALSE(signals.cpu_pressure) << "no unified hierarchy here";
  }
}

TEST_P(EachKernel, ThrottlingByThePodsQuotaIsBlockedWorkOfTheContainerThatRan) {
  host.setLimit(host.pod, "20000");
  host.tick();
  for (const std::string& path : {host.pod, host.main}) host[path].usage += milliseconds(200);
  host[host.pod].throttling = {10, 8, milliseconds(800)};
  host[host.main].local = milliseconds(800);
  const PodSignals& signals = host.tick();
  EXPECT_EQ(signals.cpu.throttling, (kernel::Throttling{10, 8, milliseconds(800)}));
  EXPECT_EQ(signals.containers[0].cpu.throttling, kernel::Throttling{});
  EXPECT_EQ(signals.containers[0].cpu.blocked, milliseconds(800));
  EXPECT_EQ(signals.containers[1].cpu.blocked, Nanos(0));
  EXPECT_EQ(signals.cpu.blocked, milliseconds(800));
}

TEST_P(EachKernel, WaitingThatNoQuotaExplainsIsContention) {
  if (GetParam().version == kernel::Version::kV1) GTEST_SKIP() << "v1 has no pressure files";
  host.tick();
  for (const std::string& path : {host.pod, host.main}) host[path].usage += seconds(5);
  host[host.pod].some += seconds(5);
  const PodSignals& signals = host.tick(seconds(10));
  EXPECT_NEAR(signals.contention.value(), 0.5, 0.01);
  EXPECT_FALSE(signals.cpu.throttled());
  EXPECT_NEAR(signals.memory_pressure->some, 0.5, 0.01);
  EXPECT_NEAR(signals.io_pressure->some, 0.5, 0.01);
}

// Reading less must not lose the first second of throttling: after a long quiet time the pod wakes
// up and is throttled at once.
TEST_P(EachKernel, TheFirstThrottledSecondIsSeenInThatSecond) {
  host.setLimit(host.main, "20000");
  for (int i = 0; i < 100; ++i) host.tick();
  const std::uint64_t before = host.counters().reads;
  host.tick();
  EXPECT_EQ(host.counters().reads - before, 1u) << "a quiet pod costs one reading";
  host.throttle(host.main, milliseconds(20), milliseconds(80));
  EXPECT_EQ(host.tick().containers[0].cpu.blocked, milliseconds(80));
  host.throttle(host.main, milliseconds(20), milliseconds(70));
  EXPECT_EQ(host.tick().containers[0].cpu.blocked, milliseconds(70));
}

TEST_P(EachKernel, ADormantSidecarIsSeenAgainWhenItRuns) {
  for (int i = 0; i < 25; ++i) {
    for (const std::string& path : {host.pod, host.main}) host[path].usage += milliseconds(100);
    host.tick();
  }
  EXPECT_EQ(host.sampler().signals()[0].containers[1].cpu.usage, Nanos(0));
  for (const std::string& path : {host.pod, host.main}) host[path].usage += milliseconds(100);
  host.throttle(host.side, milliseconds(30), milliseconds(60));
  const PodSignals& signals = host.tick();
  EXPECT_EQ(signals.containers[0].cpu.usage, milliseconds(100));
  EXPECT_EQ(signals.containers[1].cpu.usage, milliseconds(30));
  EXPECT_EQ(signals.containers[1].cpu.blocked, milliseconds(60));
}

TEST_P(EachKernel, LimitsThatComeChangeAndGoAreCounted) {
  host.tick();
  EXPECT_EQ(host.sampler().signals()[0].containers[0].cpu.limit->quota, std::nullopt);
  host.setLimit(host.main, "20000");
  host.sampler().limitChanged(kUid);
  EXPECT_EQ(host.tick().containers[0].cpu.limit->millicores(), 200_m);
  host.setLimit(host.main, "50000");
  // More usage than the known limit allows: it must have changed.
  for (const std::string& path : {host.pod, host.main}) host[path].usage += milliseconds(400);
  EXPECT_EQ(host.tick().containers[0].cpu.limit->millicores(), 500_m);
  host.setLimit(host.main, "-1");
  for (int i = 0; i < 2; ++i) {
    for (const std::string& path : {host.pod, host.main}) host[path].usage += milliseconds(1);
    host.tick(seconds(6));
  }
  EXPECT_EQ(host.sampler().signals()[0].containers[0].cpu.limit->quota, std::nullopt) << "in time";
  EXPECT_EQ(host.counters().limits_changed, 1u);
}

TEST_P(EachKernel, CountersThatGoDownStartAnew) {
  host[host.main].usage = host[host.pod].usage = seconds(50);
  host.tick();
  host[host.main].usage = host[host.pod].usage = milliseconds(10);
  const PodSignals& signals = host.tick();
  EXPECT_EQ(signals.cpu.usage, Nanos(0));
  EXPECT_GE(host.counters().resets, 1u);
  host.throttle(host.main, milliseconds(10), milliseconds(1));
  EXPECT_EQ(host.tick().cpu.usage, milliseconds(10));
}

TEST_P(EachKernel, LateAndMissedTicksAverageOverTheTimeThatPassed) {
  host.tick();
  host.throttle(host.main, milliseconds(600), milliseconds(300));
  const PodSignals& signals = host.tick(seconds(3));
  EXPECT_EQ(signals.containers[0].cpu.usageRate(), 200_m);
  EXPECT_EQ(signals.containers[0].cpu.blockedRate(), 100_m);
  EXPECT_EQ(host.counters().late_ticks, 1u);
  EXPECT_EQ(host.counters().missed_ticks, 2u);

  host.tick(milliseconds(50));
  EXPECT_EQ(signals.containers[0].cpu.usageRate(), 200_m) << "an early tick changes nothing";
}

TEST_P(EachKernel, AGapOrASuspensionGivesUpTheComparison) {
  host.tick();
  host.throttle(host.main, seconds(10), milliseconds(1));
  EXPECT_FALSE(host.tick(seconds(60)).cpu.known());
  EXPECT_EQ(host.counters().gaps, 1u);
  host.throttle(host.main, milliseconds(100), milliseconds(1));
  EXPECT_EQ(host.tick().cpu.usageRate(), 100_m);

  // Asleep for an hour: monotonic time and counters stood still.
  host.clock.setWall(host.clock.wall() + std::chrono::hours(1));
  EXPECT_FALSE(host.tick().containers[0].cpu.known());
  EXPECT_EQ(host.counters().suspensions, 1u);
  host.throttle(host.main, milliseconds(100), milliseconds(1));
  EXPECT_EQ(host.tick().containers[0].cpu.usageRate(), 100_m);
  EXPECT_EQ(host.counters().suspensions, 1u);
}

TEST_P(EachKernel, ARestartedContainerIsANewOne) {
  for (const std::string& path : {host.pod, host.main}) host[path].usage = seconds(9);
  host.tick();
  // The old directory lives on elsewhere, as a held cgroup would: its numbers must not be taken.
  for (const std::string& hierarchy :
       {std::string("cpu/"), std::string("cpuacct/"), std::string()}) {
    const std::string path = host.tree.root() + "/" + hierarchy + host.main;
    if (std::filesystem::exists(path)) std::filesystem::rename(path, path + "-old");
  }
  host[host.main] = {};
  host.setLimit(host.main, "30000");
  const PodSignals& signals = host.tick();
  ASSERT_EQ(signals.containers.size(), 2u);
  EXPECT_FALSE(signals.containers[0].cpu.known());
  EXPECT_EQ(signals.containers[0].cpu.limit->millicores(), 300_m);
  EXPECT_EQ(host.counters().containers_started, 3u);
  EXPECT_EQ(host.counters().containers_ended, 1u);
  EXPECT_EQ(host.counters().resets, 0u);
  host.throttle(host.main, milliseconds(300), milliseconds(1));
  EXPECT_EQ(host.tick().containers[0].cpu.usageRate(), 300_m);
}

TEST_P(EachKernel, APodThatEndsDisappears) {
  host.tick();
  const std::string pod = host.tree.root() + "/" + host.hierarchy() + host.pod;
  std::filesystem::rename(pod, host.tree.root() + "/elsewhere");
  host.clock.advance(seconds(1));
  EXPECT_TRUE(host.sampler().tick().empty());
  EXPECT_EQ(host.counters().pods_ended, 1u);
  EXPECT_EQ(host.counters().containers_ended, 2u);
}

TEST_P(EachKernel, WhatCannotBeReadGoesStaleAndIsReported) {
  host.throttle(host.main, milliseconds(10), milliseconds(1));
  host.tick();
  const MonotonicTime good_until = host.sampler().signals()[0].cpu.good_until;
  const bool v2 = GetParam().version == kernel::Version::kV2;
  for (int i = 0; i < 4; ++i) {
    host.tree.write(v2 ? host.pod + "/cpu.stat" : "cpuacct/" + host.pod + "/cpuacct.usage",
                    v2 ? "usage_usec lots\n" : "lots\n");
    host.clock.advance(seconds(1));
    host.sampler().tick();
  }
  EXPECT_EQ(host.sampler().signals()[0].cpu.good_until, good_until);
  EXPECT_LT(good_until, host.clock.monotonic());
  EXPECT_EQ(host.counters().failures, 4u);
  EXPECT_NE(host.counters().last_failure.find("lots"), std::string::npos);
}

TEST_P(EachKernel, AWarmTickAllocatesNothing) {
  host.setLimit(host.main, "20000");
  const auto ticks = [&](int count) {
    for (int i = 0; i < count; ++i) {
      host.throttle(host.main, milliseconds(150), milliseconds(40));
      host.throttle(host.side, milliseconds(50), milliseconds(40));
      for (const std::string& path : {host.pod, host.main, host.side}) host.put(path);
      host.clock.advance(seconds(1));
      const std::uint64_t before = test::allocationsSoFar();
      host.sampler().tick();
      if (test::allocationsSoFar() != before) return i;
    }
    return count;
  };
  ticks(2);
  for (int i = 0; i < 12; ++i) ticks(1);  // every file opened once, details included
  EXPECT_EQ(ticks(40), 40);
  EXPECT_EQ(host.counters().failures, 0u);
}

}  // namespace
}  // namespace mbcas::sense
