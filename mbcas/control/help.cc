#include "mbcas/control/help.h"

#include <algorithm>
#include <cmath>

namespace mbcas::control {
namespace {

constexpr Nanos kMostlyPinned = std::chrono::seconds(20);  // of a window
constexpr double kHardlyPinned = 1.0 / 3;
constexpr double kMore = 1.1;
constexpr double kLess = 0.9;
// A claim follows the use only if it has changed by more than this part. Otherwise every bound
// pod's limit would follow the noise of the pod that it is bound for.
constexpr double kAnother = 0.1;
constexpr std::size_t kEnough = 15;  // samples in a window
// The first half of a trial is left for limits to take effect.
constexpr Nanos kJudged = Help::kWindow / 2;

}  // namespace

void Help::add(const Sample& sample) {
  samples_.push_back(sample);
  while (samples_.front().at < sample.at - 3 * kWindow) samples_.pop_front();
}

template <class Visit>
static void each(const std::deque<Help::Sample>& samples, Nanos from, Nanos to, Visit visit) {
  if (samples.empty()) return;
  const MonotonicTime now = samples.back().at;
  for (const Help::Sample& sample : samples) {
    if (sample.at > now - to && sample.at <= now - from) visit(sample);
  }
}

std::size_t Help::count(Nanos from, Nanos to) const {
  std::size_t count = 0;
  each(samples_, from, to, [&](const Sample&) { ++count; });
  return count;
}

Millicores Help::meanUse(Nanos from, Nanos to) const {
  Millicores sum;
  each(samples_, from, to, [&](const Sample& sample) { sum += sample.use; });
  const std::size_t samples = count(from, to);
  return samples == 0 ? Millicores(0)
                      : Millicores(sum.count() / static_cast<std::int64_t>(samples));
}

double Help::pinnedShare(Nanos from, Nanos to) const {
  std::size_t pinned = 0;
  each(samples_, from, to, [&](const Sample& sample) { pinned += sample.pinned ? 1 : 0; });
  const std::size_t samples = count(from, to);
  return samples == 0 ? 0 : static_cast<double>(pinned) / static_cast<double>(samples);
}

std::optional<double> Help::waitingPerUse(Nanos from, Nanos to) const {
  double waiting = 0;
  double used = 0;
  bool known = true;
  each(samples_, from, to, [&](const Sample& sample) {
    known = known && sample.contention.has_value();
    waiting += sample.contention.value_or(0);
    used += sample.use.cores();
  });
  if (!known || used <= 0) return std::nullopt;
  return waiting / used;
}

bool Help::mayProbe() const {
  if (phase_ != Phase::kNone || now() < retry_) return false;
  const std::size_t samples = count(Nanos(0), kWindow);
  if (samples < kEnough) return false;
  // Of a pod that is younger than the window, the time before it counts as not pinned.
  const auto first =
      std::ranges::lower_bound(samples_, now() - kWindow + Nanos(1), {}, &Sample::at);
  const Nanos interval = (now() - first->at) / static_cast<std::int64_t>(samples - 1);
  const auto pinned =
      std::count_if(first, samples_.end(), [](const Sample& s) { return s.pinned; });
  return pinned * interval >= kMostlyPinned;
}

void Help::probe() {
  phase_ = Phase::kProbe;
  since_ = now();
  before_ = meanUse(Nanos(0), kWindow);
  before_before_ = count(kWindow, 2 * kWindow) > 0 ? meanUse(kWindow, 2 * kWindow) : before_;
  waited_before_ = waitingPerUse(Nanos(0), kWindow);
}

bool Help::helped() const {
  const auto use = static_cast<double>(meanUse(Nanos(0), kJudged).count());
  const auto before = static_cast<double>(before_.count());
  const auto varied = std::abs(before - static_cast<double>(before_before_.count()));
  if (use >= kMore * before && use - before > varied) return true;
  if (pinnedShare(Nanos(0), kJudged) <= kHardlyPinned) return true;
  const std::optional<double> waited = waitingPerUse(Nanos(0), kJudged);
  return waited && waited_before_ && *waited <= kLess * *waited_before_;
}

void Help::follow(bool deprived, bool arrives) {
  switch (phase_) {
    case Phase::kNone:
      return;
    case Phase::kProbe:
      if (!deprived || !arrives) return end(true);
      if (now() - since_ < kWindow) return;
      if (!helped()) return end(true);
      phase_ = Phase::kHeld;
      since_ = now();
      held_ = use();
      back_off_ = Nanos(0);
      return;
    case Phase::kHeld:
      if (!deprived) return end(false);
      if (!arrives) return end(true);
      followUse();
  }
}

void Help::followUse() {
  const auto held = static_cast<double>(held_.count());
  if (std::abs(static_cast<double>(use().count()) - held) > kAnother * held) held_ = use();
}

void Help::end(bool failed) {
  phase_ = Phase::kNone;
  // The evidence is out of date.
  for (Sample& sample : samples_) sample.pinned = false;
  if (!failed) return;
  back_off_ = std::clamp(back_off_ * 2, kFirstBackOff, kLongestBackOff);
  retry_ = now() + back_off_;
}

void Help::forgetBackOff() {
  back_off_ = Nanos(0);
  retry_ = MonotonicTime{};
}

std::optional<Millicores> Help::claim(Millicores most, double insurance) const {
  if (phase_ == Phase::kNone) return std::nullopt;
  if (phase_ == Phase::kProbe) return most;
  return std::min(most, Millicores(std::llround(static_cast<double>(held_.count()) * insurance)));
}

std::string_view name(Help::Phase phase) {
  switch (phase) {
    case Help::Phase::kNone:
      return "none";
    case Help::Phase::kProbe:
      return "probe";
    case Help::Phase::kHeld:
      break;
  }
  return "held";
}

}  // namespace mbcas::control
