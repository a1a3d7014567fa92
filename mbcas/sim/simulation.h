// One scenario under one policy, sample by sample.
//
//   Simulation simulation(scenario, *policy);
//   while (simulation.step()) ...            // look at node(), limits()
//   Report report = simulation.report();
//
// Deterministic: the same scenario, seed and policy give the same report, and pods offer the same
// work under every policy.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/sense/sampler.h"
#include "mbcas/sim/ideal.h"
#include "mbcas/sim/node.h"
#include "mbcas/sim/policy.h"
#include "mbcas/sim/report.h"
#include "mbcas/sim/scenario.h"

namespace mbcas::sim {

class Simulation {
 public:
  // Both outlive it.
  Simulation(const Scenario& scenario, Policy& policy);

  // Lets one interval pass, samples, decides, acts. False when the scenario is over.
  bool step();
  Report report() const;

  const Node& node() const { return node_; }
  Nanos now() const { return node_.now(); }
  // In force, of the containers of a pod of the scenario.
  std::span<const std::optional<Millicores>> limits(std::size_t pod) const;

  // What happened to each pod in the last interval, for a course over time. By true counters.
  struct Moment {
    bool present = false;
    double offered = 0;  // cores
    double used = 0;
    double throttled = 0;
    std::optional<Millicores> limit{};
  };
  std::span<const Moment> moments() const { return moments_; }

 private:
  using Limits = std::vector<std::optional<Millicores>>;
  struct Totals {
    double offered = 0;
    double used = 0;
    double throttled = 0;
    double passing = 0;  // the part of `offered` that is lost where it is not done at once
    double ideal = 0;    // what it would have used under the best division

    Totals& operator+=(const Totals& other) {
      offered += other.offered;
      passing += other.passing;
      ideal += other.ideal;
      used += other.used;
      throttled += other.throttled;
      return *this;
    }
  };
  struct Pod {
    int index = -1;  // on the node; -1: not there yet
    Limits limits{};
    Limits wanted{};             // on its way
    std::optional<Nanos> due{};  // in force then
    std::size_t restarts = 0;    // done
    Totals last{};               // at the last sample
    double lost = 0;             // throttled time that went with restarted containers
    Totals total{};              // since measuring began
    Totals window{};             // in this window
    double streak = 0;           // seconds that it has been throttled, without a pause
    double window_streak = 0;    // the longest in this window
    double relief = 0;
    double changes = 0;
    double measured = 0;  // seconds that it was there
    double lowest = 0;
    double highest = 0;
  };

  void prepare(Nanos until);
  void appear(std::size_t i);
  void putInForce(Pod& pod, const Limits& limits);
  NodeView look();
  void act(const NodeView& view);
  void measure(double interval);
  void compareWithIdeal(double interval);
  void closeWindow();
  bool measuring() const { return node_.now() > scenario_.settle; }

  const Scenario& scenario_;
  Policy& policy_;
  Node node_;
  SimulatedClock clock_;
  sense::Sampler sampler_;
  Random random_;
  std::vector<Pod> pods_;      // parallel to the scenario's
  std::vector<Totals> grown_;  // in the last interval, of each
  std::vector<Moment> moments_;
  std::map<std::string, std::size_t, std::less<>> by_name_;  // into pods_
  std::vector<std::size_t> viewed_;                          // pods_ of the view's pods

  Ideal ideal_;
  std::vector<Ideal::Want> wants_;   // of managed pods
  std::vector<std::size_t> buyers_;  // pods_ of these

  double window_seconds_ = 0;
  double window_scarce_ = 0;
  double window_capacity_ = 0;
  double fairness_ = 0;
  double scarce_ = 0;
  double windows_ = 0;
  double free_throttled_ = 0;
  double free_windows_ = 0;
  double constrained_throttled_ = 0;
  double constrained_windows_ = 0;
  std::vector<double> window_use_;
  std::vector<double> window_most_;
};

// All of it.
Report simulate(const Scenario& scenario, Policy& policy);

}  // namespace mbcas::sim
