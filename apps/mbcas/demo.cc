// mbcas demo: four workloads on this machine, first with static limits, then with the market.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "apps/mbcas/commands.h"
#include "apps/mbcas/demo_load.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/control/weight.h"
#include "mbcas/host/plane.h"
#include "mbcas/host/show.h"
#include "mbcas/host/workload.h"
#include "mbcas/kernel/parse.h"
#include "mbcas/sim/simulation.h"
#include "mbcas/view/page.h"
#include "mbcas/view/screen.h"
#include "mbcas/view/text.h"

namespace mbcas::cli {
namespace {

using namespace std::chrono_literals;
using namespace literals;

constexpr std::size_t kPods = 4;
constexpr std::size_t kService = 3;
constexpr auto kInterval = 1s;
constexpr double kMuchOtherWork = 0.1;  // of the CPUs, before it is worth a word

// What people write into manifests: guesses. Each is wrong in its own way.
struct DemoPod {
  const char* name;
  const char* what;
  Millicores limit;
  Millicores request;
  sim::WorkloadSpec load;
};

std::array<DemoPod, kPods> demoPods(unsigned cpus) {
  using Kind = sim::WorkloadSpec::Kind;
  const auto threads = static_cast<int>(cpus);
  return {{{"steady",
            "3 ms of work every 10 ms; its limit is too low",
            200_m,
            100_m,
            {.kind = Kind::kPeriodic, .on = 3ms, .period = 10ms}},
           {"bursty",
            "50 ms of work at once every 500 ms; its limit covers the mean, not the burst",
            200_m,
            100_m,
            {.kind = Kind::kPeriodic, .on = 50ms, .period = 500ms}},
           {"greedy",
            "wants every CPU, always; its limit leaves CPUs idle",
            Millicores(1000) * (threads > 1 ? threads / 2 : 1),
            100_m,
            {.kind = Kind::kSpin, .threads = threads}},
           {"service",
            "20 requests a second at random, 10 ms each; its limit makes them wait",
            250_m,
            200_m,
            {.kind = Kind::kService,
             .rate = 20,
             .work = 10ms,
             .sizes = sim::WorkloadSpec::Sizes::kFixed}}}};
}

// Cores that it would use if nothing held it back.
double demandOf(const sim::WorkloadSpec& load) {
  switch (load.kind) {
    case sim::WorkloadSpec::Kind::kPeriodic:
      return std::chrono::duration<double>(load.on) / load.period;
    case sim::WorkloadSpec::Kind::kService:
      return load.rate * std::chrono::duration<double>(load.work).count();
    default:
      return load.threads;
  }
}

// One pod in one second.
struct Moment {
  double used = 0;       // cores
  double throttled = 0;  // ms/s
  double limit = 0;      // cores; 0: none
};

struct Phase {
  const char* name;
  std::vector<std::array<Moment, kPods>> seconds{};
  double capacity = 0;  // of the last second, cores
  double price = 0;     // highest
  sim::Latencies responses{};

  double mean(std::size_t pod, double Moment::* field) const {
    double sum = 0;
    for (const auto& second : seconds) sum += second[pod].*field;
    return seconds.empty() ? 0 : sum / static_cast<double>(seconds.size());
  }
};

double percentile(const sim::Latencies& responses, double p) {
  return std::chrono::duration<double, std::milli>(responses.percentile(p)).count();
}

// Where the workloads run: the kernel, or its model. tick() is called once per interval.
class World {
 public:
  virtual ~World() = default;
  virtual void begin(bool market) = 0;
  // What happened since the last call; false: the user cannot be served any longer.
  virtual view::NodeScreen tick(std::array<Moment, kPods>& moments) = 0;
  virtual sim::Latencies responses() const = 0;  // of the phase
};

class KernelWorld final : public World {
 public:
  static Result<std::unique_ptr<KernelWorld>> make(const kernel::Mounts& mounts,
                                                   host::Ledger& ledger,
                                                   const std::array<DemoPod, kPods>& pods) {
    auto world = std::unique_ptr<KernelWorld>(new KernelWorld);
    if (!world->shared_) return failure("no memory to share with the service");
    host::HostConfig config;
    for (const DemoPod& pod : pods) {
      const std::string cgroup = fmt::format("/mbcas-demo-{}/{}", ::getpid(), pod.name);
      if (auto made = host::makeCgroup(mounts, ledger, cgroup); !made) {
        return failure(std::move(made).error());
      }
      config.pods.push_back(
          {.name = pod.name, .cgroup = cgroup, .request = pod.request, .limit = pod.limit});
    }
    host::Settings settings;
    settings.demand.cpus = std::max(1U, std::thread::hardware_concurrency());
    world->plane_ = std::make_unique<host::Plane>(mounts, config, settings, world->clock_, ledger);
    world->plane_->setDryRun(false);
    world->plane_->tick();  // writes the static limits
    world->plane_->setDryRun(true);
    for (std::size_t i = 0; i < kPods; ++i) {
      Result<host::Workload> started =
          host::Workload::start(mounts, config.pods[i].cgroup, world->body(pods[i].load));
      if (!started) return failure(std::move(started).error());
      world->workloads_.push_back(*std::move(started));
    }
    return world;
  }

  void begin(bool market) override {
    shared_->phase = market ? 1 : 0;
    plane_->setDryRun(!market);
  }

  view::NodeScreen tick(std::array<Moment, kPods>& moments) override {
    const host::View& view = plane_->tick();
    for (const host::PodView& pod : view.pods) {
      for (std::size_t i = 0; i < kPods; ++i) {
        if (pod.name != names_[i]) continue;
        moments[i] = {pod.usage.cores(), static_cast<double>(pod.blocked.count()),
                      pod.limit ? pod.limit->cores() : 0};
      }
    }
    return show_.screen(view);
  }

  sim::Latencies responses() const override { return shared_->of_phase[shared_->phase]; }

 private:
  KernelWorld() : shared_(shareResponses()) {}

  std::function<void()> body(const sim::WorkloadSpec& load) {
    using std::chrono::duration_cast, std::chrono::microseconds;
    switch (load.kind) {
      case sim::WorkloadSpec::Kind::kPeriodic:
        return [load] {
          runPeriodic(duration_cast<microseconds>(load.on),
                      duration_cast<microseconds>(load.period));
        };
      case sim::WorkloadSpec::Kind::kService:
        return [load, responses = shared_.get()] {
          runService(load.rate, duration_cast<microseconds>(load.work), *responses);
        };
      default:
        return [load] { runGreedy(static_cast<unsigned>(load.threads)); };
    }
  }

  static constexpr std::array<const char*, kPods> names_ = {"steady", "bursty", "greedy",
                                                            "service"};
  const SystemClock clock_;
  SharedResponses shared_;
  std::unique_ptr<host::Plane> plane_;
  std::vector<host::Workload> workloads_;
  host::Show show_;
};

class ModelWorld final : public World {
 public:
  ModelWorld(unsigned cpus, const std::array<DemoPod, kPods>& pods) {
    scenario_ = {.name = "demo", .cpus = cpus, .duration = 1h, .settle = 0s};
    for (const DemoPod& pod : pods) {
      scenario_.pods.push_back(
          {.name = pod.name,
           .containers = {{.limit = pod.limit, .request = pod.request, .workload = pod.load}}});
    }
    capacity_ = Millicores(900) * static_cast<std::int64_t>(cpus);
  }

  void begin(bool market) override {
    simulation_.reset();
    policy_ = *sim::makePolicy(market ? "responsive" : "static", scenario_.cpus);
    simulation_ = std::make_unique<sim::Simulation>(scenario_, *policy_);
  }

  view::NodeScreen tick(std::array<Moment, kPods>& moments) override {
    simulation_->step();
    view::NodeScreen screen{.title = "", .capacity = capacity_, .usage = Millicores(0)};
    double demand = 0;
    for (std::size_t i = 0; i < kPods; ++i) {
      const sim::Simulation::Moment& moment = simulation_->moments()[i];
      moments[i] = {moment.used, moment.throttled * 1000, moment.limit ? moment.limit->cores() : 0};
      past_[i].push_back(moments[i].throttled);
      demand += demandOf(scenario_.pods[i].containers[0].workload);
      const auto milli = [](double cores) {
        return Millicores(static_cast<std::int64_t>(std::lround(cores * 1000)));
      };
      screen.usage += milli(moment.used);
      screen.pods.push_back({.name = scenario_.pods[i].name,
                             .need = milli(moment.offered),
                             .limit = moment.limit,
                             .usage = milli(moment.used),
                             .throttled = milli(moment.throttled),
                             .throttling = past_[i]});
    }
    screen.scarce = demand > capacity_.cores();
    return screen;
  }

  sim::Latencies responses() const override {
    sim::Latencies all;
    all.add(simulation_->node().workload(static_cast<int>(kService), 0).latencies());
    return all;
  }

 private:
  sim::Scenario scenario_;
  std::unique_ptr<sim::Policy> policy_;
  std::unique_ptr<sim::Simulation> simulation_;
  std::array<std::vector<double>, kPods> past_;
  Millicores capacity_;
};

// CPUs that everything else on the machine keeps busy, measured for a moment.
double otherWork(unsigned cpus) {
  const auto look = [] {
    std::ostringstream text;
    text << std::ifstream("/proc/stat").rdbuf();
    return kernel::parseProcStat(text.str());
  };
  const Result<kernel::MachineTime> before = look();
  std::this_thread::sleep_for(1s);
  const Result<kernel::MachineTime> after = look();
  if (!before || !after || after->all() <= before->all()) return 0;
  return static_cast<double>(after->busy() - before->busy()) /
         static_cast<double>(after->all() - before->all()) * cpus;
}

struct DemoFlags {
  std::string root = "/sys/fs/cgroup";
  std::string state = kDemoState;
  std::string report = "mbcas-demo.html";
  int seconds = 60;
  bool plain = false;
  bool json = false;
  bool model = false;
  unsigned cpus = 0;  // of the model; 0: as many as the machine has
};

struct Outcome {
  double throttled = 0;  // ms/s, of the three pods that could be satisfied
  double p50 = 0, p99 = 0;
  double utilisation = 0;  // of the whole machine
  double welfare = 0;      // weighted geometric mean of the part of its demand that each got
};

Outcome outcomeOf(const Phase& phase, const std::array<DemoPod, kPods>& pods, unsigned cpus) {
  Outcome outcome{.p50 = percentile(phase.responses, 0.5),
                  .p99 = percentile(phase.responses, 0.99)};
  double weights = 0;
  for (std::size_t i = 0; i < kPods; ++i) {
    const double used = phase.mean(i, &Moment::used);
    const double demand = std::min(demandOf(pods[i].load), static_cast<double>(cpus));
    const double weight = control::weightOf(pods[i].request);
    outcome.utilisation += used / cpus;
    outcome.welfare += weight * std::log(std::clamp(used / demand, 1e-3, 1.0));
    weights += weight;
    if (demand < cpus) outcome.throttled += phase.mean(i, &Moment::throttled);
  }
  outcome.welfare = std::exp(outcome.welfare / weights);
  return outcome;
}

view::Table summary(const std::array<Phase, 2>& phases, const std::array<Outcome, 2>& outcomes,
                    const std::array<DemoPod, kPods>& pods) {
  view::Table table({{"", view::Table::Align::kLeft}, {phases[0].name}, {phases[1].name}});
  for (std::size_t i = 0; i < kPods; ++i) {
    const auto text = [&](const Phase& phase) {
      return fmt::format("{:.0f} ms/s", phase.mean(i, &Moment::throttled));
    };
    table.row({fmt::format("throttled: {}", pods[i].name), text(phases[0]), text(phases[1])});
  }
  const auto row = [&](const char* what, auto text) {
    table.row({what, text(outcomes[0]), text(outcomes[1])});
  };
  row("service: median response", [](const Outcome& o) { return fmt::format("{:.0f} ms", o.p50); });
  row("service: 99th percentile", [](const Outcome& o) { return fmt::format("{:.0f} ms", o.p99); });
  row("machine used by the four",
      [](const Outcome& o) { return fmt::format("{:.0f} %", o.utilisation * 100); });
  row("Nash welfare (1: all have all)",
      [](const Outcome& o) { return fmt::format("{:.2f}", o.welfare); });
  return table;
}

std::string toJson(const std::array<Phase, 2>& phases, const std::array<Outcome, 2>& outcomes,
                   const std::array<DemoPod, kPods>& pods, bool model) {
  std::string out;
  JsonWriter json(out);
  json.beginObject().key("on").value(model ? "model" : "kernel").key("phases").beginArray();
  for (std::size_t p = 0; p < 2; ++p) {
    json.beginObject();
    json.key("name").value(phases[p].name);
    json.key("seconds").value(phases[p].seconds.size());
    json.key("p50Milliseconds").value(outcomes[p].p50);
    json.key("p99Milliseconds").value(outcomes[p].p99);
    json.key("utilisation").value(outcomes[p].utilisation);
    json.key("welfare").value(outcomes[p].welfare);
    json.key("pods").beginArray();
    for (std::size_t i = 0; i < kPods; ++i) {
      json.beginObject();
      json.key("name").value(pods[i].name);
      json.key("usedCores").value(phases[p].mean(i, &Moment::used));
      json.key("throttledMillisecondsPerSecond").value(phases[p].mean(i, &Moment::throttled));
      json.key("lastLimitCores")
          .value(phases[p].seconds.empty() ? 0 : phases[p].seconds.back()[i].limit);
      json.endObject();
    }
    json.endArray().endObject();
  }
  json.endArray().endObject();
  return out;
}

std::string page(const std::array<Phase, 2>& phases, const std::array<Outcome, 2>& outcomes,
                 const std::array<DemoPod, kPods>& pods, const std::string& where) {
  view::Page page("MBCAS: static limits, then the market");
  page.paragraph(where);
  std::vector<std::vector<std::string>> rows{{"", phases[0].name, phases[1].name}};
  for (std::size_t i = 0; i < kPods; ++i) {
    rows.push_back({fmt::format("{}: throttled", pods[i].name),
                    fmt::format("{:.0f} ms/s", phases[0].mean(i, &Moment::throttled)),
                    fmt::format("{:.0f} ms/s", phases[1].mean(i, &Moment::throttled))});
  }
  const auto row = [&](const char* what, double Outcome::* field, double factor, const char* unit,
                       int digits) {
    rows.push_back({what, fmt::format("{:.{}f}{}", outcomes[0].*field * factor, digits, unit),
                    fmt::format("{:.{}f}{}", outcomes[1].*field * factor, digits, unit)});
  };
  row("service: median response time", &Outcome::p50, 1, " ms", 0);
  row("service: 99th percentile", &Outcome::p99, 1, " ms", 0);
  row("machine used by the four", &Outcome::utilisation, 100, " %", 0);
  row("Nash welfare (1: everybody has everything)", &Outcome::welfare, 1, "", 2);
  page.table(rows);
  page.heading("The pods");
  std::vector<std::vector<std::string>> what{{"pod", "what it does", "declared limit"}};
  for (const DemoPod& pod : pods) {
    what.push_back({pod.name, pod.what, fmt::format("{}m", pod.limit.count())});
  }
  page.table(what);
  const auto course = [&](const char* title, const char* unit, double Moment::* field,
                          double factor, bool stepped) {
    view::Plot plot{.title = title, .x_label = "seconds", .y_label = unit};
    for (std::size_t i = 0; i < kPods; ++i) {
      view::Series series{.name = pods[i].name, .points = {}, .stepped = stepped};
      double x = 0;
      for (const Phase& phase : phases) {
        for (const auto& second : phase.seconds) {
          series.points.push_back({x++, second[i].*field * factor});
        }
      }
      plot.series.push_back(std::move(series));
    }
    plot.marks.push_back({static_cast<double>(phases[0].seconds.size()), "market"});
    page.plot(plot);
  };
  page.heading("Throttling");
  course("Time that threads were held back by limits", "ms/s", &Moment::throttled, 1, false);
  page.heading("Limits");
  course("CPU limit in force", "cores", &Moment::limit, 1, true);
  page.heading("Use");
  course("CPU used", "cores", &Moment::used, 1, false);
  return page.toString();
}

// Runs both phases; false if the user had enough before the end.
bool play(World& world, std::array<Phase, 2>& phases, const DemoFlags& flags,
          const std::string& where, bool real_time) {
  const bool live = isTerminal() && !flags.plain && !flags.json;
  Patience patience(live);
  std::unique_ptr<Screen> screen = live ? std::make_unique<Screen>() : nullptr;
  const SystemClock clock;
  const int before = std::max(5, flags.seconds / 4);
  int elapsed = 0;
  // A model is as fast as one likes: slow enough to be watched, or at once.
  const Nanos pause = real_time ? Nanos(kInterval) : live ? Nanos(100ms) : Nanos(0);
  MonotonicTime next = clock.monotonic();
  for (std::size_t p = 0; p < 2; ++p) {
    Phase& phase = phases[p];
    world.begin(p == 1);
    const int length = p == 0 ? before : std::max(5, flags.seconds - before);
    for (int second = 0; second < length; ++second) {
      next = std::max(next + pause, clock.monotonic());
      if (!patience.wait(next - clock.monotonic())) return false;
      std::array<Moment, kPods> moments;
      view::NodeScreen picture = world.tick(moments);
      phase.seconds.push_back(moments);
      phase.responses = world.responses();
      phase.capacity = picture.capacity.cores();
      phase.price = std::max(phase.price, picture.price.value_or(phase.price));
      ++elapsed;
      picture.title = fmt::format("mbcas demo: {}", phase.name);
      picture.subtitle =
          fmt::format("{} of {} s   q: quit", elapsed, before + flags.seconds - before);
      picture.notes.insert(picture.notes.begin(), where);
      const std::string response =
          fmt::format("service: median {:.0f} ms, 99th percentile {:.0f} ms so far in this phase",
                      percentile(phase.responses, 0.5), percentile(phase.responses, 0.99));
      if (live) {
        picture.notes.push_back(response);
        const TerminalSize size = terminalSize();
        screen->draw(view::render(picture, size.width, size.height, wantsColours()));
      } else if (!flags.json) {
        std::string line = fmt::format("{:>3} s  {:<14}", elapsed, phase.name);
        for (const view::PodLine& pod : picture.pods) {
          line += fmt::format("  {} {}m/{}m {} ms/s", pod.name, pod.usage.count(),
                              pod.limit ? pod.limit->count() : 0, pod.throttled.count());
        }
        fmt::print("{}\n", line);
        std::fflush(stdout);
      }
    }
  }
  return true;
}

int demo(const DemoFlags& flags) {
  const unsigned cpus = flags.model && flags.cpus > 0
                            ? flags.cpus
                            : std::max(1U, std::thread::hardware_concurrency());
  const std::array<DemoPod, kPods> pods = demoPods(cpus);
  std::array<Phase, 2> phases{Phase{"static limits"}, Phase{"the market"}};
  std::string where;
  std::string why_model = flags.model ? "as asked" : "";
  bool whole = false;

  const Result<kernel::Mounts> mounts = kernel::detectMounts(flags.root);
  std::unique_ptr<host::Ledger> ledger;
  if (why_model.empty() && !mounts) why_model = mounts.error().message();
  if (why_model.empty() && ::geteuid() != 0) why_model = "making cgroups needs root";
  if (why_model.empty()) {
    Result<host::Ledger> opened = host::Ledger::open(flags.state);
    if (opened) {
      ledger = std::make_unique<host::Ledger>(*std::move(opened));
      (void)ledger->restore(*mounts);  // of a demonstration that was killed
    } else {
      why_model = opened.error().message();
    }
  }
  if (why_model.empty()) {
    const double busy = otherWork(cpus);
    auto world = KernelWorld::make(*mounts, *ledger, pods);
    if (world) {
      where = fmt::format("On the kernel of this machine ({}, {} CPUs).", kernel::describe(*mounts),
                          cpus);
      if (busy >= kMuchOtherWork * cpus) {
        where += fmt::format(
            " Other work keeps {:.1f} of them busy: the figures say little; those of "
            "mbcas demo --model do not depend on it.",
            busy);
      }
      if (!flags.json) fmt::print("{}\n", where);
      whole = play(**world, phases, flags, where, true);
    } else {
      why_model = world.error().message();
    }
  }
  if (ledger) {
    for (const std::string& failure : ledger->restore(*mounts).failures) {
      complain("mbcas", failure);
    }
  }
  if (!why_model.empty()) {
    where = fmt::format("On a model of the kernel with {} CPUs, not on this machine: {}.", cpus,
                        why_model);
    if (!flags.json) fmt::print("{}\n", where);
    ModelWorld world(cpus, pods);
    whole = play(world, phases, flags, where, false);
  }
  if (!whole) {
    fmt::print(stderr, "mbcas: stopped; everything is as it was\n");
    return kFailed;
  }
  const std::array<Outcome, 2> outcomes{outcomeOf(phases[0], pods, cpus),
                                        outcomeOf(phases[1], pods, cpus)};
  if (flags.json) {
    fmt::print("{}\n", toJson(phases, outcomes, pods, !why_model.empty()));
  } else {
    if (isTerminal() && !flags.plain) fmt::print("{}\n", where);
    fmt::print("\n{}", summary(phases, outcomes, pods).toString(wantsColours()));
  }
  if (!flags.report.empty()) {
    std::ofstream file(flags.report);
    file << page(phases, outcomes, pods, where) << std::flush;
    if (!file) {
      fmt::print(stderr, "mbcas: {}: cannot be written\n", flags.report);
      return kFailed;
    }
    if (!flags.json) fmt::print("\nThe whole course, with plots: {}\n", flags.report);
  }
  return kDone;
}

}  // namespace

void addDemo(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("demo", "See it work: four workloads, static limits, then the market");
  const auto flags = std::make_shared<DemoFlags>();
  command->add_option("--seconds", flags->seconds, "How long; the first quarter has static limits")
      ->check(CLI::Range(10, 3600))
      ->capture_default_str();
  command->add_option("--report", flags->report, "HTML report to write; empty: none")
      ->capture_default_str();
  command->add_flag("--plain", flags->plain, "A line a second instead of the live screen");
  command->add_flag("--json", flags->json, "Only the result, as JSON");
  CLI::Option* model = command->add_flag("--model", flags->model,
                                         "On the model kernel, also where the real one could");
  command
      ->add_option("--cpus", flags->cpus, "With --model: how many it has (default: this machine's)")
      ->check(CLI::Range(1, 1024))
      ->needs(model);
  command->add_option("--cgroup-root", flags->root, "Where the cgroup tree is mounted")
      ->capture_default_str();
  command->add_option("--state", flags->state, "File that remembers what was changed")
      ->capture_default_str();
  command->footer(
      "Makes four cgroups of its own and removes them at the end, also on Ctrl-C; nothing else on\n"
      "the machine is touched. Without root, or without cgroups, the same runs on a model.\n\n"
      "Example: mbcas demo --seconds 30");
  command->callback([flags, &exit_code] { exit_code = demo(*flags); });
}

}  // namespace mbcas::cli
