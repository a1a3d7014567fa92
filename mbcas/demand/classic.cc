#include "mbcas/demand/classic.h"

#include <algorithm>

namespace mbcas::demand {

Need Classic::update(const Sample& sample) {
  ++seen_;
  window_.add(sample.interval, sample.usage, sample.usage);
  const double ratio = sample.periods == 0 ? 0
                                           : static_cast<double>(sample.throttled_periods) /
                                                 static_cast<double>(sample.periods);
  const double raw = std::clamp(ratio / settings_.throttle_threshold, 0.0, 1.0);
  const double weight = raw > smoothed_ ? settings_.ema_up : settings_.ema_down;
  smoothed_ += weight * (raw - smoothed_);

  Need need;
  need.at = sample.at;
  need.ready = sample.throttled_periods > 0 || seen_ >= settings_.warmup;
  need.use = window_.median();
  need.use_peak = need.used_peak = window_.highestMean();
  need.busy = window_.busyShare(Millicores(need.used_peak.count() / 10));
  need.present = sample.usage;
  need.blocked = sample.blocked;
  need.pressure = smoothed_;
  need.last = sample;
  need.binding = sample.at_limit && sample.throttled_periods > 0;
  need.samples = static_cast<std::uint32_t>(window_.size());
  return need;
}

}  // namespace mbcas::demand
