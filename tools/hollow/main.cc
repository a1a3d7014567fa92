// mbcas-hollow: what MBCAS does to an API server, and what a storm does to MBCAS. Hollow nodes
// around a real etcd, kube-apiserver and mbcas-controller, through calm, churn and storm.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tools/hollow/fleet.h"

namespace mbcas::hollow {
namespace {

using std::chrono::seconds;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr const char* kFooter = R"(Example:
  build/release/tools/hollow/mbcas-hollow --nodes 10 --pods 100

Phases: start (agents and controller meet a cluster that is there), calm, churn (each second some
pods change their load, and a few are replaced), storm (every pod throttled at once), and restart
(again, while the API server is killed and all agents restart). Run it from the root of the
source tree; it needs what `tools/cluster/cluster build control-plane` makes.)";

struct Flags {
  int nodes = 1;
  int pods = 100;
  int calm = 60;
  int churn = 60;
  double churn_share = 0.005;
  int patience = 600;
  int away = 5;
  int ceiling = 10;
  bool storm = true;
  Fleet::Options fleet{};
};

double secondsSince(SteadyTime begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double secondsOf(Nanos time) {
  return std::chrono::duration<double>(time).count();
}

// All counters at one moment.
struct Reading {
  SteadyTime at{};
  RequestCounts requests{};
  std::uint64_t agent_requests = 0;
  test::TcpTap::Counts agent{};
  test::TcpTap::Counts controller{};
  Fleet::Costs costs{};
};

struct Phase {
  std::string name{};
  double took = 0;    // until it had what it is about
  double window = 0;  // between the readings: until all had been said of it, too
  Reading before{};
  RequestCounts requests_when_done{};  // after `took`
  Reading after{};
  Ledger::Summary summary{};
  WallTime began{};
  bool restarted = false;  // the API server: its CPU time started again
  bool finished = true;    // within the patience that there was
};

class Run {
 public:
  explicit Run(Flags flags) : flags_(std::move(flags)) {
    flags_.fleet.nodes = flags_.nodes;
    flags_.fleet.pods = flags_.pods;
    flags_.fleet.say = say;
  }

  Result<void> all() {
    say(fmt::format("{} nodes with {} pods each; load of the machine {}", flags_.nodes, flags_.pods,
                    loadAverage()));
    Result<std::unique_ptr<Fleet>> fleet = Fleet::start(flags_.fleet);
    if (!fleet) return failure(fleet.error());
    fleet_ = *std::move(fleet);
    say("the control plane and the nodes are there");
    SteadyTime begin = std::chrono::steady_clock::now();
    if (Result<void> made = fleet_->makePods(); !made) return made;
    say(fmt::format("{} pods run, after {:.0f} s", fleet_->pods().size(), secondsSince(begin)));

    phase("start", [&](Phase&) {
      fleet_->startController();
      fleet_->startAgents();
      return await([&] { return fleet_->settled(); });
    });
    settles();
    say(fmt::format("settled; bare patches for twice {} s", flags_.ceiling));
    ceiling_ = fleet_->barePatches(seconds(flags_.ceiling), 32);
    phase("calm", [&](Phase&) {
      std::this_thread::sleep_for(seconds(flags_.calm));
      return true;
    });
    phase("churn", [&](Phase&) { return churn(); });
    if (flags_.storm) {
      phase("storm", [&](Phase&) {
        loadAll(400, 1000);
        return raised();
      });
      phase("restart", [&](Phase& phase) {
        phase.restarted = true;
        loadAll(1500, 2200);
        std::jthread agents([&] { fleet_->restartAgents(); });
        if (const Result<void> done = fleet_->restartApiserver(seconds(flags_.away)); !done) {
          say(done.error().message());
          return false;
        }
        agents.join();
        return raised();
      });
    }
    report();
    return {};
  }

  Fleet* fleet() { return fleet_.get(); }

 private:
  static void say(const std::string& line) {
    fmt::print(stderr, "hollow: {}\n", line);
    (void)std::fflush(stderr);
  }
  static std::string loadAverage() {
    std::string word;
    std::ifstream("/proc/loadavg") >> word;
    return word;
  }

  Reading read() {
    Reading reading;
    // It may be on its way back.
    for (int tries = 0; tries < 60; ++tries) {
      if (Result<RequestCounts> counts = fleet_->requests()) {
        reading.requests = *std::move(counts);
        break;
      }
      std::this_thread::sleep_for(seconds(1));
    }
    reading.at = std::chrono::steady_clock::now();
    reading.agent_requests = fleet_->agentRequests();
    reading.agent = fleet_->agentBytes();
    reading.controller = fleet_->controllerBytes();
    reading.costs = fleet_->costs();
    return reading;
  }

  template <class Work>
  void phase(const std::string& name, const Work& work) {
    Phase phase{.name = name};
    say(name);
    phase.before = read();
    fleet_->ledger().take();
    phase.began = SystemClock().wall();
    const SteadyTime begin = std::chrono::steady_clock::now();
    phase.finished = work(phase);
    phase.took = secondsSince(begin);
    phase.requests_when_done = read().requests;
    phase.finished = await([&] { return fleet_->settled(); }) && phase.finished;
    phase.after = read();
    phase.window = std::chrono::duration<double>(phase.after.at - phase.before.at).count();
    phase.summary = fleet_->ledger().take();
    say(fmt::format("{}: {:.0f} s, {} decisions, {} in force; load of the machine {}{}", name,
                    phase.took, phase.summary.decisions, phase.summary.changes.size(),
                    loadAverage(), phase.finished ? "" : "; NOT FINISHED"));
    phases_.push_back(std::move(phase));
  }

  bool await(const std::function<bool()>& condition) const {
    const SteadyTime begin = std::chrono::steady_clock::now();
    while (!condition()) {
      if (secondsSince(begin) > flags_.patience) return false;
      fleet_->tendController();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return true;
  }
  // Everything is as it should be, and for ten seconds agents have sent little but their Leases.
  bool settles() {
    SteadyTime since = std::chrono::steady_clock::now();
    std::uint64_t sent = fleet_->agentRequests();
    return await([&] {
      if (secondsSince(since) < 10) return false;
      const std::uint64_t before = std::exchange(sent, fleet_->agentRequests());
      since = std::chrono::steady_clock::now();
      return fleet_->settled() && sent - before <= 2 * static_cast<std::uint64_t>(flags_.nodes);
    });
  }

  void loadAll(int least, int most) {
    std::uniform_int_distribution<int> load(least, most);
    loads_.resize(fleet_->pods().size());
    for (std::size_t i = 0; i < fleet_->pods().size(); ++i) {
      loads_[i] = Millicores(load(random_));
      fleet_->load(i, loads_[i]);
    }
  }
  // Each pod may use what it wants.
  bool raised() {
    if (await([&] { return fleet_->lacking(loads_).empty(); })) return true;
    say(fleet_->lacking(loads_));
    return false;
  }

  bool churn() {
    std::uniform_int_distribution<std::size_t> pick(0, fleet_->pods().size() - 1);
    std::vector<bool> high(fleet_->pods().size());
    const double each = std::max(1.0, static_cast<double>(high.size()) * flags_.churn_share);
    const SteadyTime begin = std::chrono::steady_clock::now();
    double due = 0;
    for (int second = 0; second < flags_.churn; ++second) {
      for (due += each; due >= 1; due -= 1) {
        const std::size_t pod = pick(random_);
        high[pod] = !high[pod];
        fleet_->load(pod, Millicores(high[pod] ? 600 : 100));
        ++load_changes_;
      }
      // A tenth as many end and others come.
      if (std::uniform_real_distribution<double>(0, 1)(random_) <
              each / 10 - std::floor(each / 10) ||
          each >= 10) {
        for (int i = 0; i < std::max(1, static_cast<int>(each / 10)); ++i) {
          const std::size_t pod = pick(random_);
          if (const Result<void> replaced = fleet_->replacePod(pod); !replaced) {
            say(replaced.error().message());
          }
          high[pod] = false;
          ++replaced_;
        }
      }
      fleet_->collectGarbage(seconds(2));
      std::this_thread::sleep_until(begin + seconds(second + 1));
    }
    std::this_thread::sleep_for(seconds(2));
    fleet_->collectGarbage(seconds(2));
    return true;
  }

  // ---- The report

  void row(const std::string& title, const std::function<std::string(const Phase&)>& value) const {
    fmt::print("| {} |", title);
    for (const Phase& phase : phases_) fmt::print(" {} |", value(phase));
    fmt::print("\n");
  }

  static std::vector<double> latencies(const std::vector<Ledger::Change>& changes) {
    std::vector<double> all;
    all.reserve(changes.size());
    for (const Ledger::Change& change : changes) {
      all.push_back(secondsOf(change.in_force - change.decided));
    }
    return all;
  }
  // When the last of the first `count` raises was in force, from the beginning of the phase.
  static std::string nthRaise(const Phase& phase, std::size_t count) {
    std::vector<WallTime> times;
    for (const Ledger::Change& change : phase.summary.changes) {
      if (change.raise) times.push_back(change.in_force);
    }
    if (times.size() < count) return "-";
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(count) - 1);
    return fmt::format("{:.1f}", secondsOf(times[count - 1] - phase.began));
  }
  // From the beginning of the phase until in force, the median of a quarter of the raises.
  static std::string quarter(const Phase& phase, bool most_urgent) {
    std::vector<Ledger::Change> raises;
    for (const Ledger::Change& change : phase.summary.changes) {
      if (change.raise) raises.push_back(change);
    }
    if (raises.size() < 8) return "-";
    std::ranges::sort(raises, std::greater(), &Ledger::Change::urgency);
    if (!most_urgent) std::ranges::reverse(raises);
    raises.resize(raises.size() / 4);
    std::vector<double> times;
    times.reserve(raises.size());
    for (const Ledger::Change& change : raises) {
      times.push_back(secondsOf(change.in_force - phase.began));
    }
    return fmt::format("{:.1f}", quantile(times, 0.5));
  }
  static std::uint64_t writes(const RequestCounts& counts) {
    return total(counts, [](const std::string& what) {
      return what.starts_with("PATCH") || what.starts_with("POST") || what.starts_with("PUT") ||
             what.starts_with("APPLY") || what.starts_with("DELETE");
    });
  }

  void report() const {
    const auto requests = [](const Phase& phase) {
      return phase.after.requests - phase.before.requests;
    };
    const auto per = [](double count, double of) {
      return fmt::format("{:.4g}", of > 0 ? count / of : 0);
    };
    const auto perNode = [&](double count, const Phase& phase) {
      return per(count, phase.window * flags_.nodes);
    };
    const auto cpu = [&](const Phase& phase, auto which, bool anew) {
      const auto used = (phase.after.costs.*which).cpu -
                        (anew ? std::chrono::nanoseconds(0) : (phase.before.costs.*which).cpu);
      return fmt::format("{:.3g}", secondsOf(used) / phase.window * 100);
    };
    const auto rss = [](const Phase& phase, auto which) {
      return fmt::format("{:.0f}", static_cast<double>((phase.after.costs.*which).rss) / 1e6);
    };
    const auto bytes = [&](const Phase& phase, auto side, auto direction, double of) {
      return per(
          static_cast<double>((phase.after.*side).*direction - (phase.before.*side).*direction),
          phase.window * of);
    };
    using Costs = Fleet::Costs;
    using Counts = test::TcpTap::Counts;

    fmt::print(
        "{} nodes, {} pods; bare patches of the API server {:.0f}/s, of pods {:.0f}/s; churn: {} "
        "loads changed, {} pods replaced\n\n",
        flags_.nodes, fleet_->pods().size(), ceiling_.config_maps, ceiling_.pods, load_changes_,
        replaced_);
    row("", [](const Phase& phase) { return phase.name; });
    row("---", [](const Phase&) { return std::string("---"); });
    row("seconds", [](const Phase& phase) {
      return fmt::format("{:.0f}{}", phase.took, phase.finished ? "" : " (not finished)");
    });
    row("decisions", [](const Phase& phase) { return fmt::to_string(phase.summary.decisions); });
    row("in force",
        [](const Phase& phase) { return fmt::to_string(phase.summary.changes.size()); });
    row("in force a second", [&](const Phase& phase) {
      return per(static_cast<double>(phase.summary.changes.size()), phase.took);
    });
    row("decision to in force, p50, s", [](const Phase& phase) {
      return fmt::format("{:.2f}", quantile(latencies(phase.summary.changes), 0.5));
    });
    row("p99, s", [](const Phase& phase) {
      return fmt::format("{:.2f}", quantile(latencies(phase.summary.changes), 0.99));
    });
    row("100 raises in force after, s", [](const Phase& phase) { return nthRaise(phase, 100); });
    row("1000 raises in force after, s", [](const Phase& phase) { return nthRaise(phase, 1000); });
    row("most urgent quarter, median, s", [](const Phase& phase) { return quarter(phase, true); });
    row("least urgent quarter, median, s",
        [](const Phase& phase) { return quarter(phase, false); });
    row("writes a second, all clients", [&](const Phase& phase) {
      return per(static_cast<double>(writes(phase.requests_when_done - phase.before.requests)),
                 phase.took);
    });
    row("agents: requests per node and s", [&](const Phase& phase) {
      return perNode(static_cast<double>(phase.after.agent_requests - phase.before.agent_requests),
                     phase);
    });
    row("an agent sends, bytes/s",
        [&](const Phase& phase) { return bytes(phase, &Reading::agent, &Counts::sent, 1); });
    row("an agent receives, bytes/s",
        [&](const Phase& phase) { return bytes(phase, &Reading::agent, &Counts::received, 1); });
    row("controller sends, bytes per node and s", [&](const Phase& phase) {
      return bytes(phase, &Reading::controller, &Counts::sent, flags_.nodes);
    });
    row("controller receives, bytes per node and s", [&](const Phase& phase) {
      return bytes(phase, &Reading::controller, &Counts::received, flags_.nodes);
    });
    row("controller: CPU, % of a core",
        [&](const Phase& phase) { return cpu(phase, &Costs::controller, false); });
    row("controller: resident, MB",
        [&](const Phase& phase) { return rss(phase, &Costs::controller); });
    row("API server: CPU, % of a core",
        [&](const Phase& phase) { return cpu(phase, &Costs::apiserver, phase.restarted); });
    row("API server: resident, MB",
        [&](const Phase& phase) { return rss(phase, &Costs::apiserver); });
    row("429", [&](const Phase& phase) {
      return fmt::to_string(
          total(requests(phase), [](const std::string& what) { return what.ends_with(" 429"); }));
    });
    for (const Phase& phase : phases_) {
      fmt::print("\n{}: requests by verb, resource and code\n", phase.name);
      std::vector<std::pair<std::uint64_t, std::string>> sorted;
      for (const auto& [what, count] : requests(phase)) sorted.emplace_back(count, what);
      std::ranges::sort(sorted, std::greater());
      for (const auto& [count, what] : sorted) fmt::print("{:8} {}\n", count, what);
    }
    if (const std::string complaints = fleet_->complaints(); !complaints.empty()) {
      fmt::print("\nagents complained:\n{}", complaints.substr(0, 4000));
    }
    const std::string log = fleet_->controllerLog();
    fmt::print("\nthe controller ended by itself {} times; its log, {} bytes, ends:\n{}",
               fleet_->controllerEnds(), log.size(),
               log.substr(log.size() - std::min<std::size_t>(log.size(), 2000)));
  }

  Flags flags_;
  std::unique_ptr<Fleet> fleet_;
  std::mt19937_64 random_{1};
  std::vector<Millicores> loads_;
  std::vector<Phase> phases_;
  Ceiling ceiling_;
  int load_changes_ = 0;
  int replaced_ = 0;
};

}  // namespace
}  // namespace mbcas::hollow

int main(int argc, char** argv) {
  using namespace mbcas::hollow;
  // A connection for each watch.
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  Flags flags;
  flags.fleet.controller = MBCAS_CONTROLLER;
  CLI::App app("Hollow nodes: MBCAS at scale on one machine.", "mbcas-hollow");
  app.footer(kFooter);
  app.add_option("--nodes", flags.nodes)->check(CLI::Range(1, 5000))->capture_default_str();
  app.add_option("--pods", flags.pods, "Of each node")
      ->check(CLI::Range(1, 500))
      ->capture_default_str();
  app.add_option("--calm", flags.calm, "Seconds")->capture_default_str();
  app.add_option("--churn", flags.churn, "Seconds")->capture_default_str();
  app.add_option("--churn-share", flags.churn_share,
                 "Of all pods, that change their load in a second")
      ->capture_default_str();
  app.add_flag("!--no-storm", flags.storm, "End after the churn");
  app.add_option("--away", flags.away, "Seconds between the end of the API server and its start")
      ->capture_default_str();
  app.add_option("--ceiling", flags.ceiling, "Seconds of bare patches of ConfigMaps, and of pods")
      ->capture_default_str();
  app.add_option("--patience", flags.patience, "Seconds that a phase may take at most")
      ->capture_default_str();
  app.add_option("--controller", flags.fleet.controller, "The binary")->capture_default_str();
  app.add_option("--controller-arg", flags.fleet.controller_args, "As --workers=8");
  app.add_option("--apiserver-arg", flags.fleet.apiserver_args, "As --max-requests-inflight=100");
  CLI11_PARSE(app, argc, argv);
  Run run(std::move(flags));
  const mbcas::Result<void> done = run.all();
  if (done) return 0;
  fmt::print(stderr, "mbcas-hollow: {}\n", done.error().message());
  if (run.fleet() != nullptr) {
    fmt::print(stderr, "{}{}", run.fleet()->complaints(), run.fleet()->controllerLog());
  }
  return 1;
}
