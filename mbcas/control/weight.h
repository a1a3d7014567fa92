// A pod's weight in the market.
#pragma once

#include <cstdint>

#include "mbcas/base/units.h"

namespace mbcas::control {

// By spec.priority: 1 from 0 to 1000; above it 1 + (p - 1000) / 2000, at most 4; below 0 falling
// linearly to 0.5 at -1000, and no lower.
double priorityFactor(std::int64_t priority);

// The weight that the kubelet gives a cgroup with this request, on the kernel's scale.
double kernelShares(Millicores request);

// The original CPU request in millicores (1 where there is none) x priority factor x the cluster's
// own factor.
double weightOf(Millicores request, std::int64_t priority = 0, double factor = 1);

}  // namespace mbcas::control
