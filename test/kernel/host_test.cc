// Host mode on the real kernel: limits follow load, and everything is put back.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "mbcas/host/limit_file.h"
#include "mbcas/host/plane.h"
#include "mbcas/kernel/fake_tree.h"
#include "test/kernel/burner.h"
#include "test/kernel/scratch.h"

namespace mbcas::host {
namespace {

using namespace std::chrono_literals;
using namespace literals;

class RealHost : public testing::Test {
 protected:
  void SetUp() override {
    auto made = test::Scratch::make();
    if (!made) GTEST_SKIP() << made.error().message();
    scratch = *std::move(made);
  }
  std::optional<Millicores> limitOf(const std::string& path) {
    auto cgroup = kernel::Cgroup::open(scratch->mounts(), path);
    const auto limit = cgroup->limit();
    return limit ? limit->millicores() : std::nullopt;
  }
  Settings settings() const {
    Settings settings;
    settings.demand.cpus = std::max(1U, std::thread::hardware_concurrency());
    return settings;
  }
  // Ticks once a second until `done`, for three minutes at most; whether it became so.
  template <class Done>
  bool tickUntil(Plane& plane, Done done) {
    for (int i = 0; i < 180; ++i) {
      std::this_thread::sleep_for(1s);
      if (done(plane.tick())) return true;
    }
    return false;
  }

  std::unique_ptr<test::Scratch> scratch;
  kernel::FakeTree run;  // for the state file
  std::string state = run.root() + "/state";
  SystemClock clock;
};

TEST_F(RealHost, RaisesAThrottledCgroupAndPutsEverythingBack) {
  for (const char* path : {"/busy", "/idle", "/free"}) scratch->add(path);
  scratch->setLimit("/busy", 200_m);
  scratch->setLimit("/idle", 300_m);
  const HostConfig config{
      .pods = {{.name = "busy", .cgroup = "/busy"}, {.name = "others", .cgroup = "/*e"}}};
  auto ledger = Ledger::open(state);
  ASSERT_TRUE(ledger) << ledger.error().message();
  {
    const test::Burner burner({.threads = 1, .on = 40ms, .period = 100ms},
                              scratch->directories("/busy"));
    Plane plane(scratch->mounts(), config, settings(), clock, *ledger);
    plane.tick();
    // 400m of work in 40 ms bursts.
    EXPECT_TRUE(tickUntil(plane, [&](const View&) { return *limitOf("/busy") >= 400_m; }));
    EXPECT_TRUE(tickUntil(plane, [&](const View& view) {
      return std::ranges::all_of(view.pods, [](const PodView& pod) { return pod.blocked < 50_m; });
    }));
    const View& view = plane.tick();
    ASSERT_EQ(view.pods.size(), 3u);
    for (const PodView& pod : view.pods) {
      EXPECT_EQ(pod.name == "others/free", !pod.left_alone.empty()) << pod.name;
    }
    EXPECT_EQ(limitOf("/idle"), 300_m);
    EXPECT_EQ(limitOf("/free"), std::nullopt);
  }
  EXPECT_EQ(ledger->content().limits.size(), 1u);
  const Restored restored = ledger->restore(scratch->mounts());
  EXPECT_EQ(restored.limits, 1u);
  EXPECT_EQ(limitOf("/busy"), 200_m);
}

TEST_F(RealHost, RespectsAnotherHand) {
  scratch->add("/pod");
  scratch->setLimit("/pod", 100_m);
  const HostConfig config{.pods = {{.name = "pod", .cgroup = "/pod"}}};
  auto ledger = Ledger::open(state);
  const test::Burner burner({.threads = 1, .on = 30ms, .period = 100ms},
                            scratch->directories("/pod"));
  Plane plane(scratch->mounts(), config, settings(), clock, *ledger);
  plane.tick();
  ASSERT_TRUE(tickUntil(plane, [&](const View&) { return *limitOf("/pod") > 100_m; }));
  scratch->setLimit("/pod", 770_m);
  bool told = false;
  EXPECT_TRUE(tickUntil(plane, [&](const View& view) {
    told |= !view.notes.empty();
    return told && view.pods.at(0).declared == 770_m;
  }));
  EXPECT_GE(*limitOf("/pod"), 770_m);  // while CPU is not scarce, never below what is declared
  ledger->restore(scratch->mounts());
  EXPECT_EQ(limitOf("/pod"), 770_m);
}

TEST_F(RealHost, ACrashLosesNothing) {
  for (int i = 0; i < 5; ++i) {
    const std::string path = "/pod" + std::to_string(i);
    scratch->add(path);
    scratch->setLimit(path, Millicores(100 + i));
  }
  {
    auto ledger = Ledger::open(state);
    for (int i = 0; i < 5; ++i) {
      const std::string path = "/pod" + std::to_string(i);
      auto cgroup = kernel::Cgroup::open(scratch->mounts(), path);
      ASSERT_TRUE(ledger->record({path, cgroup->id(), *cgroup->limit()}));
      ASSERT_TRUE(writeLimit(scratch->mounts(), path, cgroup->id(), host::limitOf(900_m, 100ms)));
    }
  }  // as if killed: nothing restored
  auto ledger = Ledger::open(state);
  EXPECT_EQ(ledger->restore(scratch->mounts()).limits, 5u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(limitOf("/pod" + std::to_string(i)), Millicores(100 + i));
  }
}

}  // namespace
}  // namespace mbcas::host
