// mbcas inspect machine: every consumer of CPU on this host, as a tree.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "apps/mbcas/flags.h"
#include "apps/mbcas/inspect.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/sense/machine.h"
#include "mbcas/sense/sampler.h"
#include "mbcas/view/text.h"

namespace mbcas::app {
namespace {

using sense::CgroupSignals;
using sense::MachineSignals;

std::string milli(Millicores amount) {
  return fmt::format("{}m", amount.count());
}

std::size_t depthOf(const MachineSignals& machine, const CgroupSignals& signals) {
  std::size_t depth = 0;
  for (auto parent = signals.parent; parent; parent = machine.tree[*parent].parent) ++depth;
  return depth;
}

std::string toTable(const MachineSignals& machine, bool colours) {
  using Align = view::Table::Align;
  view::Table table({{"CGROUP", Align::kLeft},
                     {"KIND", Align::kLeft},
                     {"WEIGHT"},
                     {"CAP"},
                     {"USE"},
                     {"THREADS"},
                     {"CPUS", Align::kLeft}});
  for (const CgroupSignals& signals : machine.tree) {
    const bool tasks = signals.kind == CgroupSignals::Kind::kTasks;
    const bool inner = signals.kind == CgroupSignals::Kind::kInner;
    const bool good = machine.at <= signals.good_until;
    const std::string label = tasks ? "(tasks)" : signals.path.substr(signals.path.rfind('/') + 1);
    table.row({std::string(2 * depthOf(machine, signals), ' ') + label,
               std::string(name(signals.kind)), fmt::format("{:.0f}", signals.weight),
               signals.cap ? milli(*signals.cap) : "none", good ? milli(signals.usage) : "?",
               signals.threads ? fmt::format("{}", *signals.threads) : "?",
               signals.cpus ? signals.cpus->toString() : ""},
              inner ? view::Colour::kDim : view::Colour::kNone);
  }
  return table.toString(colours);
}

std::string toJson(const MachineSignals& machine, const sense::MachineCounters& counters) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("intervalSeconds").value(std::chrono::duration<double>(machine.interval).count());
  json.key("cpus").value(machine.cpus);
  json.key("usageMillicores").value(machine.usage.count());
  json.key("idleMillicores").value(machine.idle.count());
  json.key("interruptsMillicores").value(machine.interrupts.count());
  json.key("stealMillicores").value(machine.steal.count());
  json.key("tree").beginArray();
  for (const CgroupSignals& signals : machine.tree) {
    json.beginObject();
    json.key("path").value(signals.path);
    json.key("kind").value(name(signals.kind));
    if (!signals.uid.empty()) json.key("uid").value(signals.uid);
    if (signals.parent) json.key("parent").value(std::uint64_t{*signals.parent});
    json.key("weight").value(signals.weight);
    if (signals.cap) json.key("capMillicores").value(signals.cap->count());
    json.key("usageMillicores").value(signals.usage.count());
    json.key("good").value(machine.at <= signals.good_until);
    if (signals.threads) json.key("threads").value(*signals.threads);
    if (signals.cpus) json.key("cpus").value(signals.cpus->toString());
    json.endObject();
  }
  json.endArray();
  json.key("reads").value(counters.reads);
  json.key("leftOut").value(counters.left_out);
  json.key("unreadable").value(counters.unreadable);
  json.key("failures").value(counters.failures);
  if (!counters.last_failure.empty()) json.key("lastFailure").value(counters.last_failure);
  json.endObject();
  return out;
}

}  // namespace

Result<void> inspectMachine(const InspectFlags& flags) {
  raiseDescriptorLimit();
  Result<kernel::Mounts> mounts = kernel::detectMounts(flags.root);
  if (!mounts) return failure(std::move(mounts).error());
  const SystemClock clock;
  const auto interval =
      std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(flags.interval));
  sense::Sampler sampler(std::make_unique<kernel::PodTree>(*mounts), clock, {.interval = interval});
  sense::MachineSampler sampling(
      sampler.source(), clock,
      {.interval = interval, .cpus = std::max(1U, std::thread::hardware_concurrency())});
  sampling.tick(sampler.tick());
  showEveryInterval(flags, [&] {
    const MachineSignals& machine = sampling.tick(sampler.tick());
    const sense::MachineCounters& counters = sampling.counters();
    if (isDocument(flags.output)) {
      return printNextDocument(toJson(machine, counters), flags.output);
    }
    if (flags.output == "name") {
      for (const CgroupSignals& signals : machine.tree) say(signals.path);
      return;
    }
    say(fmt::format("{}, {} CPUs: {} used, {} idle, {} interrupts, {} stolen",
                    kernel::describe(*mounts), machine.cpus, milli(machine.usage),
                    milli(machine.idle), milli(machine.interrupts), milli(machine.steal)));
    fmt::print("{}", toTable(machine, wantsColours()));
    if (counters.left_out > 0) {
      say(fmt::format("{} more cgroups are part of (tasks)", counters.left_out));
    }
    if (counters.failures + counters.unreadable > 0) {
      say(fmt::format("{} readings failed; the last: {}", counters.failures + counters.unreadable,
                      counters.last_failure));
    }
  });
  return {};
}

}  // namespace mbcas::app
