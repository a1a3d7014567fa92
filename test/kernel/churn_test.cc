// Pods that come and go under a running sampler, on the real kernel.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "mbcas/kernel/cgroup.h"
#include "mbcas/kernel/watch.h"
#include "mbcas/sense/sampler.h"
#include "test/kernel/burner.h"
#include "test/kernel/scratch.h"
#include "test/support/trials.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;

std::size_t openDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t residentPages() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

class RealKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Scratch>> made = Scratch::make();
    if (!made) GTEST_SKIP() << made.error().message();
    scratch = *std::move(made);
  }
  std::unique_ptr<sense::Sampler> sampler(Nanos interval) {
    return std::make_unique<sense::Sampler>(std::make_unique<kernel::PodTree>(scratch->mounts()),
                                            clock, sense::Sampler::Options{.interval = interval});
  }
  std::unique_ptr<Scratch> scratch;
  SystemClock clock;
};

TEST_F(RealKernel, TenThousandCyclesLeaveNoErrorLeakOrStaleReading) {
  const int cycles = soaking() ? 200'000 : 10'000;
  scratch->add(containerPath(999));  // one that stays
  // A few names, used again and again: every cgroup made anew must be taken for what it is.
  std::atomic<bool> done = false;
  std::thread maker([&] {
    for (int i = 0; i < cycles; ++i) {
      scratch->add(containerPath(i % 7));
      if (i % 3 == 0) std::this_thread::yield();
      scratch->remove(podPath(i % 7));
    }
    done = true;
  });
  auto sampling = sampler(10us);
  std::size_t pages = 0, descriptors = 0;
  std::uint64_t ticks = 0;
  while (!done) {
    for (const sense::PodSignals& pod : sampling->tick()) {
      // Nothing runs in any of them.
      ASSERT_EQ(pod.cpu.usage, Nanos(0));
      ASSERT_FALSE(pod.cpu.throttled());
    }
    if (++ticks <= 200) {  // by then it has all that it needs
      pages = residentPages();
      descriptors = openDescriptors();
    }
  }
  maker.join();
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(1ms);
    sampling->tick();
  }
  ASSERT_EQ(sampling->signals().size(), 1u) << "only the one that stays";
  EXPECT_EQ(sampling->signals()[0].path, podPath(999));
  const sense::SenseCounters& counters = sampling->counters();
  EXPECT_EQ(counters.failures, 0u) << counters.last_failure;
  EXPECT_EQ(counters.resets, 0u);
  EXPECT_EQ(counters.pods_started, counters.pods_ended + 1);
  EXPECT_EQ(counters.containers_started, counters.containers_ended + 1);
  EXPECT_GT(counters.pods_ended, 100u) << "the sampler saw them come and go";
  EXPECT_LE(openDescriptors(), descriptors + 10);
  if (!kSanitized) {  // sanitizers keep freed memory, and find leaks themselves
    EXPECT_LE(residentPages(), pages + 256) << "1 MB";
  }
  RecordProperty("pods_seen", static_cast<int>(counters.pods_started));
  RecordProperty("met_gone", static_cast<int>(counters.gone));
}

TEST_F(RealKernel, BothWitnessesNoticeACgroup) {
  for (const auto method :
       {kernel::DirectoryWatch::Method::kInotify, kernel::DirectoryWatch::Method::kLinkCount}) {
    kernel::DirectoryWatch watch(method);
    watch.add("root", scratch->mounts().cpu);
    std::unordered_set<std::string> changed;
    watch.poll(changed, true);
    EXPECT_TRUE(changed.empty());
    scratch->add("/new");
    watch.poll(changed, false);
    EXPECT_TRUE(changed.contains("root"));
    scratch->remove("/new");
    watch.poll(changed, false);
    EXPECT_TRUE(changed.contains("root"));
    EXPECT_EQ(watch.missedByEvents(), 0u);
  }
}

TEST_F(RealKernel, ACgroupMadeAnewUnderTheSameNameIsNotTakenForTheOld) {
  scratch->add(containerPath(1));
  auto old = kernel::Cgroup::open(scratch->mounts(), containerPath(1));
  ASSERT_TRUE(old);
  ASSERT_TRUE(old->usage());
  scratch->remove(podPath(1));
  scratch->add(containerPath(1));
  EXPECT_TRUE(old->usage().error().gone()) << "descriptor held";
  EXPECT_TRUE(old->limit().error().gone()) << "file never opened before";
  EXPECT_NE(kernel::Cgroup::open(scratch->mounts(), containerPath(1))->id(), old->id());
}

TEST_F(RealKernel, TheFirstThrottledSecondIsSeenThoughThePodHadLongBeenIdle) {
  scratch->add(containerPath(1));
  for (const std::string& path : {podPath(1), containerPath(1)}) scratch->setLimit(path, 200_m);
  auto sampling = sampler(100ms);
  // Saturated, but asleep at first.
  const Burner burner({.threads = 1, .delay = 3s}, scratch->directories(containerPath(1)));
  const auto begin = std::chrono::steady_clock::now();
  auto last = begin;  // before the tick before: that may have been interrupted
  bool seen = false;
  while (!seen && std::chrono::steady_clock::now() - begin < 60s) {
    std::this_thread::sleep_for(100ms);
    const auto before = std::chrono::steady_clock::now();
    const sense::PodSignals& pod = sampling->tick()[0];
    const auto now = std::chrono::steady_clock::now();
    seen = pod.cpu.throttled();
    if (seen) break;
    // As soon as it uses more than the quota of the periods that the sample can touch, it has been
    // throttled.
    ASSERT_LT(pod.cpu.usage, 20ms * ((now - last) / 100ms + 1) + 5ms) << "throttling missed";
    last = before;
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace mbcas::test
