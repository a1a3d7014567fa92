#include "mbcas/control/weight.h"

#include <algorithm>
#include <cmath>

namespace mbcas::control {

double priorityFactor(std::int64_t priority) {
  const auto p = static_cast<double>(priority);
  if (p > 1000) return std::min(1 + (p - 1000) / 2000, 4.0);
  if (p < 0) return std::max(1 + p / 2000, 0.5);
  return 1;
}

double kernelShares(Millicores request) {
  return std::max(2.0, std::floor(request.cores() * 1024));
}

double weightOf(Millicores request, std::int64_t priority, double factor) {
  const auto size = static_cast<double>(std::max<std::int64_t>(request.count(), 1));
  return size * priorityFactor(priority) * factor;
}

}  // namespace mbcas::control
