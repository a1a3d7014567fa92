// When a pod is helped: other pods are bound for it only on evidence, first on trial, and then for
// as long as it would be deprived without.
//
//   kNone  -> kProbe  neighbours pin the pod down, and the market gives it more than the kernel
//   kProbe -> kHeld   half a minute of help was effective
//          -> kNone   the help was not effective; the next trial waits, longer each time
//   kHeld  -> kNone   the kernel alone gives the pod what it claims, or help does not reach it
//
// A hold does not depend on the evidence that led to it, because the help removes that evidence.
// Otherwise the pod would be helped and dropped in turns.
//
// Pure: time comes with the samples.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"

namespace mbcas::control {

class Help {
 public:
  enum class Phase : std::uint8_t { kNone, kProbe, kHeld };

  struct Sample {
    MonotonicTime at{};
    Millicores use{};
    bool pinned = false;               // by neighbours: the kernel alone keeps it from using more
    std::optional<double> contention;  // share of time in which it waits for a CPU
  };
  void add(const Sample& sample);

  // Whether there is evidence enough for a trial, and no back-off.
  bool mayProbe() const;
  void probe();
  // Once per sample, after add(). `deprived`: without help the kernel would give it less than it
  // claims. `arrives`: what is taken from the bound pods reaches it.
  void follow(bool deprived, bool arrives);
  // The participants or factors have changed: what was learned does not count any more.
  void forgetBackOff();

  Phase phase() const { return phase_; }
  // The demand that the pod should be able to meet; nothing: no help. `most` is the most that the
  // pod can use.
  std::optional<Millicores> claim(Millicores most, double insurance) const;
  Millicores use() const { return meanUse(Nanos(0), kWindow); }  // over the last window

  static constexpr Nanos kWindow = std::chrono::seconds(30);
  static constexpr Nanos kFirstBackOff = std::chrono::minutes(5);
  static constexpr Nanos kLongestBackOff = std::chrono::hours(1);

 private:
  // Of the samples between `from` and `to` before the last one.
  Millicores meanUse(Nanos from, Nanos to) const;
  double pinnedShare(Nanos from, Nanos to) const;
  std::optional<double> waitingPerUse(Nanos from, Nanos to) const;
  std::size_t count(Nanos from, Nanos to) const;
  bool helped() const;
  void followUse();
  void end(bool failed);
  MonotonicTime now() const { return samples_.empty() ? MonotonicTime{} : samples_.back().at; }

  std::deque<Sample> samples_;  // of two windows and a trial
  Phase phase_ = Phase::kNone;
  MonotonicTime since_{};
  Millicores before_{};         // use in the window before the trial
  Millicores before_before_{};  // and in the one before that
  Millicores held_{};           // use that the claim of a hold rests on
  std::optional<double> waited_before_{};
  Nanos back_off_{0};
  MonotonicTime retry_{};
};

std::string_view name(Help::Phase phase);  // "none", "probe", "held"

}  // namespace mbcas::control
