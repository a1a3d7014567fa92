// mbcas simulate: a scenario on the model kernel, under one policy or all of them.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/mbcas/commands.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/sim/policy.h"
#include "mbcas/sim/report.h"
#include "mbcas/sim/scenario.h"
#include "mbcas/sim/simulation.h"
#include "mbcas/view/text.h"

namespace mbcas::cli {
namespace {

using sim::PodReport;
using sim::Report;
using sim::Scenario;

constexpr const char* kFooter = R"(Examples:
  mbcas simulate evaluation/scenarios/step-up.yaml
  mbcas simulate evaluation/scenarios/*.yaml --compare
  mbcas simulate evaluation/scenarios/mixed.yaml --policy static --series mixed.csv

A scenario, in short (docs/sim.md has every field):
  cpus: 4
  duration: 10m
  pods:
    - name: web
      request: 200m
      limit: 500m
      workload: {kind: service, threads: 8, rate: 50, work: 5ms}

Policies: unlimited, static (the declared limits), twenty-percent (20 % a second while throttled),
classic and responsive (MBCAS).

THROTTLED is thread time held back by limits, RELIEF the longest time for which a pod was throttled
although there was CPU for it, CHANGES are those of its limit in 5 minutes, FAIR the weighted
geometric mean of what pods got of their demand, beside the best division (1 is best).

Exit code: 0 done, 1 a file cannot be read or written, 2 a scenario or the command is wrong.)";

struct Flags {
  std::vector<std::string> files;
  std::string policy = "responsive";
  bool compare = false;
  std::string format;
  std::string series;
  std::optional<std::uint64_t> seed;
  std::optional<double> duration;
};

void complain(std::string_view message) {
  fmt::print(stderr, "mbcas simulate: {}\n", message);
}

std::string milliseconds(std::optional<double> value) {
  if (!value) return "-";
  return *value < 10 ? fmt::format("{:.1f}", *value) : fmt::format("{:.0f}", *value);
}
std::string rate(double cores) {
  return fmt::format("{:.1f}", cores * 1000);
}
std::string limit(double cores) {
  return cores > 0 ? fmt::format("{:.0f}m", cores * 1000) : "none";
}

constexpr auto kLeft = view::Table::Align::kLeft;

// One scenario under one policy, pod by pod.
std::string podTable(const Report& report) {
  view::Table table({{"POD", kLeft},
                     {"OFFERED"},
                     {"USED"},
                     {"THROTTLED"},
                     {"P50 ms"},
                     {"P99 ms"},
                     {"LIMIT"},
                     {"LOWEST"},
                     {"HIGHEST"},
                     {"CHANGES"},
                     {"RELIEF"}});
  for (const PodReport& pod : report.pods) {
    table.row({pod.name, fmt::format("{:.0f}m", pod.offered * 1000),
               fmt::format("{:.0f}m", pod.used * 1000), rate(pod.throttled) + " ms/s",
               milliseconds(pod.p50), milliseconds(pod.p99), limit(pod.last_limit),
               limit(pod.lowest_limit), limit(pod.highest_limit),
               fmt::format("{:.1f}", pod.changes), fmt::format("{:.0f} s", pod.relief)});
  }
  return fmt::format(
             "{}   policy {}   {:.0f} s   {:.0f}m used   fairness {:.3f}   scarce {:.0f} % of the "
             "time\n\n",
             report.scenario, report.policy, report.seconds, report.used * 1000, report.fairness,
             report.scarce * 100) +
         table.toString(wantsColours());
}

view::Table comparison(const std::vector<Report>& reports) {
  view::Table table({{"SCENARIO", kLeft},
                     {"POLICY", kLeft},
                     {"FREE ms/s"},
                     {"CONSTRAINED ms/s"},
                     {"P50 ms"},
                     {"P99 ms"},
                     {"CPU"},
                     {"USED %"},
                     {"CHANGES"},
                     {"MOST"},
                     {"RELIEF s"},
                     {"FAIR"}});
  const Report* unlimited = nullptr;
  for (const Report& report : reports) {
    if (report.policy == "unlimited") unlimited = &report;
    const bool beside = unlimited != nullptr && unlimited->scenario == report.scenario;
    table.row({report.scenario, report.policy, rate(report.throttled_free),
               rate(report.throttled_constrained), milliseconds(report.p50),
               milliseconds(report.p99), fmt::format("{:.2f}", report.used),
               beside ? fmt::format("{:.1f}", sim::usedBeside(report, *unlimited) * 100) : "-",
               fmt::format("{:.2f}", report.changes), fmt::format("{:.1f}", report.most_changes),
               fmt::format("{:.0f}", report.relief), fmt::format("{:.3f}", report.fairness)});
  }
  return table;
}

Result<Scenario> load(const std::string& file, const Flags& flags) {
  std::ifstream stream(file);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) return failure("");
  const std::filesystem::path path(file);
  Result<Scenario> scenario =
      sim::parseScenario(text.str(), path.has_parent_path() ? path.parent_path().string() : ".");
  if (!scenario) return failure(std::move(scenario).error().within(file));
  if (scenario->name.empty()) scenario->name = path.stem().string();
  if (flags.seed) scenario->seed = *flags.seed;
  if (flags.duration) {
    scenario->duration = Nanos(static_cast<std::int64_t>(*flags.duration * 1e9));
  }
  return scenario;
}

// A line for each pod and interval.
class Series {
 public:
  explicit Series(const std::string& file) : out_(file) {
    out_ << "seconds,pod,offered,used,throttled,limit\n";
  }
  void add(const Scenario& scenario, const sim::Simulation& simulation) {
    for (std::size_t i = 0; i < scenario.pods.size(); ++i) {
      const sim::Simulation::Moment& moment = simulation.moments()[i];
      if (!moment.present) continue;
      out_ << fmt::format("{:g},{},{:.4f},{:.4f},{:.4f},{}\n",
                          static_cast<double>(simulation.now().count()) * 1e-9,
                          scenario.pods[i].name, moment.offered, moment.used, moment.throttled,
                          moment.limit ? fmt::format("{:g}", moment.limit->cores()) : "");
    }
  }
  bool good() { return static_cast<bool>(out_.flush()); }

 private:
  std::ofstream out_;
};

int simulateAll(const Flags& flags) {
  std::vector<Scenario> scenarios;
  for (const std::string& file : flags.files) {
    Result<Scenario> scenario = load(file, flags);
    if (!scenario) {
      const bool unreadable = scenario.error().message().empty();
      complain(unreadable ? "cannot read " + file : scenario.error().message());
      return unreadable ? kFailed : kUsage;
    }
    scenarios.push_back(*std::move(scenario));
  }
  std::vector<std::string_view> policies = {flags.policy};
  if (flags.compare) policies.assign(sim::policyNames().begin(), sim::policyNames().end());
  std::unique_ptr<Series> series;
  if (!flags.series.empty()) series = std::make_unique<Series>(flags.series);
  const bool progress = ::isatty(STDERR_FILENO) != 0 && flags.compare;
  std::vector<Report> reports;
  for (const Scenario& scenario : scenarios) {
    for (const std::string_view name : policies) {
      if (progress) fmt::print(stderr, "\r\x1b[K{}: {}", scenario.name, name);
      const Result<std::unique_ptr<sim::Policy>> policy = sim::makePolicy(name, scenario.cpus);
      if (!policy) {
        complain(policy.error().message());
        return kUsage;
      }
      sim::Simulation simulation(scenario, **policy);
      bool more = true;
      while (more) {
        more = simulation.step();
        if (series) series->add(scenario, simulation);
      }
      reports.push_back(simulation.report());
    }
  }
  if (progress) fmt::print(stderr, "\r\x1b[K");
  if (series && !series->good()) {
    complain("cannot write " + flags.series);
    return kFailed;
  }
  const std::string format = !flags.format.empty() ? flags.format : isTerminal() ? "table" : "json";
  if (format == "json") {
    fmt::print("{}", sim::toJson(reports));
  } else if (format == "csv") {
    fmt::print("{}", sim::toCsv(reports));
  } else if (format == "markdown") {
    fmt::print("{}", comparison(reports).toMarkdown());
  } else if (flags.compare) {
    fmt::print("{}", comparison(reports).toString(wantsColours()));
  } else {
    for (const Report& report : reports) {
      fmt::print("{}{}", &report == reports.data() ? "" : "\n", podTable(report));
    }
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    complain("cannot write the answer");
    return kFailed;
  }
  return kDone;
}

}  // namespace

void addSimulate(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "simulate", "Run scenarios on a model of the kernel, with model workloads");
  command->footer(kFooter);
  command->add_option("FILE", flags->files, "Scenarios, YAML")->required();
  CLI::Option* policy = command->add_option("--policy", flags->policy, "Who decides about limits")
                            ->capture_default_str();
  CLI::Option* compare =
      command->add_flag("--compare", flags->compare, "All policies, beside each other");
  compare->excludes(policy);
  command->add_option("--seed", flags->seed, "Another seed than the scenario's");
  command->add_option("--duration", flags->duration, "Seconds, other than the scenario's")
      ->check(CLI::Range(1.0, 604800.0));
  command->add_option("--series", flags->series, "CSV file for the course over time")
      ->excludes(compare);
  command
      ->add_option("-o,--output", flags->format,
                   "table (default on a terminal), json, csv, or markdown")
      ->check(CLI::IsMember({"table", "json", "csv", "markdown"}));
  command->callback([flags, &exit_code] { exit_code = simulateAll(*flags); });
}

}  // namespace mbcas::cli
