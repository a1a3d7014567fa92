// mbcas top: the pods of a cluster or of a machine, live.
#include "mbcas/cli/top.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/evidence.h"
#include "apps/mbcas/host_state.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/cli/agents.h"
#include "mbcas/cli/top_screen.h"
#include "mbcas/kube/informer.h"

namespace mbcas::app {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas top                       # live, the pods of the context's namespace
  mbcas top -A --sort price       # the whole cluster, nodes that are short of CPU first
  mbcas top -n shop -l app=web -o wide | less
  mbcas top --host                # the pods of `mbcas run` on this machine

On a terminal the table is live. Elsewhere, and with -o json, yaml or name, it is printed once.
Keys: q quits; ? lists all keys; up and down choose a pod, and Enter explains it; / shows only pods
that match what you type; left and right choose the column to sort by, as do p (pod), o (node),
n (need), l (limit), a (applied), t (throttled), r (pressure), c (price), s (phase), g (age);
i inverts the order; w shows more columns. `mbcas help columns` explains the columns. MS/S, PRESS
and PRICE, and the need of this very second, come from the agents: `mbcas-agent observe` is started
in their containers by pods/exec, which the Role mbcas-observe allows. Up to 16 nodes all agents are
followed, in larger clusters those of the nodes on the screen.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

constexpr std::size_t kFollowedAnyway = 16;

struct Flags {
  ClusterFlags cluster;
  PodFlags pods;
  bool host = false;
  std::string socket;
  std::string sort = "throttled";
  bool reverse = false;
  bool once = false;
  double interval = 2;
  std::string output;

  cli::TopOptions options(bool namespaces) const {
    return {.namespaces = namespaces,
            .wide = output == "wide",
            .sort = *cli::parseTopKey(sort),
            .reverse = reverse};
  }
};

// From the first picture, which has nothing of agents yet, to the next.
constexpr Nanos kSoon = std::chrono::milliseconds(300);

int fail(const std::string& message) {
  complain("mbcas top", message);
  return kFailed;
}

// Where the rows come from.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::string title() const = 0;
  virtual bool namespaces() const = 0;
  // All that can be had now, also if that takes a while.
  virtual Result<cli::TopView> whole() = 0;
  // What is there, without waiting. These nodes are on the screen.
  virtual Result<cli::TopView> latest(const std::set<std::string>& nodes) = 0;
  // All that is known of a pod, also if that takes a while.
  virtual Result<cli::Evidence> evidence(const cli::TopRow& row) = 0;
};

class HostSource final : public Source {
 public:
  explicit HostSource(std::string socket) : socket_(std::move(socket)) {}
  std::string title() const override { return "mbcas top"; }
  bool namespaces() const override { return namespaces_; }
  Result<cli::TopView> latest(const std::set<std::string>& /*nodes*/) override {
    const Result<cli::NodeRecord> state = readHostState(socket_);
    if (!state) return failure(state.error());
    for (const cli::PodRecord& pod : state->pods) namespaces_ |= !pod.name_space.empty();
    return cli::topOf(*state);
  }
  Result<cli::TopView> whole() override { return latest({}); }
  Result<cli::Evidence> evidence(const cli::TopRow& row) override {
    const Result<cli::NodeRecord> state = readHostState(socket_);
    if (!state) return failure(state.error());
    return evidenceOf(*state, row.name_space, row.pod);
  }

 private:
  std::string socket_;
  bool namespaces_ = false;
};

class ClusterSource final : public Source {
 public:
  ClusterSource(Connection& connection, const cli::Selection& selection, const ClusterFlags& flags)
      : connection_(connection),
        selection_(selection),
        system_namespace_(flags.system_namespace),
        timeout_(nanos(flags.request_timeout)),
        pods_(connection.client(), {.name_space = selection.name_space,
                                    .label_selector = selection.label_selector,
                                    .field_selector = selection.fieldSelector(),
                                    .annotations = std::vector<std::string>{},
                                    .on_error = noting()}),
        allocations_(connection.client(),
                     {.name_space = selection.name_space, .on_error = noting()}),
        agents_(connection.client(), {.name_space = flags.system_namespace,
                                      .label_selector = cli::kAgentSelector,
                                      .annotations = std::vector<std::string>{},
                                      .on_error = noting()}),
        states_(connection.client(), flags.system_namespace) {}

  // Until pods are known; an error if they cannot be.
  Result<void> start() {
    // Before the watches, which try for ever: an error that is not going to pass.
    kube::Call first{.path = kube::Pod::kind().path(selection_.name_space),
                     .query = {{"limit", "1"}}};
    for (const auto& [key, value] : {std::pair("labelSelector", selection_.label_selector),
                                     std::pair("fieldSelector", selection_.fieldSelector())}) {
      if (!value.empty()) first.query.emplace_back(key, value);
    }
    if (const auto answer = connection_.client().perform(std::move(first)); !answer) {
      return failure(explained(answer.error()));
    }
    const bool installed =
        connection_.client().require("allocation.mbcas.io/v1alpha1", "podallocations").has_value();
    pods_.start();
    if (installed) {
      allocations_.start();
      agents_.start();
    } else {
      missing_ = "PodAllocation is not installed on this cluster: mbcas doctor tells more";
    }
    if (!pods_.waitForSync(timeout_)) return failure(trouble("pods cannot be listed"));
    if (installed) {
      (void)allocations_.waitForSync(timeout_);
      (void)agents_.waitForSync(timeout_);
    }
    return {};
  }

  std::string title() const override {
    return selection_.name_space.empty() ? "mbcas top" : "mbcas top " + selection_.name_space;
  }
  bool namespaces() const override { return selection_.name_space.empty(); }

  Result<cli::TopView> whole() override {
    std::set<std::string> nodes;
    for (const auto& pod : pods_.list()) nodes.insert(pod->node.string());
    states_.askAll(agentsOn(nodes), timeout_);
    return view();
  }
  Result<cli::TopView> latest(const std::set<std::string>& nodes) override {
    const cli::AgentStates::Agents agents = wanted();
    // In a small cluster all are followed, so that one can sort by what they see.
    states_.follow(agents.size() > kFollowedAnyway ? agentsOn(nodes) : agents);
    return view();
  }
  Result<cli::Evidence> evidence(const cli::TopRow& row) override {
    return evidenceOf(connection_, row.name_space, row.pod, system_namespace_);
  }

 private:
  std::function<void(const kube::ApiError&)> noting() {
    return [this](const kube::ApiError& error) {
      const std::lock_guard lock(mutex_);
      error_ = error.describe();
    };
  }
  std::string trouble(const std::string& otherwise) const {
    const std::lock_guard lock(mutex_);
    return error_.empty() ? otherwise : error_;
  }

  // The agents of the nodes that are shown.
  cli::AgentStates::Agents wanted() const {
    cli::AgentStates::Agents agents = cli::agentPods(agents_.list());
    if (!selection_.node.empty()) {
      std::erase_if(agents, [&](const auto& entry) { return entry.first != selection_.node; });
    }
    return agents;
  }

  cli::AgentStates::Agents agentsOn(const std::set<std::string>& nodes) const {
    cli::AgentStates::Agents agents = wanted();
    std::erase_if(agents, [&](const auto& entry) { return !nodes.contains(entry.first); });
    return agents;
  }

  cli::TopView view() const {
    const cli::AgentStates::Latest states = states_.latest();
    cli::TopView view =
        cli::topOf(pods_.list(), allocations_.list(), states.nodes, connection_.clock().wall());
    if (!missing_.empty()) {
      view.notes.push_back(missing_);
    } else if (wanted().empty()) {
      view.notes.emplace_back("no agent runs: mbcas doctor tells more");
    } else if (!states.trouble.empty()) {
      view.notes.push_back(states.trouble);
    }
    return view;
  }

  Connection& connection_;
  const cli::Selection selection_;
  const std::string system_namespace_;
  const Nanos timeout_;
  mutable std::mutex mutex_;
  std::string error_;  // of a watch, the last
  std::string missing_;
  kube::Informer<kube::Pod> pods_;
  kube::Informer<podallocation::PodAllocation> allocations_;
  kube::Informer<kube::Pod> agents_;
  cli::AgentStates states_;
};

int showOnce(Source& source, const Flags& flags) {
  Result<cli::TopView> view = source.whole();
  if (!view) return fail(view.error().message());
  const cli::TopOptions options = flags.options(source.namespaces());
  cli::sortRows(view->rows, options.sort, options.reverse);
  if (isDocument(flags.output)) {
    printDocument(cli::topJson(*view), flags.output);
    return kDone;
  }
  for (const std::string& note : view->notes) complain("mbcas top", note);
  if (view->rows.empty()) {
    complain("mbcas top", flags.host || options.namespaces
                              ? "no pods"
                              : "no pods in this namespace; -A shows those of all namespaces");
  } else if (flags.output == "name") {
    for (const cli::TopRow& row : view->rows) say("pod/" + row.pod);
  } else {
    fmt::print("{}", cli::topTable(view->rows, options, wantsColours()));
  }
  return kDone;
}

void explainSelected(Source& source, cli::TopScreen& picture) {
  const cli::TopRow* const row = picture.selected();
  if (row == nullptr) return;
  const Result<cli::Evidence> evidence = source.evidence(*row);
  if (!evidence) return picture.show(evidence.error().message());
  cli::Explanation explanation = cli::explain(*evidence);
  if (!evidence->trouble.empty()) explanation.more.push_back(evidence->trouble);
  picture.show(std::move(explanation));
}

int showLive(Source& source, const Flags& flags) {
  // What is on the screen is known after the first picture.
  Result<cli::TopView> view = source.latest({});
  if (!view) return fail(view.error().message());
  const SystemClock clock;
  const Nanos interval = nanos(flags.interval);
  cli::TopScreen picture(flags.options(source.namespaces()));
  picture.update(*std::move(view));
  Patience patience(Patience::Keys::kAll);
  Screen screen;
  Nanos pause = std::min(interval, kSoon);
  MonotonicTime next = clock.monotonic() + pause;
  while (true) {
    const TerminalSize size = terminalSize();
    screen.draw(picture.render(source.title(), size.width, size.height, wantsColours()));
    const Patience::Wake wake = patience.next(next - clock.monotonic());
    if (wake == Patience::Wake::kStop) return kDone;
    for (const view::Key key : patience.keys()) {
      switch (picture.press(key)) {
        case cli::TopScreen::Action::kNothing:
          break;
        case cli::TopScreen::Action::kQuit:
          return kDone;
        case cli::TopScreen::Action::kExplain:
          explainSelected(source, picture);
          break;
      }
    }
    if (wake != Patience::Wake::kTime) continue;
    pause = std::min(interval, 2 * pause);
    next = std::max(next + pause, clock.monotonic());
    if (Result<cli::TopView> newer = source.latest(picture.visibleNodes())) {
      picture.update(*std::move(newer));
    } else {
      picture.note(newer.error().message());
    }
  }
}

int topCommand(const Flags& flags) {
  const bool live =
      isTerminal() && !flags.once && (flags.output == "table" || flags.output == "wide");
  const auto show = [&](Source& source) {
    return live ? showLive(source, flags) : showOnce(source, flags);
  };
  if (flags.host) {
    HostSource source(flags.socket);
    return show(source);
  }
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return fail(connection.error().message());
  ClusterSource source(**connection,
                       selectionOf(flags.cluster, flags.pods, (*connection)->defaultNamespace()),
                       flags.cluster);
  if (const Result<void> started = source.start(); !started) {
    return fail(started.error().message());
  }
  return show(source);
}

}  // namespace

void addTop(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("top", "Watch pods: need, limit, throttling, price");
  command->footer(kFooter);
  oneOf(command->add_option("--sort", flags->sort, "Column to sort by"), cli::topKeyNames())
      ->capture_default_str();
  command->add_flag("--reverse", flags->reverse, "Invert the order");
  command->add_flag("--once", flags->once, "Print once, also on a terminal");
  addDuration(*command, "--interval", flags->interval, "Time between two readings");
  addOutput(*command, flags->output, {"table", "wide", "json", "yaml", "name"});
  command
      ->add_flag("--host", flags->host, "The pods of `mbcas run`, or of an agent, on this machine")
      ->group(kHostGroup);
  addSocketFlag(*command, flags->socket);
  addPodFlags(*command, flags->pods);
  addClusterFlags(*command, flags->cluster);
  addSystemNamespace(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = topCommand(*flags); });
}

}  // namespace mbcas::app
