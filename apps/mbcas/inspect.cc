// mbcas inspect: what MBCAS sees on this host.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include "apps/mbcas/commands.h"
#include "apps/mbcas/flags.h"
#include "apps/mbcas/inspect.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/demand/demand.h"
#include "mbcas/sense/sampler.h"
#include "mbcas/view/text.h"

namespace mbcas::app {
namespace {

using sense::CpuSignals;
using sense::PodSignals;

volatile std::sig_atomic_t interrupted = 0;

std::string limitText(const std::optional<kernel::CpuLimit>& limit) {
  if (!limit) return "?";
  return limit->quota ? fmt::format("{}m", limit->millicores()->count()) : "none";
}

std::string shareText(std::optional<double> share) {
  return share ? fmt::format("{:.0f}%", *share * 100) : "-";
}

std::optional<double> some(const std::optional<sense::PressureSignals>& pressure) {
  if (!pressure) return std::nullopt;
  return pressure->some;
}

class Report {
 public:
  void add(const PodSignals& pod, const demand::PodNeed& need) {
    row("pod " + pod.uid, kernel::name(pod.qos), pod.cpu, need.total,
        {some(pod.cpu_pressure), pod.contention, some(pod.memory_pressure), some(pod.io_pressure)});
    for (std::size_t i = 0; i < pod.containers.size(); ++i) {
      row("  " + pod.containers[i].id.substr(0, 12), "", pod.containers[i].cpu,
          need.containers[i].need, {});
    }
  }
  std::string toString(bool colours) const { return table_.toString(colours); }

 private:
  void row(const std::string& what, std::string_view qos, const CpuSignals& cpu,
           const demand::Need& need, const std::array<std::optional<double>, 4>& shares) {
    const auto milli = [](Millicores amount) { return fmt::format("{}m", amount.count()); };
    table_.row({what, std::string(qos), milli(cpu.usageRate()), limitText(cpu.limit),
                fmt::format("{} ms/s", cpu.blockedRate().count()),
                fmt::format("{}/{}", cpu.throttling.throttled_periods, cpu.throttling.periods),
                milli(need.use), milli(need.burst), shareText(shares[0]), shareText(shares[1]),
                shareText(shares[2]), shareText(shares[3])},
               cpu.throttled() ? view::Colour::kYellow : view::Colour::kNone);
  }

  view::Table table_{{{"POD / CONTAINER", view::Table::Align::kLeft},
                      {"QOS", view::Table::Align::kLeft},
                      {"USAGE"},
                      {"LIMIT"},
                      {"BLOCKED"},
                      {"THROTTLED"},
                      {"USE"},
                      {"BURST"},
                      {"CPU"},
                      {"OTHER"},
                      {"MEM"},
                      {"IO"}}};
};

void writeCpu(JsonWriter& json, const CpuSignals& cpu, const demand::Need& need) {
  json.key("intervalSeconds").value(std::chrono::duration<double>(cpu.interval).count());
  json.key("usageMillicores").value(cpu.usageRate().count());
  json.key("limitMillicores");
  if (cpu.limit && cpu.limit->quota) {
    json.value(cpu.limit->millicores()->count());
  } else {
    json.null();
  }
  json.key("blockedMillicores").value(cpu.blockedRate().count());
  json.key("blockedFrom").value(name(cpu.blocked_source));
  json.key("periods").value(cpu.throttling.periods);
  json.key("throttledPeriods").value(cpu.throttling.throttled_periods);
  json.key("throttledSeconds").value(std::chrono::duration<double>(cpu.throttling.time).count());
  json.key("use").value(need.use.count());
  json.key("usePeak").value(need.use_peak.count());
  json.key("burst").value(need.burst.count());
  json.key("burstState").value(name(need.burst_state));
}

void writePressure(JsonWriter& json, const char* key,
                   const std::optional<sense::PressureSignals>& pressure) {
  json.key(key);
  if (!pressure) {
    json.null();
    return;
  }
  json.beginObject().key("some").value(pressure->some).key("full").value(pressure->full);
  json.endObject();
}

std::string toJson(const kernel::PodTree& tree, const sense::SenseCounters& counters,
                   std::span<const PodSignals> pods, std::span<const demand::PodNeed> needs) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("cgroups").value(kernel::describe(tree.mounts()));
  json.key("layouts").beginArray();
  for (const std::string& layout : tree.layouts()) json.value(layout);
  json.endArray();
  json.key("pods").beginArray();
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const PodSignals& pod = pods[i];
    json.beginObject();
    json.key("uid").value(pod.uid);
    json.key("path").value(pod.path);
    json.key("qos").value(kernel::name(pod.qos));
    writeCpu(json, pod.cpu, needs[i].total);
    writePressure(json, "cpuPressure", pod.cpu_pressure);
    writePressure(json, "memoryPressure", pod.memory_pressure);
    writePressure(json, "ioPressure", pod.io_pressure);
    json.key("contention");
    if (pod.contention) {
      json.value(*pod.contention);
    } else {
      json.null();
    }
    json.key("containers").beginArray();
    for (std::size_t c = 0; c < pod.containers.size(); ++c) {
      json.beginObject();
      json.key("id").value(pod.containers[c].id);
      json.key("path").value(pod.containers[c].path);
      writeCpu(json, pod.containers[c].cpu, needs[i].containers[c].need);
      json.endObject();
    }
    json.endArray().endObject();
  }
  json.endArray();
  json.key("reads").value(counters.reads);
  json.key("failures").value(counters.failures);
  if (counters.failures > 0) json.key("lastFailure").value(counters.last_failure);
  json.endObject();
  return out;
}

void explainNothing(const kernel::PodTree& tree, const InspectFlags& flags) {
  fmt::print(stderr,
             "{} at {}: no pods among {} cgroups{}.\n"
             "  - Does a kubelet run on this host? Its pods are directories named pod<uid> or\n"
             "    kubepods-...-pod<uid>.slice, anywhere in the tree.\n"
             "  - In a container? It sees only its own cgroups. Mount the host's /sys/fs/cgroup\n"
             "    (hostPath, read-only) and name it with --cgroup-root.\n",
             kernel::describe(tree.mounts()), flags.root, tree.walked(),
             tree.unreadable() == 0
                 ? std::string()
                 : fmt::format(" ({} directories could not be read)", tree.unreadable()));
}

int inspectCgroups(const InspectFlags& flags) {
  raiseDescriptorLimit();
  Result<kernel::Mounts> mounts = kernel::detectMounts(flags.root);
  if (!mounts) {
    complain("mbcas inspect", mounts.error().message());
    return kFailed;
  }
  auto source = std::make_unique<kernel::PodTree>(*mounts);
  const kernel::PodTree& tree = *source;
  const SystemClock clock;
  const std::chrono::duration<double> interval(flags.interval);
  sense::Sampler sampler(std::move(source), clock,
                         {.interval = std::chrono::duration_cast<Nanos>(interval)});
  demand::Demand demand({.cpus = std::max(1U, std::thread::hardware_concurrency())});
  demand.update(sampler.tick());
  if (sampler.signals().empty() && !flags.watch) {
    explainNothing(tree, flags);
    return kFailed;
  }
  showEveryInterval(flags, [&] {
    const auto pods = sampler.tick();
    const auto needs = demand.update(pods);
    if (isDocument(flags.output)) {
      return printNextDocument(toJson(tree, sampler.counters(), pods, needs), flags.output);
    }
    if (flags.output == "name") {
      for (const PodSignals& pod : pods) say("pod/" + pod.uid);
      return;
    }
    for (const std::string& layout : tree.layouts()) say(layout);
    Report report;
    for (std::size_t i = 0; i < pods.size(); ++i) report.add(pods[i], needs[i]);
    fmt::print("{}", report.toString(wantsColours()));
    if (sampler.counters().failures > 0) {
      say(fmt::format("{} readings failed; the last: {}", sampler.counters().failures,
                      sampler.counters().last_failure));
    }
  });
  return kDone;
}

void addFlags(CLI::App& command, InspectFlags& flags) {
  command.add_option("--cgroup-root", flags.root, "Where the host's cgroup tree is mounted")
      ->type_name("FOLDER")
      ->capture_default_str();
  addOutput(command, flags.output, {"table", "json", "yaml", "name"});
  addDuration(command, "--interval", flags.interval, "Time between two readings", 0.05, 3600);
  command.add_flag("-w,--watch", flags.watch, "Repeat until interrupted");
}

}  // namespace

void raiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void showEveryInterval(const InspectFlags& flags, const std::function<void()>& show) {
  const bool screen = flags.watch && flags.output == "table" && isTerminal();
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  if (flags.watch) ::sigaction(SIGINT, &action, nullptr);
  do {
    std::this_thread::sleep_for(std::chrono::duration<double>(flags.interval));
    if (interrupted != 0) break;
    if (screen) fmt::print("\x1b[H\x1b[2J");
    show();
    std::fflush(stdout);
  } while (flags.watch && interrupted == 0);
}

void addInspect(CLI::App& app, int& exit_code) {
  CLI::App* inspect = app.add_subcommand("inspect", "Show what MBCAS sees on this host");
  inspect->require_subcommand(1);
  inspect->footer("Example: mbcas inspect machine");
  CLI::App* cgroups = inspect->add_subcommand(
      "cgroups", "Pods and containers in the cgroup tree: layout, usage, throttling, need");
  const auto flags = std::make_shared<InspectFlags>();
  addFlags(*cgroups, *flags);
  cgroups->footer(
      "USE is the median of 30 s. BURST is the limit at which throttling stops (0: never\n"
      "throttled). BLOCKED is the time for which quotas held threads back. CPU, MEM and IO are "
      "the\n"
      "share of time in which something waited (pressure), and OTHER is the part of CPU that no\n"
      "quota explains.\n\n"
      "Example: mbcas inspect cgroups --cgroup-root /host/sys/fs/cgroup --watch");
  cgroups->callback([flags, &exit_code] { exit_code = inspectCgroups(*flags); });

  CLI::App* machine = inspect->add_subcommand(
      "machine",
      "Every consumer of CPU on this host: the cgroups that share it, and their weights");
  const auto machine_flags = std::make_shared<InspectFlags>();
  addFlags(*machine, *machine_flags);
  machine->footer(
      "The table has the pods, the cgroups that lead to them, and all other cgroups at those\n"
      "levels. WEIGHT is the kernel's weight among siblings (1024: a task of nice 0, or "
      "cpu.weight\n"
      "100). CAP is the quota of that level, and USE is the CPU time over the interval. \"tasks\"\n"
      "are those directly in a cgroup. Each of them competes for itself, and their USE is what "
      "the\n"
      "others do not explain. The USE of pods, others and tasks adds up to that of the machine.\n"
      "CPUS appears where a cgroup may run on fewer CPUs than the machine has.\n\n"
      "Example: mbcas inspect machine --interval 5");
  machine->callback([machine_flags, &exit_code] {
    const Result<void> shown = inspectMachine(*machine_flags);
    if (!shown) complain("mbcas inspect", shown.error().message());
    exit_code = shown ? kDone : kFailed;
  });
}

}  // namespace mbcas::app
