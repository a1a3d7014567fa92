#include "mbcas/demand/demand.h"

#include <algorithm>
#include <map>

namespace mbcas::demand {
namespace {

constexpr Millicores kNegligible(1);

// The container's own limit, else its pod's.
const std::optional<kernel::CpuLimit>& levelOf(const sense::CpuSignals& own,
                                               const sense::PodSignals& pod) {
  return own.limit && own.limit->quota ? own.limit : pod.cpu.limit;
}

std::optional<Millicores> limitOf(const sense::CpuSignals& own, const sense::PodSignals& pod) {
  const auto& level = levelOf(own, pod);
  return level ? level->millicores() : std::nullopt;
}

bool nearLimit(const sense::CpuSignals& cpu) {
  const auto limit = cpu.limit ? cpu.limit->millicores() : std::nullopt;
  return limit && cpu.usageRate() * 10 >= *limit * 9;
}

// One more idle sample after a window of idle samples would change nothing. Most containers of a
// node are idle most of the time, so their estimators need not be fetched from memory.
bool asleep(const Need& need, const sense::CpuSignals& cpu, const sense::PodSignals& pod) {
  constexpr std::uint32_t kEnough = 30;
  return cpu.usage == Nanos(0) && !cpu.throttled() && need.samples >= kEnough &&
         need.use_peak == Millicores(0) && need.burst_state == BurstState::kNone &&
         need.pressure.value_or(0) == 0 && need.last.limit == limitOf(cpu, pod);
}

void addTo(Need& total, const Need& need) {
  total.at = std::max(total.at, need.at);
  total.good_until =
      total.samples == 0 ? need.good_until : std::min(total.good_until, need.good_until);
  total.ready &= need.ready;
  total.use += need.use;
  total.use_peak += need.use_peak;
  total.used_peak += need.used_peak;
  total.burst += need.burst;
  total.present += need.present;
  total.blocked += need.blocked;
  if (need.pressure) total.pressure = std::max(total.pressure.value_or(0), *need.pressure);
  total.binding |= need.binding;
  total.samples = std::max(total.samples, need.samples);
  total.burst_state = std::max(total.burst_state, need.burst_state);
  total.burst_until = std::max(total.burst_until, need.burst_until);
}

}  // namespace

Sample sampleOf(const sense::ContainerSignals& container, const sense::PodSignals& pod) {
  const sense::CpuSignals& own = container.cpu;
  Sample sample;
  sample.at = own.at;
  sample.interval = own.interval;
  sample.usage = own.usageRate();
  sample.blocked = own.blockedRate();
  sample.limit = limitOf(own, pod);
  if (levelOf(own, pod)) sample.period = levelOf(own, pod)->period;
  const bool by_pod = pod.cpu.throttling.throttled_periods > own.throttling.throttled_periods &&
                      own.usage > Nanos(0);
  const kernel::Throttling& throttling = by_pod ? pod.cpu.throttling : own.throttling;
  sample.periods = throttling.periods;
  sample.throttled_periods = throttling.throttled_periods;
  sample.threads = container.threads;
  sample.at_limit = nearLimit(own) || nearLimit(pod.cpu);
  return sample;
}

bool Demand::matches(std::span<const sense::PodSignals> signals) const {
  return std::ranges::equal(signals, needs_, [](const sense::PodSignals& pod, const PodNeed& need) {
    return pod.cgroup == need.cgroup &&
           std::ranges::equal(pod.containers, need.containers, {}, &sense::ContainerSignals::cgroup,
                              &ContainerNeed::cgroup);
  });
}

// Makes needs and estimators parallel to the signals, keeping those of containers that stay.
void Demand::follow(std::span<const sense::PodSignals> signals) {
  struct Known {
    std::unique_ptr<Estimator> estimator;
    Need need;
  };
  std::map<std::uint64_t, Known> known;
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    for (std::size_t c = 0; c < estimators_[i].size(); ++c) {
      const ContainerNeed& container = needs_[i].containers[c];
      known[container.cgroup] = {std::move(estimators_[i][c]), container.need};
    }
  }
  needs_.clear();
  estimators_.clear();
  for (const sense::PodSignals& pod : signals) {
    PodNeed& need = needs_.emplace_back(PodNeed{.cgroup = pod.cgroup, .uid = pod.uid});
    Estimators& estimators = estimators_.emplace_back();
    for (const sense::ContainerSignals& container : pod.containers) {
      Known& old = known[container.cgroup];
      if (!old.estimator) old.estimator = makeEstimator(settings_);
      estimators.push_back(std::move(old.estimator));
      need.containers.push_back({.cgroup = container.cgroup, .need = old.need, .id = container.id});
    }
  }
}

void Demand::configure(const Settings& settings) {
  const bool anew = settings.kind != settings_.kind;
  settings_ = settings;
  for (Estimators& estimators : estimators_) {
    for (std::unique_ptr<Estimator>& estimator : estimators) {
      if (anew) estimator = makeEstimator(settings_);
      estimator->configure(settings_);
    }
  }
}

void Demand::resume(std::uint64_t cgroup, Millicores limit, MonotonicTime now) {
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    for (std::size_t c = 0; c < estimators_[i].size(); ++c) {
      if (needs_[i].containers[c].cgroup == cgroup) estimators_[i][c]->resume(limit, now);
    }
  }
}

std::span<const PodNeed> Demand::update(std::span<const sense::PodSignals> signals) {
  if (!matches(signals)) follow(signals);
  for (std::size_t i = 0; i < signals.size(); ++i) {
    PodNeed& pod = needs_[i];
    pod.total = {};
    pod.total.ready = !signals[i].containers.empty();
    for (std::size_t c = 0; c < signals[i].containers.size(); ++c) {
      const sense::ContainerSignals& container = signals[i].containers[c];
      Need& need = pod.containers[c].need;
      if (container.cpu.known() && container.cpu.at != need.at) {
        if (asleep(need, container.cpu, signals[i])) {
          need.at = container.cpu.at;
        } else {
          need = estimators_[i][c]->update(sampleOf(container, signals[i]));
        }
        need.good_until = container.cpu.good_until;
      }
      addTo(pod.total, need);
    }
    if (pod.total.blocked > kNegligible) pod.total.ready = true;
  }
  return needs_;
}

}  // namespace mbcas::demand
