// What the kernel and the market would make of other weights, bounds or capacity: the question that
// the page of `mbcas ui` asks, and its answer. Nothing is applied.
//
// The law itself answers (control/intervention.h), for all consumers as siblings of each other. A
// pod that the market gives more than the kernel does is taken for one that is helped, as if its
// trial had shown that help arrives.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/result.h"

namespace mbcas::cli {

// Amounts are in millicores.
struct WhatIfPod {
  std::string name;
  bool managed = true;
  double weight = 1024;  // the kernel's
  double demand = 0;     // what it would use if nothing held it back
  // Of a managed pod.
  double factor = 1;  // how important it is
  double request = 0;
  double declared = 0;
  double floor = 0;
  std::optional<double> ceiling;  // nothing: the capacity

  friend bool operator==(const WhatIfPod&, const WhatIfPod&) = default;
};

struct WhatIf {
  double capacity = 0;
  std::vector<WhatIfPod> pods;

  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

inline constexpr std::size_t kMostWhatIfPods = 2000;
inline constexpr double kMostWhatIfCpu = 1e9;      // millicores
inline constexpr double kMostWhatIfWeight = 1e9;   // smallest: 1e-3
inline constexpr double kMostWhatIfFactor = 1000;  // smallest: 1e-3

// {"capacity":2000,"pods":[{"name":"web","weight":204,"factor":1,"demand":500,...},...]}, with
// names as above. An error names the field.
Result<WhatIf> parseWhatIf(std::string json);

struct WhatIfOutcome {
  double by_kernel = 0;
  double award = 0;
  bool bound = false;             // for a pod that matters more
  bool helped = false;            // others are bound for it
  std::optional<double> limit{};  // a managed pod's
};
struct WhatIfAnswer {
  double price = 0;  // as a node's
  std::vector<WhatIfOutcome> pods{};
};
WhatIfAnswer answer(const WhatIf& question);
std::string whatIfJson(const WhatIfAnswer& answer);

}  // namespace mbcas::cli
