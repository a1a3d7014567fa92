// mbcas report: what was seen over some time: requests far from use, throttling, limits, quota.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/flags.h"
#include "apps/mbcas/host_state.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/cli/agents.h"
#include "mbcas/cli/recording.h"
#include "mbcas/cli/usage_report.h"
#include "mbcas/cli/words.h"
#include "mbcas/policy/quota.h"
#include "mbcas/policy/workload.h"

namespace mbcas::app {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas report --for 10m                 # watches the cluster's agents, then tells
  mbcas report --for 1h -n shop -o html > shop.html
  mbcas report monday.mbcas tuesday.mbcas   # recordings that the page of mbcas ui saved
  mbcas report --host --for 2m           # the pods of `mbcas run` on this machine

The report begins with requests that are far from use, and what they should be. Then follow
throttled pod-hours, with the declared limits and with higher ones, limits that should differ from
the declared ones, quota that is free or short, and the sums of namespaces. Ctrl-C ends the time
early, and the report covers what was seen until then. On a cluster `mbcas-agent observe` is started
in up to 64 agents by pods/exec (the Role mbcas-observe allows it). The report covers all
namespaces, or the one that -n names.

Exit code: 0 done, 1 failed or nothing was seen, 2 the command is wrong.)";

struct Flags {
  ClusterFlags cluster;
  std::vector<std::string> recordings;
  bool host = false;
  std::string socket;
  double time = 600;
  std::string output;
};

int fail(std::string_view message, int code = kFailed) {
  complain("mbcas report", message);
  return code;
}

int print(const cli::UsageReport& report, const Flags& flags) {
  if (report.containers.empty()) {
    return fail(report.notes.empty() ? "no managed pod was seen" : report.notes.front());
  }
  if (isDocument(flags.output)) {
    printDocument(cli::reportJson(report), flags.output);
  } else if (flags.output == "name") {
    std::set<std::string> names;
    for (const cli::ContainerReport& of : report.containers) names.insert(of.workload);
    for (const std::string& name : names) say("workload/" + name);
  } else if (flags.output == "html") {
    fmt::print("{}\n", cli::reportHtml(report));
  } else {
    fmt::print("{}", cli::reportText(report, wantsColours()));
  }
  return kDone;
}

// Until the time is over, or the user has seen enough: calls look() every second.
template <class Look>
void watch(const Flags& flags, const Look& look) {
  const SystemClock clock;
  Patience patience(Patience::Keys::kQuit);
  const MonotonicTime begin = clock.monotonic();
  const MonotonicTime end = begin + nanos(flags.time);
  const bool tells = ::isatty(STDERR_FILENO) != 0;
  do {
    look();
    if (tells) {
      fmt::print(stderr, "\rwatching for {} of {}; Ctrl-C ends it early ",
                 cli::ageText(clock.monotonic() - begin), cli::ageText(nanos(flags.time)));
    }
  } while (clock.monotonic() < end &&
           patience.wait(std::min<Nanos>(std::chrono::seconds(1), end - clock.monotonic())));
  if (tells) fmt::print(stderr, "\r{:60}\r", "");
}

int reportOfRecordings(const Flags& flags) {
  cli::ReportBuilder builder;
  for (const std::string& name : flags.recordings) {
    std::error_code error;
    const auto size = std::filesystem::file_size(name, error);
    if (!error && size > cli::kLongestRecording)
      return fail(name + ": is too long for a recording");
    std::ifstream file(name);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (error || !file) return fail(name + ": cannot be read");
    const Result<cli::Recording> recording = cli::parseRecording(text);
    if (!recording) return fail(Error(recording.error()).within(name).message(), kUsage);
    for (const std::string& line : recording->states) {
      if (const Result<cli::NodeRecord> state = cli::parseState(line)) builder.add(*state);
    }
  }
  return print(builder.report(), flags);
}

int reportOfHost(const Flags& flags) {
  cli::ReportBuilder builder;
  std::string trouble;
  watch(flags, [&] {
    const Result<cli::NodeRecord> state = readHostState(flags.socket);
    if (state) {
      builder.add(*state);
    } else {
      trouble = state.error().message();
    }
  });
  cli::UsageReport report = builder.report();
  if (!trouble.empty()) report.notes.push_back(trouble);
  return print(report, flags);
}

void addQuotas(const cli::Snapshot& snapshot, cli::UsageReport& report) {
  for (const auto& [name, objects] : snapshot.namespaces) {
    for (const auto& quota : objects.quotas) {
      for (const char* resource : {"limits.cpu", "requests.cpu", "cpu"}) {
        const std::optional<policy::CpuQuota> cpu = policy::cpuQuota(*quota, resource);
        if (cpu) report.quotas.push_back({name, cpu->name, resource, cpu->hard, cpu->used});
      }
    }
  }
}

int reportOfCluster(const Flags& flags) {
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return fail(connection.error().message());
  kube::Client& client = (*connection)->client();
  const std::string& system = flags.cluster.system_namespace;
  const cli::Selection selection{.name_space = flags.cluster.name_space};
  const auto snapshot = cli::takeSnapshot(client, selection, system);
  if (!snapshot) return fail(explained(snapshot.error()));
  const auto pods =
      client.list<kube::Pod>({.name_space = system, .label_selector = cli::kAgentSelector});
  if (!pods) return fail("the agents cannot be found: " + explained(pods.error()));
  const cli::AgentStates::Agents agents = cli::agentPods(pods->items);
  if (agents.empty()) return fail("no agent runs: mbcas doctor tells more");

  cli::ReportBuilder builder;
  for (const cli::PodPtr& pod : snapshot->pods) {
    const auto workload = policy::workloadOf(*pod);
    if (!workload) continue;
    builder.workloads[{pod->meta.namespace_.string(), pod->meta.name.string()}] = workload->name;
  }
  cli::AgentStates states(client, system);
  std::string trouble;
  watch(flags, [&] {
    states.follow(agents);
    const cli::AgentStates::Latest latest = states.latest();
    for (const auto& [node, record] : latest.nodes) {
      cli::NodeRecord chosen = *record;
      if (!selection.name_space.empty()) {
        std::erase_if(chosen.pods, [&](const cli::PodRecord& pod) {
          return pod.name_space != selection.name_space;
        });
      }
      builder.add(chosen);
    }
    trouble = latest.trouble;
  });
  cli::UsageReport report = builder.report();
  addQuotas(*snapshot, report);
  if (agents.size() > cli::AgentStates::kMostAtOnce) {
    report.notes.push_back(fmt::format("{} of {} nodes were watched, which is as many as can be",
                                       cli::AgentStates::kMostAtOnce, agents.size()));
  }
  if (!trouble.empty()) report.notes.push_back(trouble);
  return print(report, flags);
}

int reportCommand(const Flags& flags) {
  if (!flags.recordings.empty()) return reportOfRecordings(flags);
  return flags.host || !flags.socket.empty() ? reportOfHost(flags) : reportOfCluster(flags);
}

}  // namespace

void addReport(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "report", "Show what was seen over a time: requests, throttling, limits, quota");
  command->footer(kFooter);
  CLI::Option* recordings =
      command->add_option("FILE", flags->recordings, "Recordings of mbcas ui, instead of watching");
  addDuration(*command, "--for", flags->time, "How long to watch")->excludes(recordings);
  addOutput(*command, flags->output, {"text", "json", "yaml", "name", "html"});
  command
      ->add_flag("--host", flags->host, "The pods of `mbcas run`, or of an agent, on this machine")
      ->group(kHostGroup)
      ->excludes(recordings);
  addSocketFlag(*command, flags->socket);
  addClusterFlags(*command, flags->cluster);
  addSystemNamespace(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = reportCommand(*flags); });
}

}  // namespace mbcas::app
