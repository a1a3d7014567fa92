#include "mbcas/sim/node.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mbcas::sim {
namespace {

// Work and quotas below this many nanoseconds are none: what rounding leaves.
constexpr double kNothing = 1e-3;

double count(Nanos time) {
  return static_cast<double>(time.count());
}
Nanos whole(double nanos) {
  return Nanos(static_cast<std::int64_t>(nanos));
}

}  // namespace

Node::Node(const Options& options) : options_(options), random_(options.seed) {}

Node::Group Node::makeGroup() {
  Group group;
  group.cgroup = next_cgroup_++;
  group.phase = whole(random_.uniform() * count(options_.period));
  ++structure_;
  return group;
}

int Node::addSlice(std::string name, double weight, std::optional<int> parent) {
  slices_.push_back(
      {.name = std::move(name), .weight = weight, .parent = parent.value_or(kTop), .members = {}});
  ++structure_;
  return slices() - 1;
}

int Node::addPod(std::string name, double weight, std::optional<int> slice) {
  pods_.push_back({.name = std::move(name),
                   .weight = weight,
                   .slice = slice.value_or(kTop),
                   .group = makeGroup()});
  return pods() - 1;
}

int Node::addContainer(int pod, const ContainerOptions& options,
                       std::unique_ptr<Workload> workload) {
  const int index = static_cast<int>(containers_.size());
  containers_.push_back({.name = options.name,
                         .pod = pod,
                         .weight = options.weight,
                         .group = makeGroup(),
                         .workload = std::move(workload)});
  podAt(pod).containers.push_back(index);
  Container& container = containers_.back();
  container.work.assign(static_cast<std::size_t>(container.workload->threads()), 0);
  container.wake = now_;
  timers_.push({now_, Alarm::kWorkload, index});
  return containers(pod) - 1;
}

void Node::removePod(int pod) {
  podAt(pod).present = false;
  for (const int index : podAt(pod).containers) {
    Container& container = containerAt(index);
    std::ranges::fill(container.work, 0.0);
    container.done = 0;
    container.runnable = 0;
    container.wake = Nanos::max();
    std::erase(runnable_, index);
  }
  ++structure_;
  changed_ = true;
}

void Node::restartContainer(int pod, int container) {
  const int index = podAt(pod).containers[static_cast<std::size_t>(container)];
  Group& group = containerAt(index).group;
  const std::optional<double> quota = group.quota;
  const double burst = group.burst;
  group = makeGroup();
  group.quota = quota;
  group.burst = burst;
  group.left = quota.value_or(0);
  changed_ = true;
}

void Node::setQuota(Group& group, std::optional<Millicores> limit) {
  const std::optional<double> quota =
      limit ? std::optional(limit->cores() * count(options_.period)) : std::nullopt;
  if (quota == group.quota) return;
  group.quota = quota;
  group.left = quota.value_or(0);
  group.throttled = false;
  changed_ = true;
}

void Node::setLimit(int pod, std::span<const std::optional<Millicores>> limits,
                    std::optional<Millicores> whole_pod) {
  setQuota(podAt(pod).group, whole_pod);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    setQuota(containerAt(podAt(pod).containers[i]).group, limits[i]);
  }
}

void Node::setBurst(int pod, double share) {
  podAt(pod).group.burst = share;
  for (const int index : podAt(pod).containers) containerAt(index).group.burst = share;
}

void Node::setWeights(int pod, double weight, std::span<const double> weights) {
  podAt(pod).weight = weight;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    containerAt(podAt(pod).containers[i]).weight = weights[i];
  }
  changed_ = true;
}

void Node::setSliceWeight(int slice, double weight) {
  if (std::exchange(sliceAt(slice).weight, weight) != weight) changed_ = true;
}

Nanos Node::sliceUsage(int slice) const {
  double usage = 0;
  for (const Pod& pod : pods_) {
    int above = pod.slice;
    while (above != kTop && above != slice) above = sliceAt(above).parent;
    if (above == slice) usage += pod.group.usage;
  }
  return whole(usage);
}

const Node::Container& Node::containerAt(int pod, int container) const {
  const int index = podAt(pod).containers[static_cast<std::size_t>(container)];
  return containers_[static_cast<std::size_t>(index)];
}
const std::string& Node::containerName(int pod, int container) const {
  return containerAt(pod, container).name;
}
const Workload& Node::workload(int pod, int container) const {
  return *containerAt(pod, container).workload;
}
int Node::threads(int pod, int container) const {
  return static_cast<int>(containerAt(pod, container).work.size());
}
std::uint64_t Node::containerCgroup(int pod, int container) const {
  return containerAt(pod, container).group.cgroup;
}

Counters Node::countersOf(const Group& group) const {
  Counters counters;
  counters.usage = whole(group.usage);
  counters.throttling = {group.periods, group.throttled_periods, whole(group.throttled_time)};
  counters.local = whole(group.local);
  counters.pressure = {whole(group.some), whole(group.full)};
  counters.limit.period = options_.period;
  if (group.quota) counters.limit.quota = whole(*group.quota);
  return counters;
}
Counters Node::podCounters(int pod) const {
  return countersOf(podAt(pod).group);
}
Counters Node::counters(int pod, int container) const {
  return countersOf(containerAt(pod, container).group);
}

void Node::advanceTo(Nanos time) {
  while (true) {
    fireTimers();
    if (now_ >= time) return;
    if (changed_) divide();
    const Nanos next = nextEvent(time);
    run(next - now_);
    now_ = next;
    finish();
  }
}

void Node::forgetLatencies() {
  for (Container& container : containers_) container.workload->forgetLatencies();
}

void Node::fireTimers() {
  while (!timers_.empty() && timers_.top().at <= now_) {
    const Timer timer = timers_.top();
    timers_.pop();
    switch (timer.alarm) {
      case Alarm::kWorkload:
        if (containerAt(timer.index).wake == timer.at) stepWorkload(timer.index);
        break;
      case Alarm::kContainerPeriod:
        endPeriod(containerAt(timer.index).group, timer.alarm, timer.index);
        break;
      case Alarm::kPodPeriod:
        endPeriod(podAt(timer.index).group, timer.alarm, timer.index);
        break;
    }
  }
}

// Writes what the threads have done into `work`.
void Node::settle(Container& container) {
  const double done = std::exchange(container.done, 0.0);
  if (done == 0) return;
  for (double& work : container.work) {
    if (work <= 0) continue;
    work -= done;
    if (work <= kNothing) work = 0;
  }
}

void Node::stepWorkload(int index) {
  Container& container = containerAt(index);
  settle(container);
  const Nanos wake = container.workload->step(now_, container.work);
  if (wake != container.wake) {
    container.wake = wake;
    if (wake != Nanos::max()) timers_.push({wake, Alarm::kWorkload, index});
  }
  const int before = std::exchange(container.runnable, 0);
  container.least = Workload::kEndless;
  for (const double work : container.work) {
    if (work <= 0) continue;
    ++container.runnable;
    container.least = std::min(container.least, work);
  }
  if (before == 0 && container.runnable > 0) runnable_.push_back(index);
  if (before > 0 && container.runnable == 0) std::erase(runnable_, index);
  changed_ |= before != container.runnable;
}

// A thread wants to run under this quota: its periods count from now on.
void Node::beginPeriod(Group& group, Alarm alarm, int index) {
  if (!group.quota) return;
  if (!group.period_end) {
    const Nanos into = (now_ - group.phase + options_.period) % options_.period;
    group.period_end = now_ - into + options_.period;
    timers_.push({*group.period_end, alarm, index});
  }
  if (group.left <= kNothing) group.throttled = true;
}

void Node::refill(Group& group) {
  group.left = std::min(group.left + *group.quota, *group.quota * (1 + group.burst));
}

void Node::endPeriod(Group& group, Alarm alarm, int index) {
  if (group.period_end != now_) return;  // of a cgroup that is no more
  group.period_end.reset();
  if (!group.quota) return;
  if (!group.used && !group.throttled) {  // no thread ran: it sleeps until one does
    refill(group);
    return;
  }
  ++group.periods;
  if (group.throttled) ++group.throttled_periods;
  changed_ |= group.throttled;
  refill(group);
  group.throttled = false;
  group.used = false;
  group.period_end = now_ + options_.period;
  timers_.push({*group.period_end, alarm, index});
}

// Who may run, and at which share of the CPUs.
void Node::divide() {
  for (const int pod : active_) podAt(pod).runnable = 0;
  active_.clear();
  for (const int index : runnable_) {
    Pod& pod = podAt(containerAt(index).pod);
    if (pod.runnable == 0) {
      active_.push_back(containerAt(index).pod);
      pod.running = 0;
      pod.rate = 0;
      beginPeriod(pod.group, Alarm::kPodPeriod, containerAt(index).pod);
    }
    pod.runnable += containerAt(index).runnable;
  }
  int running = 0;
  for (const int index : runnable_) {
    Container& container = containerAt(index);
    Pod& pod = podAt(container.pod);
    // A pod that stands still uses nothing of its containers' quotas.
    if (!pod.group.throttled) beginPeriod(container.group, Alarm::kContainerPeriod, index);
    container.rate = 0;
    if (pod.group.throttled || container.group.throttled) continue;
    pod.running += container.runnable;
    running += container.runnable;
  }
  const bool enough = running <= static_cast<int>(options_.cpus);
  if (!enough) divideScarce();
  for (const int index : active_) {
    Pod& pod = podAt(index);
    if (pod.running == 0) continue;
    if (enough) pod.rate = pod.running;
    if (pod.containers.size() == 1) {
      containerAt(pod.containers.front()).rate = pod.rate;
      continue;
    }
    for (const int member : pod.containers) {
      Container& container = containerAt(member);
      if (container.runnable == 0 || container.group.throttled) continue;
      if (pod.rate >= pod.running) {
        container.rate = container.runnable;
      } else {
        sharers_.push_back(
            {container.weight, static_cast<double>(container.runnable), &container.rate});
      }
    }
    divideByWeight(sharers_, pod.rate);
  }
  changed_ = false;
}

// The CPUs among pods that want more than there are: from the machine down, slice by slice.
void Node::divideScarce() {
  const double cpus = options_.cpus;
  top_.running = 0;
  top_.rate = cpus;
  for (Slice& slice : slices_) slice.running = 0;
  for (const int index : active_) {
    Pod& pod = podAt(index);
    if (pod.running == 0) continue;
    sliceAt(pod.slice).members.push_back(
        {pod.weight, std::min<double>(pod.running, cpus), &pod.rate});
    for (int above = pod.slice; above != kTop; above = sliceAt(above).parent) {
      sliceAt(above).running += pod.running;
    }
    top_.running += pod.running;
  }
  for (Slice& slice : slices_) {
    if (slice.running == 0) continue;
    sliceAt(slice.parent)
        .members.push_back({slice.weight, std::min<double>(slice.running, cpus), &slice.rate});
  }
  share(top_);
  for (Slice& slice : slices_) share(slice);
}

// A slice's part among its members.
void Node::share(Slice& slice) {
  if (slice.rate < slice.running) return divideByWeight(slice.members, slice.rate);
  for (const Sharer& member : slice.members) *member.share = member.cap;
  slice.members.clear();
}

// Divides `total` by weight, giving no member more than its cap. Empties `members`.
void Node::divideByWeight(std::vector<Sharer>& members, double total) {
  double weights = 0;
  for (const Sharer& member : members) weights += member.weight;
  // Who gets its cap leaves the rest to the others; each round settles at least one.
  bool settled = true;
  while (settled && !members.empty()) {
    settled = false;
    for (std::size_t i = 0; i < members.size();) {
      if (members[i].weight * total < members[i].cap * weights) {
        ++i;
        continue;
      }
      *members[i].share = members[i].cap;
      total -= members[i].cap;
      weights -= members[i].weight;
      members[i] = members.back();
      members.pop_back();
      settled = true;
    }
  }
  for (const Sharer& member : members) *member.share = member.weight * total / weights;
  members.clear();
}

Nanos Node::nextEvent(Nanos end) const {
  if (!timers_.empty()) end = std::min(end, timers_.top().at);
  double soonest = count(end - now_);
  for (const int index : runnable_) {
    const Container& container = containers_[static_cast<std::size_t>(index)];
    if (container.rate == 0) continue;
    if (container.group.quota) soonest = std::min(soonest, container.group.left / container.rate);
    soonest =
        std::min(soonest, (container.least - container.done) * container.runnable / container.rate);
  }
  for (const int index : active_) {
    const Pod& pod = podAt(index);
    if (pod.rate > 0 && pod.group.quota) soonest = std::min(soonest, pod.group.left / pod.rate);
  }
  return now_ + std::max(Nanos(1), Nanos(static_cast<std::int64_t>(std::ceil(soonest))));
}

void Node::run(Nanos time) {
  const double wall = count(time);
  const auto account = [&](Group& group, int runnable, double rate) {
    group.usage += rate * wall;
    group.some += std::min(1.0, runnable - rate) * wall;
    group.full += std::max(0.0, 1 - rate) * wall;
    group.used |= rate > 0;
    if (group.quota) {
      group.left = std::max(0.0, group.left - rate * wall);
      changed_ |= rate > 0 && group.left <= kNothing;
    }
    if (group.throttled) {
      group.throttled_time += std::min<double>(runnable, options_.cpus) * wall;
    }
  };
  for (const int index : active_) {
    Pod& pod = podAt(index);
    account(pod.group, pod.runnable, pod.rate);
  }
  for (const int index : runnable_) {
    Container& container = containerAt(index);
    account(container.group, container.runnable, container.rate);
    if (container.rate == 0) {
      container.group.local += std::min<double>(container.runnable, options_.cpus) * wall;
      continue;
    }
    container.done += container.rate * wall / container.runnable;
    if (container.least - container.done <= kNothing) finished_.push_back(index);
  }
}

// Threads that are done ask for more.
void Node::finish() {
  for (const int index : finished_) stepWorkload(index);
  finished_.clear();
}

}  // namespace mbcas::sim
