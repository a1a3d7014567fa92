#include "apps/mbcas/simulate_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "mbcas/view/page.h"
#include "mbcas/view/plot.h"

namespace mbcas::app {
namespace {

using sim::Report;
using view::Page;
using view::Plot;

constexpr std::size_t kPieces = 240;
constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr std::size_t kBlack = 6;  // of a plot's colours

double seconds(Nanos time) {
  return std::chrono::duration<double>(time).count();
}

// A reader of the page knows MBCAS, but not the names of its profiles.
std::string shownName(const std::string& policy) {
  if (policy == "responsive") return "MBCAS";
  if (policy == "classic") return "MBCAS classic";
  return policy;
}

// In minutes, or hours where there are many.
struct TimeAxis {
  double unit;
  const char* label;
};
TimeAxis axisOf(const sim::Scenario& scenario) {
  return seconds(scenario.duration) > 4 * 3600 ? TimeAxis{3600, "hours"} : TimeAxis{60, "minutes"};
}

using Value = double (*)(const Course::Piece&);
view::Series seriesOf(const std::string& name, const Course& course,
                      const std::vector<Course::Piece>& pieces, const TimeAxis& axis, Value value) {
  view::Series series{.name = name};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].samples == 0) continue;
    series.points.push_back(
        {course.secondsOf(i) / axis.unit, value(pieces[i]) / pieces[i].samples});
  }
  return series;
}

// Milliseconds against percents. What is less than `least` stands there: powers of ten have no
// zero.
view::Series distribution(const std::string& name, const sim::Latencies& values, double least) {
  view::Series series{.name = name, .stepped = true};
  for (const auto& [value, share] : values.cumulative()) {
    series.points.push_back(
        {std::max(static_cast<double>(value.count()) / 1e6, least), share * 100});
  }
  return series;
}

// The n-th of the colours, without black.
std::size_t colourOf(std::size_t n) {
  return n < kBlack ? n : n + 1;
}
// The same for a policy in all plots; the last, MBCAS as it comes, has the first.
std::size_t colourOf(const ComparedScenario& compared, const Run& run) {
  return colourOf(static_cast<std::size_t>(&compared.runs.back() - &run));
}

void addPlots(const ComparedScenario& compared, Page& page) {
  const sim::Scenario& scenario = compared.scenario;
  const TimeAxis axis = axisOf(scenario);
  const auto need = [](const Course::Piece& piece) { return piece.need; };
  const auto used = [](const Course::Piece& piece) { return piece.used; };
  const auto limit = [](const Course::Piece& piece) { return piece.limit; };
  const auto throttled = [](const Course::Piece& piece) { return piece.throttled * 1000; };
  const auto add = [&](Plot& plot, const Run& run, view::Series series) {
    series.colour = colourOf(compared, run);
    plot.series.push_back(std::move(series));
  };
  for (const bool all : {false, true}) {
    if (all && scenario.pods.size() < 2) continue;
    const std::string whose = all ? "all managed pods" : scenario.pods.front().name;
    Plot limits{.title = "Limit and need: " + whose, .x_label = axis.label, .y_label = "cores"};
    Plot uses{.title = "Use: " + whose, .x_label = axis.label, .y_label = "cores"};
    Plot held{.title = "Throttled: " + whose, .x_label = axis.label, .y_label = "ms/s"};
    for (const Run& run : compared.runs) {
      const auto& pieces = all ? run.course.all() : run.course.first();
      const std::string policy = shownName(run.report.policy);
      if (run.report.reserved > 0) {
        view::Series series = seriesOf(policy, run.course, pieces, axis, limit);
        series.stepped = true;
        add(limits, run, std::move(series));
        add(held, run, seriesOf(policy, run.course, pieces, axis, throttled));
      }
      add(uses, run, seriesOf(policy, run.course, pieces, axis, used));
    }
    const Run& first = compared.runs.front();
    limits.series.push_back(seriesOf("need", first.course,
                                     all ? first.course.all() : first.course.first(), axis, need));
    limits.series.back().dashed = true;
    limits.series.back().colour = kBlack;
    page.plot(limits);
    page.plot(uses);
    if (!held.series.empty()) page.plot(held);
  }
  Plot latencies{.title = "Requests of services answered within",
                 .x_label = "ms",
                 .y_label = "%",
                 .y_top = 100,
                 .x_log = true};
  Plot held{.title = "Pods throttled at most so much, in windows of 30 s",
            .x_label = "ms/s",
            .y_label = "%",
            .y_top = 100,
            .x_log = true};
  for (const Run& run : compared.runs) {
    const Report& report = run.report;
    if (report.requests.count() > 0) {
      add(latencies, run, distribution(shownName(report.policy), report.requests, 0.1));
    }
    if (report.reserved > 0)
      add(held, run, distribution(shownName(report.policy), report.held_back, 0.01));
  }
  if (!latencies.series.empty()) page.plot(latencies);
  if (!held.series.empty()) page.plot(held);
}

// The cells of each column that read as its lowest value does. No row but the title: nothing to
// compare.
Page::Cells lowest(const std::vector<Row>& rows,
                   const std::vector<std::vector<std::optional<double>>>& values) {
  Page::Cells best;
  for (std::size_t c = 1; c < rows.front().size() && rows.size() > 2; ++c) {
    std::size_t at = 0;
    for (std::size_t r = 1; r < rows.size(); ++r) {
      const std::optional<double>& value = values[r][c];
      if (value && !std::isinf(*value) && (at == 0 || *value < *values[at][c])) at = r;
    }
    for (std::size_t r = 1; r < rows.size() && at > 0; ++r) {
      if (rows[r][c] == rows[at][c]) best.emplace(r, c);
    }
  }
  return best;
}

// Each policy over all scenarios.
void addSummary(const std::vector<ComparedScenario>& scenarios, Page& page) {
  std::vector<Row> rows = {{"policy", "throttled, free pods ms/s", "p99 to that without limits",
                            "used %", "reserved cores", "slack %", "changes in 5 min", "reaction s",
                            "converged s", "fairness", "Jain"}};
  std::vector<std::vector<std::optional<double>>> values(1);
  std::vector<const Report*> unlimited;
  for (const ComparedScenario& compared : scenarios) {
    if (compared.runs.front().report.policy == "unlimited") {
      unlimited.push_back(&compared.runs.front().report);
    }
  }
  if (unlimited.size() != scenarios.size()) unlimited.clear();
  for (std::size_t p = 0; p < scenarios.front().runs.size(); ++p) {
    std::vector<const Report*> reports;
    reports.reserve(scenarios.size());
    for (const ComparedScenario& compared : scenarios) {
      reports.push_back(&compared.runs[p].report);
    }
    const Overall all = overall(reports, unlimited);
    const bool limited = all.reserved > 0;
    const std::optional<double> reaction = sim::median(all.reactions);
    const std::optional<double> converged = sim::median(all.convergences);
    rows.push_back({shownName(reports.front()->policy), fmt::format("{:.1f}", all.throttled_free),
                    unlimited.empty() ? "-" : fmt::format("{:.2f}", all.slowdown),
                    unlimited.empty() ? "-" : fmt::format("{:.1f}", all.used * 100),
                    limited ? fmt::format("{:.1f}", all.reserved) : "-",
                    limited ? fmt::format("{:.0f}", all.slack * 100) : "-",
                    fmt::format("{:.2f}", all.changes), secondsText(reaction),
                    secondsText(converged), fmt::format("{:.3f}", all.fairness),
                    fmt::format("{:.3f}", all.jain)});
    // As "less is better", for all columns alike.
    const auto if_limited = [&](double value) {
      return limited ? std::optional(value) : std::nullopt;
    };
    values.push_back({std::nullopt, all.throttled_free, all.slowdown, -all.used,
                      if_limited(all.reserved), if_limited(all.slack), all.changes, reaction,
                      converged, -all.fairness, -all.jain});
  }
  page.table(rows, lowest(rows, values));
}

// How long the slowest hundredth of each pod's requests took, policy by policy: who is better off
// under scarcity, and who pays for it.
void addPods(const ComparedScenario& compared, Page& page) {
  constexpr std::size_t kMost = 12;
  std::vector<Row> rows = {{"p99 ms"}};
  std::vector<std::vector<std::optional<double>>> values(1);
  std::vector<std::size_t> columns;
  const std::vector<sim::PodReport>& pods = compared.runs.front().report.pods;
  for (std::size_t i = 0; i < pods.size() && columns.size() < kMost; ++i) {
    if (!pods[i].p99) continue;
    columns.push_back(i);
    rows.front().push_back(pods[i].name);
  }
  if (columns.empty()) return;
  for (const Run& run : compared.runs) {
    Row row = {shownName(run.report.policy)};
    std::vector<std::optional<double>> value(1);
    for (const std::size_t i : columns) {
      value.push_back(run.report.pods[i].p99);
      row.push_back(millisecondsText(value.back()));
    }
    rows.push_back(std::move(row));
    values.push_back(std::move(value));
  }
  page.table(rows, lowest(rows, values));
}

std::string sizeOf(const std::vector<ComparedScenario>& scenarios) {
  std::size_t pods = 0;
  double pod_hours = 0;
  for (const ComparedScenario& compared : scenarios) {
    const std::size_t here = compared.scenario.pods.size() * compared.scenario.nodes;
    pods += here;
    pod_hours += static_cast<double>(here) * seconds(compared.scenario.duration) / 3600;
  }
  return fmt::format("{} scenario{}, {} pods, {:.{}f} pod-hours under each of {} policies",
                     scenarios.size(), scenarios.size() == 1 ? "" : "s", pods, pod_hours,
                     pod_hours < 10 ? 1 : 0, scenarios.front().runs.size());
}

void addMethod(Page& page, const std::string& machine) {
  page.heading("Method and machine");
  page.paragraph(
      "Every scenario is a node (or several alike) with its pods, on a model of the kernel's CPU "
      "controller: quotas per 100 ms at pods and containers, sharing by weight, counters of "
      "throttling. From the cgroup readings upwards MBCAS is the code that runs on real nodes. "
      "Pods are offered the same work under every policy; everything is deterministic. What the "
      "model leaves out, and how it compares with a real kernel, is in docs/sim.md.");
  page.paragraph(
      "Throttled: thread time held back by limits, per second, of pods for which there was enough "
      "CPU. Reserved: the sum of limits, mean over time; slack: the share of it that was not used. "
      "Used: CPU used, of what is used without limits, within the node less 10 %. Reaction: from "
      "the first throttled second of an episode to a higher limit or another replica, median; "
      "converged: to its last throttled second. Fairness: weighted geometric mean of what pods got "
      "of their demand, over that of the market cleared every second for the true demands; above 1 "
      "where the reserve, which the ideal leaves, was used. Jain: Jain's index of what pods got, "
      "of what the ideal gives them. The best of each column is marked.");
  page.paragraph(machine);
}

}  // namespace

Course::Course(const sim::Scenario& scenario)
    : duration_(seconds(scenario.duration)), first_(kPieces), all_(kPieces) {
  for (const sim::PodSpec& pod : scenario.pods) managed_.push_back(pod.managed);
}

double Course::secondsOf(std::size_t piece) const {
  return (static_cast<double>(piece) + 0.5) * duration_ / kPieces;
}

void Course::add(const sim::Simulation& simulation) {
  const double share = seconds(simulation.now()) / duration_;
  const auto at = std::min(static_cast<std::size_t>(share * kPieces), kPieces - 1);
  const auto moments = simulation.moments();
  Piece sum;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const sim::Simulation::Moment& moment = moments[i];
    if (!moment.present || (!managed_[i] && i > 0)) continue;
    const double limit = moment.limit ? moment.limit->cores() : kNone;
    if (i == 0) {
      first_[at].samples += 1;
      first_[at].need += moment.offered;
      first_[at].used += moment.used;
      first_[at].throttled += moment.throttled;
      first_[at].limit += limit;
    }
    sum.need += moment.offered;
    sum.used += moment.used;
    sum.throttled += moment.throttled;
    sum.limit += limit;
  }
  all_[at].samples += 1;
  all_[at].need += sum.need;
  all_[at].used += sum.used;
  all_[at].throttled += sum.throttled;
  all_[at].limit += sum.limit;
}

std::string comparisonPage(const std::vector<ComparedScenario>& scenarios,
                           const std::string& machine) {
  Page page("MBCAS and other policies, simulated");
  page.paragraph(sizeOf(scenarios) + ".");
  page.heading("All scenarios");
  addSummary(scenarios, page);
  for (const ComparedScenario& compared : scenarios) {
    const sim::Scenario& scenario = compared.scenario;
    page.heading(scenario.name);
    page.paragraph(
        fmt::format("{} {} CPUs, {} pods{}, {:g} {}.", scenario.description, scenario.cpus,
                    scenario.pods.size(),
                    scenario.nodes > 1 ? fmt::format(" on each of {} nodes", scenario.nodes) : "",
                    seconds(scenario.duration) / axisOf(scenario).unit, axisOf(scenario).label));
    std::vector<Report> reports;
    reports.reserve(compared.runs.size());
    for (const Run& run : compared.runs) {
      reports.push_back(run.report);
      reports.back().policy = shownName(run.report.policy);
    }
    Comparison comparison = compare(reports);
    // The scenario's name stands above.
    for (Row& row : comparison.rows) row.erase(row.begin());
    Page::Cells best;
    for (const auto& [row, column] : comparison.best) best.emplace(row, column - 1);
    page.table(comparison.rows, best);
    page.beginFold("Over time, distributions, pod by pod");
    addPods(compared, page);
    addPlots(compared, page);
    page.endFold();
  }
  addMethod(page, machine);
  return page.toString();
}

std::vector<Row> sweepRows(const std::vector<Tried>& tried) {
  const bool checked = tried.front().held_out.has_value();
  std::vector<Row> rows = {
      {"SETTING", "VALUE", "FREE ms/s", "SLACK %", "CHANGES", "P99 x", "USED %", "FAIR"}};
  if (checked) {
    for (const char* title : {"held out: FREE ms/s", "SLACK %", "CHANGES", "P99 x", "FAIR"}) {
      rows.front().emplace_back(title);
    }
  }
  for (const Tried& each : tried) {
    const Overall& o = each.training;
    Row row = {each.candidate.setting.empty() ? "defaults" : each.candidate.setting,
               each.candidate.value,
               fmt::format("{:.2f}", o.throttled_free),
               fmt::format("{:.1f}", o.slack * 100),
               fmt::format("{:.2f}", o.changes),
               fmt::format("{:.3f}", o.slowdown),
               fmt::format("{:.1f}", o.used * 100),
               fmt::format("{:.3f}", o.fairness)};
    if (each.held_out) {
      const Overall& h = *each.held_out;
      for (std::string text :
           {fmt::format("{:.2f}", h.throttled_free), fmt::format("{:.1f}", h.slack * 100),
            fmt::format("{:.2f}", h.changes), fmt::format("{:.3f}", h.slowdown),
            fmt::format("{:.3f}", h.fairness)}) {
        row.push_back(std::move(text));
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string sweepPage(const std::vector<Tried>& tried, const std::vector<std::string>& training,
                      const std::vector<std::string>& held_out, const std::string& machine) {
  Page page("Settings of MBCAS, tried");
  page.paragraph(fmt::format(
      "Every setting by itself, the others as they come, on {} scenarios for training ({}){}.",
      training.size(), fmt::join(training, ", "),
      held_out.empty()
          ? ""
          : fmt::format(" and {} held out ({})", held_out.size(), fmt::join(held_out, ", "))));
  // One line for each setting, through its values and the defaults.
  const auto curve = [&](const std::string& title, const char* x_label, const char* y_label,
                         bool check, double (*x)(const Overall&), double (*y)(const Overall&)) {
    Plot plot{.title = title, .x_label = x_label, .y_label = y_label};
    const auto of = [&](const Tried& each) -> const Overall& {
      return check ? *each.held_out : each.training;
    };
    const view::Point defaults{x(of(tried.front())), y(of(tried.front()))};
    for (const Tried& each : std::span(tried).subspan(1)) {
      const std::string& name = each.candidate.setting;
      if (plot.series.empty() || plot.series.back().name != name) {
        plot.series.push_back({.name = name,
                               .points = {defaults},
                               .dots = true,
                               .colour = colourOf(plot.series.size())});
      }
      plot.series.back().points.push_back({x(of(each)), y(of(each))});
    }
    for (view::Series& series : plot.series) {
      std::ranges::sort(series.points, {}, &view::Point::x);
    }
    plot.series.push_back(
        {.name = "defaults", .points = {defaults}, .dots = true, .colour = kBlack});
    page.plot(plot);
  };
  const auto throttled = [](const Overall& o) { return o.throttled_free; };
  const auto slack = [](const Overall& o) { return o.slack * 100; };
  const auto changes = [](const Overall& o) { return o.changes; };
  page.heading("The trade-off");
  curve("Throttling against slack", "slack %", "throttled, free pods ms/s", false, slack,
        throttled);
  curve("Throttling against changes", "changes of a pod in 5 minutes", "throttled, free pods ms/s",
        false, changes, throttled);
  curve("Changes against slack", "slack %", "changes of a pod in 5 minutes", false, slack, changes);
  if (tried.front().held_out) {
    page.heading("The same, held out");
    curve("Throttling against slack, held out", "slack %", "throttled, free pods ms/s", true, slack,
          throttled);
    curve("Throttling against changes, held out", "changes of a pod in 5 minutes",
          "throttled, free pods ms/s", true, changes, throttled);
  }
  page.heading("All of them");
  page.table(sweepRows(tried));
  addMethod(page, machine);
  return page.toString();
}

}  // namespace mbcas::app
