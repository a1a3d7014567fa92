// mbcas-agent: senses one node's pods, decides what CPU limit each should have, and says so.
#include <fmt/format.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "apps/common/address.h"
#include "apps/common/log.h"
#include "apps/common/memory.h"
#include "apps/common/settings_flags.h"
#include "apps/common/time_flag.h"
#include "apps/mbcas/cluster_flags.h"
#include "mbcas/agent/agent.h"
#include "mbcas/agent/metrics.h"
#include "mbcas/agent/observe.h"
#include "mbcas/agent/replay.h"
#include "mbcas/agent/sight.h"
#include "mbcas/agent/startup.h"
#include "mbcas/base/local_socket.h"
#include "mbcas/kernel/pod_tree.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/health_server.h"
#include "mbcas/kube/metrics.h"

namespace mbcas {
namespace {

constexpr const char* kObserveFooter = R"(Examples:
  mbcas-agent observe --once
  kubectl -n mbcas-system exec ds/mbcas-agent -- mbcas-agent observe --for 1m

The command reads the socket of the running agent in the same container. `mbcas top`, `explain` and
`ui` start it there. At most 4 may observe an agent at once, because they share its CPU and memory.

Exit code: 0 done, 1 the agent does not show its state, 2 used wrongly.)";

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

constexpr const char* kFooter = R"(Examples:
  mbcas-agent --kubeconfig ~/.kube/config --node-name node-1 --dry-run
  mbcas-agent --kubeconfig ~/.kube/config --node-name node-1 --once
  mbcas-agent --replay capture.json --cpus 4      # what tools/capture-cgroups recorded
  mbcas-agent --probe ready --probe-socket /run/mbcas/probe.sock
  mbcas-agent observe --for 1m                    # in the container of a running agent

Each decision that was written is a line of JSON on standard output. Everything else is a line on
standard error. SIGUSR1 prints the state of the node as one line of JSON.

Settings that are given as flags count where the ConfigMap mbcas says nothing. What the cluster
publishes there takes precedence, so that all agents and the controller agree.

Probes ask a running agent through its --probe-socket. The agent is live while its loops run,
whether the API server answers or not. It is ready while it sees: its watches bring news, and it can
read the cgroups of its pods. A blind agent publishes nothing and lets its Lease expire, so that the
controller gives its pods their original limits back.

Exit code: 0 stopped by SIGTERM or done, 1 failed, 2 used wrongly.)";

struct Flags {
  std::string node_name;
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string proc_root = "/proc";
  std::string kubeconfig;
  std::string name_space = "mbcas-system";
  std::string state_socket;
  std::string probe_socket;
  std::string probe;
  agent::SightBounds sight;
  std::string metrics_address = "0";
  std::string log_level = "info";
  std::string replay;
  unsigned cpus = 0;  // 0: as many as there are
  policy::SettingsData settings;
  bool dry_run = false;
  bool once = false;
  bool adaptive = true;
  bool observe_once = false;
  agent::ObserveOptions observe;
};

// Of an observer with one that does not read.
constexpr Nanos kReaderPatience = std::chrono::seconds(10);

// The agent has begun, and most of what it needed for that it will not need again: its lists were
// larger than what is kept of them, and half of the program's own pages were read only to start.
// Those are the file's; what is wanted again is found in the page cache.
void forgetTheStart() {
  ::malloc_trim(0);
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void*) {
        const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
          const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
          const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
          // NOLINTNEXTLINE(performance-no-int-to-ptr): where the loader says it is
          ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
        }
        return 0;
      },
      nullptr);
}

// A descriptor for each file of each cgroup: more than the usual 1024 on a full node.
void raiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string hostName() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

// Blocked before any thread starts, so that all of them leave these to the agent's own.
int blockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, each);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Only where it is asked for: it has threads of its own.
class Exposition {
 public:
  explicit Exposition(const Address& address) : address_(address), server_(metrics_) {}
  kube::Metrics* metrics() { return &metrics_; }

  // Returns the port.
  Result<int> start(agent::Agent& agent) {
    static constexpr Nanos kPatience = std::chrono::seconds(5);
    metrics_.addText([&agent] {
      return agent.ask(agent::metricsText, kPatience).value_or("# the agent does not answer\n");
    });
    server_.addPage("/state", "application/json", [&agent] {
      return agent.ask([](const agent::View& view,
                          const agent::AgentCounters&) { return agent::stateJson(view); },
                       kPatience);
    });
    return server_.start(address_.host, address_.port);
  }
  void stop() { server_.stop(); }

 private:
  Address address_;
  kube::Metrics metrics_;
  kube::HealthServer server_;
};

unsigned cpusOf(const Flags& flags) {
  if (flags.cpus > 0) return flags.cpus;
  return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

int replay(const Flags& flags) {
  const auto failed = [](const Error& error, int code) {
    fmt::print(stderr, "mbcas-agent: {}\n", error.message());
    return code;
  };
  const Result<policy::ParsedSettings> parsed = policy::parseSettings(flags.settings);
  if (!parsed) return failed(parsed.error(), kUsage);
  const Result<void> replayed =
      agent::replay(flags.replay, {.settings = parsed->settings, .cpus = cpusOf(flags)},
                    [](const std::string& line) { fmt::print("{}\n", line); });
  return replayed ? kDone : failed(replayed.error(), kFailed);
}

// Asks a running agent. What is wrong goes to standard output, which the kubelet puts into an
// event.
int probe(const Flags& flags) {
  // Shorter than the kubelet's own patience (timeoutSeconds), so that there is a reason.
  static constexpr Nanos kPatience = std::chrono::seconds(5);
  if (flags.probe_socket.empty()) {
    fmt::print(stderr, "mbcas-agent: --probe needs --probe-socket, that of the running agent\n");
    return kUsage;
  }
  const Result<std::string> answer = readLocalSocket(flags.probe_socket, kPatience, 64 << 10);
  const Result<void> good =
      answer ? agent::readProbe(*answer, flags.probe) : failure(answer.error());
  if (good) return kDone;
  fmt::print("{}\n", good.error().message());
  return kFailed;
}

// Less important than the agent, whose container it is in: the agent's work comes first, and if
// memory runs out there, this process is ended and not the agent.
void stepBack() {
  (void)::nice(19);
  if (std::FILE* const file = std::fopen("/proc/self/oom_score_adj", "we")) {
    (void)std::fputs("1000", file);
    (void)std::fclose(file);
  }
}

int observe(const Flags& flags) {
  const auto failed = [](const std::string& message, int code) {
    fmt::print(stderr, "mbcas-agent: {}\n", message);
    return code;
  };
  if (flags.state_socket.empty()) {
    return failed("observe needs --state-socket, that of the running agent", kUsage);
  }
  stepBack();
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): the write fails then
  const Result<agent::ObserverPlace> place = agent::ObserverPlace::take(flags.state_socket);
  if (!place) return failed(place.error().message(), kFailed);
  agent::ObserveOptions options = flags.observe;
  options.socket = flags.state_socket;
  if (flags.observe_once) options.at_most = Nanos(0);
  const Result<void> ended = agent::observe(
      options, SystemClock(),
      [](std::string_view line) {
        return agent::writeToReader(STDOUT_FILENO, line, kReaderPatience);
      },
      [](Nanos time) {
        std::this_thread::sleep_for(time);
        return true;
      });
  return ended ? kDone : failed(ended.error().message(), kFailed);
}

int run(const Flags& flags) {
  const int signals = blockSignals();
  Log log(flags.log_level == "error");
  const auto failed = [&](const std::string& message) {
    log.error(message);
    return kFailed;
  };
  const auto used_wrongly = [](const std::string& message) {
    fmt::print(stderr, "mbcas-agent: {}\n", message);
    return kUsage;
  };
  if (flags.node_name.empty()) {
    return used_wrongly("--node-name, or $NODE_NAME: which node is this? See kubectl get nodes");
  }
  const Result<Address> address = parseAddress(flags.metrics_address);
  if (!address) return used_wrongly("--metrics-bind-address: " + address.error().message());
  if (const auto parsed = policy::parseSettings(flags.settings); !parsed) {
    return used_wrongly(parsed.error().message());
  }
  Result<kernel::Mounts> mounts = agent::checkCgroups(flags.cgroup_root);
  if (!mounts) return failed(mounts.error().message());
  mounts->proc = flags.proc_root;
  const Result<kube::ClientConfig> config = app::findCluster({.kubeconfig = flags.kubeconfig});
  if (!config) return failed(config.error().message());

  LineFile out("-");
  agent::AgentOptions options{.node_name = flags.node_name,
                              .name_space = flags.name_space,
                              .holder = hostName(),
                              .settings = flags.settings,
                              .cpus = cpusOf(flags),
                              .adaptive = flags.adaptive,
                              .dry_run = flags.dry_run || flags.once,
                              .signals = signals,
                              .sight = flags.sight,
                              .log = [&](const std::string& line) { log.info(line); },
                              .log_error = [&](const std::string& line) { log.error(line); },
                              .state = [&](const std::string& json) { out.write(json); },
                              .on_settled = forgetTheStart};
  if (flags.once) {
    options.samples = policy::parseSettings(flags.settings)->settings.warmup + 3;
  } else if (flags.log_level == "info") {
    options.decision = [&](const std::string& json) { out.write(json); };
  }
  // A second program in the agent's container has the same environment.
  if (!flags.state_socket.empty() && !flags.once) {
    Result<LocalSocket> socket = LocalSocket::listen(flags.state_socket);
    if (!socket) return failed("--state-socket: " + socket.error().message());
    options.socket = *std::move(socket);
  }
  if (!flags.probe_socket.empty() && !flags.once) {
    Result<LocalSocket> socket = LocalSocket::listen(flags.probe_socket);
    if (!socket) return failed("--probe-socket: " + socket.error().message());
    options.probe_socket = *std::move(socket);
  }
  log.info(fmt::format("reads {} at {}", kernel::describe(*mounts), flags.cgroup_root));

  std::unique_ptr<Exposition> exposition;
  if (address->port >= 0) exposition = std::make_unique<Exposition>(*address);
  const SystemClock clock;
  kube::HttpLoop loop;
  kube::Client client(loop, *config, clock,
                      {.user_agent = "mbcas-agent/" MBCAS_VERSION,
                       .metrics = exposition ? exposition->metrics() : nullptr});
  agent::Agent agent(client, std::make_unique<kernel::PodTree>(*mounts), std::move(options));
  if (exposition) {
    const Result<int> port = exposition->start(agent);
    if (!port) return failed("--metrics-bind-address: " + port.error().message());
    log.info(fmt::format("metrics and state on {}:{}", address->host, *port));
  }
  const Result<void> ended = agent.run();
  if (exposition) exposition->stop();
  if (!ended) return failed(ended.error().message());
  if (flags.once) {
    const agent::View& view = agent.view();
    for (const agent::PodView& pod : view.pods) out.write(agent::decisionJson(view, pod));
  }
  return kDone;
}

}  // namespace
}  // namespace mbcas

int main(int argc, char** argv) {
  using namespace mbcas;
  tuneMemory();
  raiseDescriptorLimit();
  Flags flags;
  CLI::App app("Senses one node's pods and decides what CPU limit each should have.",
               "mbcas-agent");
  app.footer(kFooter);
  app.set_version_flag("--version", "mbcas-agent " MBCAS_VERSION);
  app.add_option("--node-name", flags.node_name, "Name of the Node on which the agent runs")
      ->envname("NODE_NAME");
  app.add_option("--cgroup-root", flags.cgroup_root, "Where the node's cgroup tree is mounted")
      ->capture_default_str();
  app.add_option("--proc-root", flags.proc_root, "Where the machine's /proc is")
      ->capture_default_str();
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "Kubeconfig file (default: the service account, or kubectl's own)");
  app.add_option("--namespace", flags.name_space, "Namespace of the Leases and the settings")
      ->capture_default_str();
  app.add_flag("--dry-run", flags.dry_run, "Decide and log; write nothing, and renew no Lease");
  app.add_flag("--once", flags.once, "Take a few samples, print what would be decided, and exit");
  app.add_option("--replay", flags.replay,
                 "Decide on a recording of tools/capture-cgroups, print the decisions, and exit");
  app.add_option("--cpus", flags.cpus, "CPUs of the machine, or of the recorded one (default: all)")
      ->type_name("NUMBER");
  app.add_flag("--adaptive,!--no-adaptive", flags.adaptive,
               "Sample at once when the machine's CPU use rises (default true)");
  app.add_option("--state-socket", flags.state_socket, "Path of a Unix socket that shows the state")
      ->envname("MBCAS_STATE_SOCKET");
  app.add_option("--probe-socket", flags.probe_socket, "Path of a Unix socket that answers probes")
      ->envname("MBCAS_PROBE_SOCKET");
  app.add_option("--probe", flags.probe,
                 "Ask the running agent whether it is live or ready, print what is wrong, and exit")
      ->check(CLI::IsMember({"live", "ready"}));
  constexpr Nanos kSecond = std::chrono::seconds(1);
  constexpr Nanos kHour = std::chrono::hours(1);
  addTime(app, "--watch-bound", flags.sight.watches,
          "Time without news from a watch after which the agent is blind", kSecond, kHour);
  addTime(app, "--cgroup-bound", flags.sight.cgroups,
          "Time without a readable cgroup after which the agent is blind", kSecond, kHour);
  app.add_option("--metrics-bind-address", flags.metrics_address,
                 "/metrics and /state over HTTP, as :8080; 0: none")
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "Log everything (info), or only errors")
      ->check(CLI::IsMember({"info", "error"}))
      ->capture_default_str();
  // For what the ConfigMap does not say.
  constexpr SettingFlag kSettings[] = {
      {"profile", "responsive or classic"},
      {"sample-interval", "Time between two samples of the kernel's counters"},
      {"write-interval", "Time between two changes of a limit that are not urgent"},
      {"hysteresis", "A smaller change, as a share of the limit, is not made"},
      {"insurance", "Ratio of claim to use of a pod for which others are bound, 1 to 10"},
      {"reserve", "Profile classic: share of the node that is never handed out"},
      {"min-cpu", "Floor of every pod, also of a bound one"},
      {"warmup", "Samples before the first decision on a pod"},
      {"burst-hold", "Time without throttling until a lower burst level is tried"},
      {"estimator", "responsive or classic"},
      {"ema-up", "Profile classic: how fast the estimate of demand rises, 0 to 1"},
      {"ema-down", "Profile classic: how fast the estimate of demand falls, 0 to 1"},
      {"throttle-threshold", "Profile classic: the throttling ratio that counts as full demand"},
      {"bid-rule", "What pods bid with: entitlement or pressure"},
      {"reclaim",
       "When a limit may be below the declared one: scarce (for a more important pod), always, "
       "never"},
      {"strict-capacity", "true: the sum of limits stays within the capacity"},
      {"exclude-namespaces", "Namespaces that are left alone, separated by commas"},
  };
  addSettings(app, kSettings, flags.settings);
  CLI::App* const observing = app.add_subcommand(
      "observe", "Print what the running agent sees, a line of JSON for each of its samples");
  observing->footer(kObserveFooter);
  observing->fallthrough();  // --state-socket may come behind it
  observing->add_flag("--once", flags.observe_once, "Print one line, and exit");
  constexpr Nanos kShortest = std::chrono::milliseconds(100);
  constexpr Nanos kDay = std::chrono::hours(24);
  addTime(*observing, "--interval", flags.observe.interval, "Time between two lines", kShortest,
          kDay);
  addTime(*observing, "--for", flags.observe.at_most,
          "Time after which it exits, so that none is forgotten", kShortest, kDay);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  if (observing->parsed()) return observe(flags);
  if (!flags.probe.empty()) return probe(flags);
  return flags.replay.empty() ? run(flags) : replay(flags);
}
