// Who decides about limits. One interface, so that all are compared on the same scenarios; a policy
// sees what an agent on a node sees, and nothing of the model.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/control/settings.h"
#include "mbcas/demand/estimator.h"
#include "mbcas/sense/signals.h"
#include "mbcas/sim/scenario.h"

namespace mbcas::sim {

struct PodView {
  const PodSpec* spec = nullptr;
  const sense::PodSignals* signals = nullptr;
  // In force, of each container of the spec; of one without a declared limit, nothing.
  std::span<const std::optional<Millicores>> limits{};
  bool ready = true;
};

struct NodeView {
  MonotonicTime now{};
  unsigned cpus = 1;
  std::span<const sense::PodSignals> signals{};  // of all pods
  std::vector<PodView> pods{};                   // managed ones
  Millicores unmanaged_use{};
  Millicores unmanaged_requests{};
};

struct Move {
  std::size_t pod = 0;                                  // in NodeView::pods
  std::vector<std::optional<Millicores>> containers{};  // new limits
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  // False: pods run without any limit.
  virtual bool limits() const { return true; }
  // It writes cgroups itself: limits are in force at once.
  virtual bool writesCgroups() const { return false; }
  // Once per sample.
  virtual std::vector<Move> decide(const NodeView& node) = 0;
};

std::unique_ptr<Policy> makeUnlimited();
std::unique_ptr<Policy> makeStatic();
// As Koordinator's CFS quota burst: while a container is throttled and the node is below half of
// its CPUs, 20 % more every second, up to three times the declared limit; 20 % less every second
// while the node is above half.
std::unique_ptr<Policy> makeTwentyPercent();
// MBCAS: demand, law, guards, as on a node with so many CPUs.
std::unique_ptr<Policy> makeMbcas(std::string_view name, const control::Settings& settings,
                                  demand::Kind estimator, unsigned cpus);

// By name: unlimited, static, twenty-percent, responsive, classic.
std::span<const std::string_view> policyNames();
Result<std::unique_ptr<Policy>> makePolicy(std::string_view name, unsigned cpus);

}  // namespace mbcas::sim
