// A rate limit that allows bursts: as many at once as the bucket holds, then `rate` per second.
#pragma once

#include <algorithm>

#include "mbcas/base/clock.h"

namespace mbcas::kube {

class TokenBucket {
 public:
  // A rate of 0 means no limit.
  TokenBucket(double rate, double burst) : rate_(rate), burst_(burst), tokens_(burst) {}

  // Takes a token and says how long to wait before using it. Those who wait are served in order.
  Nanos reserve(MonotonicTime now) {
    if (rate_ <= 0) return Nanos(0);
    refill(now);
    tokens_ -= 1;
    if (tokens_ >= 0) return Nanos(0);
    return std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(-tokens_ / rate_));
  }

  // Takes a token if there is one now.
  bool take(MonotonicTime now) {
    if (rate_ <= 0) return true;
    refill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

  // How long until there is one to take; nothing is taken.
  Nanos wait(MonotonicTime now) const {
    if (rate_ <= 0) return Nanos(0);
    const double passed = started_ ? std::chrono::duration<double>(now - last_).count() : 0;
    const double missing = 1 - std::min(burst_, tokens_ + passed * rate_);
    if (missing <= 0) return Nanos(0);
    // Rounded up, so that it is there by then.
    return std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(missing / rate_)) +
           std::chrono::microseconds(1);
  }

 private:
  void refill(MonotonicTime now) {
    const double seconds = std::chrono::duration<double>(now - last_).count();
    if (started_) tokens_ = std::min(burst_, tokens_ + seconds * rate_);
    started_ = true;
    last_ = now;
  }

  double rate_;
  double burst_;
  double tokens_;
  MonotonicTime last_{};
  bool started_ = false;
};

}  // namespace mbcas::kube
