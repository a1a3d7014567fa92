// mbcas-controller: applies what the agents decide, within what the cluster allows.
#include "apps/mbcas-controller/controller.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <thread>

#include "apps/common/address.h"
#include "apps/common/log.h"
#include "apps/common/memory.h"
#include "apps/common/settings_flags.h"
#include "apps/common/time_flag.h"
#include "apps/mbcas/cluster_flags.h"
#include "mbcas/controller/cluster.h"
#include "mbcas/controller/replica.h"
#include "mbcas/controller/startup.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/config.h"
#include "mbcas/kube/health_server.h"
#include "mbcas/kube/leader.h"
#include "mbcas/kube/metrics.h"

namespace mbcas {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

constexpr const char* kFooter = R"(Example:
  mbcas-controller --kubeconfig ~/.kube/config --dry-run --leader-elect=false

The controller publishes settings that are given as flags in the ConfigMap mbcas, where agents read
them, too. An edit of the ConfigMap takes effect at once.

Exit code: 0 stopped by SIGTERM, 1 failed or lost its leadership, 2 used wrongly.)";

struct Flags {
  std::string kubeconfig;
  std::string name_space = "mbcas-system";
  std::string metrics_address = ":8080";
  std::string health_address = ":8081";
  std::string audit_log;
  std::string log_level = "info";
  std::string initial_mode;
  policy::SettingsData settings;
  int workers = 8;
  bool dry_run = false;
  bool leader_elect = true;
  Nanos lease = std::chrono::seconds(15);
};

// The host's name and a random part: unique even where names are not.
std::string identity() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", host.data(), random(), random());
}

// SIGTERM and SIGINT. Before ready() they end the process at once: nothing has begun that would
// have to be ended. After it they request a stop, and a process that has not stopped in time, or
// that gets a second signal, ends anyway.
class EndSignals {
 public:
  // Before any thread starts: all of them inherit that the signals are blocked.
  EndSignals() : state_(std::make_shared<State>()) {
    sigemptyset(&state_->signals);
    sigaddset(&state_->signals, SIGTERM);
    sigaddset(&state_->signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &state_->signals, nullptr);
    // Detached: it waits until the process ends.
    std::thread([state = state_] { wait(*state); }).detach();
  }

  std::stop_token ready() {
    const std::lock_guard lock(state_->mutex);
    state_->starting = false;
    return state_->stop.get_token();
  }

 private:
  // Kubernetes sends SIGKILL after terminationGracePeriodSeconds, 30.
  static constexpr timespec kPatience{.tv_sec = 20, .tv_nsec = 0};

  struct State {
    sigset_t signals{};
    std::mutex mutex;
    bool starting = true;  // guarded by mutex
    std::stop_source stop;
  };

  static void wait(State& state) {
    int signal = 0;
    sigwait(&state.signals, &signal);
    {
      const std::lock_guard lock(state.mutex);
      if (state.starting) ::_exit(kDone);
    }
    state.stop.request_stop();
    sigtimedwait(&state.signals, nullptr, &kPatience);
    ::_exit(kFailed);
  }

  std::shared_ptr<State> state_;
};

int run(const Flags& flags) {
  EndSignals signals;
  Log log(flags.log_level == "error");
  const auto failed = [&](const std::string& message) {
    log.error(message);
    return kFailed;
  };
  const Result<Address> metrics_address = parseAddress(flags.metrics_address);
  const Result<Address> health_address = parseAddress(flags.health_address);
  if (!metrics_address || !health_address) {
    fmt::print(stderr, "mbcas-controller: {}\n",
               (metrics_address ? health_address : metrics_address).error().message());
    return kUsage;
  }
  if (const auto parsed = policy::parseSettings(flags.settings); !parsed) {
    fmt::print(stderr, "mbcas-controller: {}\n", parsed.error().message());
    return kUsage;
  }
  const Result<kube::ClientConfig> config = app::findCluster({.kubeconfig = flags.kubeconfig});
  if (!config) return failed(config.error().message());

  std::unique_ptr<LineFile> audit;
  if (!flags.audit_log.empty()) {
    audit = std::make_unique<LineFile>(flags.audit_log);
    if (!audit->open()) return failed("--audit-log: cannot open " + flags.audit_log);
  }
  const SystemClock clock;
  kube::Metrics metrics;
  kube::HttpLoop loop;
  const kube::ClientOptions client_options{.user_agent = "mbcas-controller/" MBCAS_VERSION,
                                           .metrics = &metrics};
  kube::Client client(loop, *config, clock, client_options);
  controller::ReplicaOptions options{
      .engine = {.name_space = flags.name_space,
                 .overrides = flags.settings,
                 .initial = flags.initial_mode.empty()
                                ? policy::SettingsData{}
                                : policy::SettingsData{{"mode", flags.initial_mode}},
                 .workers = flags.workers,
                 .dry_run = flags.dry_run,
                 .log = [&](const std::string& line) { log.info(line); },
                 .log_error = [&](const std::string& line) { log.error(line); }},
      .client = client_options,
      .on_lost = [&] {
        log.error("lost the lease; exiting");
        ::_exit(kFailed);
      }};
  if (audit) options.engine.audit = [&](const std::string& line) { audit->write(line); };
  const std::string self = identity();
  if (flags.leader_elect) {
    options.election = {.name_space = flags.name_space,
                        .name = controller::kLeaderLease,
                        .identity = self,
                        .lease = flags.lease,
                        .renew_deadline = flags.lease * 2 / 3,
                        .retry = flags.lease * 2 / 15,
                        .metrics = &metrics};
  }
  controller::Replica replica(client, std::move(options));

  kube::HealthServer health(metrics);
  health.addLiveCheck("progress", [&] { return replica.live(); });
  health.addReadyCheck("watches", [&] { return replica.ready(); });
  kube::HealthServer exposition(metrics);
  if (health_address->port >= 0) {
    const Result<int> port = health.start(health_address->host, health_address->port);
    if (!port) return failed(port.error().message());
  }
  if (metrics_address->port >= 0 && flags.metrics_address != flags.health_address) {
    const Result<int> port = exposition.start(metrics_address->host, metrics_address->port);
    if (!port) return failed(port.error().message());
  }
  if (const Result<void> checked =
          controller::checkCluster(client, flags.name_space, flags.dry_run);
      !checked) {
    return failed(checked.error().message());
  }

  log.info(flags.leader_elect ? "starts, as " + self : "starts, without leader election");
  const std::stop_token stop = signals.ready();
  const std::stop_callback say(stop, [&] { log.info("stops"); });
  replica.start();
  if (const Result<void> ended = replica.run(stop); !ended) {
    return failed(ended.error().message());
  }
  return kDone;
}

}  // namespace

int runController(int argc, char** argv) {
  tuneMemory();
  Flags flags;
  CLI::App app("Applies what the agents decide, within what the cluster allows.",
               "mbcas-controller");
  app.footer(kFooter);
  app.set_version_flag("--version", "mbcas-controller " MBCAS_VERSION);
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "Kubeconfig file (default: the service account, or kubectl's own)");
  app.add_option("--namespace", flags.name_space, "Namespace of the Leases and the settings")
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "Pods that are reconciled at the same time, 1 to 64")
      ->check(CLI::Range(1, 64).description(""))
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_option("--initial-mode", flags.initial_mode,
                 "The mode until one is set, by `mbcas mode` or in the ConfigMap")
      ->check(CLI::IsMember({"off", "recommend", "raise-only", "full"}));
  app.add_flag("--dry-run", flags.dry_run, "Only recommend: write status, and never resize");
  app.add_flag("--leader-elect,!--no-leader-elect", flags.leader_elect,
               "Of several replicas only one works at a time (default true)");
  addTime(app, "--leader-elect-lease", flags.lease,
          "Time until another replica takes over from a leader that has died",
          std::chrono::seconds(2), std::chrono::minutes(10));
  app.add_option("--audit-log", flags.audit_log,
                 "File for a line of JSON for each decision, or - for standard output");
  app.add_option("--metrics-bind-address", flags.metrics_address, "Address of /metrics; 0: none")
      ->capture_default_str();
  app.add_option("--health-probe-bind-address", flags.health_address,
                 "Address of the probes; 0: none")
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "Log everything (info), or only errors")
      ->check(CLI::IsMember({"info", "error"}))
      ->capture_default_str();
  // Settings of the whole cluster.
  constexpr SettingFlag kSettings[] = {
      {"mode", "off, recommend, raise-only or full"},
      {"profile", "responsive or classic"},
      {"cooldown", "Time from the last change of a limit to a decrease"},
      {"max-step", "A decrease divides the limit by this at most"},
      {"raise-max-step", "A raise multiplies the limit by this at most"},
      {"silence", "Time without a sign of an agent, after which its pods get their limits back"},
      {"min-cpu", "Floor of every pod, also of a bound one"},
      {"reserve", "Profile classic: share of a node that is never handed out"},
      {"fairness", "Balance between nodes: off, namespace or workload"},
      {"bid-rule", "What pods bid with: entitlement or pressure"},
      {"reclaim",
       "When a limit may be below the declared one: scarce (for a more important pod), always, "
       "never"},
      {"strict-capacity", "true: the sum of limits stays within the capacity"},
      {"exclude-namespaces", "Namespaces that are left alone, separated by commas"},
      {"sample-interval", "Agents: time between two samples of the kernel's counters"},
      {"write-interval", "Agents: time between two changes of a limit that are not urgent"},
      {"hysteresis", "Agents: a smaller change, as a share of the limit, is not made"},
      {"insurance", "Agents: ratio of claim to use of a pod for which others are bound, 1 to 10"},
      {"warmup", "Agents: samples before the first decision on a pod"},
      {"burst-hold", "Agents: time without throttling until a lower burst level is tried"},
      {"estimator", "Agents: responsive or classic"},
      {"ema-up", "Profile classic: how fast the estimate of demand rises, 0 to 1"},
      {"ema-down", "Profile classic: how fast the estimate of demand falls, 0 to 1"},
      {"throttle-threshold", "Profile classic: the throttling ratio that counts as full demand"},
  };
  addSettings(app, kSettings, flags.settings);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return run(flags);
}

}  // namespace mbcas
