#include "mbcas/sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "mbcas/control/weight.h"
#include "mbcas/sim/files.h"

namespace mbcas::sim {
namespace {

constexpr double kWindow = 30;       // seconds
constexpr double kReserve = 0.10;    // of the CPUs, which managed pods are not to use
constexpr double kThrottled = 0.02;  // 20 ms/s: worth a complaint
constexpr Millicores kLeastFloor{100};
constexpr double kChangesPer = 300;  // seconds

double seconds(Nanos time) {
  return static_cast<double>(time.count()) * 1e-9;
}
std::optional<Millicores> sum(std::span<const std::optional<Millicores>> limits) {
  Millicores total;
  for (const auto& limit : limits) {
    if (!limit) return std::nullopt;  // as the kubelet does: then the pod has none
    total += *limit;
  }
  return total;
}

int threadsOf(const PodSpec& spec) {
  int threads = 0;
  for (const ContainerSpec& container : spec.containers) threads += container.workload.threads;
  return threads;
}

// Of the managed pods, in order.
std::vector<Ideal::Pod> buyersOf(const Scenario& scenario) {
  std::vector<Ideal::Pod> buyers;
  for (const PodSpec& spec : scenario.pods) {
    if (!spec.managed) continue;
    const Millicores floor = spec.floor.value_or(std::max(spec.request(), kLeastFloor));
    buyers.push_back({spec.name, control::weightOf(spec.request(), spec.priority), floor.cores(),
                      std::min<double>(scenario.cpus, threadsOf(spec))});
  }
  return buyers;
}

Random randomOf(const Scenario& scenario, std::size_t pod, std::size_t container) {
  return Random(scenario.seed).fork(pod + 1).fork(container + 1);
}

}  // namespace

Millicores PodSpec::request() const {
  Millicores total;
  for (const ContainerSpec& container : containers) total += container.request;
  return total;
}

Simulation::Simulation(const Scenario& scenario, Policy& policy)
    : scenario_(scenario),
      policy_(policy),
      node_({.cpus = scenario.cpus, .seed = scenario.seed}),
      sampler_(std::make_unique<ModelFiles>(node_,
                                            ModelFiles::Options{.stat_local = scenario.stat_local}),
               clock_, {.interval = scenario.interval}),
      random_(Random(scenario.seed).fork(0)),
      pods_(scenario.pods.size()),
      grown_(scenario.pods.size()),
      moments_(scenario.pods.size()),
      ideal_(buyersOf(scenario)) {
  for (std::size_t i = 0; i < scenario.pods.size(); ++i) {
    by_name_[scenario.pods[i].name] = i;
    if (scenario.pods[i].managed) buyers_.push_back(i);
  }
  wants_.resize(buyers_.size());
}

std::span<const std::optional<Millicores>> Simulation::limits(std::size_t pod) const {
  return pods_[pod].limits;
}

void Simulation::putInForce(Pod& pod, const Limits& limits) {
  pod.limits = limits;
  node_.setLimit(pod.index, limits, sum(limits));
}

void Simulation::appear(std::size_t i) {
  const PodSpec& spec = scenario_.pods[i];
  Pod& pod = pods_[i];
  // As the kubelet sets cpu.shares: by request, 2 at least.
  const auto weight = [](Millicores request) {
    return std::max(2.0, static_cast<double>(request.count()) * 1.024);
  };
  pod.index = node_.addPod(spec.name, weight(spec.request()));
  Limits limits;
  for (std::size_t c = 0; c < spec.containers.size(); ++c) {
    const ContainerSpec& container = spec.containers[c];
    WorkloadSpec workload = container.workload;
    workload.phase += node_.now();
    node_.addContainer(pod.index, {container.name, weight(container.request)},
                       makeWorkload(workload, randomOf(scenario_, i, c)));
    limits.push_back(policy_.limits() || !spec.managed ? container.limit : std::nullopt);
  }
  putInForce(pod, limits);
  pod.lowest = pod.highest = sum(limits).value_or(Millicores(0)).cores();
}

// Everything that happens at a time of its own until then, in order.
void Simulation::prepare(Nanos until) {
  while (true) {
    // The earliest; of several at once, the first pod's.
    std::optional<Nanos> next;
    std::size_t who = 0;
    const auto consider = [&](Nanos at, std::size_t i) {
      if (at <= until && at >= node_.now() && (!next || at < *next)) {
        next = at;
        who = i;
      }
    };
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      const PodSpec& spec = scenario_.pods[i];
      if (pods_[i].index < 0) {
        consider(std::max(spec.start, node_.now()), i);
        continue;
      }
      if (!node_.present(pods_[i].index)) continue;
      if (spec.end) consider(*spec.end, i);
      if (pods_[i].due) consider(*pods_[i].due, i);
      if (pods_[i].restarts < spec.restarts.size()) consider(spec.restarts[pods_[i].restarts], i);
    }
    if (!next) return;
    node_.advanceTo(*next);
    Pod& pod = pods_[who];
    const PodSpec& spec = scenario_.pods[who];
    if (pod.index < 0) {
      appear(who);
    } else if (spec.end && *spec.end <= *next) {
      node_.removePod(pod.index);
    } else if (pod.due && *pod.due <= *next) {
      putInForce(pod, pod.wanted);
      pod.due.reset();
      if (measuring()) ++pod.changes;
      const double limit = sum(pod.limits).value_or(Millicores(0)).cores();
      pod.lowest = std::min(pod.lowest, limit);
      pod.highest = std::max(pod.highest, limit);
      sampler_.limitChanged(spec.name);
    } else {
      ++pod.restarts;
      pod.lost += seconds(node_.counters(pod.index, 0).local);
      node_.restartContainer(pod.index, 0);
    }
  }
}

bool Simulation::step() {
  if (node_.now() >= scenario_.duration) return false;
  const Nanos until = std::min(node_.now() + scenario_.interval, scenario_.duration);
  const Nanos from = node_.now();
  const bool settled = measuring();
  prepare(until);
  node_.advanceTo(until);
  clock_.advance(until - from);
  if (!settled && measuring()) node_.forgetLatencies();
  measure(seconds(until - from));
  sampler_.tick();
  act(look());
  return node_.now() < scenario_.duration;
}

NodeView Simulation::look() {
  NodeView view;
  view.now = clock_.monotonic();
  view.cpus = scenario_.cpus;
  view.signals = sampler_.signals();
  viewed_.clear();
  for (const sense::PodSignals& signals : view.signals) {
    const std::size_t i = by_name_.at(signals.uid);
    const PodSpec& spec = scenario_.pods[i];
    const bool limited = std::ranges::any_of(
        spec.containers, [](const ContainerSpec& c) { return c.limit.has_value(); });
    if (!spec.managed || !limited) {
      view.unmanaged_use += signals.cpu.usageRate();
      view.unmanaged_requests += spec.request();
      continue;
    }
    const bool ready = spec.ready_after && node_.now() >= spec.start + *spec.ready_after;
    viewed_.push_back(i);
    view.pods.push_back({&spec, &signals, pods_[i].limits, ready});
  }
  return view;
}

void Simulation::act(const NodeView& view) {
  for (Move& move : policy_.decide(view)) {
    Pod& pod = pods_[viewed_[move.pod]];
    pod.wanted = std::move(move.containers);
    if (pod.due) continue;  // under way already: what is wanted last arrives
    const double delay = policy_.writesCgroups() ? 0
                                                 : random_.uniform(seconds(scenario_.delay_min),
                                                                   seconds(scenario_.delay_max));
    pod.due = node_.now() + Nanos(std::llround(delay * 1e9));
  }
}

// By the model's own counters, which no policy sees.
void Simulation::measure(double interval) {
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    Pod& pod = pods_[i];
    moments_[i] = {};
    grown_[i] = {};
    if (pod.index < 0 || !node_.present(pod.index)) {
      pod.streak = 0;
      continue;
    }
    moments_[i].present = true;
    Totals now;
    now.throttled = pod.lost;
    for (int c = 0; c < node_.containers(pod.index); ++c) {
      const double offered = node_.workload(pod.index, c).offered(node_.now()) * 1e-9;
      const auto kind = scenario_.pods[i].containers[static_cast<std::size_t>(c)].workload.kind;
      now.offered += offered;
      if (kind == WorkloadSpec::Kind::kSpin) now.passing += offered;
      now.throttled += seconds(node_.counters(pod.index, c).local);
    }
    now.used = seconds(node_.podCounters(pod.index).usage);
    const Totals before = std::exchange(pod.last, now);
    grown_[i] = {.offered = now.offered - before.offered,
                 .used = now.used - before.used,
                 .throttled = now.throttled - before.throttled,
                 .passing = now.passing - before.passing};
  }
  compareWithIdeal(interval);
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    Pod& pod = pods_[i];
    const Totals& grown = grown_[i];
    if (!moments_[i].present) continue;
    moments_[i] = {true, grown.offered / interval, grown.used / interval,
                   grown.throttled / interval, sum(pod.limits)};
    pod.window += grown;
    if (measuring()) {
      pod.total += grown;
      pod.measured += interval;
    }
    pod.streak = grown.throttled / interval >= kThrottled ? pod.streak + interval : 0;
    pod.window_streak = std::max(pod.window_streak, pod.streak);
  }
  window_seconds_ += interval;
  if (window_seconds_ >= kWindow - interval / 2) closeWindow();
}

// What the best division would have given each, in this interval.
void Simulation::compareWithIdeal(double interval) {
  double cores = scenario_.cpus * (1 - kReserve);
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (!scenario_.pods[i].managed) cores -= grown_[i].used / interval;
  }
  for (std::size_t k = 0; k < buyers_.size(); ++k) {
    const Totals& grown = grown_[buyers_[k]];
    wants_[k] = {grown.offered - grown.passing, grown.passing};
  }
  const std::span<const double> gets = ideal_.divide(wants_, interval, cores);
  for (std::size_t k = 0; k < buyers_.size(); ++k) grown_[buyers_[k]].ideal = gets[k];
  window_scarce_ += ideal_.scarce() ? interval : 0;
  window_capacity_ += cores * interval;
}

void Simulation::closeWindow() {
  const double span = std::exchange(window_seconds_, 0.0);
  const double scarce = std::exchange(window_scarce_, 0.0) / span;
  const double capacity = std::exchange(window_capacity_, 0.0) / span;
  double weights = 0;
  double got = 0;
  double ideal = 0;
  double used = 0;
  for (const std::size_t i : buyers_) {
    Pod& pod = pods_[i];
    const PodSpec& spec = scenario_.pods[i];
    const Totals window = std::exchange(pod.window, {});
    const double longest = std::exchange(pod.window_streak, 0.0);
    const double demand =
        std::min(window.offered, std::min<double>(scenario_.cpus, threadsOf(spec)) * span);
    const bool free = window.ideal >= 0.98 * demand;
    if (free) {
      pod.relief = std::max(pod.relief, longest);
    } else {
      pod.streak = 0;
    }
    used += window.used / span;
    if (!measuring() || demand <= 0) continue;
    (free ? free_throttled_ : constrained_throttled_) += window.throttled / span;
    (free ? free_windows_ : constrained_windows_) += 1;
    const double weight = control::weightOf(spec.request(), spec.priority);
    weights += weight;
    got += weight * std::log(std::clamp(window.used / demand, 1e-3, 1.0));
    ideal += weight * std::log(std::clamp(window.ideal / demand, 1e-3, 1.0));
  }
  if (!measuring()) return;
  window_use_.push_back(used);
  window_most_.push_back(capacity);
  ++windows_;
  scarce_ += scarce;
  fairness_ += weights > 0 ? std::exp((got - ideal) / weights) : 1;
}

Report Simulation::report() const {
  const auto milliseconds = [](Nanos time) { return seconds(time) * 1e3; };
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
  Report report;
  report.scenario = scenario_.name;
  report.policy = policy_.name();
  report.seed = scenario_.seed;
  report.seconds = seconds(node_.now());
  Latencies services;
  double managed = 0;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    const Pod& pod = pods_[i];
    const PodSpec& spec = scenario_.pods[i];
    PodReport out{.name = spec.name, .managed = spec.managed};
    if (pod.index >= 0) {
      out.offered =
          std::min({ratio(pod.total.offered, pod.measured), static_cast<double>(scenario_.cpus),
                    static_cast<double>(threadsOf(spec))});
      out.used = ratio(pod.total.used, pod.measured);
      out.throttled = ratio(pod.total.throttled, pod.measured);
      out.relief = pod.relief;
      if (const auto limit = sum(pod.limits)) out.last_limit = limit->cores();
      out.lowest_limit = pod.lowest;
      out.highest_limit = pod.highest;
      out.changes = ratio(pod.changes * kChangesPer, pod.measured);
      Latencies all;
      for (int c = 0; c < node_.containers(pod.index); ++c) {
        const Workload& workload = node_.workload(pod.index, c);
        all.add(workload.latencies());
        out.refused += workload.refused();
        const auto kind = spec.containers[static_cast<std::size_t>(c)].workload.kind;
        if (spec.managed && kind == WorkloadSpec::Kind::kService) {
          services.add(workload.latencies());
        }
      }
      out.jobs = all.count();
      if (all.count() > 0) {
        out.p50 = milliseconds(all.percentile(0.5));
        out.p99 = milliseconds(all.percentile(0.99));
      }
    }
    Limits declared;
    for (const ContainerSpec& container : spec.containers) declared.push_back(container.limit);
    out.first_limit = sum(declared).value_or(Millicores(0)).cores();
    if (spec.managed) {
      ++managed;
      report.used += pod.measured > 0 ? pod.total.used : 0;
      report.changes += out.changes;
      report.most_changes = std::max(report.most_changes, out.changes);
      report.relief = std::max(report.relief, out.relief);
    }
    report.pods.push_back(std::move(out));
  }
  const double measured = std::max(0.0, seconds(node_.now() - scenario_.settle));
  report.used = ratio(report.used, measured);
  report.changes = ratio(report.changes, managed);
  report.throttled_free = ratio(free_throttled_, free_windows_);
  report.throttled_constrained = ratio(constrained_throttled_, constrained_windows_);
  report.fairness = windows_ > 0 ? fairness_ / windows_ : 1;
  report.scarce = ratio(scarce_, windows_);
  if (services.count() > 0) {
    report.p50 = milliseconds(services.percentile(0.5));
    report.p99 = milliseconds(services.percentile(0.99));
  }
  report.window_use = window_use_;
  report.window_most = window_most_;
  return report;
}

Report simulate(const Scenario& scenario, Policy& policy) {
  Simulation simulation(scenario, policy);
  while (simulation.step()) {
  }
  return simulation.report();
}

}  // namespace mbcas::sim
