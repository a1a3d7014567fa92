// Which PodAllocation is written next. Keeps only the newest content for each pod, so that nothing
// stale is ever written; the most urgent first; at most so many in a second, so that a write storm
// is impossible; one write of a pod at a time; failures back off, 1 s doubling to 5 min with
// jitter; and when the server asks for time (Retry-After) nothing is written until it is over, and
// a little longer, so that agents who were asked together do not come back together. After a
// failure one write is under way at a time, and with each round of successes one more: a thousand
// agents with four each would keep a busy server busy with turning them away.
//
//   outbox.put(wish, now);
//   while (std::optional<Wish> wish = outbox.take(now)) send(*wish);   // and when it has ended:
//   outbox.done(uid, result, now);
//   come back at outbox.next(now)
//
// Pure: time is an argument. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mbcas/agent/pipeline.h"
#include "mbcas/base/clock.h"

namespace mbcas::agent {

enum class WriteResult : std::uint8_t {
  kDone,
  kGone,     // the pod or its namespace is no more: forget it
  kRefused,  // by the schema or a policy: tried again late, or when there is a new wish
  kFailed,   // anything that may pass: the server does not answer, 429, 5xx
};

class Outbox {
 public:
  struct Options {
    double writes_per_second = 20;
    int burst = 40;
    int in_flight = 4;
    std::uint64_t seed = 0;  // of the jitter
  };
  explicit Outbox(const Options& options);
  ~Outbox();

  void put(const Wish& wish, MonotonicTime now);
  void forget(std::string_view uid);
  // The wish to be written now; nothing: none is due. It is under way until done() is called.
  std::optional<Wish> take(MonotonicTime now);
  // `retry_after`: what the server asked for. It is busy, and the pod is not at fault.
  void done(std::string_view uid, WriteResult result, MonotonicTime now,
            std::optional<Nanos> retry_after = std::nullopt);
  // The server answers again (a watch is back, the lease was renewed): what failed is due now,
  // once the time is over that the server asked for.
  void answers(MonotonicTime now);
  // When take() may give something again; nothing: not before another put() or done().
  std::optional<MonotonicTime> next(MonotonicTime now) const;
  std::size_t waiting() const;  // wishes that are not under way
  // What was last written for it and not refused; so that the same is not written twice.
  const podallocation::Spec* written(std::string_view uid) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::agent
