#include "mbcas/sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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
constexpr double kCalm = 30;         // seconds without throttling: an episode is over
constexpr double kCalmAtLast = 5;    // of one that the end of the simulation cut off
constexpr double kPassing = 10;      // seconds: a shorter one without a reaction does not count
constexpr double kNever = std::numeric_limits<double>::infinity();
// Of a new replica, from the decision to its first request; and how long one may finish its last.
constexpr Nanos kStartsIn = std::chrono::seconds(3);
constexpr Nanos kGrace = std::chrono::seconds(30);

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

// As the kubelet converts an amount of CPU: whole shares, 2 at least.
double sharesOf(Millicores amount) {
  return static_cast<double>(std::max<std::int64_t>(2, amount.count() * 1024 / 1000));
}
constexpr double kOutsideWeight = 1024;  // of a cgroup whose weight has not been set

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

Simulation::Simulation(const Scenario& scenario, Policy& policy)
    : scenario_(scenario),
      policy_(policy),
      node_({.cpus = scenario.cpus, .seed = scenario.seed}),
      sampler_(std::make_unique<ModelFiles>(node_,
                                            ModelFiles::Options{.stat_local = scenario.stat_local}),
               clock_, {.interval = scenario.interval}),
      random_(Random(scenario.seed).fork(0)),
      kubepods_(node_.addSlice("kubepods", scenario.cpus * 1024.0)),
      burstable_(node_.addSlice("burstable", sharesOf(Millicores(0)), kubepods_)),
      best_effort_(node_.addSlice("besteffort", sharesOf(Millicores(0)), kubepods_)),
      pods_(scenario.pods.size()),
      grown_(scenario.pods.size()),
      moments_(scenario.pods.size()),
      ideal_(buyersOf(scenario)) {
  for (std::size_t i = 0; i < scenario.pods.size(); ++i) {
    if (scenario.pods[i].managed) buyers_.push_back(i);
  }
  wants_.resize(buyers_.size());
}

bool Simulation::present(const Pod& pod) const {
  return !pod.instances.empty() && node_.present(pod.instances.front().index);
}

std::optional<Millicores> Simulation::limitOf(const Pod& pod) const {
  Millicores total;
  for (const Instance& instance : pod.instances) {
    if (!node_.present(instance.index)) continue;
    const std::optional<Millicores> limit = sum(instance.limits);
    if (!limit) return std::nullopt;
    total += *limit;
  }
  return total;
}

void Simulation::noteLimit(Pod& pod) const {
  const double limit = limitOf(pod).value_or(Millicores(0)).cores();
  pod.lowest = std::min(pod.lowest, limit);
  pod.highest = std::max(pod.highest, limit);
}

// As the kubelet sets cpu.shares.
void Simulation::setWeights(const PodSpec& spec, const Instance& instance) {
  std::vector<double> weights;
  Millicores total;
  for (const Millicores request : instance.requests) {
    weights.push_back(sharesOf(request));
    total += request;
  }
  const double weight = spec.outside ? kOutsideWeight : sharesOf(total) * policy_.weight(spec);
  node_.setWeights(instance.index, weight, weights);
}

// The Burstable slice has the requests of all its pods, also of those that are idle. The kubelet
// follows a change within a minute; here it does at once.
void Simulation::weighSlices() {
  Millicores total;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (sliceOf(scenario_.pods[i]) != burstable_) continue;
    for (const Instance& instance : pods_[i].instances) {
      if (!node_.present(instance.index)) continue;
      total = std::accumulate(instance.requests.begin(), instance.requests.end(), total);
    }
  }
  node_.setSliceWeight(burstable_, sharesOf(total));
}

std::optional<int> Simulation::sliceOf(const PodSpec& spec) const {
  if (spec.outside) return std::nullopt;
  switch (spec.qos()) {
    case kernel::Qos::kGuaranteed:
      return kubepods_;
    case kernel::Qos::kBestEffort:
      return best_effort_;
    case kernel::Qos::kBurstable:
      break;
  }
  return burstable_;
}

void Simulation::putInForce(const PodSpec& spec, Pod& pod, Instance& instance) {
  instance.limits = instance.wanted;
  node_.setLimit(instance.index, instance.limits, sum(instance.limits));
  if (!instance.wanted_requests.empty()) {
    instance.requests = std::exchange(instance.wanted_requests, {});
    setWeights(spec, instance);
    weighSlices();
  }
  instance.due.reset();
  if (measuring()) ++pod.changes;
  noteLimit(pod);
}

// One more instance of a pod: the first, or a replica of it.
void Simulation::start(std::size_t i) {
  const PodSpec& spec = scenario_.pods[i];
  Pod& pod = pods_[i];
  const bool first = pod.instances.empty();
  if (first) pod.appeared = node_.now();
  const std::string name =
      first ? spec.name : fmt::format("{}~{}", spec.name, pod.instances.size());
  Instance& instance = pod.instances.emplace_back();
  instance.index = node_.addPod(name, 1, sliceOf(spec));
  instance.ready = first;
  instance.ready_at = first ? node_.now() : node_.now() + kStartsIn;
  const auto number = static_cast<int>(
      std::ranges::count_if(pod.instances, [](const Instance& each) { return !each.leaves; }));
  for (std::size_t c = 0; c < spec.containers.size(); ++c) {
    const ContainerSpec& container = spec.containers[c];
    WorkloadSpec workload = container.workload;
    workload.phase += pod.appeared;
    node_.addContainer(instance.index, {container.name, 1},
                       makeWorkload(workload, randomOf(scenario_, i, c),
                                    {number - 1, pod.ready, instance.ready_at}));
    const bool own = spec.managed && container.limit;
    instance.limits.push_back(own ? policy_.firstLimit(*container.limit, scenario_.cpus)
                                  : container.limit);
    instance.requests.push_back(container.request);
  }
  setWeights(spec, instance);
  weighSlices();
  node_.setLimit(instance.index, instance.limits, sum(instance.limits));
  node_.setBurst(instance.index, spec.managed ? policy_.burst() : 0);
  by_name_[name] = {i, pod.instances.size() - 1};
  if (first) {
    pod.lowest = pod.highest = sum(instance.limits).value_or(Millicores(0)).cores();
  } else {
    if (measuring()) ++pod.changes;
    noteLimit(pod);
  }
}

// As the scheduler and the kubelet see it: by requests.
bool Simulation::fits(Millicores more) const {
  Millicores requests = more;
  for (const Pod& pod : pods_) {
    for (const Instance& instance : pod.instances) {
      if (!node_.present(instance.index)) continue;
      requests = std::accumulate(instance.requests.begin(), instance.requests.end(), requests);
    }
  }
  return requests <= Millicores(static_cast<std::int64_t>(scenario_.cpus) * 1000);
}

void Simulation::adjustReplicas() {
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    Pod& pod = pods_[i];
    if (!present(pod)) continue;
    auto staying = static_cast<int>(
        std::ranges::count_if(pod.instances, [](const Instance& each) { return !each.leaves; }));
    for (; staying < pod.replicas && fits(scenario_.pods[i].request()); ++staying) start(i);
    for (; staying > pod.replicas; --staying) {
      const auto newest = std::find_if(pod.instances.rbegin(), pod.instances.rend(),
                                       [](const Instance& each) { return !each.leaves; });
      newest->leaves = node_.now() + kGrace;
      if (newest->ready) --*pod.ready;
    }
    for (Instance& instance : pod.instances) {
      if (!instance.leaves || !node_.present(instance.index)) continue;
      double left = 0;
      for (int c = 0; c < node_.containers(instance.index); ++c) {
        left += node_.workload(instance.index, c).offered(node_.now());
      }
      left -= static_cast<double>(node_.podCounters(instance.index).usage.count());
      if (left < 1e3 * node_.containers(instance.index)) instance.leaves = node_.now();
    }
  }
}

// The earliest; of several at once, the first pod's.
std::optional<Simulation::Event> Simulation::nextEvent(Nanos until) const {
  using Kind = Event::Kind;
  std::optional<Event> next;
  const auto consider = [&](Nanos at, std::size_t pod, std::size_t instance, Kind kind) {
    if (at <= until && at >= node_.now() && (!next || at < next->at)) {
      next = Event{at, pod, instance, kind};
    }
  };
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    const PodSpec& spec = scenario_.pods[i];
    const Pod& pod = pods_[i];
    if (pod.instances.empty()) {
      consider(std::max(spec.start, node_.now()), i, 0, Kind::kAppear);
      continue;
    }
    if (!present(pod)) continue;
    if (spec.end) consider(*spec.end, i, 0, Kind::kEnd);
    for (std::size_t k = 0; k < pod.instances.size(); ++k) {
      const Instance& instance = pod.instances[k];
      if (!node_.present(instance.index)) continue;
      if (instance.due) consider(*instance.due, i, k, Kind::kLimit);
      if (instance.leaves) consider(*instance.leaves, i, k, Kind::kLeave);
      if (!instance.ready && !instance.leaves) consider(instance.ready_at, i, k, Kind::kReady);
    }
    if (pod.restarts < spec.restarts.size()) {
      consider(spec.restarts[pod.restarts], i, 0, Kind::kRestart);
    }
  }
  return next;
}

void Simulation::happen(const Event& event) {
  Pod& pod = pods_[event.pod];
  switch (event.kind) {
    case Event::Kind::kAppear:
      return start(event.pod);
    case Event::Kind::kEnd:
      for (const Instance& instance : pod.instances) {
        if (node_.present(instance.index)) node_.removePod(instance.index);
      }
      return weighSlices();
    case Event::Kind::kLimit: {
      Instance& instance = pod.instances[event.instance];
      const auto total = [](const std::vector<Millicores>& requests) {
        return std::accumulate(requests.begin(), requests.end(), Millicores(0));
      };
      const bool larger = !instance.wanted_requests.empty() &&
                          total(instance.wanted_requests) > total(instance.requests);
      if (larger && !fits(total(instance.wanted_requests) - total(instance.requests))) {
        *instance.due += std::chrono::seconds(1);  // deferred by the kubelet
        return;
      }
      putInForce(scenario_.pods[event.pod], pod, instance);
      sampler_.limitChanged(node_.podName(instance.index));
      return;
    }
    case Event::Kind::kReady:
      pod.instances[event.instance].ready = true;
      ++*pod.ready;
      return;
    case Event::Kind::kLeave:
      node_.removePod(pod.instances[event.instance].index);
      weighSlices();
      if (measuring()) ++pod.changes;
      return noteLimit(pod);
    case Event::Kind::kRestart:
      ++pod.restarts;
      pod.lost += seconds(node_.counters(pod.instances.front().index, 0).local);
      node_.restartContainer(pod.instances.front().index, 0);
      return;
  }
}

// Everything that happens at a time of its own until then, in order.
void Simulation::prepare(Nanos until) {
  while (const std::optional<Event> event = nextEvent(until)) {
    node_.advanceTo(event->at);
    happen(*event);
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
  adjustReplicas();
  return node_.now() < scenario_.duration;
}

NodeView Simulation::look() {
  NodeView view;
  view.now = clock_.monotonic();
  view.cpus = scenario_.cpus;
  view.signals = sampler_.signals();
  viewed_.clear();
  const std::span<TreeEntry> tree = tree_.sense(node_);
  view.tree = tree;
  for (const TreeEntry& entry : tree) {
    if (!entry.parent) view.machine_use += entry.use();
  }
  for (const sense::PodSignals& signals : view.signals) {
    const Place place = by_name_.find(signals.uid)->second;
    const PodSpec& spec = scenario_.pods[place.pod];
    const Instance& instance = pods_[place.pod].instances[place.instance];
    if (instance.leaves) continue;
    if (!spec.managed || !spec.limited()) {
      view.unmanaged_requests += spec.request();
      continue;
    }
    const bool ready = spec.ready_after && node_.now() >= instance.ready_at &&
                       node_.now() >= spec.start + *spec.ready_after;
    tree[tree_.placeOf(instance.index)].pod = view.pods.size();
    viewed_.push_back(place);
    view.pods.push_back(
        {&spec, &signals, instance.limits, ready, static_cast<int>(place.instance)});
  }
  return view;
}

void Simulation::act(const NodeView& view) {
  for (Move& move : policy_.decide(view)) {
    const Place place = viewed_[move.pod];
    Instance& instance = pods_[place.pod].instances[place.instance];
    instance.wanted = std::move(move.containers);
    instance.wanted_requests = std::move(move.requests);
    if (instance.due) continue;  // under way already: what is wanted last arrives
    const double delay = policy_.writesCgroups() ? 0
                                                 : random_.uniform(seconds(scenario_.delay_min),
                                                                   seconds(scenario_.delay_max));
    instance.due = node_.now() + Nanos(std::llround(delay * 1e9));
  }
  for (const Scale& scale : policy_.scale(view)) {
    pods_[static_cast<std::size_t>(scale.spec - scenario_.pods.data())].replicas = scale.replicas;
  }
}

// By the model's own counters, which no policy sees.
void Simulation::measure(double interval) {
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    Pod& pod = pods_[i];
    moments_[i] = {};
    grown_[i] = {};
    if (!present(pod)) {
      pod.streak = 0;
      continue;
    }
    moments_[i].present = true;
    Totals now;
    now.throttled = pod.lost;
    for (const Instance& instance : pod.instances) {
      for (int c = 0; c < node_.containers(instance.index); ++c) {
        const double offered = node_.workload(instance.index, c).offered(node_.now()) * 1e-9;
        const auto kind = scenario_.pods[i].containers[static_cast<std::size_t>(c)].workload.kind;
        now.offered += offered;
        if (kind == WorkloadSpec::Kind::kSpin) now.passing += offered;
        now.throttled += seconds(node_.counters(instance.index, c).local);
      }
      now.used += seconds(node_.podCounters(instance.index).usage);
    }
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
    const std::optional<Millicores> limit = limitOf(pod);
    moments_[i] = {true,
                   grown.offered / interval,
                   grown.used / interval,
                   grown.throttled / interval,
                   limit,
                   *pod.ready};
    pod.window += grown;
    if (measuring()) {
      pod.total += grown;
      pod.measured += interval;
      pod.reserved += limit.value_or(Millicores(0)).cores() * interval;
    }
    const bool throttled = grown.throttled / interval >= kThrottled;
    pod.streak = throttled ? pod.streak + interval : 0;
    pod.window_streak = std::max(pod.window_streak, pod.streak);
  }
  for (std::size_t k = 0; k < buyers_.size(); ++k) {
    const std::size_t i = buyers_[k];
    if (!moments_[i].present) continue;
    const bool throttled = moments_[i].throttled >= kThrottled;
    followEpisode(pods_[i], throttled && ideal_.satisfied(k), interval);
  }
  window_seconds_ += interval;
  if (window_seconds_ >= kWindow - interval / 2) closeWindow();
}

void Simulation::followEpisode(Pod& pod, bool throttled, double interval) {
  const double now = seconds(node_.now());
  const double limit = limitOf(pod).value_or(Millicores(0)).cores();
  if (!pod.episode) {
    if (throttled) pod.episode = Episode{now - interval, now, limit, {}};
    return;
  }
  Episode& episode = *pod.episode;
  if (throttled) episode.last_throttled = now;
  // Raised within the interval that has passed.
  if (!episode.raised && limit > episode.limit) episode.raised = now - episode.since;
  if (now - episode.last_throttled < kCalm) return;
  episode_times_.add(episode, true);
  pod.episode.reset();
}

void Simulation::EpisodeTimes::add(const Episode& episode, bool over) {
  const double lasted = episode.last_throttled - episode.since;
  if (!episode.raised && lasted <= kPassing) return;
  reactions.push_back(episode.raised.value_or(kNever));
  convergences.push_back(over ? lasted : kNever);
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
  double shares = 0;
  double squares = 0;
  double sharers = 0;
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
    held_back_.add(Nanos(std::llround(window.throttled / span * 1e9)));
    const double weight = control::weightOf(spec.request(), spec.priority);
    weights += weight;
    got += weight * std::log(std::clamp(window.used / demand, 1e-3, 1.0));
    ideal += weight * std::log(std::clamp(window.ideal / demand, 1e-3, 1.0));
    if (window.ideal > 0) {
      const double share = std::min(window.used / window.ideal, 1.0);
      shares += share;
      squares += share * share;
      ++sharers;
    }
  }
  if (!measuring()) return;
  window_use_.push_back(used);
  window_most_.push_back(capacity);
  ++windows_;
  scarce_ += scarce;
  jain_ += squares > 0 ? shares * shares / (sharers * squares) : 1;
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
  EpisodeTimes times = episode_times_;
  double managed = 0;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    const Pod& pod = pods_[i];
    const PodSpec& spec = scenario_.pods[i];
    PodReport out{.name = spec.name, .managed = spec.managed};
    if (!pod.instances.empty()) {
      out.offered =
          std::min({ratio(pod.total.offered, pod.measured), static_cast<double>(scenario_.cpus),
                    static_cast<double>(threadsOf(spec))});
      out.used = ratio(pod.total.used, pod.measured);
      out.throttled = ratio(pod.total.throttled, pod.measured);
      out.relief = pod.relief;
      out.reserved = ratio(pod.reserved, pod.measured);
      const auto limit = present(pod) ? limitOf(pod) : sum(pod.instances.front().limits);
      if (limit) out.last_limit = limit->cores();
      out.lowest_limit = pod.lowest;
      out.highest_limit = pod.highest;
      out.changes = ratio(pod.changes * kChangesPer, pod.measured);
      Latencies all;
      for (const Instance& instance : pod.instances) {
        for (int c = 0; c < node_.containers(instance.index); ++c) {
          const Workload& workload = node_.workload(instance.index, c);
          all.add(workload.latencies());
          out.refused += workload.refused();
          const auto kind = spec.containers[static_cast<std::size_t>(c)].workload.kind;
          if (spec.managed && kind == WorkloadSpec::Kind::kService) {
            services.add(workload.latencies());
          }
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
      report.reserved += pod.reserved;
      if (pod.episode) {
        times.add(*pod.episode, report.seconds - pod.episode->last_throttled >= kCalmAtLast);
      }
      report.changes += out.changes;
      report.most_changes = std::max(report.most_changes, out.changes);
      report.relief = std::max(report.relief, out.relief);
    }
    report.pods.push_back(std::move(out));
  }
  const double measured = std::max(0.0, seconds(node_.now() - scenario_.settle));
  report.used = ratio(report.used, measured);
  report.reserved = ratio(report.reserved, measured);
  report.changes = ratio(report.changes, managed);
  report.throttled_free = ratio(free_throttled_, free_windows_);
  report.throttled_constrained = ratio(constrained_throttled_, constrained_windows_);
  report.fairness = windows_ > 0 ? fairness_ / windows_ : 1;
  report.jain = windows_ > 0 ? jain_ / windows_ : 1;
  report.scarce = ratio(scarce_, windows_);
  report.reactions = std::move(times.reactions);
  report.convergences = std::move(times.convergences);
  report.requests = services;
  summariseRequests(report);
  report.held_back = held_back_;
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
