// The need of a container or a pod, and the numbers from which it follows: the output of this
// stage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"

namespace mbcas::demand {

// One interval of one container, as the estimators see it.
struct Sample {
  MonotonicTime at{};
  Nanos interval{0};
  Millicores usage;
  Millicores blocked;               // thread time that quotas held back, per wall time
  std::optional<Millicores> limit;  // in force: its own, else the pod's; nothing: unlimited
  Nanos period{std::chrono::milliseconds(100)};
  std::uint64_t periods = 0;  // of the level that was throttled most
  std::uint64_t throttled_periods = 0;
  std::optional<std::uint64_t> threads;
  bool at_limit = false;  // usage stands at the limit, of the container or of the pod

  friend bool operator==(const Sample&, const Sample&) = default;
};

// How the burst level came to be what it is.
enum class BurstState {
  kNone,     // never throttled; nothing learned
  kGuessed,  // the limit bound: raised to what the waiting threads could use, being trimmed
  kLearned,  // bursts were cut off below it
  kTrying,   // a little less is being tried
};
std::string_view name(BurstState state);

struct Need {
  MonotonicTime at{};
  MonotonicTime good_until{};  // after this time, no decision may use it
  bool ready = false;          // warmed up, or throttled already: a decision may rest on it

  Millicores use;       // median over the window (30 s)
  Millicores use_peak;  // highest 5 s mean in it, at least the present demand while the limit binds
  Millicores used_peak;  // the same of what was really used
  double busy = 1;       // share of the window in which it wanted more than a tenth of used_peak
  Millicores burst;      // limit at which the kernel stops throttling it; 0: nothing learned
  Millicores present;    // usage, and while the limit binds what the waiting threads could use
  Millicores blocked;    // held back now
  std::optional<double> pressure;  // classic: smoothed throttling ratio over its threshold, 0 to 1

  // Where it comes from.
  Sample last;
  bool binding = false;  // usage at the limit and throttled: the limit itself, not a burst, binds
  std::uint32_t samples = 0;  // in the window
  BurstState burst_state = BurstState::kNone;
  MonotonicTime burst_until{};  // when a smaller burst level will be tried

  friend bool operator==(const Need&, const Need&) = default;
};

struct ContainerNeed {
  std::uint64_t cgroup = 0;  // as in the signals
  Need need{};
  std::string id{};

  friend bool operator==(const ContainerNeed&, const ContainerNeed&) = default;
};

struct PodNeed {
  std::uint64_t cgroup = 0;
  std::string uid{};
  Need total{};  // sums over the containers; ready when all are, or throttled
  std::vector<ContainerNeed> containers{};

  friend bool operator==(const PodNeed&, const PodNeed&) = default;
};

// Demand in [0,1]: where use stands between floor and ceiling, or the classic pressure.
double demand(const Need& need, Millicores floor, Millicores ceiling);

}  // namespace mbcas::demand
