// Whether to sample before the next sample is due. A look costs one reading, the machine's own
// counter of CPU time: if that has not risen by as much as the pod closest to its limit has left,
// no pod can have run into a limit, and there is nothing to see. So a calm node is sampled once a
// second, and a pod whose load begins between two samples is still seen soon.
//
// How often it may trip is bounded, so that a restless node costs little more than a calm one.
// Pure.
#pragma once

#include <optional>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/kube/token_bucket.h"
#include "mbcas/sense/meter.h"

namespace mbcas::agent {

class Tripwire {
 public:
  struct Options {
    double per_second = 0.5;  // samples out of turn, in the long run
    double burst = 20;
    Millicores least{20};  // a smaller rise is noise
  };
  explicit Tripwire(const Options& options)
      : options_(options), bucket_(options.per_second, options.burst) {}

  // After a sample. `total`: the machine's CPU time so far; `use`: its use in the interval that
  // ended; `room`: what the pod closest to its limit has left; nothing: there is none to watch.
  void arm(MonotonicTime now, Nanos total, Millicores use, std::optional<Millicores> room);
  bool armed() const { return threshold_.has_value(); }
  void disarm() { threshold_.reset(); }
  // A look.
  bool trips(MonotonicTime now, Nanos total);
  // Whether there may be one more sample out of turn, which then counts.
  bool another(MonotonicTime now) { return bucket_.take(now); }

  // How long after a sample to look, and then again; a sample that is due sooner than that after a
  // look makes it needless. Whole periods of bandwidth control, so that each sample has as many as
  // it should: 200 ms at the least, and what the sampler takes for an interval.
  static Nanos interval(Nanos between_samples);

 private:
  Options options_;
  kube::TokenBucket bucket_;
  sense::UsageMeter meter_;
  Millicores use_;
  std::optional<Millicores> threshold_;
};

}  // namespace mbcas::agent
