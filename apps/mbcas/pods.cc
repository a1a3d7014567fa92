// mbcas pods: what pods there are, whether they are managed, and what they use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <thread>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/host_state.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/cli/agents.h"
#include "mbcas/cli/listing.h"
#include "mbcas/kernel/pod_tree.h"
#include "mbcas/sense/sampler.h"

namespace mbcas::app {
namespace {

constexpr const char* kListFooter = R"(Examples:
  mbcas pods list -A              # every pod of the cluster
  mbcas pods list -n shop -l app=web -o wide
  mbcas pods list -A -o json | jq '.pods[] | select(.managed == "no") | .why'
  mbcas pods list --host          # the pods on this machine, as the kernel has them

REQUEST and LIMIT are sums over the containers; 500m+ means that other containers have
no limit. MANAGED says yes, or why not.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

constexpr const char* kUsageFooter = R"(Examples:
  mbcas pods usage -A             # as the kubelets say, who uses most first
  mbcas pods usage --node n1
  mbcas pods usage --host         # of this machine, from the kernel itself

On a cluster the figures come from the kubelets and cover the last 10 to 20 seconds. They are read
from /stats/summary through the API server, which needs permission to get nodes/proxy. On a machine
they are measured for --interval, and also say how long limits held threads back. PRESSURE is the
share of time in which some thread waited for a CPU.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

struct Flags {
  ClusterFlags cluster;
  PodFlags pods;
  bool host = false;
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string socket;
  double interval = 1;
  std::string output;
  bool usage = false;
};

int fail(const std::string& message) {
  complain("mbcas pods", message);
  return kFailed;
}

void print(const std::vector<cli::PodRow>& rows, const std::vector<std::string>& notes,
           const Flags& flags, bool namespaces) {
  if (isDocument(flags.output)) return printDocument(cli::rowsJson(rows, notes), flags.output);
  for (const std::string& note : notes) complain("mbcas pods", note);
  if (rows.empty()) {
    complain("mbcas pods", flags.host || namespaces
                               ? "no pods"
                               : "no pods in this namespace; -A shows those of all namespaces");
    return;
  }
  if (flags.output == "name") {
    for (const cli::PodRow& row : rows) say("pod/" + (row.pod.empty() ? row.uid : row.pod));
    return;
  }
  const bool wide = flags.output == "wide";
  fmt::print("{}", flags.usage ? cli::usageTable(rows, namespaces, wide, wantsColours())
                               : cli::listTable(rows, namespaces, wide, wantsColours()));
}

// What the kubelets of the pods' nodes say; who does not answer is noted.
void askKubelets(kube::Client& client, std::vector<cli::PodRow>& rows,
                 std::vector<std::string>& notes) {
  std::set<std::string> nodes;
  for (const cli::PodRow& row : rows) {
    if (!row.node.empty()) nodes.insert(row.node);
  }
  std::vector<kube::Call> calls;
  calls.reserve(nodes.size());
  for (const std::string& node : nodes) {
    calls.push_back({.path = fmt::format("/api/v1/nodes/{}/proxy/stats/summary", node),
                     .query = {{"only_cpu_and_memory", "true"}},
                     .retry = false});
  }
  auto answers = cli::performAll(client, std::move(calls));
  auto node = nodes.begin();
  for (auto& answer : answers) {
    std::string trouble;
    if (!answer) {
      trouble = answer.error().describe();
    } else if (const auto usages = cli::parseSummary(*std::move(answer))) {
      cli::addUsage(rows, *usages);
    } else {
      trouble = usages.error().message();
    }
    if (!trouble.empty()) notes.push_back(fmt::format("node {}: {}", *node, trouble));
    ++node;
  }
}

int listPods(Connection& connection, const cli::Selection& selection, const Flags& flags) {
  const auto snapshot =
      cli::takeSnapshot(connection.client(), selection, flags.cluster.system_namespace);
  if (!snapshot) return fail(explained(snapshot.error()));
  print(cli::listRows(*snapshot, connection.clock().wall()), snapshot->notes, flags,
        selection.name_space.empty());
  return kDone;
}

int showUsage(Connection& connection, const cli::Selection& selection, const Flags& flags) {
  const auto pods =
      connection.client().list<kube::Pod>({.name_space = selection.name_space,
                                           .label_selector = selection.label_selector,
                                           .field_selector = selection.fieldSelector()});
  if (!pods) return fail(explained(pods.error()));
  std::vector<cli::PodRow> rows = cli::usageRows(pods->items, connection.clock().wall());
  std::vector<std::string> notes;
  askKubelets(connection.client(), rows, notes);
  cli::sortByUsage(rows);
  print(rows, notes, flags, selection.name_space.empty());
  const bool any =
      std::ranges::any_of(rows, [](const cli::PodRow& row) { return row.usage.has_value(); });
  return !notes.empty() && !any ? kFailed : kDone;
}

int podsOfCluster(const Flags& flags) {
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return fail(connection.error().message());
  const cli::Selection selection =
      selectionOf(flags.cluster, flags.pods, (*connection)->defaultNamespace());
  return flags.usage ? showUsage(**connection, selection, flags)
                     : listPods(**connection, selection, flags);
}

int podsOfHost(const Flags& flags) {
  const Result<kernel::Mounts> mounts = kernel::detectMounts(flags.cgroup_root);
  if (!mounts) return fail(mounts.error().message());
  const SystemClock clock;
  const Nanos interval = nanos(flags.interval);
  sense::Sampler sampler(std::make_unique<kernel::PodTree>(*mounts), clock, {.interval = interval});
  auto signals = sampler.tick();
  if (flags.usage) {
    std::this_thread::sleep_for(interval);
    signals = sampler.tick();
  }
  const Result<cli::NodeRecord> state = readHostState(flags.socket);
  // Whose pods have namespaces is an agent.
  const bool of_agent = state && std::ranges::any_of(state->pods, [](const cli::PodRecord& pod) {
                          return !pod.name_space.empty();
                        });
  std::vector<cli::PodRow> rows = cli::hostRows(signals, state && of_agent ? &*state : nullptr,
                                                state && !of_agent ? &*state : nullptr);
  if (flags.usage) cli::sortByUsage(rows);
  const bool namespaces =
      std::ranges::any_of(rows, [](const cli::PodRow& row) { return !row.name_space.empty(); });
  print(rows, {}, flags, namespaces);
  return kDone;
}

}  // namespace

void addPods(CLI::App& app, int& exit_code) {
  CLI::App* pods = app.add_subcommand("pods", "List pods, whether they are managed, what they use");
  pods->require_subcommand(1);
  pods->footer("Example: mbcas pods list -A");
  for (const bool usage : {false, true}) {
    const auto flags = std::make_shared<Flags>();
    flags->usage = usage;
    CLI::App* command =
        usage ? pods->add_subcommand("usage", "CPU in use, next to requests and limits")
              : pods->add_subcommand("list", "Requests, limits, QoS; managed, or why not");
    command->footer(usage ? kUsageFooter : kListFooter);
    addOutput(*command, flags->output, {"table", "wide", "json", "yaml", "name"});
    command->add_flag("--host", flags->host, "The pods on this machine, from its cgroups")
        ->group(kHostGroup);
    command
        ->add_option("--cgroup-root", flags->cgroup_root, "With --host: where cgroups are mounted")
        ->type_name("FOLDER")
        ->group(kHostGroup)
        ->capture_default_str();
    addSocketFlag(*command, flags->socket);
    if (usage) {
      addDuration(*command, "--interval", flags->interval, "With --host: how long to measure")
          ->group(kHostGroup);
    }
    addPodFlags(*command, flags->pods);
    addClusterFlags(*command, flags->cluster);
    addSystemNamespace(*command, flags->cluster);
    command->callback([flags, &exit_code] {
      exit_code = flags->host ? podsOfHost(*flags) : podsOfCluster(*flags);
    });
  }
}

}  // namespace mbcas::app
