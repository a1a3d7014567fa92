// What is simulated: a node, its pods and what they do, for how long.
//
//   Result<Scenario> scenario = parseScenario(text, "docs/samples");
//
// The YAML form is in docs/sim.md. An error names the field and the line: "line 7:
// pods[0].workload.rate: must not be negative".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kernel/names.h"
#include "mbcas/sim/workload.h"

namespace mbcas::sim {

struct ContainerSpec {
  std::string name = "main";
  std::optional<Millicores> limit{};  // declared; nothing: none
  Millicores request{0};
  WorkloadSpec workload{};

  friend bool operator==(const ContainerSpec&, const ContainerSpec&) = default;
};

struct PodSpec {
  std::string name{};
  std::vector<ContainerSpec> containers{};
  std::int64_t priority = 0;
  bool managed = true;
  // A process in a top-level cgroup next to kubepods; then it is not managed and has no requests.
  bool outside = false;
  Nanos start{0};                       // when it appears
  std::optional<Nanos> end{};           // and disappears
  std::optional<Nanos> ready_after{0};  // from its start; nothing: never ready
  std::vector<Nanos> restarts{};        // of its first container
  std::optional<Millicores> floor{};
  std::optional<Millicores> ceiling{};

  Millicores request() const;
  bool limited() const;  // a container has a limit
  // By CPU alone; where `outside` is set, it means nothing.
  kernel::Qos qos() const;
  friend bool operator==(const PodSpec&, const PodSpec&) = default;
};

struct Scenario {
  std::string name{};
  std::string description{};
  unsigned cpus = 4;
  Nanos duration = std::chrono::minutes(10);
  Nanos settle = std::chrono::seconds(60);  // measurements begin then
  std::uint64_t seed = 1;
  unsigned nodes = 1;                        // so many like this one, each with a seed of its own
  Nanos interval = std::chrono::seconds(1);  // between samples
  // How long a decided limit takes until it is in force: evenly distributed.
  Nanos delay_min = std::chrono::milliseconds(100);
  Nanos delay_max = std::chrono::milliseconds(900);
  bool stat_local = true;  // the kernel has cpu.stat.local
  std::vector<PodSpec> pods{};

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

// What a scenario may hold: enough for any node, little enough to be simulated.
inline constexpr std::size_t kLongestScenario = 1 << 20;  // bytes of YAML
inline constexpr std::size_t kMostPods = 2000;
inline constexpr int kMostThreads = 256;  // of a container

// Its n-th node, from 0.
Scenario nodeOf(const Scenario& scenario, unsigned n);

// Traces are read from `directory`; an empty one allows none.
Result<Scenario> parseScenario(std::string_view yaml, const std::string& directory = "");

// A trace: lines of "seconds,cores", ascending; a first line that is not numbers is a title.
Result<std::vector<Profile::Point>> parseTrace(std::string_view csv);

}  // namespace mbcas::sim
