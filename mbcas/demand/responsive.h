// The default estimator: two numbers that must not be confused. `use` is what the container
// consumes over seconds; `burst` is the limit at which the kernel stops throttling it, a property
// of its pattern within 100 ms.
//
// Use is the measured usage. Only while the limit itself binds (usage stands at it) the blocked
// work is added: exact for threads that always want to run, too high where a backlog waits. Such a
// value is a guess; as soon as a higher limit shows the real usage, the guess is corrected.
//
// Burst rises at once. The limit binds: to what the waiting threads could use. A burst was cut
// off below the limit: by what was missing in a throttled period, 1.5x to 3x, but not beyond the
// work that there was; by 1.25x where that happened about once a second or less. It falls slowly:
// after a hold without throttling a level 1.25x lower is tried; if that throttles, the old one
// returns and the hold doubles, up to an hour. A level that was seen to throttle on the way up is
// not tried at the first hold. A guess is trimmed sooner, by 1.5x, and never below 1.25x the use.
#pragma once

#include "mbcas/demand/estimator.h"
#include "mbcas/demand/window.h"

namespace mbcas::demand {

class Responsive final : public Estimator {
 public:
  explicit Responsive(const Settings& settings)
      : settings_(settings), window_(settings.window, settings.mean), hold_(settings.burst_hold) {}

  Need update(const Sample& sample) override;
  void configure(const Settings& settings) override;
  void resume(Millicores limit, MonotonicTime now) override;

 private:
  Millicores usable(const Sample& sample, Millicores wanted) const;
  void learnBurst(const Sample& sample, bool throttled, bool binding, Millicores wanted);
  void raiseBurst(MonotonicTime at, Millicores level, BurstState state);
  void trimBurst(const Sample& sample);
  Nanos holdNow() const;

  Settings settings_;
  Window window_;
  std::uint64_t seen_ = 0;
  std::optional<Millicores> last_limit_;

  BurstState state_ = BurstState::kNone;
  Millicores level_;
  Millicores before_trial_;     // the level that was good before a lower one is tried
  Millicores too_low_;          // the highest limit that was seen to cut bursts off
  Nanos hold_;                  // how long a learned level stays
  MonotonicTime calm_since_{};  // last throttling, or last change of the level
  Nanos busiest_{0};            // most CPU time in one sample since then
  MonotonicTime learned_at_{};  // since when bursts are known
};

}  // namespace mbcas::demand
