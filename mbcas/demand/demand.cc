#include "mbcas/demand/demand.h"

#include <algorithm>
#include <map>

namespace mbcas::demand {
namespace {

constexpr Millicores kNegligible(1);

bool nearLimit(const sense::CpuSignals& cpu) {
  const auto limit = cpu.limit ? cpu.limit->millicores() : std::nullopt;
  return limit && cpu.usageRate() * 10 >= *limit * 9;
}

void addTo(Need& total, const Need& need) {
  total.at = std::max(total.at, need.at);
  total.good_until =
      total.samples == 0 ? need.good_until : std::min(total.good_until, need.good_until);
  total.ready &= need.ready;
  total.use += need.use;
  total.use_peak += need.use_peak;
  total.burst += need.burst;
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
  const auto& limit = own.limit && own.limit->quota ? own.limit : pod.cpu.limit;
  if (limit) {
    sample.limit = limit->millicores();
    sample.period = limit->period;
  }
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
    return pod.uid == need.uid &&
           std::ranges::equal(pod.containers, need.containers, {}, &sense::ContainerSignals::id,
                              &ContainerNeed::id);
  });
}

// Makes needs and estimators parallel to the signals, keeping those of containers that stay.
void Demand::follow(std::span<const sense::PodSignals> signals) {
  struct Old {
    std::unique_ptr<Estimator> estimator;
    Need need;
  };
  std::map<std::string, Old> old;
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    for (std::size_t c = 0; c < members_[i].size(); ++c) {
      old[members_[i][c].id] = {std::move(members_[i][c].estimator), needs_[i].containers[c].need};
    }
  }
  needs_.clear();
  members_.clear();
  for (const sense::PodSignals& pod : signals) {
    PodNeed& need = needs_.emplace_back(PodNeed{pod.uid, {}, {}});
    Members& members = members_.emplace_back();
    for (const sense::ContainerSignals& container : pod.containers) {
      const auto known = old.find(container.id);
      if (known != old.end() && known->second.estimator) {
        members.push_back({container.id, std::move(known->second.estimator)});
        need.containers.push_back({container.id, known->second.need});
      } else {
        members.push_back({container.id, makeEstimator(settings_)});
        need.containers.push_back({container.id, {}});
      }
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
        need = members_[i][c].estimator->update(sampleOf(container, signals[i]));
        need.good_until = container.cpu.good_until;
      }
      addTo(pod.total, need);
    }
    if (pod.total.blocked > kNegligible) pod.total.ready = true;
  }
  return needs_;
}

}  // namespace mbcas::demand
