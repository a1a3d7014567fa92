// mbcas ui: the market live, in a browser.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/flags.h"
#include "apps/mbcas/host_state.h"
#include "apps/mbcas/live_page.h"
#include "apps/mbcas/scenario_file.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/cli/agents.h"
#include "mbcas/cli/cluster_pods.h"
#include "mbcas/cli/cluster_view.h"
#include "mbcas/cli/recording.h"
#include "mbcas/cli/sim_record.h"
#include "mbcas/kube/informer.h"
#include "mbcas/sim/simulation.h"

namespace mbcas::app {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas ui                                   # the cluster of the kubeconfig; kubectl mbcas ui
  mbcas ui --host                            # the market of `mbcas run` on this machine
  mbcas ui --simulate evaluation/sharing/gold.yaml --speed 20
  mbcas ui node-1.mbcas                      # a recording that the page saved
  mbcas ui --no-open --port 8089             # through `ssh -L 8089:127.0.0.1:8089 host`

The command prints an address on 127.0.0.1 that works once, and opens it where there is a display.
The page shows the market of a node, how each pod came to its limit, and what has happened since the
page was opened, and saves that as a file. For a cluster it shows all nodes and namespaces from
PodAllocations, and finds pods. For a node that you open it shows what the agent there sees:
`mbcas-agent observe` is started in it by pods/exec, which the Role mbcas-observe allows. The page
changes nothing. docs/ui.md is a tour.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

struct Flags {
  PageFlags page;
  ClusterFlags cluster;
  std::string recording;
  std::string scenario;
  std::string policy = "responsive";
  std::string socket;
  bool host = false;
  double speed = 10;
  double interval = 1;

  bool ofCluster() const {
    return recording.empty() && scenario.empty() && socket.empty() && !host;
  }
};

int fail(std::string_view message, int code = kFailed) {
  complain("mbcas ui", message);
  return code;
}

// Until the user has had enough.
void keepOpen(LivePage& page, Patience& patience) {
  while (patience.wait(std::chrono::seconds(1))) page.tellAddress();
}

int showHost(const Flags& flags) {
  Patience patience(Patience::Keys::kQuit);
  LivePage page;
  const Result<cli::NodeRecord> first = readHostState(flags.socket);
  const Result<void> started =
      page.start(flags.page, {.kind = "host", .title = first ? first->node : "this machine"});
  if (!started) return fail(started.error().message());
  WallTime last{};
  bool waits = false;
  do {
    const Result<cli::NodeRecord> state = readHostState(flags.socket);
    if (!state) {
      if (!std::exchange(waits, true)) complain("mbcas ui", state.error().message());
      page.setStatus("waiting", state.error().message());
    } else {
      waits = false;
      if (std::exchange(last, state->time) != state->time) page.publish(*state);
      page.setStatus("live", "");
    }
    page.tellAddress();
  } while (patience.wait(nanos(flags.interval)));
  return kDone;
}

// The nodes that pages show, by what the pages say. Any thread.
class ShownNodes {
 public:
  explicit ShownNodes(const Clock& clock) : clock_(clock) {}
  void told(std::string node) {
    const std::lock_guard lock(mutex_);
    told_[std::move(node)] = clock_.monotonic();
    if (told_.size() <= kMostNodes) return;
    told_.erase(
        std::ranges::min_element(told_, {}, [](const auto& entry) { return entry.second; }));
  }
  bool contains(const std::string& node) const {
    const std::lock_guard lock(mutex_);
    const auto found = told_.find(node);
    return found != told_.end() && clock_.monotonic() - found->second < kForgotten;
  }

 private:
  static constexpr std::size_t kMostNodes = 8;
  // A page says it every five seconds.
  static constexpr Nanos kForgotten = std::chrono::seconds(20);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, MonotonicTime> told_;
};

// Whether a server answers, by small requests in the background.
class Probe {
 public:
  // What the last request came to; false before there is one. Sends the next one.
  bool answers(kube::Client& client, kube::Call call) {
    if (!state_->under_way.exchange(true)) {
      call.retry = false;
      client.send(std::move(call), [state = state_](const kube::ApiResult<std::string>& answer) {
        state->good = answer.has_value();
        state->under_way = false;
      });
    }
    return state_->good;
  }
  void forget() { state_->good = false; }

 private:
  struct State {  // outlives the object where a request is under way
    std::atomic<bool> under_way = false;
    std::atomic<bool> good = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// What the page shows of a cluster.
class ClusterPicture {
 public:
  ClusterPicture(Connection& connection, const ClusterFlags& flags)
      : connection_(connection),
        name_space_(flags.name_space),
        system_namespace_(flags.system_namespace),
        allocations_(connection.client(), {.name_space = name_space_}),
        nodes_(connection.client(), {}),
        agents_(connection.client(), {.name_space = flags.system_namespace,
                                      .label_selector = cli::kAgentSelector,
                                      .annotations = std::vector<std::string>{}}),
        states_(connection.client(), flags.system_namespace),
        timeout_(nanos(flags.request_timeout)) {}

  // Until allocations are known; an error if they cannot be.
  Result<void> start() {
    kube::Client& client = connection_.client();
    if (Result<void> served = client.require("allocation.mbcas.io/v1alpha1", "podallocations");
        !served) {
      return failure(served.error().message() + "; mbcas doctor tells more");
    }
    // Before the watches, which try for ever: an error that is not going to pass.
    if (const auto answer = client.perform(firstOf<podallocation::PodAllocation>(name_space_));
        !answer) {
      return failure(explained(answer.error()) + (answer.error().code == 403 && name_space_.empty()
                                                      ? "; -n NAMESPACE reads one namespace only"
                                                      : ""));
    }
    if (const auto answer = client.perform(firstOf<kube::Node>("")); !answer) {
      notes_.push_back("nodes cannot be listed, so their capacity is not known: " +
                       answer.error().describe());
    } else {
      nodes_.start();
    }
    allocations_.start();
    if (const auto answer = client.perform(firstOf<kube::Pod>(system_namespace_)); !answer) {
      no_agents_ = fmt::format(
          "agents cannot be listed, so PodAllocations are all that is known of a node: {}",
          answer.error().describe());
    } else {
      agents_.start();
      (void)agents_.waitForSync(timeout_);
    }
    if (!allocations_.waitForSync(timeout_)) return failure("PodAllocations cannot be listed");
    return {};
  }

  // Calls publish with what is new of the nodes that are shown.
  template <class Publish>
  void follow(const ShownNodes& shown, const Publish& publish) {
    cli::AgentStates::Agents agents = cli::agentPods(agents_.list());
    any_agent_ = !agents.empty();
    std::erase_if(agents, [&](const auto& entry) { return !shown.contains(entry.first); });
    states_.follow(agents);
    cli::AgentStates::Latest latest = states_.latest();
    trouble_ = std::move(latest.trouble);
    for (const auto& [node, record] : latest.nodes) {
      if (std::exchange(published_[node], record->time) != record->time) publish(*record);
    }
    std::erase_if(published_,
                  [&](const auto& entry) { return !latest.nodes.contains(entry.first); });
  }

  cli::ClusterView view() {
    cli::ClusterView view = cli::clusterOf(allocations_.list(), nodes_.list());
    since_.update(view, connection_.clock().wall());
    view.notes = notes_;
    if (!no_agents_.empty()) {
      view.notes.push_back(no_agents_);
    } else if (!any_agent_) {
      view.notes.emplace_back(
          "no agent can be found, so nothing more can be seen of the nodes: mbcas doctor tells "
          "more");
    } else if (!trouble_.empty()) {
      view.notes.push_back(trouble_);
    }
    return view;
  }

  // Any thread.
  cli::PodAnswer pods(const cli::PodQuestion& question) const {
    return cli::answerPods(question, allocations_.list(), question.most());
  }

  // Why the newest picture may be old; empty: it is not.
  std::string stale() {
    const kube::WatchHealth health = allocations_.health();
    if (health.stuckFor(connection_.clock().monotonic()) <= std::chrono::seconds(5)) {
      probe_.forget();
      return "";
    }
    // A watch that is open again says nothing for a minute where nothing changes.
    const bool answers =
        probe_.answers(connection_.client(), firstOf<podallocation::PodAllocation>(name_space_));
    return answers ? "" : health.last_error;
  }

 private:
  template <class T>
  static kube::Call firstOf(const std::string& name_space) {
    return {.path = T::kind().path(name_space), .query = {{"limit", "1"}}};
  }

  Connection& connection_;
  const std::string name_space_;
  const std::string system_namespace_;
  kube::Informer<podallocation::PodAllocation> allocations_;
  kube::Informer<kube::Node> nodes_;
  kube::Informer<kube::Pod> agents_;
  cli::AgentStates states_;
  const Nanos timeout_;
  Probe probe_;
  cli::ShortSince since_;
  std::vector<std::string> notes_;
  std::string no_agents_;  // why they cannot even be looked for
  std::string trouble_;
  bool any_agent_ = false;
  std::map<std::string, WallTime> published_;
};

int showCluster(const Flags& flags) {
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return fail(connection.error().message());
  ClusterPicture picture(**connection, flags.cluster);
  if (const Result<void> started = picture.start(); !started) {
    return fail(started.error().message());
  }
  const Clock& clock = (*connection)->clock();
  ShownNodes shown(clock);
  Patience patience(Patience::Keys::kQuit);
  LivePage page;
  page.onFollow([&](std::string node) { shown.told(std::move(node)); });
  page.onPods([&](const cli::PodQuestion& question) { return picture.pods(question); });
  const std::string& name_space = flags.cluster.name_space;
  const Result<void> started = page.start(
      flags.page, {.kind = "cluster",
                   .title = (*connection)->client().config().server,
                   .detail = name_space.empty() ? "all namespaces" : "namespace " + name_space,
                   .cluster = true});
  if (!started) return fail(started.error().message());
  MonotonicTime next = clock.monotonic();
  do {
    picture.follow(shown, [&](const cli::NodeRecord& node) { page.publish(node); });
    if (const MonotonicTime begin = clock.monotonic(); begin >= next) {
      page.setCluster(cli::clusterJson(picture.view()));
      // Of a large cluster less often, so that it takes no more than a tenth of a CPU.
      const Nanos took = clock.monotonic() - begin;
      next = begin + std::max<Nanos>(nanos(flags.interval), 10 * took);
    }
    const std::string stale = picture.stale();
    page.setStatus(stale.empty() ? "live" : "waiting", stale);
    page.tellAddress();
  } while (patience.wait(std::min<Nanos>(nanos(flags.interval), std::chrono::seconds(1))));
  return kDone;
}

int showRecording(const Flags& flags) {
  std::error_code error;
  const auto size = std::filesystem::file_size(flags.recording, error);
  if (!error && size > cli::kLongestRecording) {
    return fail(flags.recording + ": is too long for a recording");
  }
  std::ifstream file(flags.recording);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (error || !file) return fail(flags.recording + ": cannot be read");
  Result<cli::Recording> recording = cli::parseRecording(text);
  text = {};
  if (!recording)
    return fail(std::move(recording).error().within(flags.recording).message(), kUsage);
  Patience patience(Patience::Keys::kQuit);
  LivePage page;
  page.onPods([&pods = recording->pods](const cli::PodQuestion& question) {
    return cli::answerPods(question, pods, question.most());
  });
  const std::string name = std::filesystem::path(flags.recording).filename().string();
  const Result<void> started = page.start(flags.page, {.kind = "recording",
                                                       .title = recording->title,
                                                       .detail = "saved as " + name,
                                                       .cluster = !recording->pictures.empty()});
  if (!started) return fail(started.error().message());
  for (const std::string& picture : std::exchange(recording->pictures, {})) {
    page.publishPicture(picture);
  }
  for (const std::string& state : std::exchange(recording->states, {})) page.publish(state);
  page.setStatus("over", "");
  keepOpen(page, patience);
  return kDone;
}

int showSimulation(const Flags& flags) {
  const Result<sim::Scenario> scenario = loadScenario(flags.scenario);
  if (!scenario) {
    const bool unreadable = scenario.error().message().empty();
    return fail(unreadable ? "cannot read " + flags.scenario : scenario.error().message(),
                unreadable ? kFailed : kUsage);
  }
  Result<std::unique_ptr<sim::Policy>> made = sim::makePolicy(flags.policy, scenario->cpus);
  if (!made) return fail(made.error().message(), kUsage);
  cli::RecordingPolicy policy(*std::move(made));
  sim::Simulation simulation(*scenario, policy);
  Patience patience(Patience::Keys::kQuit);
  LivePage page;
  const Result<void> started = page.start(
      flags.page, {.kind = "simulation",
                   .title = scenario->name,
                   .detail = fmt::format("policy {}, {:g} times as fast as real time. {}",
                                         flags.policy, flags.speed, scenario->description)});
  if (!started) return fail(started.error().message());
  page.setStatus("live", "");
  const SystemClock clock;
  const WallTime begin = clock.wall();
  const Nanos pause =
      nanos(std::chrono::duration<double>(scenario->interval).count() / flags.speed);
  MonotonicTime next = clock.monotonic();
  bool more = true;
  while (more) {
    more = simulation.step();
    cli::NodeRecord node = policy.record();
    node.node = scenario->name;
    node.time = begin + simulation.now();
    page.publish(node);
    page.tellAddress();
    next = std::max(next + pause, clock.monotonic());
    if (!patience.wait(next - clock.monotonic())) return kDone;
  }
  page.setStatus("over", "The simulation is over.");
  keepOpen(page, patience);
  return kDone;
}

int uiCommand(const Flags& flags) {
  if (!flags.recording.empty()) return showRecording(flags);
  if (!flags.scenario.empty()) return showSimulation(flags);
  return flags.ofCluster() ? showCluster(flags) : showHost(flags);
}

}  // namespace

void addUi(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "ui", "Watch the market in a browser: a cluster, this host, a recording, a simulation");
  command->footer(kFooter);
  CLI::Option* recording =
      command->add_option("FILE", flags->recording, "A recording that the page saved");
  CLI::Option* host = command->add_flag("--host", flags->host,
                                        "The pods of `mbcas run`, or of an agent, on this machine");
  CLI::Option* scenario =
      command->add_option("--simulate", flags->scenario, "A scenario on the model kernel, YAML")
          ->type_name("FILE");
  host->excludes(recording)->excludes(scenario);
  scenario->excludes(recording);
  oneOf(
      command->add_option("--policy", flags->policy, "With --simulate: the policy for the limits"),
      {sim::policyNames().begin(), sim::policyNames().end()})
      ->needs(scenario)
      ->capture_default_str();
  command->add_option("--speed", flags->speed, "With --simulate: times as fast as real time")
      ->check(CLI::Range(0.1, 1000.0))
      ->needs(scenario)
      ->capture_default_str();
  addSocketFlag(*command, flags->socket);
  addDuration(*command, "--interval", flags->interval, "Time between two readings");
  addPageFlags(*command, flags->page);
  addClusterFlags(*command, flags->cluster);
  addSystemNamespace(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = uiCommand(*flags); });
}

}  // namespace mbcas::app
