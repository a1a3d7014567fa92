// The pages that `mbcas simulate --html` writes: a comparison of policies, and a sweep of settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/mbcas/simulate_measures.h"
#include "mbcas/sim/report.h"
#include "mbcas/sim/scenario.h"
#include "mbcas/sim/simulation.h"
#include "mbcas/sim/tuning.h"

namespace mbcas::app {

// A simulation over time, in a few hundred pieces.
class Course {
 public:
  struct Piece {
    double samples = 0;
    double need = 0;  // cores; sums over the samples, like the others
    double used = 0;
    double throttled = 0;
    double limit = 0;  // not finite: none
  };

  explicit Course(const sim::Scenario& scenario);
  void add(const sim::Simulation& simulation);

  const std::vector<Piece>& first() const { return first_; }  // the scenario's first pod
  const std::vector<Piece>& all() const { return all_; }      // its managed pods together
  double secondsOf(std::size_t piece) const;

 private:
  std::vector<bool> managed_;
  double duration_;
  std::vector<Piece> first_;
  std::vector<Piece> all_;
};

struct Run {
  sim::Report report;
  Course course;
};

struct ComparedScenario {
  sim::Scenario scenario;
  std::vector<Run> runs;  // a policy each
};
// `machine`: what simulated it, and how long that took.
std::string comparisonPage(const std::vector<ComparedScenario>& scenarios,
                           const std::string& machine);

struct Tried {
  sim::Candidate candidate;
  Overall training;
  std::optional<Overall> held_out{};
};
std::vector<Row> sweepRows(const std::vector<Tried>& tried);
std::string sweepPage(const std::vector<Tried>& tried, const std::vector<std::string>& training,
                      const std::vector<std::string>& held_out, const std::string& machine);

}  // namespace mbcas::app
