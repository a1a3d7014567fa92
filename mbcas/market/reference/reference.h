// The market again, slow and obvious: the oracle that the real solver is tested against. It shares
// no code with the real solver beyond the types of the problem and its answer.
#pragma once

#include "mbcas/market/solver.h"

namespace mbcas::market::reference {

// Needs a problem that validate() accepts.
Clearing clear(const Problem& problem);

}  // namespace mbcas::market::reference
