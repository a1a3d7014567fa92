#include "mbcas/host/plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "mbcas/control/weight.h"
#include "mbcas/host/limit_file.h"

namespace mbcas::host {
namespace {

constexpr Nanos kFirstBackOff = std::chrono::seconds(1);
constexpr Nanos kMostBackOff = std::chrono::minutes(5);

std::vector<Selection> selectionsOf(const HostConfig& config) {
  std::vector<Selection> selections;
  selections.reserve(config.pods.size());
  for (const PodConfig& pod : config.pods) selections.push_back({pod.name, pod.cgroup});
  return selections;
}

}  // namespace

Plane::Plane(const kernel::Mounts& mounts, const HostConfig& config, const Settings& settings,
             const Clock& clock, Ledger& ledger)
    : mounts_(mounts),
      config_(config),
      settings_(settings),
      clock_(clock),
      ledger_(ledger),
      source_(new HostSource(mounts, selectionsOf(config))),
      sampler_(std::unique_ptr<kernel::PodSource>(source_), clock,
               {.interval = settings.sample_interval}),
      machine_(*source_, clock,
               {.interval = settings.sample_interval, .cpus = settings.demand.cpus}),
      loop_(settings.demand, settings.control),
      actuator_(settings.control) {}

std::optional<node::Participant> Plane::adopt(const sense::PodSignals& signals, std::size_t index,
                                              PodView& view) {
  const PodConfig& config = config_.pods[source_->selectionOf(signals.path)];
  const sense::CpuSignals& cpu = signals.containers.front().cpu;
  if (!cpu.limit) {
    view.left_alone = "its limit cannot be read yet";
    return std::nullopt;
  }
  view.limit = cpu.limit->millicores();
  Known& known = known_[signals.path];
  if (known.cgroup != signals.cgroup) {
    known = {.cgroup = signals.cgroup,
             .original = *cpu.limit,
             .declared = config.limit.value_or(view.limit.value_or(Millicores(0)))};
  } else if (view.limit && known.written && *view.limit != *known.written) {
    view_.notes.push_back(fmt::format(
        "{}: another writer set the limit to {}m, which is the declared limit from now on",
        view.name, view.limit->count()));
    known.declared = *view.limit;
    known.original = *cpu.limit;
    known.written.reset();
    // What is put back in the end is what its owner last wanted.
    if (!settings_.dry_run) {
      if (auto noted = ledger_.record({view.path, known.cgroup, known.original}); !noted) {
        view_.notes.push_back(noted.error().message());
      }
    }
  }
  view.declared = known.declared;
  view.failure = known.failure;
  view.request = std::min(config.request, known.declared);
  view.weight = control::weightOf(config.request, config.priority);
  view.priority = config.priority;
  view.bounded_by = fmt::format(
      "floor: {}; ceiling: {}",
      config.min ? "min of its file" : "the minimum for every pod, or its request",
      config.max                              ? "max of its file"
      : control::isClassic(settings_.control) ? "the machine less its reserve, or what it declares"
                                              : "the machine, or what it declares");
  if (known.declared == Millicores(0)) {
    view.left_alone = "it has no limit and none is declared for it";
    return std::nullopt;
  }
  if (!view.limit && !settings_.dry_run) {  // unlimited so far: it begins at what is declared
    write(view, known, known.declared);
    view.begins = view.changed;
    return std::nullopt;
  }
  const Millicores limit = view.limit.value_or(known.declared);
  node::Participant pod{.id = signals.path,
                        .signals = index,
                        .weight = view.weight,
                        .factor = control::priorityFactor(config.priority),
                        .ceiling = config.max};
  pod.containers.push_back({.name = view.name,
                            .signals = 0,
                            .limit = limit,
                            .declared = known.declared,
                            .request = view.request});
  if (config.min) pod.floor = std::max(*config.min, view.request);
  return pod;
}

void Plane::write(PodView& view, Known& known, Millicores limit) {
  if (settings_.dry_run || view_.at < known.retry) return;
  Result<void> done = ledger_.record({view.path, known.cgroup, known.original});
  if (done) {
    done = writeLimit(mounts_, view.path, known.cgroup, limitOf(limit, known.original.period));
  }
  if (!done) {
    known.failure = view.failure = done.error().message();
    known.back_off = std::clamp(known.back_off * 2, kFirstBackOff, kMostBackOff);
    known.retry = view_.at + known.back_off;
    return;
  }
  known.failure.clear();
  view.failure.clear();
  known.back_off = Nanos(0);
  known.written = limit;
  view.changed = true;
  sampler_.limitChanged(view.name);
}

const View& Plane::tick() {
  const auto signals = sampler_.tick();
  view_.at = clock_.monotonic();
  const sense::MachineSignals& machine = machine_.tick(signals);
  loop_.observe({.now = view_.at,
                 .pods = signals,
                 .machine_use = machine.known() ? std::optional(machine.usage) : std::nullopt,
                 .machine = &machine});
  view_.capacity = Millicores(1000) * static_cast<std::int64_t>(settings_.demand.cpus);
  view_.notes.clear();
  view_.pods.clear();
  std::vector<node::Participant> participants;
  std::vector<std::size_t> managed;  // indices into view_.pods, parallel to the participants
  for (std::size_t i = 0; i < signals.size(); ++i) {
    if (signals[i].containers.empty()) continue;  // gone between two looks
    const sense::CpuSignals& cpu = signals[i].containers.front().cpu;
    PodView& view = view_.pods.emplace_back(PodView{.name = signals[i].uid,
                                                    .path = signals[i].path,
                                                    .usage = cpu.usageRate(),
                                                    .blocked = cpu.blockedRate(),
                                                    .need = loop_.needs()[i].total});
    view.contention = signals[i].contention;
    if (signals[i].cpu_pressure) view.pressure = signals[i].cpu_pressure->some;
    if (auto pod = adopt(signals[i], i, view)) {
      participants.push_back(*std::move(pod));
      managed.push_back(view_.pods.size() - 1);
    }
  }
  view_.node = loop_.decide({.capacity = view_.capacity}, participants);
  view_.input = &loop_.input();
  view_.unmanaged_use = loop_.input().unmanaged_use;
  const std::vector<control::Move> moves = actuator_.next(loop_.input(), view_.node);
  for (std::size_t i = 0; i < managed.size(); ++i) {
    PodView& view = view_.pods[managed[i]];
    view.decision = view_.node.pods[i];
    view.move = moves[i];
    if (view.move.moves) write(view, known_[view.path], view.move.limit);
  }
  std::erase_if(known_, [&](const auto& entry) { return !source_->pods().contains(entry.first); });
  for (const std::string& path : source_->nested()) {
    if (std::ranges::find(told_nested_, path) != told_nested_.end()) continue;
    told_nested_.push_back(path);
    view_.notes.push_back(path + " lies within another managed cgroup, and is left to it");
  }
  return view_;
}

}  // namespace mbcas::host
