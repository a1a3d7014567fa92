#include "mbcas/sim/profile.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mbcas::sim {
namespace {

constexpr Nanos kFine = std::chrono::milliseconds(100);  // how finely a slope is followed

double ratio(Nanos part, Nanos whole) {
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

}  // namespace

double Profile::at(Nanos time) const {
  if (shape == Shape::kDiurnal) {
    const double phase = 2 * std::numbers::pi * ratio(time % period, period);
    return low + (high - low) * (1 - std::cos(phase)) / 2;
  }
  if (shape == Shape::kConstant || points.empty()) return 1;
  const auto after = std::ranges::upper_bound(points, time, {}, &Point::at);
  if (after == points.begin()) return points.front().factor;
  const auto before = after - 1;
  if (shape == Shape::kSteps || after == points.end()) return before->factor;
  return std::lerp(before->factor, after->factor, ratio(time - before->at, after->at - before->at));
}

double Profile::highest() const {
  if (shape == Shape::kDiurnal) return std::max(low, high);
  if (shape == Shape::kConstant || points.empty()) return 1;
  return std::ranges::max(points, {}, &Point::factor).factor;
}

Nanos Profile::nextChange(Nanos time) const {
  if (shape == Shape::kDiurnal) return time + kFine;
  const auto after = std::ranges::upper_bound(points, time, {}, &Point::at);
  if (shape == Shape::kConstant || after == points.end()) return Nanos::max();
  return shape == Shape::kSteps ? after->at : std::min(after->at, time + kFine);
}

}  // namespace mbcas::sim
