// mbcas demo: four workloads on this machine, first with static limits, then with the market, and
// in the end next to an unmanaged process that wants every CPU.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <thread>

#include "apps/mbcas/commands.h"
#include "apps/mbcas/demo_load.h"
#include "apps/mbcas/flags.h"
#include "apps/mbcas/live_page.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/cli/host_record.h"
#include "mbcas/cli/sim_record.h"
#include "mbcas/control/weight.h"
#include "mbcas/host/plane.h"
#include "mbcas/host/show.h"
#include "mbcas/host/workload.h"
#include "mbcas/kernel/cgroup.h"
#include "mbcas/kernel/parse.h"
#include "mbcas/sim/simulation.h"
#include "mbcas/view/page.h"
#include "mbcas/view/screen.h"
#include "mbcas/view/text.h"

namespace mbcas::app {
namespace {

using namespace std::chrono_literals;
using namespace literals;

constexpr std::size_t kPods = 4;
constexpr std::size_t kService = 3;
constexpr std::size_t kHog = kPods;  // among the pods of the model
constexpr const char* kHogName = "hog";

enum Act : std::size_t { kStatic, kMarket, kWithHog, kActs };
static_assert(kActs == Responses::kPhases);
constexpr auto kInterval = 1s;
constexpr Nanos kModelPause = 100ms;    // for a second of the model on a screen or page
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
  double offered = 0;    // cores that it would use if nothing held it back
};

struct Phase {
  const char* name;
  std::vector<std::array<Moment, kPods>> seconds{};
  std::vector<double> hog{};  // cores that it used, in the same seconds
  sim::Latencies responses{};

  double mean(std::size_t pod, double Moment::* field) const {
    double sum = 0;
    for (const auto& second : seconds) sum += second[pod].*field;
    return seconds.empty() ? 0 : sum / static_cast<double>(seconds.size());
  }
  double meanHog() const {
    return hog.empty()
               ? 0
               : std::accumulate(hog.begin(), hog.end(), 0.0) / static_cast<double>(hog.size());
  }
  double lowestLimit(std::size_t pod) const {
    double lowest = seconds.empty() ? 0 : seconds.front()[pod].limit;
    for (const auto& second : seconds) lowest = std::min(lowest, second[pod].limit);
    return lowest;
  }
};
using Phases = std::array<Phase, kActs>;

double percentile(const sim::Latencies& responses, double p) {
  return std::chrono::duration<double, std::milli>(responses.percentile(p)).count();
}

// Where the workloads run: the kernel, or its model. tick() is called once per interval.
class World {
 public:
  virtual ~World() = default;
  // Acts follow each other: what runs in one goes on in the next.
  virtual Result<void> begin(Act act) = 0;
  // What happened since the last call.
  virtual view::NodeScreen tick(std::array<Moment, kPods>& moments, double& hog) = 0;
  virtual sim::Latencies responses() const = 0;  // of the phase
  // The last tick for the page. Its name and its time are left to the caller.
  virtual cli::NodeRecord record() const = 0;
};

unsigned machineCpus() {
  return std::max(1U, std::thread::hardware_concurrency());
}

Millicores milli(double cores) {
  return Millicores(std::llround(cores * 1000));
}

view::PodLine hogLine(double used, unsigned cpus) {
  return {.name = kHogName,
          .need = milli(cpus),
          .limit = std::nullopt,
          .usage = milli(used),
          .throttled = Millicores(0),
          .throttling = {},
          .note = "left alone: it is not managed"};
}

class KernelWorld final : public World {
 public:
  static Result<std::unique_ptr<KernelWorld>> make(const kernel::Mounts& mounts,
                                                   host::Ledger& ledger,
                                                   const std::array<DemoPod, kPods>& pods) {
    auto world = std::unique_ptr<KernelWorld>(new KernelWorld);
    if (!world->shared_) return failure("no memory to share with the service");
    host::HostConfig config;
    world->mounts_ = mounts;
    for (std::size_t i = 0; i < kPods; ++i) world->nominal_[i] = demandOf(pods[i].load);
    world->service_rate_ = pods[kService].load.rate;
    world->service_work_ = std::chrono::duration<double>(pods[kService].load.work).count();
    world->offered_at_ = world->clock_.monotonic();
    const std::string own = fmt::format("/mbcas-demo-{}/", ::getpid());
    world->hog_cgroup_ = own + kHogName;
    if (auto made = host::makeCgroup(mounts, ledger, world->hog_cgroup_); !made) {
      return failure(std::move(made).error());
    }
    for (const DemoPod& pod : pods) {
      const std::string cgroup = own + pod.name;
      if (auto made = host::makeCgroup(mounts, ledger, cgroup); !made) {
        return failure(std::move(made).error());
      }
      config.pods.push_back(
          {.name = pod.name, .cgroup = cgroup, .request = pod.request, .limit = pod.limit});
    }
    host::Settings settings;
    settings.demand.cpus = machineCpus();
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

  Result<void> begin(Act act) override {
    shared_->phase = act;
    plane_->setDryRun(act == kStatic);
    return act == kWithHog ? startHog() : Result<void>();
  }

  view::NodeScreen tick(std::array<Moment, kPods>& moments, double& hog) override {
    const host::View& view = plane_->tick();
    view_ = &view;
    const std::array<double, kPods> offered = offeredNow();
    for (const host::PodView& pod : view.pods) {
      for (std::size_t i = 0; i < kPods; ++i) {
        if (pod.name != names_[i]) continue;
        moments[i] = {pod.usage.cores(), static_cast<double>(pod.blocked.count()),
                      pod.limit ? pod.limit->cores() : 0, offered[i]};
      }
    }
    hog = hogUse();
    view::NodeScreen screen = show_.screen(view);
    if (hog_) screen.pods.push_back(hogLine(hog, machineCpus()));
    return screen;
  }

  sim::Latencies responses() const override { return shared_->of_phase[shared_->phase]; }
  cli::NodeRecord record() const override { return cli::recordOf(*view_, "", {}); }

 private:
  KernelWorld() : shared_(shareResponses()) {}

  // With the weight that a BestEffort pod has: the least on cgroup v1, and on v2.
  Result<void> startHog() {
    const bool v2 = mounts_.version == kernel::Version::kV2;
    std::ofstream weight(mounts_.cpu + hog_cgroup_ + (v2 ? "/cpu.weight" : "/cpu.shares"));
    if (!(weight << (v2 ? 1 : 2) << std::flush)) return failure("the hog's weight: not written");
    const unsigned threads = machineCpus();
    Result<host::Workload> started =
        host::Workload::start(mounts_, hog_cgroup_, [threads] { runGreedy(threads); });
    if (!started) return failure(std::move(started).error());
    workloads_.push_back(*std::move(started));
    Result<kernel::Cgroup> opened = kernel::Cgroup::open(mounts_, hog_cgroup_);
    if (!opened) return failure(std::move(opened).error());
    hog_ = std::make_unique<kernel::Cgroup>(*std::move(opened));
    (void)hogUse();
    return {};
  }

  // Cores, since the last call. What the service was asked for is counted, whether it was served or
  // not.
  std::array<double, kPods> offeredNow() {
    std::array<double, kPods> offered = nominal_;
    const MonotonicTime now = clock_.monotonic();
    if (!arrivals_ && shared_->began != 0) {
      arrivals_.emplace(service_rate_, Nanos(shared_->began.load()));
      (void)arrivals_->countUntil(offered_at_.time_since_epoch());
    }
    if (arrivals_ && now > offered_at_) {
      offered[kService] = static_cast<double>(arrivals_->countUntil(now.time_since_epoch())) *
                          service_work_ / std::chrono::duration<double>(now - offered_at_).count();
    }
    offered_at_ = now;
    return offered;
  }

  // Cores, since the last call.
  double hogUse() {
    if (!hog_) return 0;
    const kernel::ReadResult<Nanos> used = hog_->usage();
    const MonotonicTime now = clock_.monotonic();
    if (!used || now <= hog_at_) return 0;
    const double cores = std::chrono::duration<double>(*used - hog_used_) / (now - hog_at_);
    hog_used_ = *used;
    hog_at_ = now;
    return cores;
  }

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
  kernel::Mounts mounts_;
  std::unique_ptr<host::Plane> plane_;
  const host::View* view_ = nullptr;  // the plane's last
  std::vector<host::Workload> workloads_;
  std::array<double, kPods> nominal_{};  // cores, by what each is made to do
  double service_rate_ = 0;              // requests a second
  double service_work_ = 0;              // CPU seconds each
  std::optional<Arrivals> arrivals_;
  MonotonicTime offered_at_{};  // their last reading
  std::string hog_cgroup_;
  std::unique_ptr<kernel::Cgroup> hog_;  // from its start on
  Nanos hog_used_{0};                    // at the last look, ...
  MonotonicTime hog_at_{};               // ... which was then
  host::Show show_;
};

class ModelWorld final : public World {
 public:
  // The hog comes so long after the market.
  ModelWorld(unsigned cpus, const std::array<DemoPod, kPods>& pods, Nanos hog_after) {
    scenario_ = {.name = "demo", .cpus = cpus, .duration = 1h, .settle = 0s};
    for (const DemoPod& pod : pods) {
      scenario_.pods.push_back(
          {.name = pod.name,
           .containers = {{.limit = pod.limit, .request = pod.request, .workload = pod.load}}});
    }
    with_hog_ = scenario_;
    const sim::WorkloadSpec spin{.kind = sim::WorkloadSpec::Kind::kSpin,
                                 .threads = static_cast<int>(cpus)};
    with_hog_.pods.push_back({.name = kHogName,
                              .containers = {{.workload = spin}},
                              .managed = false,
                              .start = hog_after});
  }

  Result<void> begin(Act act) override {
    hog_is_there_ = act == kWithHog;
    if (hog_is_there_) {  // in the same world
      before_ = allResponses();
      return {};
    }
    simulation_.reset();
    policy_ = std::make_unique<cli::RecordingPolicy>(
        *sim::makePolicy(act == kStatic ? "static" : "responsive", scenario_.cpus));
    simulation_ =
        std::make_unique<sim::Simulation>(act == kStatic ? scenario_ : with_hog_, *policy_);
    before_ = {};
    return {};
  }

  view::NodeScreen tick(std::array<Moment, kPods>& moments, double& hog) override {
    simulation_->step();
    view::NodeScreen screen{
        .title = "",
        .capacity = Millicores(1000) * static_cast<std::int64_t>(scenario_.cpus),
        .usage = Millicores(0)};
    for (std::size_t i = 0; i < kPods; ++i) {
      const sim::Simulation::Moment& moment = simulation_->moments()[i];
      moments[i] = {moment.used, moment.throttled * 1000, moment.limit ? moment.limit->cores() : 0,
                    moment.offered};
      past_[i].push_back(moments[i].throttled);
      screen.usage += milli(moment.used);
      screen.pods.push_back({.name = scenario_.pods[i].name,
                             .need = milli(moment.offered),
                             .limit = moment.limit,
                             .usage = milli(moment.used),
                             .throttled = milli(moment.throttled),
                             .throttling = past_[i]});
    }
    hog = 0;
    if (hog_is_there_) {
      hog = simulation_->moments()[kHog].used;
      screen.usage += milli(hog);
      screen.pods.push_back(hogLine(hog, scenario_.cpus));
    }
    if (const control::NodeDecision* const decision = policy_->decision()) {
      screen.scarce = decision->scarce;
      screen.price = decision->price;
      screen.welfare = decision->welfare;
    }
    return screen;
  }

  sim::Latencies responses() const override { return allResponses().since(before_); }
  cli::NodeRecord record() const override { return policy_->record(); }

 private:
  sim::Latencies allResponses() const {
    sim::Latencies all;
    all.add(simulation_->node().workload(static_cast<int>(kService), 0).latencies());
    return all;
  }

  sim::Scenario scenario_;
  sim::Scenario with_hog_;
  std::unique_ptr<cli::RecordingPolicy> policy_;
  std::unique_ptr<sim::Simulation> simulation_;
  std::array<std::vector<double>, kPods> past_;
  sim::Latencies before_;  // of the acts before in the same world
  bool hog_is_there_ = false;
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
  double duration = 60;  // seconds
  bool plain = false;
  bool json = false;  // as -o json, for old scripts
  std::string output;
  bool model = false;
  bool ui = false;
  PageFlags page{};
  unsigned cpus = 0;  // of the model; 0: as many as the machine has

  int seconds() const { return static_cast<int>(std::lround(duration)); }
  bool document() const { return output != "text"; }  // nothing but the result is printed
};

struct Outcome {
  double throttled = 0;  // ms/s, of the three pods that could be satisfied
  double p50 = 0, p99 = 0;
  double utilisation = 0;  // of the whole machine, by the four
  double hog = 0;          // likewise, by the hog
  double welfare = 0;      // weighted geometric mean of the part of its demand that each got
};

Outcome outcomeOf(const Phase& phase, const std::array<DemoPod, kPods>& pods, unsigned cpus) {
  Outcome outcome{.p50 = percentile(phase.responses, 0.5),
                  .p99 = percentile(phase.responses, 0.99),
                  .hog = phase.meanHog() / cpus};
  double weights = 0;
  for (std::size_t i = 0; i < kPods; ++i) {
    const double used = phase.mean(i, &Moment::used);
    // By what was offered in these very seconds: requests come at random, and a quiet act is no
    // loss.
    const double demand = std::min(phase.mean(i, &Moment::offered), static_cast<double>(cpus));
    const double weight = control::weightOf(pods[i].request);
    outcome.utilisation += used / cpus;
    const double share = demand > 0 ? used / demand : 1;
    outcome.welfare += weight * std::log(std::clamp(share, 1e-3, 1.0));
    weights += weight;
    if (demand < cpus) outcome.throttled += phase.mean(i, &Moment::throttled);
  }
  outcome.welfare = std::exp(outcome.welfare / weights);
  return outcome;
}

// The rows of the comparison: a name, and the text of each act.
std::vector<std::vector<std::string>> comparison(const Phases& phases,
                                                 const std::array<Outcome, kActs>& outcomes,
                                                 const std::array<DemoPod, kPods>& pods) {
  std::vector<std::vector<std::string>> rows{{""}};
  for (const Phase& phase : phases) rows[0].emplace_back(phase.name);
  const auto row = [&](std::string what, auto text) {
    std::vector<std::string>& cells = rows.emplace_back();
    cells.push_back(std::move(what));
    for (std::size_t act = 0; act < kActs; ++act) cells.push_back(text(phases[act], outcomes[act]));
  };
  for (std::size_t i = 0; i < kPods; ++i) {
    row(fmt::format("throttled: {}", pods[i].name), [i](const Phase& phase, const Outcome&) {
      return fmt::format("{:.0f} ms/s", phase.mean(i, &Moment::throttled));
    });
  }
  row("service: median response",
      [](const Phase&, const Outcome& outcome) { return fmt::format("{:.0f} ms", outcome.p50); });
  row("service: 99th percentile",
      [](const Phase&, const Outcome& outcome) { return fmt::format("{:.0f} ms", outcome.p99); });
  row("machine used by the four", [](const Phase&, const Outcome& outcome) {
    return fmt::format("{:.0f} %", outcome.utilisation * 100);
  });
  row("machine used by the hog", [&](const Phase& phase, const Outcome& outcome) {
    return &phase == &phases[kWithHog] ? fmt::format("{:.1f} %", outcome.hog * 100) : "-";
  });
  row("Nash welfare (1: all have all)",
      [](const Phase&, const Outcome& outcome) { return fmt::format("{:.2f}", outcome.welfare); });
  return rows;
}

view::Table summary(const std::vector<std::vector<std::string>>& rows) {
  std::vector<view::Table::Column> columns{{rows[0][0], view::Table::Align::kLeft}};
  for (std::size_t act = 1; act < rows[0].size(); ++act) columns.push_back({rows[0][act]});
  view::Table table(std::move(columns));
  for (std::size_t i = 1; i < rows.size(); ++i) table.row(rows[i]);
  return table;
}

std::string toJson(const Phases& phases, const std::array<Outcome, kActs>& outcomes,
                   const std::array<DemoPod, kPods>& pods, bool model) {
  std::string out;
  JsonWriter json(out);
  json.beginObject().key("on").value(model ? "model" : "kernel").key("phases").beginArray();
  for (std::size_t p = 0; p < kActs; ++p) {
    json.beginObject();
    json.key("name").value(phases[p].name);
    json.key("seconds").value(phases[p].seconds.size());
    json.key("p50Milliseconds").value(outcomes[p].p50);
    json.key("p99Milliseconds").value(outcomes[p].p99);
    json.key("utilisation").value(outcomes[p].utilisation);
    json.key("hogUsedCores").value(phases[p].meanHog());
    json.key("welfare").value(outcomes[p].welfare);
    json.key("pods").beginArray();
    for (std::size_t i = 0; i < kPods; ++i) {
      json.beginObject();
      json.key("name").value(pods[i].name);
      json.key("usedCores").value(phases[p].mean(i, &Moment::used));
      json.key("throttledMillisecondsPerSecond").value(phases[p].mean(i, &Moment::throttled));
      json.key("lastLimitCores")
          .value(phases[p].seconds.empty() ? 0 : phases[p].seconds.back()[i].limit);
      json.key("lowestLimitCores").value(phases[p].lowestLimit(i));
      json.endObject();
    }
    json.endArray().endObject();
  }
  json.endArray().endObject();
  return out;
}

view::Series hogSeries(const Phases& phases) {
  view::Series series{.name = kHogName, .points = {}};
  double x = 0;
  for (const Phase& phase : phases) {
    for (const double used : phase.hog) series.points.push_back({x++, used});
  }
  return series;
}

std::string page(const Phases& phases, const std::vector<std::vector<std::string>>& rows,
                 const std::array<DemoPod, kPods>& pods, const std::string& where) {
  view::Page page("MBCAS: static limits, the market, and a hog");
  page.paragraph(where);
  page.table(rows);
  page.heading("The pods");
  std::vector<std::vector<std::string>> what{{"pod", "what it does", "declared limit"}};
  for (const DemoPod& pod : pods) {
    what.push_back({pod.name, pod.what, fmt::format("{}m", pod.limit.count())});
  }
  what.push_back({kHogName, "comes last, is not managed, and wants every CPU", "none"});
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
    if (field == &Moment::used) plot.series.push_back(hogSeries(phases));
    const auto market = static_cast<double>(phases[kStatic].seconds.size());
    plot.marks.push_back({market, "market"});
    plot.marks.push_back({market + static_cast<double>(phases[kMarket].seconds.size()), kHogName});
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

// Seconds of each act: the market has at least half of the time.
std::array<int, kActs> lengths(int seconds) {
  const int quarter = std::max(3, seconds / 4);
  return {quarter, seconds - 2 * quarter, quarter};
}

std::string plainLine(int elapsed, const char* act, const view::NodeScreen& picture) {
  std::string line = fmt::format("{:>3} s  {:<14}", elapsed, act);
  for (const view::PodLine& pod : picture.pods) {
    line += pod.limit ? fmt::format("  {} {}m/{}m {} ms/s", pod.name, pod.usage.count(),
                                    pod.limit->count(), pod.throttled.count())
                      : fmt::format("  {} {}m", pod.name, pod.usage.count());
  }
  return line;
}

// Runs all acts; false if the user had enough before the end, or an act could not begin. `page`:
// null without --ui.
bool play(World& world, Phases& phases, const DemoFlags& flags, const std::string& where,
          bool real_time, LivePage* page) {
  const bool live = isTerminal() && !flags.plain && !flags.document();
  Patience patience(live ? Patience::Keys::kQuit : Patience::Keys::kNone);
  std::unique_ptr<Screen> screen = live ? std::make_unique<Screen>() : nullptr;
  const SystemClock clock;
  int elapsed = 0;
  // A model is as fast as one likes: slow enough to be watched, or at once.
  const bool watched = live || page != nullptr;
  const Nanos pause = real_time ? Nanos(kInterval) : watched ? kModelPause : Nanos(0);
  const std::string speed =
      real_time ? "" : fmt::format("{}x speed   ", Nanos(kInterval) / kModelPause);
  MonotonicTime next = clock.monotonic();
  const WallTime begin = clock.wall();
  for (const Act act : {kStatic, kMarket, kWithHog}) {
    Phase& phase = phases[act];
    if (const Result<void> begun = world.begin(act); !begun) {
      complain("mbcas demo", begun.error().message());
      return false;
    }
    for (int second = 0; second < lengths(flags.seconds())[act]; ++second) {
      next = std::max(next + pause, clock.monotonic());
      if (!patience.wait(next - clock.monotonic())) return false;
      std::array<Moment, kPods> moments;
      view::NodeScreen picture = world.tick(moments, phase.hog.emplace_back(0));
      phase.seconds.push_back(moments);
      phase.responses = world.responses();
      ++elapsed;
      if (page != nullptr) {
        cli::NodeRecord node = world.record();
        node.node = fmt::format("mbcas demo: {}", phase.name);
        // Time on a model has another pace.
        node.time = real_time ? clock.wall() : begin + std::chrono::seconds(elapsed);
        page->publish(node);
        if (live) {
          picture.notes.push_back("page: " + page->address());
        } else {
          page->tellAddress();
        }
      }
      picture.title = fmt::format("mbcas demo: {}", phase.name);
      picture.subtitle = fmt::format("{}{} of {} s   q: quit", speed, elapsed, flags.seconds());
      picture.notes.insert(picture.notes.begin(), where);
      const std::string response =
          fmt::format("service: median {:.0f} ms, 99th percentile {:.0f} ms so far in this phase",
                      percentile(phase.responses, 0.5), percentile(phase.responses, 0.99));
      if (live) {
        picture.notes.push_back(response);
        const TerminalSize size = terminalSize();
        screen->draw(view::render(picture, size.width, size.height, wantsColours()));
      } else if (!flags.document()) {
        fmt::print("{}\n", plainLine(elapsed, phase.name, picture));
        std::fflush(stdout);
      }
    }
  }
  return true;
}

void sayWrapped(const std::string& text) {
  for (const std::string& line : view::wrap(text, isTerminal() ? terminalSize().width : 0)) {
    fmt::print("{}\n", line);
  }
}

int demo(const DemoFlags& flags) {
  const unsigned cpus = flags.model && flags.cpus > 0 ? flags.cpus : machineCpus();
  const std::array<DemoPod, kPods> pods = demoPods(cpus);
  Phases phases{Phase{"static limits"}, Phase{"the market"}, Phase{"with a hog"}};
  std::string where;
  std::string why_model = flags.model ? "as asked" : "";
  bool whole = false;
  // Before the page, whose thread must not get the signals.
  std::optional<Patience> patience;
  std::optional<LivePage> live_page;
  if (flags.ui) {
    patience.emplace(Patience::Keys::kNone);
    live_page.emplace();
    const Result<void> started =
        live_page->start(flags.page, {.kind = "demo", .title = "mbcas demo"});
    if (!started) {
      complain("mbcas", started.error().message());
      return kFailed;
    }
    live_page->setStatus("live", "");
  }
  LivePage* const shown = live_page ? &*live_page : nullptr;

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
      if (!flags.document()) sayWrapped(where);
      whole = play(**world, phases, flags, where, true, shown);
    } else {
      why_model = world.error().message();
    }
  }
  if (ledger) {
    for (const std::string& failure : ledger->restore(*mounts).failures) {
      complain("mbcas demo", failure);
    }
  }
  if (!why_model.empty()) {
    where = fmt::format("On a model of the kernel with {} CPUs, not on this machine: {}.", cpus,
                        why_model);
    if (!flags.document()) sayWrapped(where);
    ModelWorld world(cpus, pods, std::chrono::seconds(lengths(flags.seconds())[kMarket]));
    whole = play(world, phases, flags, where, false, shown);
  }
  if (!whole) {
    complain("mbcas demo", "stopped; everything is as it was");
    return kFailed;
  }
  std::array<Outcome, kActs> outcomes;
  for (std::size_t act = 0; act < kActs; ++act) {
    outcomes[act] = outcomeOf(phases[act], pods, cpus);
  }
  const std::vector<std::vector<std::string>> rows = comparison(phases, outcomes, pods);
  if (flags.output == "name") {
    for (const DemoPod& pod : pods) say(fmt::format("pod/{}", pod.name));
  } else if (flags.document()) {
    printDocument(toJson(phases, outcomes, pods, !why_model.empty()), flags.output);
  } else {
    if (isTerminal() && !flags.plain) sayWrapped(where);
    fmt::print("\n{}", summary(rows).toString(wantsColours()));
  }
  if (!flags.report.empty()) {
    std::ofstream file(flags.report);
    file << page(phases, rows, pods, where) << std::flush;
    if (!file) {
      complain("mbcas demo", flags.report + ": cannot be written");
      return kFailed;
    }
    if (!flags.document()) fmt::print("\nThe whole course, with plots: {}\n", flags.report);
  }
  if (live_page) {
    live_page->setStatus("over", "The demonstration is over.");
    say("The page stays until Ctrl-C.");
    live_page->tellAddress();
    std::fflush(stdout);
    while (patience->wait(1s)) live_page->tellAddress();
  }
  return kDone;
}

}  // namespace

void addDemo(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "demo", "See it work: four workloads, static limits, the market, and a hog");
  const auto flags = std::make_shared<DemoFlags>();
  addDuration(*command, "--duration,--seconds", flags->duration,
              "How long; the first quarter has static limits, the last one a hog", 10, 3600);
  command->add_option("--report", flags->report, "HTML report to write; empty: none")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--plain", flags->plain, "A line a second instead of the live screen");
  addOutput(*command, flags->output, {"text", "json", "yaml", "name"});
  command->add_flag("--json", flags->json, "The same as -o json")->group("");
  CLI::Option* ui =
      command->add_flag("--ui", flags->ui, "Also in a browser, as `mbcas ui`; stays until Ctrl-C");
  addPageFlags(*command, flags->page, ui);
  CLI::Option* model = command->add_flag("--model", flags->model,
                                         "On the model kernel, also where the real one could");
  command
      ->add_option("--cpus", flags->cpus,
                   "With --model: how many it has (1 to 1024; default: this machine's)")
      ->check(CLI::Range(1, 1024).description(""))
      ->needs(model);
  command->add_option("--cgroup-root", flags->root, "Where the cgroup tree is mounted")
      ->type_name("FOLDER")
      ->group(kHostGroup)
      ->capture_default_str();
  command->add_option("--state", flags->state, "File that remembers what was changed")
      ->type_name("FILE")
      ->group(kHostGroup)
      ->capture_default_str();
  command->footer(
      "The demo makes cgroups of its own and removes them at the end, also on Ctrl-C. It touches\n"
      "nothing else on the machine. The hog is a process that MBCAS does not manage: it wants "
      "every\n"
      "CPU, and has the kernel weight of a BestEffort pod. Without root, or without cgroups, the\n"
      "demo runs on a model of the kernel.\n\n"
      "Example: mbcas demo --duration 30s");
  command->callback([flags, &exit_code] {
    if (flags->json && flags->output == "text") flags->output = "json";
    if (flags->ui && flags->document()) {
      complain("mbcas demo", "--ui stays until Ctrl-C, so it cannot go with -o " + flags->output);
      exit_code = kUsage;
      return;
    }
    exit_code = demo(*flags);
  });
}

}  // namespace mbcas::app
