// An `mbcas run` in the same words as an agent, so that `top` and `explain` need not care.
#pragma once

#include <string>

#include "mbcas/cli/record.h"
#include "mbcas/host/plane.h"

namespace mbcas::cli {

NodeRecord recordOf(const host::View& view, const std::string& machine, WallTime now);

}  // namespace mbcas::cli
