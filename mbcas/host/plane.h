// The control plane of a machine without Kubernetes: its cgroups are the pods, and limits are
// written straight to the kernel. Sense, demand, market and control law are those of a cluster.
//
//   Plane plane(mounts, config, settings, clock, ledger);
//   every second: const View& view = plane.tick();
//   at the end:   ledger.restore(mounts);
//
// A limit is in the ledger before it is first changed. A change by another writer is respected: it
// becomes the declared limit, and is said.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/control/actuation.h"
#include "mbcas/control/law.h"
#include "mbcas/host/config.h"
#include "mbcas/host/ledger.h"
#include "mbcas/host/source.h"
#include "mbcas/kernel/cgroup.h"
#include "mbcas/node/loop.h"
#include "mbcas/sense/machine.h"
#include "mbcas/sense/sampler.h"

namespace mbcas::host {

struct Settings {
  control::Settings control{};
  demand::Settings demand{};
  Nanos sample_interval = std::chrono::seconds(1);
  bool dry_run = false;  // decide and show, write nothing
};

// What became of one pod at one tick.
struct PodView {
  std::string name;
  std::string path;
  Millicores usage;
  Millicores blocked;  // throttled time per wall time
  demand::Need need{};
  std::optional<Millicores> limit;     // in force before this tick's change; nothing: unlimited
  std::optional<double> pressure{};    // share of time in which some thread waited for a CPU
  std::optional<double> contention{};  // the part of it that no quota of its own explains
  Millicores declared;
  Millicores request;
  double weight = 1;
  int priority = 0;
  std::string bounded_by{};  // "floor: ...; ceiling: ...": what sets its bounds
  std::string left_alone{};  // why it is not managed; empty: it is
  std::string failure{};     // why its limit could not be written
  control::PodDecision decision{};
  control::Move move{};  // where its limit may go now
  bool changed = false;  // a limit was written
  bool begins = false;   // it had no limit, and was given the declared one at this tick
};

struct View {
  MonotonicTime at{};
  Millicores capacity;           // of the machine
  Millicores unmanaged_use;      // of everything else on it
  control::NodeDecision node{};  // its pods are in PodView::decision
  std::vector<PodView> pods{};
  std::vector<std::string> notes{};  // for the screen or the log, once
  // What was decided from. Valid as long as the view; null: nothing was decided.
  const control::NodeInput* input = nullptr;
};

class Plane {
 public:
  Plane(const kernel::Mounts& mounts, const HostConfig& config, const Settings& settings,
        const Clock& clock, Ledger& ledger);

  // Samples, decides, writes. Valid until the next one.
  const View& tick();
  void setDryRun(bool dry_run) { settings_.dry_run = dry_run; }
  const sense::SenseCounters& counters() const { return sampler_.counters(); }

 private:
  struct Known {
    std::uint64_t cgroup = 0;
    kernel::CpuLimit original;
    Millicores declared;
    std::optional<Millicores> written;  // by MBCAS, last
    Nanos back_off{0};                  // after a failure
    MonotonicTime retry{};
    std::string failure{};
  };

  // Its part in the loop; nothing if it is left alone, with the reason in the view.
  std::optional<node::Participant> adopt(const sense::PodSignals& signals, std::size_t index,
                                         PodView& view);
  void write(PodView& view, Known& known, Millicores limit);

  kernel::Mounts mounts_;
  HostConfig config_;
  Settings settings_;
  const Clock& clock_;
  Ledger& ledger_;
  HostSource* source_;  // the sampler's
  sense::Sampler sampler_;
  sense::MachineSampler machine_;
  node::Loop loop_;
  control::NodeActuator actuator_;
  std::map<std::string, Known> known_;  // by path
  View view_;
  std::vector<std::string> told_nested_;
};

}  // namespace mbcas::host
