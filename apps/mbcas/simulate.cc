// mbcas simulate: scenarios on the model kernel, under one policy or several; a sweep of settings.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <expected>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/mbcas/commands.h"
#include "apps/mbcas/duration.h"
#include "apps/mbcas/flags.h"
#include "apps/mbcas/scenario_file.h"
#include "apps/mbcas/simulate_measures.h"
#include "apps/mbcas/simulate_page.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/sim/policy.h"
#include "mbcas/sim/report.h"
#include "mbcas/sim/scenario.h"
#include "mbcas/sim/simulation.h"
#include "mbcas/sim/tuning.h"
#include "mbcas/view/text.h"

namespace mbcas::app {
namespace {

using sim::Report;
using sim::Scenario;

constexpr const char* kFooter = R"(Examples:
  mbcas simulate evaluation/scenarios/step-up.yaml
  mbcas simulate evaluation/scenarios/*.yaml --compare --html report.html
  mbcas simulate evaluation/scenarios/mixed.yaml --policy static --series mixed.csv
  mbcas simulate evaluation/scenarios/mixed.yaml --set headroom=1.5 --set burst-hold=1m
  mbcas simulate evaluation/scenarios/*.yaml --sweep --held-out evaluation/held-out/*.yaml

A scenario, in short (docs/sim.md has every field):
  cpus: 4
  duration: 10m
  pods:
    - name: web
      request: 200m
      limit: 500m
      workload: {kind: service, threads: 8, rate: 50, work: 5ms}

Policies: unlimited, static (the declared limits), generous (four times as much), burst (static with
cpu.max.burst), hpa and vpa (the Kubernetes autoscalers, as models), twenty-percent (20 % a second
while throttled), classic and responsive (MBCAS).

THROTTLED is thread time held back by limits, FREE that of pods for which there was enough CPU.
RESERVED is the sum of limits, SLACK the share of it that was not used. REACTION is the time from the
first throttling to a higher limit, CONVERGED to its end, RELIEF the longest time for which a pod was
throttled although there was CPU for it. CHANGES are those of a limit in 5 minutes. FAIR is the
weighted geometric mean of what pods got of their demand, compared with the best division; JAIN is
Jain's index of what they got of that division (1 is best).

Exit code: 0 done, 1 a file cannot be read or written, 2 a scenario or the command is wrong.)";

struct Flags {
  std::vector<std::string> files;
  std::vector<std::string> policies = {"responsive"};
  bool compare = false;
  bool sweep = false;
  std::vector<std::string> held_out;
  std::vector<std::string> settings;
  std::string format;
  std::string series;
  std::string html;
  std::optional<std::uint64_t> seed;
  double duration = 0;  // seconds; 0: as the scenario says
};

void complain(std::string_view message) {
  app::complain("mbcas simulate", message);
}

// One scenario under one policy, pod by pod.
std::string podTable(const Report& report) {
  return view::printable(report.scenario) +
         fmt::format(
             "   policy {}   {:.0f} s   {:.0f}m used   fairness {:.3f}   scarce {:.0f} % of the "
             "time\n\n",
             report.policy, report.seconds, report.used * 1000, report.fairness,
             report.scarce * 100) +
         tableOf(podRows(report), 1).toString(wantsColours());
}

Result<Scenario> load(const std::string& file, const Flags& flags) {
  Result<Scenario> scenario = loadScenario(file);
  if (!scenario) return scenario;
  if (flags.seed) scenario->seed = *flags.seed;
  if (flags.duration > 0) scenario->duration = nanos(flags.duration);
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

// All of them, or the exit code.
std::expected<std::vector<Scenario>, int> loadAll(const std::vector<std::string>& files,
                                                  const Flags& flags) {
  std::vector<Scenario> scenarios;
  for (const std::string& file : files) {
    Result<Scenario> scenario = load(file, flags);
    if (!scenario) {
      const bool unreadable = scenario.error().message().empty();
      complain(unreadable ? "cannot read " + file : scenario.error().message());
      return std::unexpected(unreadable ? kFailed : kUsage);
    }
    scenarios.push_back(*std::move(scenario));
  }
  return scenarios;
}

// Shows the progress, on a terminal only.
class Progress {
 public:
  explicit Progress(bool wanted) : shown_(wanted && ::isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view text) const {
    if (shown_) fmt::print(stderr, "\r\x1b[K{}", text);
  }

 private:
  bool shown_;
};

Result<std::unique_ptr<sim::Policy>> policyOf(const std::string& name, const sim::Tuning& tuning,
                                              unsigned cpus) {
  // Settings are those of one profile; every other policy is as it is by default.
  const bool classic = tuning.estimator.kind == demand::Kind::kClassic;
  if (name != (classic ? "classic" : "responsive")) return sim::makePolicy(name, cpus);
  demand::Settings estimator = tuning.estimator;
  estimator.cpus = cpus;
  return sim::makeMbcas(name, tuning.law, estimator);
}

// A scenario under a policy, all of its nodes as one. The course is the first node's.
Result<Run> runOf(const Scenario& scenario, const std::string& name, const sim::Tuning& tuning,
                  Series* series) {
  std::vector<Report> nodes;
  Course course(scenario);
  for (unsigned n = 0; n < scenario.nodes; ++n) {
    const Scenario node = sim::nodeOf(scenario, n);
    const Result<std::unique_ptr<sim::Policy>> policy = policyOf(name, tuning, node.cpus);
    if (!policy) return failure(policy.error().message());
    sim::Simulation simulation(node, **policy);
    bool more = true;
    while (more) {
      more = simulation.step();
      if (n > 0) continue;
      course.add(simulation);
      if (series != nullptr) series->add(node, simulation);
    }
    nodes.push_back(simulation.report());
  }
  return Run{sim::merged(nodes), std::move(course)};
}

// What simulates, for the reader of a page.
std::string machineText(std::chrono::steady_clock::time_point started) {
  std::string model = "unknown CPU";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    model = line.substr(std::min(line.find(':') + 2, line.size()));
    break;
  }
  utsname system{};
  ::uname(&system);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  return fmt::format("mbcas {} on one of {} CPUs ({}), {} {}, in {:.0f} s.", MBCAS_VERSION,
                     std::thread::hardware_concurrency(), model, system.sysname, system.release,
                     took.count());
}

int writeFile(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  if (out << text && out.flush()) return kDone;
  complain("cannot write " + file);
  return kFailed;
}

int finish() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return kDone;
  complain("cannot write the answer");
  return kFailed;
}

// The profile whose settings --set and --sweep mean.
control::Profile tunedProfile(const Flags& flags) {
  return flags.policies == std::vector<std::string>{"classic"} ? control::Profile::kClassic
                                                               : control::Profile::kResponsive;
}

// A time may have a unit.
std::string inSeconds(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || !sim::isTime(setting.substr(0, equals))) return setting;
  const Result<double> seconds = secondsOf(std::string_view(setting).substr(equals + 1));
  // tune() says what is wrong with others.
  return seconds ? fmt::format("{}={}", setting.substr(0, equals), *seconds) : setting;
}

int simulateAll(const Flags& flags) {
  const auto started = std::chrono::steady_clock::now();
  const auto scenarios = loadAll(flags.files, flags);
  if (!scenarios) return scenarios.error();
  sim::Tuning tuning = sim::tuningOf(tunedProfile(flags));
  for (const std::string& setting : flags.settings) {
    if (const Result<void> good = sim::tune(tuning, inSeconds(setting)); !good) {
      complain(good.error().message());
      return kUsage;
    }
  }
  std::vector<std::string> policies = flags.policies;
  if (flags.compare) policies.assign(sim::policyNames().begin(), sim::policyNames().end());
  std::unique_ptr<Series> series;
  if (!flags.series.empty()) series = std::make_unique<Series>(flags.series);
  std::vector<ComparedScenario> compared;
  std::vector<Report> reports;
  {
    const Progress progress(policies.size() * scenarios->size() > 1);
    for (const Scenario& scenario : *scenarios) {
      compared.push_back({scenario, {}});
      for (const std::string& name : policies) {
        progress.show(scenario.name + ": " + name);
        Result<Run> run = runOf(scenario, name, tuning, series.get());
        if (!run) {
          complain(run.error().message());
          return kUsage;
        }
        reports.push_back(run->report);
        compared.back().runs.push_back(*std::move(run));
      }
    }
  }
  if (series && !series->good()) {
    complain("cannot write " + flags.series);
    return kFailed;
  }
  if (!flags.html.empty()) {
    if (const int code = writeFile(flags.html, comparisonPage(compared, machineText(started)))) {
      return code;
    }
  }
  const std::string& format = flags.format;
  if (format == "json") {
    fmt::print("{}", sim::toJson(reports));
  } else if (format == "yaml") {
    printDocument(sim::toJson(reports), format);
  } else if (format == "csv") {
    fmt::print("{}", sim::toCsv(reports));
  } else if (format == "name") {
    for (const ComparedScenario& each : compared) {
      for (const auto& pod : each.runs.front().report.pods) say("pod/" + pod.name);
    }
  } else if (format == "markdown") {
    fmt::print("{}", tableOf(compare(reports).rows, 2).toMarkdown());
  } else if (policies.size() > 1) {
    fmt::print("{}", tableOf(compare(reports).rows, 2).toString(wantsColours()));
  } else {
    for (const Report& report : reports) {
      fmt::print("{}{}", &report == reports.data() ? "" : "\n", podTable(report));
    }
  }
  return finish();
}

// Every scenario under MBCAS with these settings, next to the same scenario without limits.
Overall overallOf(const std::vector<Scenario>& scenarios, const std::vector<Report>& unlimited,
                  const std::string& policy, const sim::Tuning& tuning) {
  std::vector<Report> reports;
  std::vector<const Report*> beside;
  reports.reserve(scenarios.size());
  beside.reserve(scenarios.size());
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    reports.push_back(runOf(scenarios[i], policy, tuning, nullptr)->report);
    beside.push_back(&unlimited[i]);
  }
  std::vector<const Report*> pointers;
  pointers.reserve(reports.size());
  for (const Report& report : reports) pointers.push_back(&report);
  return overall(pointers, beside);
}

int sweep(const Flags& flags) {
  const auto started = std::chrono::steady_clock::now();
  const control::Profile profile = tunedProfile(flags);
  const std::string policy = profile == control::Profile::kClassic ? "classic" : "responsive";
  if (flags.policies != std::vector<std::string>{policy}) {
    complain("--sweep: --policy must be responsive or classic");
    return kUsage;
  }
  const auto training = loadAll(flags.files, flags);
  if (!training) return training.error();
  const auto held_out = loadAll(flags.held_out, flags);
  if (!held_out) return held_out.error();
  const auto unlimited = [](const std::vector<Scenario>& scenarios) {
    std::vector<Report> reports;
    reports.reserve(scenarios.size());
    for (const Scenario& scenario : scenarios) {
      reports.push_back(runOf(scenario, "unlimited", {}, nullptr)->report);
    }
    return reports;
  };
  const auto names = [](const std::vector<Scenario>& scenarios) {
    std::vector<std::string> all;
    all.reserve(scenarios.size());
    for (const Scenario& scenario : scenarios) all.push_back(scenario.name);
    return all;
  };
  const std::vector<Report> beside_training = unlimited(*training);
  const std::vector<Report> beside_held_out = unlimited(*held_out);
  std::vector<Tried> tried;
  {
    const Progress progress(true);
    for (sim::Candidate& candidate : sim::sweepCandidates(profile)) {
      progress.show(candidate.setting + " " + candidate.value);
      Tried& row = tried.emplace_back(Tried{std::move(candidate), {}, {}});
      row.training = overallOf(*training, beside_training, policy, row.candidate.tuning);
      if (!held_out->empty()) {
        row.held_out = overallOf(*held_out, beside_held_out, policy, row.candidate.tuning);
      }
    }
  }
  if (!flags.html.empty()) {
    if (const int code = writeFile(flags.html, sweepPage(tried, names(*training), names(*held_out),
                                                         machineText(started)))) {
      return code;
    }
  }
  if (flags.format == "name") {
    for (const Tried& each : tried) {
      say(each.candidate.setting.empty() ? "default"
                                         : each.candidate.setting + "=" + each.candidate.value);
    }
    return finish();
  }
  const view::Table table = tableOf(sweepRows(tried), 1);
  fmt::print("{}",
             flags.format == "markdown" ? table.toMarkdown() : table.toString(wantsColours()));
  return finish();
}

}  // namespace

void addSimulate(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "simulate", "Run scenarios on a model of the kernel, with model workloads");
  command->footer(kFooter);
  command->add_option("FILE", flags->files, "Scenarios, YAML")->required();
  CLI::Option* policy =
      command->add_option("--policy", flags->policies, "Policies to run, separated by commas")
          ->type_name("NAME")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->default_str("responsive");
  CLI::Option* compare =
      command->add_flag("--compare", flags->compare, "All policies, side by side");
  compare->excludes(policy);
  CLI::Option* tries = command->add_flag(
      "--sweep", flags->sweep,
      "MBCAS with every setting changed in turn; --policy classic: those of its estimator");
  tries->excludes(compare);
  command->add_option("--held-out", flags->held_out, "Scenarios on which a sweep is checked")
      ->type_name("FILE")
      ->needs(tries);
  command
      ->add_option(
          "--set", flags->settings,
          fmt::format("A setting of MBCAS, as headroom=1.5 or burst-hold=1m; of classic with "
                      "--policy classic: {}",
                      fmt::join(sim::tuningNames(), ", ")))
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->excludes(tries);
  command->add_option("--seed", flags->seed, "Seed, instead of the scenario's");
  addDuration(*command, "--duration", flags->duration, "Duration, instead of the scenario's", 1,
              604800);
  command->add_option("--series", flags->series, "CSV file for the course over time")
      ->type_name("FILE")
      ->excludes(compare)
      ->excludes(tries);
  command->add_option("--html", flags->html, "Page with tables and plots, one file")
      ->type_name("FILE");
  addOutput(*command, flags->format, {"table", "json", "yaml", "name", "csv", "markdown"});
  command->callback(
      [flags, &exit_code] { exit_code = flags->sweep ? sweep(*flags) : simulateAll(*flags); });
}

}  // namespace mbcas::app
