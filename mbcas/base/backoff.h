// How long to wait after failures.
#pragma once

#include <algorithm>
#include <cmath>

#include "mbcas/base/units.h"

namespace mbcas {

// 1 s doubling to 5 min, and up to a quarter more by `chance` in [0, 1), so that those who failed
// together do not come back together.
inline Nanos backoff(int failures, double chance) {
  constexpr double kMost = 300;
  const double seconds = std::min(kMost, std::ldexp(1.0, std::clamp(failures - 1, 0, 30)));
  return std::chrono::duration_cast<Nanos>(
      std::chrono::duration<double>(seconds * (1 + chance / 4)));
}

}  // namespace mbcas
