// Everything that uses CPU on the machine, not only the pods: the cgroups that share the CPUs, as a
// tree, and the times of the CPUs.
//
//   MachineSampler machine(sampler.source(), clock, {});
//   every second: const MachineSignals& all = machine.tick(sampler.tick());
//
// The tree has as many cgroups as it takes to say how the kernel divides the CPUs. Those on the way
// to a pod are inner ones (kubepods.slice, kubepods-burstable.slice); each pod is a leaf, and so is
// every other cgroup below the root or below an inner one, with all that it contains
// (system.slice). Tasks that are directly in the root or in an inner cgroup compete there one by
// one; together they are a leaf, too. So every CPU second is in one leaf: the leaves' usage adds up
// to the machine's.
//
// What a pod uses is taken from the sampler's signals. The usage of the other cgroups is read every
// tick, everything else (weight, cap, threads, CPUs, and which cgroups there are) every ten
// seconds. A cgroup that appears in between is part of the tasks' leaf until then.
//
// One thread. A tick in which no cgroup came or went allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/kernel/cgroup_reader.h"
#include "mbcas/kernel/cpu_set.h"
#include "mbcas/kernel/pod_tree.h"
#include "mbcas/sense/meter.h"
#include "mbcas/sense/signals.h"

namespace mbcas::sense {

// One cgroup of the machine's tree, or the tasks directly in one.
struct CgroupSignals {
  enum class Kind : std::uint8_t {
    kInner,  // leads to pods; its usage is the sum of those below
    kPod,
    kOther,  // not a pod and without one: a leaf that stands for its whole subtree
    kTasks,  // tasks directly in the parent, and what of its usage no other leaf explains; below
             // the root also what runs on the machine outside of the root
  };

  std::string path{};                   // of kTasks: the parent's
  std::string uid{};                    // kPod
  std::optional<std::size_t> pod{};     // kPod: index in the signals that the tick was given
  std::optional<std::size_t> parent{};  // index of an earlier one; nothing: directly below the root
  Kind kind = Kind::kOther;

  // The kernel's weight among its siblings, on the scale of kernel::kernelWeight(); as last read,
  // and the kernel's default if it never could be. Of kTasks: of each task (of nice 0).
  double weight = static_cast<double>(kernel::kDefaultWeight);
  std::optional<Millicores> cap{};  // quota of this very level; nothing: none, or not readable
  Millicores usage{};
  MonotonicTime good_until{};              // after this time, no decision may use it
  std::optional<std::uint64_t> threads{};  // of kTasks: tasks; nothing: not known
  std::optional<kernel::CpuSet> cpus{};    // where it is restricted to fewer than the machine has

  friend bool operator==(const CgroupSignals&, const CgroupSignals&) = default;
};
std::string_view name(CgroupSignals::Kind kind);

struct MachineSignals {
  MonotonicTime at{};
  Nanos interval{0};  // zero: nothing earlier to compare with, and no usage is known
  MonotonicTime good_until{};

  unsigned cpus = 0;        // that are online
  Millicores usage{};       // of all tasks; the sum of the leaves of `tree`
  Millicores idle{};        // waiting for I/O included
  Millicores interrupts{};  // CPU time that no cgroup is charged with
  Millicores steal{};       // CPU time that a hypervisor gave to others

  std::vector<CgroupSignals> tree{};  // each after its parent, siblings by name, kTasks last

  bool known() const { return interval > Nanos(0); }
  friend bool operator==(const MachineSignals&, const MachineSignals&) = default;
};

// What happened to the readings since the start.
struct MachineCounters {
  std::uint64_t looks = 0;       // which cgroups there are
  std::uint64_t changes = 0;     // and they were others
  std::uint64_t left_out = 0;    // cgroups beyond Options::most, at the last listing
  std::uint64_t unreadable = 0;  // directories that could not be listed, or cgroups not opened
  std::uint64_t gone = 0;        // readings that met a removed cgroup
  std::uint64_t failures = 0;    // readings that failed otherwise
  std::uint64_t reads = 0;
  std::string last_failure;

  friend bool operator==(const MachineCounters&, const MachineCounters&) = default;
};

class MachineSampler {
 public:
  struct Options {
    Nanos interval = std::chrono::seconds(1);  // how often tick() is going to be called
    unsigned cpus = 1;                         // of the machine, where the source does not say
    std::size_t most = 1000;  // cgroups without pods; what others use is in the tasks' leaf
  };

  // `source` is the sampler's, and outlives it.
  MachineSampler(const kernel::PodSource& source, const Clock& clock, Options options);

  // `pods`: what the sampler's tick returned just now. Valid until the next tick.
  const MachineSignals& tick(std::span<const PodSignals> pods);
  const MachineSignals& signals() const { return signals_; }

  void setInterval(Nanos interval) { options_.interval = interval; }
  const MachineCounters& counters() const { return counters_; }

 private:
  // Parallel to MachineSignals::tree.
  struct Place {
    std::uint64_t inode = 0;                         // 0: not known
    std::unique_ptr<kernel::CgroupReader> cgroup{};  // null: not readable, a pod, or tasks
    UsageMeter meter{};
    Millicores below{};  // usage of the children, while a tick adds them up
    bool fresh = true;   // its details were never read
  };
  struct Building;

  std::unique_ptr<kernel::CgroupReader> open(const std::string& path, std::uint64_t inode);
  bool samePods(std::span<const PodSignals> pods) const;
  std::uint64_t look();
  std::uint64_t lookAt(const std::string& path);
  void list(const std::string& path, const kernel::ChildVisitor& visit);
  void build(std::span<const PodSignals> pods);
  void buildBelow(Building& building, const std::string& path, std::optional<std::size_t> parent);
  void add(Building& building, CgroupSignals signals, std::uint64_t inode);
  void readUsage(Place& place, CgroupSignals& signals);
  void readDetails(Place& place, CgroupSignals& signals);
  void countTasks(CgroupSignals& signals);
  void copyPod(const PodSignals& pod, CgroupSignals& signals) const;
  void readMachine();
  bool rootIsTheKernels();
  void addUp();
  std::optional<kernel::CpuSet> restriction(const kernel::CpuSet& cpus) const;
  template <class T>
  bool worked(const kernel::ReadResult<T>& result);

  const kernel::PodSource& source_;
  const Clock& clock_;
  Options options_;
  MachineSignals signals_;
  MachineCounters counters_;
  std::vector<Place> places_;
  std::vector<std::uint64_t> pods_;  // cgroups of the pods in the tree, in the order given
  std::uint64_t seen_ = 0;           // what look() should find
  std::size_t others_ = 0;           // cgroups in the tree that are neither pods nor lead to one

  std::unique_ptr<kernel::CgroupReader> root_;
  std::optional<bool> kernels_root_;  // of v2
  UsageMeter root_meter_;
  std::unique_ptr<kernel::MachineReader> machine_;
  std::optional<kernel::MachineTime> time_;  // of the last tick
  MonotonicTime last_tick_{};
  MonotonicTime details_at_{};
  bool started_ = false;
  bool met_gone_ = false;
};

}  // namespace mbcas::sense
