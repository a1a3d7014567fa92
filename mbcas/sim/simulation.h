// One scenario under one policy, sample by sample.
//
//   Simulation simulation(scenario, *policy);
//   while (simulation.step()) ...            // look at node(), moments()
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
#include "mbcas/sim/tree.h"

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
  // What happened to each pod in the last interval, for a course over time. By true counters.
  struct Moment {
    bool present = false;
    double offered = 0;  // cores
    double used = 0;
    double throttled = 0;
    std::optional<Millicores> limit{};
    int replicas = 1;
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
  // A pod of the scenario runs as one instance, or as several that share its requests.
  struct Instance {
    int index = 0;  // on the node
    Limits limits{};
    std::vector<Millicores> requests{};
    Limits wanted{};                            // on their way
    std::vector<Millicores> wanted_requests{};  // none: as they are
    std::optional<Nanos> due{};                 // in force then
    Nanos ready_at{0};                          // takes requests from then on
    bool ready = false;
    std::optional<Nanos> leaves{};  // takes none any more, and is gone then
  };
  // From when a pod is throttled for want of a limit until it has long not been.
  struct Episode {
    double since = 0;                // seconds
    double last_throttled = 0;       // likewise
    double limit = 0;                // cores, at the start
    std::optional<double> raised{};  // seconds after the start
  };
  struct EpisodeTimes {
    std::vector<double> reactions{};
    std::vector<double> convergences{};
    void add(const Episode& episode, bool over);
  };
  struct Pod {
    std::vector<Instance> instances{};  // in the order of their start; the first is the scenario's
    std::shared_ptr<int> ready = std::make_shared<int>(1);  // instances that take requests
    Nanos appeared{0};
    int replicas = 1;          // that there should be
    std::size_t restarts = 0;  // done
    Totals last{};             // at the last sample
    double lost = 0;           // throttled time that went with restarted containers
    Totals total{};            // since measuring began
    Totals window{};           // in this window
    double streak = 0;         // seconds that it has been throttled, without a pause
    double window_streak = 0;  // the longest in this window
    double relief = 0;
    std::optional<Episode> episode{};
    double changes = 0;
    double measured = 0;  // seconds that it was there
    double reserved = 0;  // limit times seconds
    double lowest = 0;
    double highest = 0;
  };
  // Something that happens at a time of its own.
  struct Event {
    enum class Kind { kAppear, kEnd, kLimit, kReady, kLeave, kRestart };
    Nanos at{0};
    std::size_t pod = 0;
    std::size_t instance = 0;
    Kind kind = Kind::kAppear;
  };

  void prepare(Nanos until);
  std::optional<Event> nextEvent(Nanos until) const;
  void happen(const Event& event);
  void start(std::size_t i);
  void putInForce(const PodSpec& spec, Pod& pod, Instance& instance);
  void setWeights(const PodSpec& spec, const Instance& instance);
  void weighSlices();
  std::optional<int> sliceOf(const PodSpec& spec) const;  // nothing: the top
  void adjustReplicas();
  bool fits(Millicores more) const;
  bool present(const Pod& pod) const;
  std::optional<Millicores> limitOf(const Pod& pod) const;
  void noteLimit(Pod& pod) const;
  NodeView look();
  void act(const NodeView& view);
  void measure(double interval);
  void followEpisode(Pod& pod, bool throttled, double interval);
  void compareWithIdeal(double interval);
  void closeWindow();
  bool measuring() const { return node_.now() > scenario_.settle; }

  const Scenario& scenario_;
  Policy& policy_;
  Node node_;
  SimulatedClock clock_;
  sense::Sampler sampler_;
  Random random_;
  int kubepods_;  // slices of the node
  int burstable_;
  int best_effort_;
  std::vector<Pod> pods_;      // parallel to the scenario's
  std::vector<Totals> grown_;  // in the last interval, of each
  std::vector<Moment> moments_;
  struct Place {
    std::size_t pod;
    std::size_t instance;
  };
  std::map<std::string, Place, std::less<>> by_name_;
  std::vector<Place> viewed_;  // of the view's pods
  Tree tree_;

  Ideal ideal_;
  std::vector<Ideal::Want> wants_;   // of managed pods
  std::vector<std::size_t> buyers_;  // pods_ of these

  double window_seconds_ = 0;
  double window_scarce_ = 0;
  double window_capacity_ = 0;
  double fairness_ = 0;
  double jain_ = 0;
  double scarce_ = 0;
  double windows_ = 0;
  double free_throttled_ = 0;
  double free_windows_ = 0;
  double constrained_throttled_ = 0;
  double constrained_windows_ = 0;
  std::vector<double> window_use_;
  std::vector<double> window_most_;
  Latencies held_back_;
  EpisodeTimes episode_times_;
};

// All of it.
Report simulate(const Scenario& scenario, Policy& policy);

}  // namespace mbcas::sim
