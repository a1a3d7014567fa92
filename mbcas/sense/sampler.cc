#include "mbcas/sense/sampler.h"

#include <algorithm>

#include "mbcas/sense/reading.h"

namespace mbcas::sense {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// Usage below this is standing still. The smallest quota that the kernel accepts is 1 ms, and a
// container has to use it up before it is throttled.
constexpr Nanos kQuiet = microseconds(500);
constexpr int kDormantTicks = 5;  // idle for so long: read only when the pod's usage demands it
constexpr Nanos kDetailsInterval = seconds(10);
constexpr Nanos kDetailsIntervalQuiet = seconds(60);
constexpr int kGoodForIntervals = 3;
constexpr int kGapIntervals =
    10;  // a difference over more intervals says nothing about the present
constexpr Nanos kClockJump = seconds(2);

// Ends the interval that began with the last reading.
void stamp(CpuSignals& cpu, MonotonicTime at, Nanos tick_interval) {
  cpu.interval = cpu.at == MonotonicTime{} ? Nanos(0) : at - cpu.at;
  cpu.at = at;
  cpu.good_until = at + tick_interval * kGoodForIntervals;
  cpu.usage = Nanos(0);
  cpu.throttling = {};
  cpu.blocked = Nanos(0);
  cpu.blocked_source = BlockedSource::kNone;
}

// cpu.stat may have been read long ago; no more periods than these can lie in the interval.
kernel::Throttling within(const CpuSignals& cpu, kernel::Throttling throttling) {
  const Nanos period = cpu.limit ? cpu.limit->period : kernel::CpuLimit{}.period;
  const auto most = static_cast<std::uint64_t>(cpu.interval / period) + 1;
  throttling.periods = std::max(std::min(throttling.periods, most), throttling.throttled_periods);
  return throttling;
}

}  // namespace

Sampler::Sampler(std::unique_ptr<kernel::PodSource> source, const Clock& clock, Options options)
    : source_(std::move(source)), clock_(clock), options_(options) {}

void Sampler::logReads(std::vector<int>* log) {
  log_ = log;
  for (Pod& pod : pods_) {
    pod.cgroup->logReads(log);
    for (Container& container : pod.containers) container.cgroup->logReads(log);
  }
}

void Sampler::limitChanged(std::string_view uid) {
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (signals_[i].uid == uid) pods_[i].details_wanted = true;
  }
}

template <class T>
bool Sampler::worked(const kernel::ReadResult<T>& result) {
  return countReading(result, counters_, met_gone_);
}

std::span<const PodSignals> Sampler::tick() {
  const MonotonicTime now = clock_.monotonic();
  const WallTime wall = clock_.wall();
  // Too soon after the last tick to measure.
  if (counters_.ticks > 0 && now - last_tick_ < options_.interval / 5) return signals_;
  if (!comparable(now, wall)) {
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      const auto forget = [](Meter& meter, CpuSignals& cpu) {
        meter.forget();
        cpu.at = {};
      };
      forget(pods_[i].meter, signals_[i].cpu);
      pods_[i].cpu_pressure.forget();
      pods_[i].memory_pressure.forget();
      pods_[i].io_pressure.forget();
      pods_[i].details_wanted = true;
      for (std::size_t c = 0; c < pods_[i].containers.size(); ++c) {
        forget(pods_[i].containers[c].meter, signals_[i].containers[c].cpu);
      }
    }
  }
  ++counters_.ticks;
  last_tick_ = now;
  if (std::exchange(met_gone_, false)) source_->distrust();
  if (structureChanged()) synchronise();
  for (std::size_t i = 0; i < pods_.size(); ++i) samplePod(pods_[i], signals_[i]);
  return signals_;
}

// Whether counters read now can be compared with those of the last tick. Monotonic time stands
// still while a machine sleeps and wall time does not.
bool Sampler::comparable(MonotonicTime now, WallTime wall) {
  const Nanos offset = wall.time_since_epoch() - now.time_since_epoch();
  const Nanos jump = offset - std::exchange(wall_offset_, offset);
  if (counters_.ticks == 0) return true;
  bool good = true;
  if (jump > kClockJump || jump < -kClockJump) {
    ++counters_.suspensions;
    good = false;
  }
  const Nanos since = now - last_tick_;
  if (since > options_.interval * 3 / 2) {
    ++counters_.late_ticks;
    counters_.missed_ticks += static_cast<std::uint64_t>(since / options_.interval) - 1;
  }
  if (since > options_.interval * kGapIntervals) {
    ++counters_.gaps;
    good = false;
  }
  return good;
}

bool Sampler::structureChanged() {
  outdated_ |= source_->refresh(clock_.monotonic());
  return outdated_;
}

// Adopts the pods of the source. A cgroup that is still the same keeps its counters.
void Sampler::synchronise() {
  outdated_ = false;
  // No reader if the cgroup is gone already or is not in every hierarchy yet; the next tick tries
  // again.
  const auto open = [&](const std::string& path, std::uint64_t inode) {
    Result<std::unique_ptr<kernel::CgroupReader>> cgroup = source_->open(path);
    std::unique_ptr<kernel::CgroupReader> opened;
    if (cgroup && (*cgroup)->id() == inode) {
      opened = *std::move(cgroup);
      opened->logReads(log_);
    }
    outdated_ |= !opened;
    return opened;
  };
  std::vector<Pod> pods;
  std::vector<PodSignals> signals;
  pods.reserve(source_->pods().size());
  signals.reserve(source_->pods().size());
  std::size_t old = 0;  // both sides are ordered by path
  for (const auto& [path, found] : source_->pods()) {
    while (old < pods_.size() && signals_[old].path < path) ++old;
    const bool known = old < pods_.size() && signals_[old].cgroup == found.inode;
    if (known) {
      pods.push_back(std::move(pods_[old]));
      signals.push_back(std::move(signals_[old]));
      pods_[old++].inode = 0;  // taken
    } else {
      std::unique_ptr<kernel::CgroupReader> cgroup = open(path, found.inode);
      if (!cgroup) continue;
      ++counters_.pods_started;
      pods.push_back({.inode = found.inode, .cgroup = std::move(cgroup)});
      signals.push_back({.cgroup = found.inode, .uid = found.uid, .path = path, .qos = found.qos});
    }
    Pod& pod = pods.back();
    PodSignals& pod_signals = signals.back();
    std::vector<Container> containers;
    std::vector<ContainerSignals> container_signals;
    for (const kernel::ContainerCgroup& member : found.containers) {
      const auto same = std::ranges::find(pod.containers, member.inode, &Container::inode);
      if (same != pod.containers.end()) {
        const auto index = static_cast<std::size_t>(same - pod.containers.begin());
        containers.push_back(std::move(*same));
        container_signals.push_back(std::move(pod_signals.containers[index]));
        same->inode = 0;
        continue;
      }
      std::unique_ptr<kernel::CgroupReader> cgroup = open(member.path, member.inode);
      if (!cgroup) continue;
      ++counters_.containers_started;
      containers.push_back({.inode = member.inode, .cgroup = std::move(cgroup)});
      container_signals.push_back({.cgroup = member.inode, .id = member.id, .path = member.path});
    }
    counters_.containers_ended += static_cast<std::uint64_t>(
        std::ranges::count_if(pod.containers, [](const Container& c) { return c.inode != 0; }));
    pod.containers = std::move(containers);
    pod_signals.containers = std::move(container_signals);
    pod.unexplained = kQuiet;  // after any change, read all of it once
    pod.details_wanted = true;
  }
  for (const Pod& pod : pods_) {
    if (pod.inode == 0) continue;
    ++counters_.pods_ended;
    counters_.containers_ended += pod.containers.size();
  }
  pods_ = std::move(pods);
  signals_ = std::move(signals);
}

bool Sampler::readPodUsage(Pod& pod, CpuSignals& cpu) {
  const MonotonicTime at = clock_.monotonic();
  if (pod.cgroup->usageIsInStat()) {
    const auto stat = pod.cgroup->stat();
    if (!worked(stat) || !stat->usage) return false;
    stamp(cpu, at, options_.interval);
    cpu.usage = pod.meter.usage(*stat->usage);
    if (stat->throttling) cpu.throttling = pod.meter.throttling(*stat->throttling);
    return true;
  }
  const auto usage = pod.cgroup->usage();
  if (!worked(usage)) return false;
  stamp(cpu, at, options_.interval);
  cpu.usage = pod.meter.usage(*usage);
  return true;
}

void Sampler::samplePod(Pod& pod, PodSignals& signals) {
  const std::uint64_t resets = pod.meter.resets();
  if (!readPodUsage(pod, signals.cpu)) return;
  counters_.resets += pod.meter.resets() - resets;
  const MonotonicTime at = signals.cpu.at;
  pod.unexplained += signals.cpu.usage;
  const bool active = !signals.cpu.known() || pod.unexplained >= kQuiet || pod.throttled ||
                      options_.read_everything;
  const bool details = pod.details_wanted || options_.read_everything ||
                       at - pod.details_at >= (active ? kDetailsInterval : kDetailsIntervalQuiet);

  if (!active && !details) {  // no task in it has run
    for (ContainerSignals& container : signals.containers) {
      if (container.cpu.at != MonotonicTime{}) stamp(container.cpu, at, options_.interval);
    }
    return;
  }

  const auto expected = [&](const Container& container) {
    return details || !signals.cpu.known() || (active && container.idle_ticks < kDormantTicks);
  };
  std::size_t left = 0;
  for (std::size_t i = 0; i < pod.containers.size(); ++i) {
    if (expected(pod.containers[i])) {
      sampleContainer(pod, pod.containers[i], signals, signals.containers[i], details);
    } else {
      ++left;
    }
  }
  // The containers that were read do not explain the pod's usage: another one woke up.
  const bool woke = left > 0 && active && pod.unexplained >= kQuiet;
  for (std::size_t i = 0; left > 0 && i < pod.containers.size(); ++i) {
    CpuSignals& cpu = signals.containers[i].cpu;
    if (cpu.at == at || expected(pod.containers[i])) continue;
    if (woke) {
      sampleContainer(pod, pod.containers[i], signals, signals.containers[i], details);
    } else if (cpu.at != MonotonicTime{}) {
      stamp(cpu, at, options_.interval);
    }
  }
  if (left == 0 || woke) pod.unexplained = Nanos(0);
  addPodLevel(pod, signals, details);
  if (details) {
    pod.details_at = at;
    pod.details_wanted = false;
  }
}

void Sampler::sampleContainer(Pod& pod, Container& container, const PodSignals& pod_signals,
                              ContainerSignals& signals, bool details) {
  CpuSignals& cpu = signals.cpu;
  Meter& meter = container.meter;
  const std::uint64_t resets = meter.resets();
  const bool v2 = container.cgroup->usageIsInStat();
  const bool first = !meter.started();
  const bool always = first || details || pod.throttled || !container.has_local;
  if (v2) {
    const auto stat = container.cgroup->stat();
    if (!worked(stat) || !stat->usage) return;
    stamp(cpu, pod_signals.cpu.at, options_.interval);
    cpu.usage = meter.usage(*stat->usage);
    if (stat->throttling) cpu.throttling = meter.throttling(*stat->throttling);
  } else {
    const auto usage = container.cgroup->usage();
    if (!worked(usage)) return;
    stamp(cpu, pod_signals.cpu.at, options_.interval);
    cpu.usage = meter.usage(*usage);
  }
  pod.unexplained -= cpu.usage;
  container.unexamined += cpu.usage;
  container.idle_ticks = cpu.usage < kQuiet ? container.idle_ticks + 1 : 0;

  // v2 has reported whether any period was throttled, at this level or the pod's. On v1 only the
  // use can show it.
  const bool suspect =
      v2 ? cpu.throttling.throttled_periods > 0 || pod_signals.cpu.throttling.throttled_periods > 0
         : container.unexamined >= kQuiet;
  if (container.has_local && (suspect || always)) {
    container.unexamined = Nanos(0);
    const auto local = container.cgroup->throttledLocal();
    if (worked(local)) {
      cpu.blocked = meter.local(*local);
      if (cpu.blocked > Nanos(0)) cpu.blocked_source = BlockedSource::kLocal;
    } else if (local.error().absent()) {
      container.has_local = false;
    }
  }
  if (!v2 && (always || cpu.blocked > Nanos(0) || !container.has_local)) {
    const auto stat = container.cgroup->stat();
    if (worked(stat) && stat->throttling) {
      cpu.throttling = within(cpu, meter.throttling(*stat->throttling));
    }
  }
  readLimit(*container.cgroup, cpu, details);
  if (details) {
    const auto cpus = container.cgroup->cpus();
    if (worked(cpus)) signals.cpus = *cpus;
  }
  counters_.resets += meter.resets() - resets;
}

// Limits are read when they may have changed, or when they act.
void Sampler::readLimit(kernel::CgroupReader& cgroup, CpuSignals& cpu, bool details) {
  const auto known = cpu.limit ? cpu.limit->millicores() : std::nullopt;
  const bool exceeded = known && cpu.usageRate() * 20 > *known * 21;
  if (!details && !exceeded && !cpu.throttled()) return;
  const auto limit = cgroup.limit();
  if (!worked(limit)) return;
  if (cpu.limit) {
    if (cpu.limit->quota && limit->quota && *cpu.limit != *limit) ++counters_.limits_changed;
  }
  cpu.limit = *limit;
}

// What the pod's own cgroup adds: its throttling and limit, blocked work where containers cannot
// tell, pressure.
void Sampler::addPodLevel(Pod& pod, PodSignals& signals, bool details) {
  CpuSignals& cpu = signals.cpu;
  bool throttled = false;
  bool blind = false;
  Nanos usage{0};
  for (std::size_t i = 0; i < pod.containers.size(); ++i) {
    throttled |= signals.containers[i].cpu.throttled();
    blind |= !pod.containers[i].has_local && signals.containers[i].cpu.usage > Nanos(0);
    usage += signals.containers[i].cpu.usage;
  }
  if (!pod.cgroup->usageIsInStat() && (throttled || blind || details || pod.throttled)) {
    const std::uint64_t resets = pod.meter.resets();
    const auto stat = pod.cgroup->stat();
    if (worked(stat) && stat->throttling) {
      cpu.throttling = within(cpu, pod.meter.throttling(*stat->throttling));
    }
    counters_.resets += pod.meter.resets() - resets;
  }
  for (std::size_t i = 0; i < pod.containers.size(); ++i) {
    ContainerSignals& container = signals.containers[i];
    if (!pod.containers[i].has_local && container.cpu.at == cpu.at) {
      estimateBlocked(pod.containers[i], cpu, usage, container.cpu);
    }
    cpu.blocked += container.cpu.blocked;
    if (container.cpu.blocked_source != BlockedSource::kNone) {
      cpu.blocked_source = container.cpu.blocked_source;
    }
    if (container.cpu.throttled()) {
      const auto threads = pod.containers[i].cgroup->threads();
      if (worked(threads)) container.threads = *threads;
    }
  }
  pod.throttled = throttled || cpu.throttled();
  readLimit(*pod.cgroup, cpu, details);
  if (details) readPlace(pod, signals);
  readPressure(pod, signals, details);
}

// Reads what decides the pod's share of the machine among its siblings.
void Sampler::readPlace(Pod& pod, PodSignals& signals) {
  const auto weight = pod.cgroup->weight();
  if (worked(weight)) signals.weight = *weight;
  const auto threads = pod.cgroup->threads();
  if (worked(threads)) signals.threads = *threads;
  kernel::CpuSet cpus;
  for (std::size_t i = 0; i < pod.containers.size(); ++i) {
    if (pod.containers[i].idle_ticks >= kDormantTicks) continue;
    if (signals.containers[i].cpus) cpus |= *signals.containers[i].cpus;
  }
  if (!cpus.empty()) {
    signals.cpus = cpus;
    return;
  }
  const auto own = pod.cgroup->cpus();
  if (worked(own) && !own->empty()) signals.cpus = *own;
}

// Without cpu.stat.local: throttled time appears at the level whose quota ran out first, which is
// arbitrary where both are equal, so the larger counts; a pod's is its containers' by their use.
void Sampler::estimateBlocked(Container& container, const CpuSignals& pod, Nanos pod_usage,
                              CpuSignals& cpu) {
  if (cpu.throttling.throttled_periods == 0 && pod.throttling.throttled_periods == 0) return;
  const double share = pod_usage > Nanos(0) ? static_cast<double>(cpu.usage.count()) /
                                                  static_cast<double>(pod_usage.count())
                                            : 0;
  const Nanos from_pod(
      static_cast<std::int64_t>(static_cast<double>(pod.throttling.time.count()) * share));
  cpu.blocked = std::max(cpu.throttling.time, from_pod);
  if (cpu.blocked > Nanos(0)) cpu.blocked_source = BlockedSource::kStat;

  const auto pressure = container.cgroup->pressure(kernel::Resource::kCpu);
  if (!worked(pressure)) return;
  const Nanos waited = container.meter.pressure(pressure->some);
  const MonotonicTime before = std::exchange(container.pressure_at, cpu.at);
  // Only if the reading covers this interval.
  if (before + cpu.interval == cpu.at && waited > cpu.blocked) {
    cpu.blocked = waited;
    cpu.blocked_source = BlockedSource::kPressure;
  }
}

void Sampler::readPressure(Pod& pod, PodSignals& signals, bool details) {
  pod.blocked_since_pressure += signals.cpu.blocked;
  const auto read = [&](kernel::Resource resource, PressureMeter& meter,
                        std::optional<PressureSignals>& out) {
    const auto pressure = pod.cgroup->pressure(resource);
    if (!worked(pressure)) return false;
    const auto advanced = meter.advance(signals.cpu.at, *pressure);
    if (advanced) out = advanced;
    return advanced.has_value();
  };
  if ((details || pod.throttled) &&
      read(kernel::Resource::kCpu, pod.cpu_pressure, signals.cpu_pressure)) {
    signals.contention = contention(
        *signals.cpu_pressure,
        rate(std::exchange(pod.blocked_since_pressure, Nanos(0)), signals.cpu_pressure->interval));
  }
  if (details) {
    read(kernel::Resource::kMemory, pod.memory_pressure, signals.memory_pressure);
    read(kernel::Resource::kIo, pod.io_pressure, signals.io_pressure);
  }
}

}  // namespace mbcas::sense
