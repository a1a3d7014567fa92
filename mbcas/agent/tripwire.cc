#include "mbcas/agent/tripwire.h"

#include <algorithm>

namespace mbcas::agent {
namespace {

constexpr Nanos kPeriod = std::chrono::milliseconds(100);

}  // namespace

void Tripwire::arm(MonotonicTime now, Nanos total, Millicores use, std::optional<Millicores> room) {
  meter_ = {};
  meter_.advance(now, total);
  use_ = use;
  threshold_.reset();
  // Half: the load may have begun in the middle of the time since the last look.
  if (room) threshold_ = std::max(options_.least, Millicores(room->count() / 2));
}

bool Tripwire::trips(MonotonicTime now, Nanos total) {
  const std::optional<Millicores> use = meter_.advance(now, total);
  return threshold_ && use && *use - use_ >= *threshold_ && bucket_.take(now);
}

Nanos Tripwire::interval(Nanos between_samples) {
  const Nanos least = std::max<Nanos>(kPeriod * 2, between_samples / 5);
  return (least + kPeriod - Nanos(1)) / kPeriod * kPeriod;
}

}  // namespace mbcas::agent
