#include "mbcas/demand/responsive.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace mbcas::demand {
namespace {

using std::chrono::seconds;

constexpr Millicores kNegligible(1);  // 1 ms of blocked work in a second
constexpr double kAtLimitStep = 1.25;
constexpr double kBurstStep = 1.5;
constexpr double kLargestStep = 3.0;
constexpr double kGuessStep = 1.5;  // as far as a limit may fall at once
// One period that was cut off, and none for so long before: something was missing, but not how
// much.
constexpr Nanos kRarely = std::chrono::milliseconds(900);
constexpr double kMargin = 1.1;
constexpr Millicores kUnlimited(std::numeric_limits<std::int64_t>::max());
constexpr Nanos kLongSample = std::chrono::milliseconds(500);
constexpr Nanos kGuessHold = seconds(10);
constexpr Nanos kLongestHold = std::chrono::hours(1);

Millicores scaled(Millicores amount, double factor) {
  return Millicores(std::llround(static_cast<double>(amount.count()) * factor));
}

// CPU time within one period, as the limit that allows it.
Millicores asLimit(Nanos cpu_time, Nanos period) {
  return rate(cpu_time, period);
}

Nanos cpuTime(const Sample& sample) {
  return Nanos(sample.usage.count() * sample.interval.count() / 1000);
}

}  // namespace

// No container uses more CPUs than the machine has, nor more than the container has threads.
Millicores Responsive::usable(const Sample& sample, Millicores wanted) const {
  const auto most = std::min<std::uint64_t>(settings_.cpus, sample.threads.value_or(~0ULL));
  return std::max(sample.usage,
                  std::min(wanted, Millicores(static_cast<std::int64_t>(most) * 1000)));
}

Need Responsive::update(const Sample& sample) {
  ++seen_;
  const bool throttled = sample.blocked > kNegligible && sample.limit;
  // A limit that changed during the interval throttled only a part of it: nothing to learn there.
  const bool mixed = sample.limit != std::exchange(last_limit_, sample.limit) && seen_ > 1;
  // In a short sample a burst looks like a load that never ends; where bursts are known it is one.
  const bool burst = sample.interval < kLongSample && state_ == BurstState::kLearned &&
                     sample.at - learned_at_ >= kLongSample;
  const bool binding = throttled && sample.at_limit && !mixed && !burst;
  const Millicores wanted = binding ? usable(sample, sample.usage + sample.blocked) : sample.usage;
  if (binding) {
    window_.add(sample.interval, sample.usage, wanted, sample.limit);
  } else {
    window_.add(sample.interval, sample.usage, wanted);
    if (!throttled && !mixed) {
      window_.correctGuesses(sample.usage, sample.limit.value_or(kUnlimited));
    }
  }

  if (!mixed) learnBurst(sample, throttled, binding, wanted);
  trimBurst(sample);

  Need need;
  need.at = sample.at;
  need.ready = throttled || seen_ >= settings_.warmup;
  need.use = window_.median();
  need.use_peak = std::max(window_.highestMean(), binding ? wanted : Millicores(0));
  need.used_peak = window_.highestUsage();
  need.busy = window_.busyShare(Millicores(need.used_peak.count() / 10));
  need.burst = level_;
  need.present = wanted;
  need.blocked = sample.blocked;
  need.last = sample;
  need.binding = binding;
  need.samples = static_cast<std::uint32_t>(window_.size());
  need.burst_state = state_;
  need.burst_until = state_ == BurstState::kNone ? MonotonicTime{} : calm_since_ + holdNow();
  return need;
}

// A hold that has been doubled stays doubled.
void Responsive::configure(const Settings& settings) {
  const double factor =
      static_cast<double>(settings.burst_hold.count()) /
      static_cast<double>(std::max<std::int64_t>(settings_.burst_hold.count(), 1));
  const auto hold = Nanos(std::llround(static_cast<double>(hold_.count()) * factor));
  hold_ = std::clamp(hold, settings.burst_hold, std::max(settings.burst_hold, kLongestHold));
  settings_ = settings;
}

void Responsive::resume(Millicores limit, MonotonicTime now) {
  raiseBurst(now, limit, BurstState::kLearned);
}

Nanos Responsive::holdNow() const {
  return state_ == BurstState::kGuessed ? kGuessHold : hold_;
}

void Responsive::raiseBurst(MonotonicTime at, Millicores level, BurstState state) {
  if (level > level_) {
    if (state == BurstState::kLearned && state_ != state) learned_at_ = at;
    level_ = level;
    state_ = state;
  }
  calm_since_ = at;
  busiest_ = Nanos(0);
}

void Responsive::learnBurst(const Sample& sample, bool throttled, bool binding, Millicores wanted) {
  busiest_ = std::max(busiest_, cpuTime(sample));
  if (!throttled) return;
  const bool rarely = sample.throttled_periods <= 1 && sample.at - calm_since_ >= kRarely;
  // A lower level was being tried, and it was in force.
  if (state_ == BurstState::kTrying && *sample.limit <= scaled(level_, kMargin)) {
    hold_ = std::min(hold_ * 2, kLongestHold);
    raiseBurst(sample.at, before_trial_, BurstState::kLearned);
    if (!binding) return;
  } else if (!binding) {
    too_low_ = std::max(too_low_, *sample.limit);
  }
  if (binding) {
    raiseBurst(sample.at, wanted, BurstState::kGuessed);
    return;
  }
  // What a throttled period lacked; but a period never needs more than all the work there was.
  const Nanos blocked(sample.blocked.count() * sample.interval.count() / 1000);
  const auto periods =
      static_cast<std::int64_t>(std::max<std::uint64_t>(sample.throttled_periods, 1));
  const Millicores missing = asLimit(blocked / periods, sample.period);
  const Millicores all_work = scaled(asLimit(cpuTime(sample), sample.period), kMargin);
  const Millicores level =
      rarely ? scaled(*sample.limit, kAtLimitStep)
             : std::clamp(std::min(*sample.limit + missing, all_work),
                          scaled(*sample.limit, kBurstStep), scaled(*sample.limit, kLargestStep));
  raiseBurst(sample.at, usable(sample, level), BurstState::kLearned);
}

void Responsive::trimBurst(const Sample& sample) {
  if (state_ == BurstState::kNone || sample.at - calm_since_ < holdNow()) return;
  const bool guessed = state_ == BurstState::kGuessed;
  const Millicores lower = scaled(level_, 1 / (guessed ? kGuessStep : kAtLimitStep));
  if (guessed) {
    // Below this, use alone sets the limit.
    const Millicores enough = scaled(window_.highestMean(), kAtLimitStep);
    level_ = lower > enough ? lower : Millicores(0);
    if (level_ == Millicores(0)) state_ = BurstState::kNone;
  } else {
    // That no more work was seen is known; that less would do must be tried, which needs a limit
    // as low as the level.
    const Millicores all_work = scaled(asLimit(busiest_, sample.period), kMargin);
    const bool tested = sample.limit && *sample.limit <= scaled(level_, kMargin);
    // Known to be too low: not tried before the end of the next hold, when the load may have
    // changed.
    const bool known = tested && lower <= too_low_;
    if (known) hold_ = std::min(hold_ * 2, kLongestHold);
    too_low_ = Millicores(0);
    before_trial_ = level_;
    level_ = std::min(all_work, tested && !known ? lower : level_);
    state_ = level_ == Millicores(0) ? BurstState::kNone : BurstState::kTrying;
  }
  calm_since_ = sample.at;
  busiest_ = Nanos(0);
}

}  // namespace mbcas::demand
