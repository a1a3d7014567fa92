#include "mbcas/sense/meter.h"

#include <algorithm>

namespace mbcas::sense {

std::string_view name(BlockedSource source) {
  switch (source) {
    case BlockedSource::kLocal:
      return "cpu.stat.local";
    case BlockedSource::kStat:
      return "cpu.stat";
    case BlockedSource::kPressure:
      return "cpu.pressure";
    case BlockedSource::kNone:
      break;
  }
  return "none";
}

kernel::Throttling Meter::throttling(const kernel::Throttling& total) {
  const std::optional<kernel::Throttling> before = std::exchange(throttling_, total);
  if (!before) return {};
  if (total.periods < before->periods || total.throttled_periods < before->throttled_periods ||
      total.time < before->time) {
    ++resets_;
    return {};
  }
  return {total.periods - before->periods, total.throttled_periods - before->throttled_periods,
          total.time - before->time};
}

std::optional<Millicores> UsageMeter::advance(MonotonicTime at, Nanos total) {
  const std::optional<Reading> before = std::exchange(last_, Reading{at, total});
  if (!before || at <= before->at || total < before->total) return std::nullopt;
  return rate(total - before->total, at - before->at);
}

std::optional<PressureSignals> PressureMeter::advance(MonotonicTime at,
                                                      const kernel::Pressure& total) {
  const std::optional<Reading> before = std::exchange(last_, Reading{at, total});
  if (!before || at <= before->at || total.some < before->total.some) return std::nullopt;
  const auto share = [&](Nanos now, Nanos then) {
    const double wall = static_cast<double>((at - before->at).count());
    return std::clamp(static_cast<double>((now - then).count()) / wall, 0.0, 1.0);
  };
  const Nanos none{0};
  return PressureSignals{at, at - before->at, share(total.some, before->total.some),
                         share(total.full.value_or(none), before->total.full.value_or(none))};
}

double contention(const PressureSignals& cpu, Millicores blocked) {
  return std::max(0.0, cpu.some - std::min(1.0, blocked.cores()));
}

}  // namespace mbcas::sense
