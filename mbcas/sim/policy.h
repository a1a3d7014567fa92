// Who decides about limits. One interface, so that all are compared on the same scenarios; a policy
// sees what an agent on a node sees, and nothing of the model.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/control/law.h"
#include "mbcas/control/settings.h"
#include "mbcas/demand/estimator.h"
#include "mbcas/sense/signals.h"
#include "mbcas/sim/hpa.h"
#include "mbcas/sim/scenario.h"
#include "mbcas/sim/tree.h"

namespace mbcas::node {
class Loop;
}

namespace mbcas::sim {

struct PodView {
  const PodSpec* spec = nullptr;
  const sense::PodSignals* signals = nullptr;
  // In force, of each container of the spec; of one without a declared limit, nothing.
  std::span<const std::optional<Millicores>> limits{};
  bool ready = true;
  int replica = 0;  // the first; replicas share the spec
};

struct NodeView {
  MonotonicTime now{};
  unsigned cpus = 1;
  std::span<const sense::PodSignals> signals{};  // of all pods
  std::vector<PodView> pods{};                   // managed ones
  Millicores machine_use{};                      // of all pods, and of processes outside
  Millicores unmanaged_requests{};
  std::span<const TreeEntry> tree{};  // everything that uses CPU, and the slices above it
};

struct Move {
  std::size_t pod = 0;                                  // in NodeView::pods
  std::vector<std::optional<Millicores>> containers{};  // new limits
  // New requests, of each container; none: as they are. The move waits until they fit on the node.
  std::vector<Millicores> requests{};
};

struct Scale {
  const PodSpec* spec = nullptr;
  int replicas = 1;  // there should be; a new one waits until its request fits on the node
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  // That a container begins with; nothing: it runs without.
  virtual std::optional<Millicores> firstLimit(Millicores declared, unsigned cpus) const;
  // The pod's kernel weight is this many times what the kubelet makes of its request.
  virtual double weight(const PodSpec&) const { return 1; }
  // cpu.max.burst, as a share of the limit.
  virtual double burst() const { return 0; }
  // It writes cgroups itself: limits are in force at once.
  virtual bool writesCgroups() const { return false; }
  // Once per sample.
  virtual std::vector<Move> decide(const NodeView&) { return {}; }
  // Likewise, after that.
  virtual std::vector<Scale> scale(const NodeView&) { return {}; }
  // Pods for which others are bound on trial, after the last decision; see control/help.h.
  virtual int probing() const { return 0; }
  // The last one, until the next; null: not one of a market.
  virtual const control::NodeDecision* decision() const { return nullptr; }
  // What made that decision, with what it was made from; likewise.
  virtual const node::Loop* loop() const { return nullptr; }
};

std::unique_ptr<Policy> makeUnlimited();
std::unique_ptr<Policy> makeStatic();
// Four times the declared limit, at most the node.
std::unique_ptr<Policy> makeGenerous();
// The declared limit and a burst of as much (cpu.max.burst), the most that the kernel allows.
std::unique_ptr<Policy> makeStaticBurst();
// As Koordinator's CFS quota burst: while a container is throttled and the node is below half of
// its CPUs, 20 % more every second, up to three times the declared limit; 20 % less every second
// while the node is above half.
std::unique_ptr<Policy> makeTwentyPercent();
// A HorizontalPodAutoscaler for every pod that consists of services; see hpa.h. Others keep their
// declared limits.
std::unique_ptr<Policy> makeHpa(const HpaSettings& settings = {});
// A VerticalPodAutoscaler in place for every pod; see vpa.h.
std::unique_ptr<Policy> makeVpa();
// MBCAS: demand, law, guards.
std::unique_ptr<Policy> makeMbcas(std::string_view name, const control::Settings& law,
                                  const demand::Settings& estimator);

// By name: unlimited, static, generous, burst, hpa, vpa, twenty-percent, classic, responsive.
std::span<const std::string_view> policyNames();
Result<std::unique_ptr<Policy>> makePolicy(std::string_view name, unsigned cpus);

}  // namespace mbcas::sim
