#include "mbcas/demand/estimator.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/demand/classic.h"
#include "mbcas/demand/responsive.h"

namespace mbcas::demand {

std::string_view name(BurstState state) {
  switch (state) {
    case BurstState::kNone:
      return "none";
    case BurstState::kGuessed:
      return "guessed";
    case BurstState::kLearned:
      return "learned";
    case BurstState::kTrying:
      break;
  }
  return "trying";
}

Result<Kind> parseKind(std::string_view text) {
  if (text == "responsive") return Kind::kResponsive;
  if (text == "classic") return Kind::kClassic;
  return failure(fmt::format("no estimator \"{}\": responsive or classic", text.substr(0, 40)));
}

double demand(const Need& need, Millicores floor, Millicores ceiling) {
  if (need.pressure) return *need.pressure;
  if (ceiling <= floor) return need.use > floor ? 1 : 0;
  return std::clamp((need.use - floor).cores() / (ceiling - floor).cores(), 0.0, 1.0);
}

std::unique_ptr<Estimator> makeEstimator(const Settings& settings) {
  if (settings.kind == Kind::kClassic) return std::make_unique<Classic>(settings);
  return std::make_unique<Responsive>(settings);
}

}  // namespace mbcas::demand
