#include "apps/mbcas/simulate_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace mbcas::app {
namespace {

using sim::PodReport;
using sim::Report;

std::string fixed(std::optional<double> value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}
std::string limit(double cores) {
  return cores > 0 ? fmt::format("{:.0f}m", cores * 1000) : "none";
}
std::optional<double> percent(std::optional<double> share) {
  return share ? std::optional(*share * 100) : std::nullopt;
}

enum class Better { kLow, kHigh, kNeither };
struct Measure {
  const char* title;
  Better better;
  std::optional<double> (*value)(const Report&, const Report* unlimited);
  std::string (*text)(std::optional<double>);
};

const std::array kMeasures = {
    Measure{"FREE ms/s", Better::kLow,
            [](const Report& r, const Report*) { return std::optional(r.throttled_free * 1000); },
            [](std::optional<double> v) { return fixed(v, 1); }},
    Measure{"CONSTRAINED ms/s", Better::kNeither,
            [](const Report& r, const Report*) {
              return std::optional(r.throttled_constrained * 1000);
            },
            [](std::optional<double> v) { return fixed(v, 1); }},
    Measure{"P50 ms", Better::kLow, [](const Report& r, const Report*) { return r.p50; },
            millisecondsText},
    Measure{"P99 ms", Better::kLow, [](const Report& r, const Report*) { return r.p99; },
            millisecondsText},
    Measure{"P99.9 ms", Better::kLow, [](const Report& r, const Report*) { return r.p999; },
            millisecondsText},
    Measure{"CPU", Better::kNeither,
            [](const Report& r, const Report*) { return std::optional(r.used); },
            [](std::optional<double> v) { return fixed(v, 2); }},
    Measure{"USED %", Better::kHigh,
            [](const Report& r, const Report* unlimited) {
              return unlimited != nullptr ? std::optional(sim::usedBeside(r, *unlimited) * 100)
                                          : std::nullopt;
            },
            [](std::optional<double> v) { return fixed(v, 1); }},
    Measure{"RESERVED", Better::kLow,
            [](const Report& r, const Report*) {
              return r.reserved > 0 ? std::optional(r.reserved) : std::nullopt;
            },
            [](std::optional<double> v) { return fixed(v, 2); }},
    Measure{"SLACK %", Better::kLow,
            [](const Report& r, const Report*) { return percent(sim::slackOf(r)); },
            [](std::optional<double> v) { return fixed(v, 0); }},
    Measure{"CHANGES", Better::kLow,
            [](const Report& r, const Report*) { return std::optional(r.changes); },
            [](std::optional<double> v) { return fixed(v, 2); }},
    Measure{"MOST", Better::kLow,
            [](const Report& r, const Report*) { return std::optional(r.most_changes); },
            [](std::optional<double> v) { return fixed(v, 1); }},
    Measure{"REACTION s", Better::kLow,
            [](const Report& r, const Report*) { return sim::median(r.reactions); }, secondsText},
    Measure{"CONVERGED s", Better::kLow,
            [](const Report& r, const Report*) { return sim::median(r.convergences); },
            secondsText},
    Measure{"RELIEF s", Better::kLow,
            [](const Report& r, const Report*) { return std::optional(r.relief); },
            [](std::optional<double> v) { return fixed(v, 0); }},
    Measure{"FAIR", Better::kHigh,
            [](const Report& r, const Report*) { return std::optional(r.fairness); },
            [](std::optional<double> v) { return fixed(v, 3); }},
    Measure{"JAIN", Better::kHigh,
            [](const Report& r, const Report*) { return std::optional(r.jain); },
            [](std::optional<double> v) { return fixed(v, 3); }},
};

// Of the reports of one scenario, that which others are compared with.
const Report* unlimitedOf(const std::vector<Report>& reports, std::size_t from) {
  return reports[from].policy == "unlimited" ? &reports[from] : nullptr;
}

// In each column of these rows, the best text; all that read the same share it.
void markBest(const std::vector<Report>& reports, std::size_t from, std::size_t until,
              Comparison& comparison) {
  for (std::size_t m = 0; m < kMeasures.size() && until - from > 1; ++m) {
    const Measure& measure = kMeasures[m];
    if (measure.better == Better::kNeither) continue;
    std::optional<double> best;
    std::size_t at = from;
    for (std::size_t i = from; i < until; ++i) {
      const std::optional<double> value = measure.value(reports[i], unlimitedOf(reports, from));
      if (!value || std::isinf(*value)) continue;
      const bool better = measure.better == Better::kLow ? value < best : value > best;
      if (!best || better) {
        best = value;
        at = i;
      }
    }
    if (!best) continue;
    for (std::size_t i = from; i < until; ++i) {
      const std::size_t column = m + 2;
      if (comparison.rows[i + 1][column] == comparison.rows[at + 1][column]) {
        comparison.best.emplace(i + 1, column);
      }
    }
  }
}

}  // namespace

std::string secondsText(std::optional<double> time) {
  if (!time) return "-";
  return std::isinf(*time) ? "never" : fmt::format("{:.0f}", *time);
}

std::string millisecondsText(std::optional<double> time) {
  if (!time) return "-";
  return *time < 10 ? fmt::format("{:.1f}", *time) : fmt::format("{:.0f}", *time);
}

Comparison compare(const std::vector<Report>& reports) {
  Comparison comparison;
  Row titles = {"SCENARIO", "POLICY"};
  for (const Measure& measure : kMeasures) titles.emplace_back(measure.title);
  comparison.rows.push_back(std::move(titles));
  std::size_t from = 0;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const Report& report = reports[i];
    if (report.scenario != reports[from].scenario) {
      markBest(reports, from, i, comparison);
      from = i;
    }
    Row row = {report.scenario, report.policy};
    for (const Measure& measure : kMeasures) {
      row.push_back(measure.text(measure.value(report, unlimitedOf(reports, from))));
    }
    comparison.rows.push_back(std::move(row));
  }
  markBest(reports, from, reports.size(), comparison);
  return comparison;
}

std::vector<Row> podRows(const Report& report) {
  std::vector<Row> rows = {{"POD", "OFFERED", "USED", "THROTTLED", "P50 ms", "P99 ms", "LIMIT",
                            "LOWEST", "HIGHEST", "CHANGES", "RELIEF"}};
  for (const PodReport& pod : report.pods) {
    rows.push_back({pod.name, fmt::format("{:.0f}m", pod.offered * 1000),
                    fmt::format("{:.0f}m", pod.used * 1000),
                    fmt::format("{:.1f} ms/s", pod.throttled * 1000), millisecondsText(pod.p50),
                    millisecondsText(pod.p99), limit(pod.last_limit), limit(pod.lowest_limit),
                    limit(pod.highest_limit), fmt::format("{:.1f}", pod.changes),
                    fmt::format("{:.0f} s", pod.relief)});
  }
  return rows;
}

Overall overall(const std::vector<const Report*>& reports,
                const std::vector<const Report*>& unlimited) {
  Overall sum{.slowdown = 0, .used = 0, .fairness = 0, .jain = 0};
  const auto count = static_cast<double>(reports.size());
  double services = 0;
  double limited = 0;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const Report& report = *reports[i];
    sum.throttled_free += report.throttled_free * 1000 / count;
    sum.throttled_constrained += report.throttled_constrained * 1000 / count;
    sum.reserved += report.reserved;
    sum.changes += report.changes / count;
    sum.fairness += report.fairness / count;
    sum.jain += report.jain / count;
    if (const auto slack = sim::slackOf(report)) {
      sum.slack += *slack;
      ++limited;
    }
    if (!unlimited.empty()) {
      sum.used += sim::usedBeside(report, *unlimited[i]) / count;
      if (report.p99 && unlimited[i]->p99) {
        sum.slowdown += std::log(*report.p99 / *unlimited[i]->p99);
        ++services;
      }
    }
    sum.reactions.insert(sum.reactions.end(), report.reactions.begin(), report.reactions.end());
    sum.convergences.insert(sum.convergences.end(), report.convergences.begin(),
                            report.convergences.end());
  }
  sum.slack = limited > 0 ? sum.slack / limited : 0;
  sum.slowdown = services > 0 ? std::exp(sum.slowdown / services) : 1;
  return sum;
}

view::Table tableOf(const std::vector<Row>& rows, std::size_t left) {
  std::vector<view::Table::Column> columns;
  for (const std::string& title : rows.front()) {
    const bool text = columns.size() < left;
    columns.push_back({title, text ? view::Table::Align::kLeft : view::Table::Align::kRight});
  }
  view::Table table(std::move(columns));
  for (std::size_t i = 1; i < rows.size(); ++i) table.row(rows[i]);
  return table;
}

}  // namespace mbcas::app
