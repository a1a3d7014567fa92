// One sentence for a person on why a pod got what it got.
#pragma once

#include <cstddef>
#include <string>

#include "mbcas/market/solver.h"

namespace mbcas::market {

// "bid 60 at price 0.125 buys 480m above its min of 100m". `clearing` is the answer to `problem`.
std::string explain(const Problem& problem, const Clearing& clearing, std::size_t pod);

}  // namespace mbcas::market
