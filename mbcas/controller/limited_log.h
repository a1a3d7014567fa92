// Lines for people, as many as people can read: in a storm some are left out, and a line says how
// many.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "mbcas/base/clock.h"
#include "mbcas/base/mutex.h"
#include "mbcas/kube/token_bucket.h"

namespace mbcas::controller {

// Thread-safe. `write` must not call back.
class LimitedLog {
 public:
  using Write = std::function<void(const std::string& line)>;

  // `what` names the lines, in the plural: "resizes".
  LimitedLog(std::string what, double per_second, double burst, Write write)
      : what_(std::move(what)), bucket_(per_second, burst), write_(std::move(write)) {}

  void say(const std::string& line, MonotonicTime now) {
    if (!write_) return;
    const MutexLock lock(mutex_);
    if (!bucket_.take(now)) {
      ++left_out_;
      return;
    }
    tellLeftOut();
    write_(line);
  }

  // To be called now and then: a storm may end without another line.
  void flush(MonotonicTime now) {
    if (!write_) return;
    const MutexLock lock(mutex_);
    if (left_out_ > 0 && bucket_.take(now)) tellLeftOut();
  }

 private:
  void tellLeftOut() MBCAS_REQUIRES(mutex_) {
    if (left_out_ == 0) return;
    write_(fmt::format("{} more {} are not shown here: there were too many at once", left_out_,
                       what_));
    left_out_ = 0;
  }

  const std::string what_;
  Mutex mutex_;
  kube::TokenBucket bucket_ MBCAS_GUARDED_BY(mutex_);
  std::uint64_t left_out_ MBCAS_GUARDED_BY(mutex_) = 0;
  const Write write_;
};

}  // namespace mbcas::controller
