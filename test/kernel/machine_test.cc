// Every consumer of CPU, read from the real kernel: first in a tree of the test's own, then on the
// whole machine.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "mbcas/kernel/cgroup.h"
#include "mbcas/kernel/proc_stat.h"
#include "mbcas/sense/machine.h"
#include "mbcas/sense/sampler.h"
#include "test/kernel/burner.h"
#include "test/kernel/scratch.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;
using sense::CgroupSignals;
using sense::MachineSignals;
using Kind = CgroupSignals::Kind;

class RealMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Scratch>> made = Scratch::make();
    if (!made) GTEST_SKIP() << made.error().message();
    scratch = *std::move(made);
  }
  bool v2() const { return scratch->mounts().version == kernel::Version::kV2; }
  bool write(const std::string& path, const std::string& file, const std::string& content) const {
    std::ofstream out(scratch->mounts().cpu + path + "/" + file);
    return static_cast<bool>(out << content << std::flush);
  }
  // By shares on either version.
  void setWeight(const std::string& path, int shares) const {
    ASSERT_TRUE(write(path, v2() ? "cpu.weight" : "cpu.shares",
                      std::to_string(v2() ? shares * 100 / 1024 : shares)));
  }
  Nanos used(const std::string& path) const {
    return kernel::Cgroup::open(scratch->mounts(), path)->usage().value();
  }

  std::unique_ptr<Scratch> scratch;
  SystemClock clock;
};

const CgroupSignals* find(const MachineSignals& machine, const std::string& path, Kind kind) {
  for (const CgroupSignals& signals : machine.tree) {
    if (signals.path == path && signals.kind == kind) return &signals;
  }
  return nullptr;
}

Millicores sumOfLeaves(const MachineSignals& machine) {
  Millicores sum;
  for (const CgroupSignals& signals : machine.tree) {
    if (signals.kind != Kind::kInner) sum += signals.usage;
  }
  return sum;
}

TEST_F(RealMachine, EveryLeafIsThereWithItsWeightAndItsUse) {
  scratch->add(containerPath(1));
  scratch->add(containerPath(2));
  scratch->add("/system/inside");
  scratch->add("/idle");
  setWeight("/kubepods/burstable", 2048);
  setWeight(podPath(1), 512);
  setWeight("/system", 4096);
  scratch->setLimit("/kubepods", 1500_m);
  const bool idle = write("/idle", "cpu.idle", "1");
  const Burner one({.on = 10ms, .period = 50ms}, scratch->directories(containerPath(1)));
  const Burner two({.on = 10ms, .period = 50ms}, scratch->directories(containerPath(2)));
  const Burner other({.on = 10ms, .period = 50ms}, scratch->directories("/system/inside"));

  // The loads are child processes: each moves to its cgroup first.
  for (const std::string& path : {podPath(1), podPath(2), std::string("/system")}) {
    for (int i = 0; i < 12'000 && used(path) == 0ns; ++i) std::this_thread::sleep_for(10ms);
  }
  sense::Sampler sampler(std::make_unique<kernel::PodTree>(scratch->mounts()), clock, {});
  sense::MachineSampler sampling(sampler.source(), clock, {});
  const auto readings = [&] {
    return std::map<std::string, Nanos>{{podPath(1), used(podPath(1))},
                                        {podPath(2), used(podPath(2))},
                                        {"/system", used("/system")}};
  };
  const auto before_first = readings();
  sampling.tick(sampler.tick());
  const auto after_first = readings();
  std::this_thread::sleep_for(2s);
  const auto before_second = readings();
  const MachineSignals& machine = sampling.tick(sampler.tick());
  const auto after_second = readings();

  EXPECT_EQ(sumOfLeaves(machine), machine.usage);
  EXPECT_EQ(sampling.counters().failures, 0u) << sampling.counters().last_failure;
  EXPECT_EQ(sampling.counters().unreadable, 0u) << sampling.counters().last_failure;
  // What a tick saw lies between what was read inside and outside of the two ticks.
  for (const auto& [path, kind] :
       {std::pair{podPath(1), Kind::kPod}, {podPath(2), Kind::kPod}, {"/system", Kind::kOther}}) {
    const CgroupSignals* const leaf = find(machine, path, kind);
    ASSERT_NE(leaf, nullptr) << path;
    const double seen = leaf->usage.cores() * static_cast<double>(machine.interval.count());
    EXPECT_GE(seen,
              0.8 * static_cast<double>((before_second.at(path) - after_first.at(path)).count()))
        << path;
    EXPECT_LE(seen,
              1.25 * static_cast<double>((after_second.at(path) - before_first.at(path)).count()))
        << path;
    EXPECT_GT(leaf->usage, 0_m) << path;
  }
  EXPECT_EQ(find(machine, podPath(1), Kind::kPod)->weight, 512);
  EXPECT_EQ(find(machine, podPath(2), Kind::kPod)->weight, 1024);
  EXPECT_EQ(find(machine, "/system", Kind::kOther)->weight, 4096);
  const CgroupSignals* const burstable = find(machine, "/kubepods/burstable", Kind::kInner);
  ASSERT_NE(burstable, nullptr);
  EXPECT_EQ(burstable->weight, 2048);
  EXPECT_EQ(burstable->cap, std::nullopt);
  EXPECT_EQ(machine.tree[*burstable->parent].cap, 1500_m);
  if (idle) {
    EXPECT_EQ(find(machine, "/idle", Kind::kOther)->weight, 3);
  } else {
    EXPECT_EQ(find(machine, "/idle", Kind::kOther)->weight, 1024) << "before Linux 5.15";
  }
  EXPECT_EQ(find(machine, "/kubepods", Kind::kTasks)->threads, 0u);
  const auto threads = find(machine, "/system", Kind::kOther)->threads;
  if (threads) {
    EXPECT_GE(*threads, 1u);
  }
}

TEST_F(RealMachine, UseIdleTimeInterruptsAndStolenTimeAreTheCpus) {
  const Result<kernel::Mounts> host = kernel::detectMounts("/sys/fs/cgroup");
  ASSERT_TRUE(host);
  sense::Sampler sampler(std::make_unique<kernel::PodTree>(*host), clock, {.interval = 2s});
  sense::MachineSampler sampling(sampler.source(), clock, {.interval = 2s});
  const Burner burner({.on = 30ms, .period = 100ms}, scratch->directories("/self"));
  sampling.tick(sampler.tick());
  double off = 1;
  // The parts are not read at the same moment: a test that is interrupted in between tries again.
  for (int attempt = 0; attempt < 10 && off > 0.05; ++attempt) {
    std::this_thread::sleep_for(2s);
    const MachineSignals& machine = sampling.tick(sampler.tick());
    ASSERT_TRUE(machine.known());
    EXPECT_EQ(sumOfLeaves(machine), machine.usage);
    const double parts =
        (machine.usage + machine.idle + machine.interrupts + machine.steal).cores();
    off = std::abs(parts - machine.cpus) / machine.cpus;
    fmt::print("{} CPUs: {}m used, {}m idle, {}m interrupts, {}m stolen\n", machine.cpus,
               machine.usage.count(), machine.idle.count(), machine.interrupts.count(),
               machine.steal.count());
  }
  EXPECT_LE(off, 0.05);
  const MachineSignals& machine = sampling.signals();
  EXPECT_EQ(machine.cpus, static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_GT(find(machine, "/", Kind::kTasks)->threads.value_or(0), 0u) << "kernel threads at least";
  const CgroupSignals* const own =
      find(machine, "/" + std::filesystem::path(scratch->mounts().cpu).filename().string(),
           Kind::kOther);
  ASSERT_NE(own, nullptr) << "the test's own cgroup is one of the machine's";
  EXPECT_GT(own->usage, 0_m);
  EXPECT_GT(own->weight, 100'000);
}

TEST_F(RealMachine, TellsWhereACgroupMayRun) {
  const Result<kernel::Mounts> host = kernel::detectMounts("/sys/fs/cgroup");
  ASSERT_TRUE(host);
  const auto all = kernel::Cgroup::open(*host, "/")->cpus();
  if (!all && all.error().absent()) GTEST_SKIP() << "no cpuset controller";
  ASSERT_TRUE(all) << all.error().detail;
  kernel::ProcStat stat(host->proc);
  EXPECT_EQ(all->count(), stat.time()->cpus);
  if (v2()) return;  // would have to be enabled for the whole machine
  // A cgroup without tasks, in the hierarchy of cpusets alone.
  struct Directory {
    explicit Directory(std::string name) : path(std::move(name)) { ::mkdir(path.c_str(), 0755); }
    ~Directory() { ::rmdir(path.c_str()); }
    std::string path;
  };
  const Directory above(scratch->mounts().cpuset);
  const Directory directory(above.path + "/one");
  scratch->add("/one");
  std::ofstream(above.path + "/cpuset.cpus") << all->toString();
  std::ofstream(directory.path + "/cpuset.cpus") << 0;
  const auto one = kernel::Cgroup::open(scratch->mounts(), "/one")->cpus();
  ASSERT_TRUE(one) << one.error().detail;
  EXPECT_EQ(one->toString(), "0");
}

}  // namespace
}  // namespace mbcas::test
