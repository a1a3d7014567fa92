// The model kernel: one node with its CPUs, pods, containers and threads, on simulated time.
//
//   Node node({.cpus = 4});
//   const int pod = node.addPod("web", 500);
//   node.addContainer(pod, {.name = "main", .weight = 500}, makeWorkload(spec, Random(1)));
//   node.setLimit(pod, {{Millicores(200)}}, Millicores(200));
//   node.advanceTo(seconds(10));
//   node.counters(pod, 0).usage;      // 2 s, if it spins
//
// Pods may be below slices, which are cgroups that contain only slices and pods:
//
//   const int kubepods = node.addSlice("kubepods", 4096);
//   const int burstable = node.addSlice("burstable", 512, kubepods);
//   const int pod = node.addPod("web", 512, burstable);
//
// What it models:
// - Bandwidth control at both levels, containers and pods: a quota of CPU time for each period;
//   whoever has used it up stands still until the next. Periods of different groups begin at
//   different times, as in the kernel. A new quota takes effect at once and starts full. With a
//   burst, a part of what is left unused is carried over.
// - Sharing by weight, level by level: slices and pods without a slice share the CPUs, the members
//   of a slice share its part, containers their pod's part and threads their container's, each
//   thread at most one CPU. What a member cannot use goes to the other members of the same slice
//   first. Shares are those of ideal fair queueing: there are no time slices.
// - The counters of cpu.stat, cpu.stat.local and cpu.pressure. Throttled time sums over CPUs.
//
// It goes from event to event (work arrives or is done, a quota runs out or is filled), so that
// idle time costs nothing, and it is exact to the nanosecond. Deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/kernel/parse.h"
#include "mbcas/sim/random.h"
#include "mbcas/sim/workload.h"

namespace mbcas::sim {

// The counters of one cgroup, since it was made.
struct Counters {
  Nanos usage{0};
  kernel::Throttling throttling;  // by the quota of this very level
  Nanos local{0};                 // thread time held back at any level; of containers only
  kernel::Pressure pressure;
  kernel::CpuLimit limit;
};

class Node {
 public:
  struct Options {
    unsigned cpus = 1;
    Nanos period = std::chrono::milliseconds(100);
    std::uint64_t seed = 1;  // decides when the periods of each group begin
  };
  struct ContainerOptions {
    std::string name = "main";
    double weight = 1;  // within its pod
  };

  explicit Node(const Options& options);
  Node(Node&&) = delete;

  // Slices are numbered in the order of addition. Without a parent, a slice is at the top, next to
  // the pods that have no slice.
  int addSlice(std::string name, double weight, std::optional<int> parent = std::nullopt);
  // Pods are numbered in the order of addition, containers within their pod.
  int addPod(std::string name, double weight, std::optional<int> slice = std::nullopt);
  int addContainer(int pod, const ContainerOptions& options, std::unique_ptr<Workload> workload);
  // Its threads end; its number stays taken.
  void removePod(int pod);
  // The container gets a new cgroup: another number, counters from zero. Its work goes on.
  void restartContainer(int pod, int container);

  // A limit for each container, and for the pod as a whole; nothing is no limit.
  void setLimit(int pod, std::span<const std::optional<Millicores>> containers,
                std::optional<Millicores> whole);
  // cpu.max.burst of the pod and its containers, as a share of their quotas (at most 1, as in the
  // kernel): so much of what a period left unused may be used later, on top of the quota.
  void setBurst(int pod, double share);
  void setWeights(int pod, double weight, std::span<const double> containers);
  void setSliceWeight(int slice, double weight);

  void advanceTo(Nanos time);
  // Of jobs that are done.
  void forgetLatencies();
  Nanos now() const { return now_; }

  unsigned cpus() const { return options_.cpus; }
  int slices() const { return static_cast<int>(slices_.size()); }
  const std::string& sliceName(int slice) const { return sliceAt(slice).name; }
  std::optional<int> sliceParent(int slice) const { return numbered(sliceAt(slice).parent); }
  double sliceWeight(int slice) const { return sliceAt(slice).weight; }
  // CPU time of all pods that are, or were, below the slice.
  Nanos sliceUsage(int slice) const;

  int pods() const { return static_cast<int>(pods_.size()); }
  const std::string& podName(int pod) const { return podAt(pod).name; }
  std::optional<int> podSlice(int pod) const { return numbered(podAt(pod).slice); }
  double podWeight(int pod) const { return podAt(pod).weight; }
  bool present(int pod) const { return podAt(pod).present; }
  int containers(int pod) const { return static_cast<int>(podAt(pod).containers.size()); }
  const std::string& containerName(int pod, int container) const;
  const Workload& workload(int pod, int container) const;
  int threads(int pod, int container) const;

  std::uint64_t podCgroup(int pod) const { return podAt(pod).group.cgroup; }
  std::uint64_t containerCgroup(int pod, int container) const;
  // Grows whenever a cgroup appears or disappears.
  std::uint64_t structure() const { return structure_; }

  Counters podCounters(int pod) const;
  Counters counters(int pod, int container) const;

 private:
  // One cgroup: its quota and its counters. Times in nanoseconds, fractions kept.
  struct Group {
    std::uint64_t cgroup = 0;
    std::optional<double> quota;      // in a period
    double burst = 0;                 // share of it that can be saved
    Nanos phase{0};                   // when its periods begin
    double left = 0;                  // of the quota, in this period
    std::optional<Nanos> period_end;  // awaited
    bool used = false;                // in this period
    bool throttled = false;

    double usage = 0;
    double throttled_time = 0;
    double local = 0;
    double some = 0;
    double full = 0;
    std::uint64_t periods = 0;
    std::uint64_t throttled_periods = 0;
  };
  struct Container {
    std::string name;
    int pod = 0;
    double weight = 1;
    Group group;
    std::unique_ptr<Workload> workload;
    // Of each thread; 0: it sleeps. All threads that do not sleep advance at the same pace, so
    // what each has done since `work` was last written is one number, `done`.
    std::vector<double> work;
    double done = 0;
    double least = Workload::kEndless;  // the smallest of `work` that is not 0
    int runnable = 0;                   // threads that do not sleep
    Nanos wake = Nanos::max();
    double rate = 0;  // CPUs, for all its threads together
  };
  // A member of a slice, or of the machine, while CPUs are divided.
  struct Sharer {
    double weight;
    double cap;
    double* share;
  };
  static constexpr int kTop = -1;  // in place of a slice's number: the machine itself
  struct Slice {
    std::string name;
    double weight = 1;
    int parent = kTop;
    int running = 0;  // threads below it that no quota holds
    double rate = 0;
    std::vector<Sharer> members;  // with such threads
  };
  struct Pod {
    std::string name;
    double weight = 1;
    int slice = kTop;
    bool present = true;
    Group group;
    std::vector<int> containers;  // indices
    int runnable = 0;             // threads; recounted before every stretch of time
    int running = 0;              // threads that no quota holds
    double rate = 0;
  };
  enum class Alarm : std::uint8_t { kWorkload, kContainerPeriod, kPodPeriod };
  struct Timer {
    Nanos at;
    Alarm alarm;
    int index;
    friend bool operator>(const Timer& a, const Timer& b) {
      if (a.at != b.at) return a.at > b.at;
      if (a.alarm != b.alarm) return a.alarm > b.alarm;
      return a.index > b.index;
    }
  };

  Pod& podAt(int pod) { return pods_[static_cast<std::size_t>(pod)]; }
  const Pod& podAt(int pod) const { return pods_[static_cast<std::size_t>(pod)]; }
  Container& containerAt(int index) { return containers_[static_cast<std::size_t>(index)]; }
  const Container& containerAt(int pod, int container) const;
  Slice& sliceAt(int slice) {
    return slice == kTop ? top_ : slices_[static_cast<std::size_t>(slice)];
  }
  const Slice& sliceAt(int slice) const { return slices_[static_cast<std::size_t>(slice)]; }
  static std::optional<int> numbered(int slice) {
    return slice == kTop ? std::nullopt : std::optional(slice);
  }
  Group makeGroup();
  void setQuota(Group& group, std::optional<Millicores> limit);
  Counters countersOf(const Group& group) const;

  void fireTimers();
  void stepWorkload(int index);
  static void settle(Container& container);
  void beginPeriod(Group& group, Alarm alarm, int index);
  void endPeriod(Group& group, Alarm alarm, int index);
  static void refill(Group& group);
  void divide();
  void divideScarce();
  static void divideByWeight(std::vector<Sharer>& members, double total);
  static void share(Slice& slice);
  Nanos nextEvent(Nanos end) const;
  void run(Nanos time);
  void finish();

  Options options_;
  Random random_;
  Nanos now_{0};
  Slice top_;
  std::vector<Slice> slices_;  // parents before their children
  std::vector<Pod> pods_;
  std::vector<Container> containers_;
  std::vector<int> runnable_;  // containers with threads that want to run
  std::vector<int> active_;    // their pods
  std::vector<int> finished_;  // containers of which a thread is done
  std::vector<Sharer> sharers_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::uint64_t structure_ = 0;
  std::uint64_t next_cgroup_ = 1;
  bool changed_ = true;  // which threads want to run, or may: shares have to be divided again
};

}  // namespace mbcas::sim
