#include "mbcas/control/guards.h"

#include <algorithm>
#include <cmath>

namespace mbcas::control {
namespace {

Allowed wait(const Change& change, Hold hold, Nanos cooldown) {
  return {change.in_force, hold, *change.last_change + cooldown};
}

bool tooSoon(const Change& change, Nanos cooldown) {
  return change.last_change && change.now - *change.last_change < cooldown;
}

Allowed guardRaise(const Change& change, const GuardSettings& settings, Nanos cooldown) {
  if (tooSoon(change, cooldown)) return wait(change, Hold::kCooldown, cooldown);
  const auto most = roundUp(Millicores(
      std::llround(static_cast<double>(change.in_force.count()) * settings.raise_max_step)));
  if (change.desired <= most) return {change.desired};
  return {most, Hold::kStep, change.now + cooldown};
}

Allowed guardDecrease(const Change& change, const GuardSettings& settings) {
  if (change.no_decrease != Hold::kNothing) return {change.in_force, change.no_decrease};
  const Nanos cooldown = change.lower_slowly ? settings.cooldown * 2 : settings.cooldown;
  if (tooSoon(change, cooldown)) return wait(change, Hold::kCooldown, cooldown);
  const auto least = roundUp(Millicores(
      std::llround(std::ceil(static_cast<double>(change.in_force.count()) / settings.max_step))));
  if (change.desired >= least) return {change.desired};
  // A small limit that rounding would leave unchanged goes down by a step.
  const Millicores next = std::min(least, roundUp(change.in_force) - kLimitStep);
  if (change.desired >= next) return {change.desired};
  return {next, Hold::kStep, change.now + cooldown};
}

}  // namespace

Millicores roundUp(Millicores limit) {
  return Millicores((limit.count() + kLimitStep.count() - 1) / kLimitStep.count() *
                    kLimitStep.count());
}

Millicores roundDown(Millicores limit) {
  return Millicores(limit.count() / kLimitStep.count() * kLimitStep.count());
}

std::string_view name(Hold hold) {
  switch (hold) {
    case Hold::kNothing:
      return "nothing";
    case Hold::kCooldown:
      return "cooldown";
    case Hold::kStep:
      return "step";
    case Hold::kRaiseRate:
      return "raise rate";
    case Hold::kNotReady:
      return "not ready";
    case Hold::kDisruption:
      return "disruption budget";
    case Hold::kQuota:
      return "quota of its namespace";
    case Hold::kNoData:
      break;
  }
  return "no data";
}

Allowed guard(const Change& change, const GuardSettings& settings) {
  if (change.desired == change.in_force) return {change.in_force};
  const bool follows = change.constrained && settings.follow_market;
  if (change.desired > change.in_force) {
    return guardRaise(change, settings,
                      follows ? settings.market_interval : settings.raise_cooldown);
  }
  if (!follows) return guardDecrease(change, settings);
  if (change.no_decrease != Hold::kNothing) {
    return {change.in_force, change.no_decrease};
  }
  if (tooSoon(change, settings.market_interval)) {
    return wait(change, Hold::kCooldown, settings.market_interval);
  }
  return {change.desired};
}

}  // namespace mbcas::control
