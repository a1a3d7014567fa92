// Settings of MBCAS by name, and those that a sweep tries: each by itself, below and above its
// default.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/control/settings.h"
#include "mbcas/demand/estimator.h"

namespace mbcas::sim {

struct Tuning {
  control::Settings law{};
  demand::Settings estimator{};
};

// The defaults of a profile.
Tuning tuningOf(control::Profile profile);

std::span<const std::string_view> tuningNames();
bool isTime(std::string_view setting);

// "headroom=1.5"; times are in seconds. Refuses what the law would refuse, and settings that only
// the other profile has.
Result<void> tune(Tuning& tuning, std::string_view text);

struct Candidate {
  std::string setting{};  // empty: the defaults
  std::string value{};
  Tuning tuning{};
};
// The defaults first, then setting by setting, values ascending; defaults are not repeated. Of
// `classic` only the settings that it alone has: those of its estimator.
std::vector<Candidate> sweepCandidates(control::Profile profile);

}  // namespace mbcas::sim
