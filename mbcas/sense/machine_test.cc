#include "mbcas/sense/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "mbcas/kernel/fake_tree.h"
#include "mbcas/sense/sampler.h"
#include "test/support/count_allocations.h"

namespace mbcas::sense {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = CgroupSignals::Kind;

constexpr unsigned kCpus = 4;

std::string uid(int n) {
  return fmt::format("0a1b2c3d-1111-2222-3333-{:012x}", n);
}

// A machine of ordinary files on either version; the test says what each cgroup uses.
class Machine {
 public:
  explicit Machine(kernel::Version version, MachineSampler::Options options = {.cpus = 1})
      : version_(version), options_(options) {
    if (version == kernel::Version::kV2) {
      tree.write("cgroup.controllers", "cpu pids\n");
      tree.write("cgroup.procs", "");
    } else {
      tree.write("cpu,cpuacct/cpu.shares", "1024\n");
    }
    setRootTasks(3);
    put();
  }

  // Weights are on the kernel's scale of each version: shares on v1, cpu.weight on v2.
  void make(const std::string& path, int weight = 0) {
    used_[path];
    setWeight(path, weight != 0 ? weight : v2() ? 100 : 1024);
    setCap(path, "");
    file(path, v2() ? "pids.current" : "unused", "2\n");
    put();
  }
  void setWeight(const std::string& path, int weight) {
    file(path, v2() ? "cpu.weight" : "cpu.shares", fmt::format("{}\n", weight));
  }
  void setCap(const std::string& path, const std::string& quota) {
    if (v2()) {
      file(path, "cpu.max", (quota.empty() ? "max" : quota) + " 100000\n");
    } else {
      file(path, "cpu.cfs_quota_us", (quota.empty() ? "-1" : quota) + "\n");
      file(path, "cpu.cfs_period_us", "100000\n");
    }
  }
  void setRootTasks(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "1\n";
    file("", v2() ? "cgroup.threads" : "tasks", text);
  }
  void remove(const std::string& path) {
    std::erase_if(used_, [&](const auto& entry) { return entry.first.starts_with(path); });
    // The directory lives on elsewhere, so that its number is not given away again.
    std::filesystem::rename(tree.root() + "/" + hierarchy() + path,
                            aside.root() + "/" + std::to_string(removed_++));
  }
  // Adds to a cgroup and all those above; "" is the root.
  void use(std::string path, Nanos time) {
    machine += time;
    for (; !path.empty(); path.resize(path.find('/') == std::string::npos ? 0 : path.rfind('/'))) {
      used_[path] += time;
    }
  }

  const MachineSignals& tick(Nanos after = seconds(1)) {
    passed += after;
    clock.advance(after);
    put();
    return read();
  }
  const MachineSignals& read() {
    if (!sampler_) {
      kernel::Mounts mounts = kernel::detectMounts(tree.root()).value();
      mounts.proc = proc.root();
      sampler_ = std::make_unique<Sampler>(std::make_unique<kernel::PodTree>(mounts), clock,
                                           Sampler::Options{});
      machine_ = std::make_unique<MachineSampler>(sampler_->source(), clock, options_);
    }
    return machine_->tick(sampler_->tick());
  }
  // All files as they should be; in place.
  void put() {
    for (const auto& [path, usage] : used_) putUsage(path, usage);
    if (!v2()) putUsage("", machine);  // the root of v2 is not asked
    const auto ticks = [](Nanos time) { return time / kernel::kTick; };
    const Nanos idle = passed * kCpus - machine - interrupts - steal;
    std::string text = fmt::format("cpu  {} 0 0 {} 0 0 {} {} 0 0\n", ticks(machine), ticks(idle),
                                   ticks(interrupts), ticks(steal));
    for (unsigned cpu = 0; cpu < kCpus; ++cpu) text += fmt::format("cpu{} 1\n", cpu);
    proc.write("stat", text + "intr 1\n");
  }

  const CgroupSignals& at(const std::string& path, Kind kind) const {
    static const CgroupSignals kNone;
    for (const CgroupSignals& signals : machine_->signals().tree) {
      if (signals.path == path && signals.kind == kind) return signals;
    }
    ADD_FAILURE() << "no " << name(kind) << " " << path;
    return kNone;
  }
  // One line for each: "inner /kubepods 2m", children below their parents.
  std::string text() const {
    std::string all;
    for (const CgroupSignals& s : machine_->signals().tree) {
      all += fmt::format("{} {} {}m\n", name(s.kind), s.path, s.usage.count());
    }
    return all;
  }
  Nanos used(const std::string& path) const { return used_.at(path); }
  const MachineCounters& counters() const { return machine_->counters(); }
  bool v2() const { return version_ == kernel::Version::kV2; }
  std::string hierarchy() const { return v2() ? "" : "cpu,cpuacct/"; }
  void file(const std::string& path, const std::string& name, const std::string& content) {
    tree.write(hierarchy() + (path.empty() ? "" : path + "/") + name, content);
  }

  kernel::FakeTree tree, proc, aside;
  SimulatedClock clock{WallTime(seconds(1'000'000))};
  Nanos passed{0}, machine{0}, interrupts{0}, steal{0};

 private:
  void putUsage(const std::string& path, Nanos usage) {
    if (v2()) {
      file(path, "cpu.stat", fmt::format("usage_usec {}\n", usage.count() / 1000));
    } else {
      file(path, "cpuacct.usage", fmt::format("{}\n", usage.count()));
    }
  }

  kernel::Version version_;
  MachineSampler::Options options_;
  std::map<std::string, Nanos> used_;
  int removed_ = 0;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<MachineSampler> machine_;
};

Millicores sumOfLeaves(const MachineSignals& machine) {
  Millicores sum;
  for (const CgroupSignals& signals : machine.tree) {
    if (signals.kind != Kind::kInner) sum += signals.usage;
  }
  return sum;
}

class EachVersion : public ::testing::TestWithParam<kernel::Version> {};

INSTANTIATE_TEST_SUITE_P(Machine, EachVersion,
                         ::testing::Values(kernel::Version::kV1, kernel::Version::kV2),
                         [](const auto& version) {
                           return version.param == kernel::Version::kV1 ? "V1" : "V2";
                         });

TEST_P(EachVersion, EveryConsumerIsALeaf) {
  Machine host(GetParam());
  const std::string pod = "kubepods/burstable/pod" + uid(1);
  for (const char* path : {"kubepods", "kubepods/burstable", "kubepods/besteffort", "system.slice",
                           "system.slice/ssh.service", "user.slice"}) {
    host.make(path);
  }
  host.make(pod, host.v2() ? 20 : 512);
  host.make("kubepods/pod" + uid(2));
  host.setCap(pod, "50000");
  host.tick();
  host.use(pod, milliseconds(400));
  host.use("kubepods/pod" + uid(2), milliseconds(100));
  host.use("kubepods/besteffort", milliseconds(10));
  host.use("system.slice/ssh.service", milliseconds(200));
  host.use("", milliseconds(50));  // a kernel thread
  const MachineSignals& machine = host.tick();
  EXPECT_EQ(host.text(),
            "inner /kubepods 510m\n"
            "other /kubepods/besteffort 10m\n"
            "inner /kubepods/burstable 400m\n"
            "pod /" +
                pod +
                " 400m\n"
                "tasks /kubepods/burstable 0m\n"
                "pod /kubepods/pod" +
                uid(2) +
                " 100m\n"
                "tasks /kubepods 0m\n"
                "other /system.slice 200m\n"
                "other /user.slice 0m\n"
                "tasks / 50m\n");
  EXPECT_EQ(machine.usage, 760_m);
  EXPECT_EQ(machine.cpus, kCpus);
  EXPECT_EQ(machine.idle, 3240_m);
  EXPECT_EQ(machine.interval, seconds(1));
  const CgroupSignals& leaf = host.at("/" + pod, Kind::kPod);
  EXPECT_EQ(leaf.uid, uid(1));
  EXPECT_EQ(leaf.weight, host.v2() ? 205 : 512);
  EXPECT_EQ(leaf.cap, 500_m);
  EXPECT_GT(leaf.good_until, host.clock.monotonic());
  EXPECT_EQ(machine.tree[*leaf.parent].path, "/kubepods/burstable");
  EXPECT_EQ(host.at("/", Kind::kTasks).threads, 3u);
  EXPECT_EQ(host.at("/system.slice", Kind::kOther).weight, 1024);
  if (host.v2()) {
    EXPECT_EQ(host.at("/system.slice", Kind::kOther).threads, 2u);
  }
  EXPECT_EQ(host.counters().failures, 0u) << host.counters().last_failure;
  EXPECT_EQ(host.counters().unreadable, 0u) << host.counters().last_failure;
}

TEST_P(EachVersion, TheSystemdDriverInAContainerOfTheHost) {
  Machine host(GetParam());
  const std::string node = "system.slice/docker-" + std::string(64, 'a') + ".scope";
  const std::string pods = node + "/kubelet.slice/kubelet-kubepods.slice";
  const std::string pod = pods +
                          "/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" +
                          "0a1b2c3d_1111_2222_3333_000000000001.slice";
  for (const std::string& path :
       {std::string("system.slice"), node, node + "/kubelet.slice", node + "/system.slice", pods,
        pods + "/kubelet-kubepods-burstable.slice", pod, std::string("system.slice/ssh.service")}) {
    host.make(path);
  }
  host.tick();
  host.use(pod, milliseconds(30));
  host.use(node + "/system.slice", milliseconds(20));  // the kubelet
  host.use("system.slice/ssh.service", milliseconds(10));
  const MachineSignals& machine = host.tick();
  EXPECT_EQ(host.text(),
            "inner /system.slice 60m\n"
            "inner /" +
                node +
                " 50m\n"
                "inner /" +
                node +
                "/kubelet.slice 30m\n"
                "inner /" +
                pods +
                " 30m\n"
                "inner /" +
                pods +
                "/kubelet-kubepods-burstable.slice 30m\n"
                "pod /" +
                pod +
                " 30m\n"
                "tasks /" +
                pods +
                "/kubelet-kubepods-burstable.slice 0m\n"
                "tasks /" +
                pods +
                " 0m\n"
                "tasks /" +
                node +
                "/kubelet.slice 0m\n"
                "other /" +
                node +
                "/system.slice 20m\n"
                "tasks /" +
                node +
                " 0m\n"
                "other /system.slice/ssh.service 10m\n"
                "tasks /system.slice 0m\n"
                "tasks / 0m\n");
  EXPECT_EQ(sumOfLeaves(machine), machine.usage);
}

TEST_P(EachVersion, WeightsAreReadAgain) {
  Machine host(GetParam());
  const std::string pod = "kubepods/burstable/pod" + uid(1);
  for (const std::string& path :
       {std::string("kubepods"), std::string("kubepods/burstable"), pod}) {
    host.make(path);
  }
  for (int i = 0; i < 3; ++i) host.tick();
  EXPECT_EQ(host.at("/kubepods/burstable", Kind::kInner).weight, 1024);
  host.setWeight("kubepods/burstable", host.v2() ? 400 : 4096);
  host.setWeight(pod, host.v2() ? 50 : 512);
  host.setCap("kubepods", "150000");
  for (int i = 0; i < 11; ++i) {
    host.use(pod, milliseconds(20));
    host.tick();
  }
  EXPECT_EQ(host.at("/kubepods/burstable", Kind::kInner).weight, 4096);
  EXPECT_EQ(host.at("/" + pod, Kind::kPod).weight, 512);
  EXPECT_EQ(host.at("/kubepods", Kind::kInner).cap, 1500_m);
}

TEST_P(EachVersion, AWeightThatCannotBeReadStaysOrIsTheDefault) {
  Machine host(GetParam());
  host.make("a", host.v2() ? 200 : 2048);
  host.make("b");
  host.setWeight("a", host.v2() ? 200 : 2048);
  host.file("b", host.v2() ? "cpu.weight" : "cpu.shares", "much\n");
  host.tick();
  EXPECT_EQ(host.at("/a", Kind::kOther).weight, 2048);
  EXPECT_EQ(host.at("/b", Kind::kOther).weight, 1024);
  EXPECT_GT(host.counters().failures, 0u);
  EXPECT_NE(host.counters().last_failure.find("much"), std::string::npos);
  host.file("a", host.v2() ? "cpu.weight" : "cpu.shares", "much\n");
  for (int i = 0; i < 12; ++i) host.tick();
  EXPECT_EQ(host.at("/a", Kind::kOther).weight, 2048);
}

TEST_P(EachVersion, CgroupsComeAndGo) {
  Machine host(GetParam());
  host.make("a");
  for (int i = 0; i < 2; ++i) host.tick();
  host.make("b");
  host.use("b", milliseconds(300));
  host.tick();
  EXPECT_EQ(host.text(), "other /a 0m\ntasks / 300m\n") << "not looked for yet";
  for (int i = 0; i < 10; ++i) {
    host.use("b", milliseconds(300));
    host.tick();
  }
  EXPECT_EQ(host.text(), "other /a 0m\nother /b 300m\ntasks / 0m\n");
  host.remove("a");
  for (int i = 0; i < 11; ++i) {
    host.use("b", milliseconds(200));
    host.tick();
  }
  EXPECT_EQ(host.text(), "other /b 200m\ntasks / 0m\n");
  // Made again under the same name, with a counter that begins at zero.
  host.remove("b");
  host.make("b");
  host.use("b", milliseconds(5));
  for (int i = 0; i < 12; ++i) {
    host.use("b", milliseconds(100));
    host.tick();
  }
  EXPECT_EQ(host.text(), "other /b 100m\ntasks / 0m\n");
}

TEST_P(EachVersion, APodIsALeafAsSoonAsTheSamplerHasIt) {
  Machine host(GetParam());
  host.make("kubepods");
  host.make("system.slice");
  host.tick();
  EXPECT_EQ(host.at("/kubepods", Kind::kOther).path, "/kubepods");
  const std::string pod = "kubepods/pod" + uid(1);
  host.make(pod);
  for (int i = 0; i < 6; ++i) {  // without pods the sampler walks every five seconds
    host.use("system.slice", milliseconds(100));
    host.tick();
  }
  EXPECT_EQ(host.at("/" + pod, Kind::kPod).pod, 0u);
  EXPECT_EQ(host.at("/system.slice", Kind::kOther).usage, 100_m) << "its readings go on";
  host.remove(pod);
  host.tick();
  EXPECT_EQ(host.text(), "other /kubepods 0m\nother /system.slice 0m\ntasks / 0m\n");
}

TEST_P(EachVersion, OnlySoManyCgroupsAreRead) {
  Machine host(GetParam(), {.most = 3});
  for (int i = 0; i < 10; ++i) host.make(fmt::format("c{}", i));
  host.tick();
  for (int i = 0; i < 10; ++i) host.use(fmt::format("c{}", i), milliseconds(10));
  host.tick();
  EXPECT_EQ(host.text(), "other /c0 10m\nother /c1 10m\nother /c2 10m\ntasks / 70m\n");
  EXPECT_EQ(host.counters().left_out, 7u);
}

TEST_P(EachVersion, WhatCannotBeReadIsPartOfTheTasks) {
  Machine host(GetParam());
  host.make("a");
  host.make("b");
  for (int i = 0; i < 2; ++i) host.tick();
  const std::string usage = host.v2() ? "cpu.stat" : "cpuacct.usage";
  MonotonicTime good_until = host.at("/b", Kind::kOther).good_until;
  for (int i = 0; i < 5; ++i) {
    host.use("a", milliseconds(70));
    host.use("b", milliseconds(30));
    host.passed += seconds(1);
    host.clock.advance(seconds(1));
    host.put();
    host.file("b", usage, host.v2() ? "usage_usec lots\n" : "lots\n");
    host.read();
  }
  EXPECT_EQ(host.text(), "other /a 70m\nother /b 0m\ntasks / 30m\n");
  EXPECT_EQ(host.at("/b", Kind::kOther).good_until, good_until);
  EXPECT_GE(host.counters().failures, 5u);
  EXPECT_NE(host.counters().last_failure.find("lots"), std::string::npos);
}

TEST_P(EachVersion, TellsIdleTimeInterruptsAndStolenTime) {
  Machine host(GetParam());
  host.make("a");
  EXPECT_FALSE(host.tick().known());
  EXPECT_EQ(host.tick(seconds(2)).idle, 4000_m);
  host.use("a", milliseconds(600));
  host.interrupts += milliseconds(40);
  host.steal += milliseconds(100);
  const MachineSignals& machine = host.tick(seconds(2));
  EXPECT_TRUE(machine.known());
  EXPECT_EQ(machine.usage, 300_m);
  EXPECT_EQ(machine.interrupts, 20_m);
  EXPECT_EQ(machine.steal, 50_m);
  EXPECT_EQ(machine.idle, 3630_m);
  host.tick(milliseconds(20));
  EXPECT_EQ(machine.usage, 300_m) << "too early to measure";
  host.use("a", seconds(100));
  EXPECT_FALSE(host.tick(seconds(100)).known()) << "too long ago to compare with";
  host.use("a", milliseconds(100));
  EXPECT_EQ(host.tick().usage, 100_m);
}

// As in a container that plays a node: the machine has other work, which no cgroup here counts.
TEST_P(EachVersion, WhatRunsOutsideOfTheRootIsPartOfTheTasks) {
  Machine host(GetParam());
  host.make("a");
  if (host.v2()) host.file("", "cpu.max", "max 100000\n");
  const auto tick = [&](Nanos elsewhere) -> const MachineSignals& {
    host.use("a", milliseconds(500));
    host.machine += elsewhere;
    host.passed += seconds(1);
    host.clock.advance(seconds(1));
    host.put();
    host.file("", host.v2() ? "cpu.stat" : "cpuacct.usage",
              host.v2() ? fmt::format("usage_usec {}\n", host.used("a").count() / 1000)
                        : fmt::format("{}\n", host.used("a").count()));
    return host.read();
  };
  tick(Nanos(0));
  tick(seconds(2));
  EXPECT_EQ(host.text(), "other /a 500m\ntasks / 2000m\n");
  tick(milliseconds(50));
  EXPECT_EQ(host.text(), "other /a 500m\ntasks / 0m\n") << "no more than the noise of clock ticks";
}

TEST_P(EachVersion, WithoutProcStatTheRootAndTheCallerTell) {
  Machine host(GetParam(), {.cpus = 8});
  host.make("a");
  host.file("", host.v2() ? "cpu.stat" : "cpuacct.usage", host.v2() ? "usage_usec 0\n" : "0\n");
  const auto tick = [&] {
    host.clock.advance(seconds(1));
    host.put();
    host.proc.remove("stat");
    host.file("", host.v2() ? "cpu.stat" : "cpuacct.usage",
              host.v2() ? fmt::format("usage_usec {}\n", host.machine.count() / 1000)
                        : fmt::format("{}\n", host.machine.count()));
    return host.read();
  };
  tick();
  host.use("a", milliseconds(250));
  const MachineSignals machine = tick();
  EXPECT_EQ(machine.cpus, 8u);
  EXPECT_EQ(machine.usage, 250_m);
  EXPECT_EQ(machine.idle, 7750_m);
  EXPECT_EQ(host.counters().failures, 0u) << host.counters().last_failure;
}

TEST_P(EachVersion, RestrictedCgroupsHaveTheirCpus) {
  Machine host(GetParam());
  const std::string shared = "kubepods/pod" + uid(1);
  const std::string exclusive = "kubepods/pod" + uid(2);
  const auto restrict = [&](const std::string& path, const std::string& cpus) {
    if (host.v2()) {
      host.file(path, "cpuset.cpus.effective", cpus + "\n");
    } else {
      host.tree.write("cpuset/" + path + "/cpuset.effective_cpus", cpus + "\n");
    }
  };
  if (!host.v2()) host.tree.write("cpuset/cpuset.cpus", "0-3\n");
  const std::string main = exclusive + "/" + std::string(64, 'c');
  const std::string pause = exclusive + "/" + std::string(64, 'd');
  for (const std::string& path :
       {std::string("kubepods"), std::string("system.slice"), shared, exclusive, main, pause}) {
    host.make(path);
  }
  restrict("kubepods", "0-3");
  restrict("system.slice", "0");
  restrict(shared, "0-3");
  restrict(exclusive, "0-3");
  restrict(main, "2-3");
  restrict(pause, "0-3");
  for (int i = 0; i < 22; ++i) {
    host.use(main, milliseconds(100));
    host.tick();
  }
  EXPECT_EQ(host.at("/kubepods", Kind::kInner).cpus, std::nullopt);
  EXPECT_EQ(host.at("/system.slice", Kind::kOther).cpus->toString(), "0");
  EXPECT_EQ(host.at("/" + shared, Kind::kPod).cpus, std::nullopt);
  EXPECT_EQ(host.at("/" + exclusive, Kind::kPod).cpus->toString(), "2-3")
      << "those of the container that runs, not of the pause container";
}

TEST_P(EachVersion, AWarmTickAllocatesNothing) {
  Machine host(GetParam());
  const std::string pod = "kubepods/burstable/pod" + uid(1);
  for (const std::string& path : {std::string("kubepods"), std::string("kubepods/burstable"),
                                  std::string("system.slice"), pod}) {
    host.make(path);
  }
  std::uint64_t allocations = 0;
  const auto tick = [&] {
    host.use(pod, milliseconds(150));
    host.use("system.slice", milliseconds(20));
    host.passed += seconds(1);
    host.clock.advance(seconds(1));
    host.put();
    const std::uint64_t before = test::allocationsSoFar();
    host.read();
    allocations += test::allocationsSoFar() - before;
  };
  for (int i = 0; i < 12; ++i) tick();
  allocations = 0;
  const std::uint64_t looks = host.counters().looks;
  for (int i = 0; i < 40; ++i) tick();
  EXPECT_EQ(allocations, 0u);
  EXPECT_EQ(host.counters().looks, looks + 4);
  EXPECT_EQ(host.counters().failures, 0u) << host.counters().last_failure;
}

// Any tree of pods and other cgroups, any use: every leaf is what was used there, and they add up.
RC_GTEST_PROP(Machine, LeavesAddUpToTheMachine, ()) {
  Machine host(*rc::gen::element(kernel::Version::kV1, kernel::Version::kV2));
  std::vector<std::string> paths{""};
  std::set<std::string> pods;
  const int cgroups = *rc::gen::inRange(1, 12);
  for (int i = 0; i < cgroups; ++i) {
    const std::string parent = *rc::gen::elementOf(paths);
    const bool pod = *rc::gen::arbitrary<bool>();
    const std::string path =
        (parent.empty() ? "" : parent + "/") + (pod ? "pod" + uid(i) : fmt::format("c{}", i));
    host.make(path);
    if (pod) {
      pods.insert("/" + path);
    } else {
      paths.push_back(path);  // nothing is made below a pod
    }
  }
  host.tick();
  std::map<std::string, Millicores> truth;  // what was used directly there
  for (int i = *rc::gen::inRange(0, 12); i > 0; --i) {
    std::string path = *rc::gen::elementOf(paths);
    if (!pods.empty() && *rc::gen::arbitrary<bool>()) {
      path = (*rc::gen::elementOf(pods)).substr(1);
    }
    const int amount = *rc::gen::inRange(1, 15);
    host.use(path, milliseconds(amount * 20));
    truth["/" + path] += Millicores(amount) * 10;
  }
  const MachineSignals& machine = host.tick(seconds(2));
  RC_ASSERT(sumOfLeaves(machine) == machine.usage);
  Millicores all;
  for (const auto& [path, used] : truth) all += used;
  RC_ASSERT(machine.usage == all);
  RC_ASSERT(machine.usage + machine.idle == 4000_m);
  std::size_t found = 0;
  for (std::size_t i = 0; i < machine.tree.size(); ++i) {
    const CgroupSignals& signals = machine.tree[i];
    RC_ASSERT(!signals.parent || *signals.parent < i);
    if (signals.parent) RC_ASSERT(machine.tree[*signals.parent].kind == Kind::kInner);
    found += signals.kind == Kind::kPod;
    Millicores expected;
    for (const auto& [path, used] : truth) {
      const bool here = path == signals.path;
      const bool below = path.starts_with(signals.path + "/");
      if (signals.kind == Kind::kTasks ? here : here || below) expected += used;
    }
    RC_ASSERT(signals.usage == expected);
  }
  RC_ASSERT(found == pods.size());
}

// A model has pods and a root, and no other cgroups.
class ModelSource final : public kernel::PodSource {
 public:
  explicit ModelSource(const Nanos& usage) : usage_(usage) {
    for (const char* path : {"/kubepods/burstable/poda", "/kubepods/podb"}) {
      pods_[path] = {.uid = path, .path = path, .inode = 7 + pods_.size(), .containers = {}};
    }
  }
  Result<std::unique_ptr<kernel::CgroupReader>> open(const std::string& path) const override {
    if (path == "/") return std::make_unique<Reader>(1, usage_, 2);
    const auto pod = pods_.find(path);
    if (pod == pods_.end()) return failure("no cgroup " + path);
    return std::make_unique<Reader>(pod->second.inode, usage_, 1);
  }
  const std::map<std::string, kernel::PodCgroup>& pods() const override { return pods_; }
  bool refresh(MonotonicTime) override { return std::exchange(fresh_, false); }
  void distrust() override {}

 private:
  class Reader final : public kernel::CgroupReader {
   public:
    Reader(std::uint64_t id, const Nanos& usage, int times)
        : id_(id), usage_(usage), times_(times) {}
    std::uint64_t id() const override { return id_; }
    bool usageIsInStat() const override { return true; }
    kernel::ReadResult<Nanos> usage() override { return usage_ * times_; }
    kernel::ReadResult<kernel::CpuStat> stat() override {
      return kernel::CpuStat{usage_ * times_, std::nullopt};
    }
    kernel::ReadResult<Nanos> throttledLocal() override { return missing(); }
    kernel::ReadResult<kernel::CpuLimit> limit() override { return missing(); }
    kernel::ReadResult<kernel::Pressure> pressure(kernel::Resource) override { return missing(); }
    kernel::ReadResult<std::uint64_t> threads() override { return missing(); }
    void logReads(std::vector<int>*) override {}

   private:
    std::uint64_t id_;
    const Nanos& usage_;
    int times_;
  };
  const Nanos& usage_;
  std::map<std::string, kernel::PodCgroup> pods_;
  bool fresh_ = true;
};

TEST(Model, HasATreeWithoutFiles) {
  Nanos usage{0};
  SimulatedClock clock{WallTime(seconds(1'000'000))};
  Sampler sampler(std::make_unique<ModelSource>(usage), clock, {});
  MachineSampler sampling(sampler.source(), clock, {.cpus = 2});
  clock.advance(seconds(1));
  sampling.tick(sampler.tick());
  clock.advance(seconds(1));
  usage += milliseconds(300);
  const MachineSignals& machine = sampling.tick(sampler.tick());
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const CgroupSignals& signals : machine.tree) {
    found.emplace_back(signals.path, signals.usage.count());
    EXPECT_EQ(signals.weight, 1024);
    EXPECT_GT(signals.good_until, clock.monotonic());
  }
  EXPECT_EQ(found, (decltype(found){{"/kubepods", 600},
                                    {"/kubepods/burstable", 300},
                                    {"/kubepods/burstable/poda", 300},
                                    {"/kubepods/burstable", 0},
                                    {"/kubepods/podb", 300},
                                    {"/kubepods", 0},
                                    {"/", 0}}));
  EXPECT_EQ(machine.usage, 600_m);
  EXPECT_EQ(machine.idle, 1400_m);
  EXPECT_EQ(machine.cpus, 2u);
}

}  // namespace
}  // namespace mbcas::sense
