// What `mbcas simulate` shows of a report: one list of measures for its tables and pages.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mbcas/sim/report.h"
#include "mbcas/view/text.h"

namespace mbcas::app {

using Row = std::vector<std::string>;

struct Comparison {
  std::vector<Row> rows;                               // the first has the titles
  std::set<std::pair<std::size_t, std::size_t>> best;  // row and column: no policy of this scenario
                                                       // does better
};
// A line for each report; those of one scenario stand together, and "unlimited" comes first.
Comparison compare(const std::vector<sim::Report>& reports);
// One scenario under one policy, pod by pod.
std::vector<Row> podRows(const sim::Report& report);

// A measure over several scenarios under one policy: means, but for the totals that their names
// say. `unlimited` are the same scenarios without limits, in the same order, or none.
struct Overall {
  double throttled_free = 0;         // ms/s
  double throttled_constrained = 0;  // ms/s
  double slowdown = 1;               // p99 over that without limits, geometric mean
  double used = 1;                   // of what is used without limits
  double reserved = 0;               // cores, sum
  double slack = 0;
  double changes = 0;  // of a pod in 5 minutes
  double fairness = 1;
  double jain = 1;
  std::vector<double> reactions{};  // of all
  std::vector<double> convergences{};
};
Overall overall(const std::vector<const sim::Report*>& reports,
                const std::vector<const sim::Report*>& unlimited);

// "never" for what is infinite, "-" for what is not there.
std::string secondsText(std::optional<double> time);
std::string millisecondsText(std::optional<double> time);  // to a tenth below 10

// The first row has the titles; all but the first `left` columns are numbers.
view::Table tableOf(const std::vector<Row>& rows, std::size_t left);

}  // namespace mbcas::app
