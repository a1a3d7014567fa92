#include "mbcas/control/settings.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace mbcas::control {
namespace {

template <class Value, std::size_t N>
using Names = std::array<std::pair<Value, std::string_view>, N>;

constexpr Names<Profile, 2> kProfiles{
    {{Profile::kResponsive, "responsive"}, {Profile::kClassic, "classic"}}};
constexpr Names<BidRule, 2> kBidRules{
    {{BidRule::kEntitlement, "entitlement"}, {BidRule::kPressure, "pressure"}}};
constexpr Names<Reclaim, 3> kReclaims{
    {{Reclaim::kScarce, "scarce"}, {Reclaim::kAlways, "always"}, {Reclaim::kNever, "never"}}};

template <class Value, std::size_t N>
std::string_view nameIn(const Names<Value, N>& names, Value value) {
  for (const auto& [known, text] : names) {
    if (known == value) return text;
  }
  return "unknown";
}

template <class Value, std::size_t N>
Result<Value> parseIn(const Names<Value, N>& names, std::string_view what, std::string_view text) {
  std::string choices;
  for (const auto& [value, known] : names) {
    if (known == text) return value;
    choices += choices.empty() ? "" : ", ";
    choices += known;
  }
  return failure(fmt::format("no {} \"{}\": it is one of {}", what, text.substr(0, 40), choices));
}

}  // namespace

std::string_view name(Profile profile) {
  return nameIn(kProfiles, profile);
}
std::string_view name(BidRule rule) {
  return nameIn(kBidRules, rule);
}
std::string_view name(Reclaim reclaim) {
  return nameIn(kReclaims, reclaim);
}

Result<Profile> parseProfile(std::string_view text) {
  return parseIn(kProfiles, "profile", text);
}
Result<BidRule> parseBidRule(std::string_view text) {
  return parseIn(kBidRules, "bid rule", text);
}
Result<Reclaim> parseReclaim(std::string_view text) {
  return parseIn(kReclaims, "reclaim mode", text);
}

Settings settingsOf(Profile profile) {
  Settings settings;
  if (profile == Profile::kClassic) {
    settings.bid_rule = BidRule::kPressure;
    settings.strict_capacity = true;
    settings.reclaim = Reclaim::kAlways;
    settings.guards.raise_cooldown = settings.guards.cooldown;
    settings.guards.raise_max_step = settings.guards.max_step;
    settings.guards.follow_market = false;
  }
  return settings;
}

bool isClassic(const Settings& settings) {
  return settings.strict_capacity || settings.bid_rule == BidRule::kPressure;
}

Result<void> validate(const Settings& settings) {
  struct Range {
    std::string_view name;
    double value;
    double least;
    double most;
  };
  const auto duration = [](Nanos value) { return std::chrono::duration<double>(value).count(); };
  constexpr double kDay = 86'400;
  const GuardSettings& guards = settings.guards;
  const std::array ranges{
      Range{"write-interval", duration(settings.write_interval), 0, kDay},
      Range{"insurance", settings.insurance, 1, 10},
      Range{"lower-lasts", duration(settings.lower_lasts), 0, kDay},
      Range{"regret", duration(settings.regret), 0, kDay},
      Range{"not-ready", duration(settings.not_ready), 0, kDay},
      Range{"cooldown", duration(guards.cooldown), 0, kDay},
      Range{"raise-cooldown", duration(guards.raise_cooldown), 0, kDay},
      Range{"market-interval", duration(guards.market_interval), 0, kDay},
      Range{"headroom", settings.headroom, 1, 10},
      // More than the headroom, and a pod could rest at a limit below its use.
      Range{"hysteresis", settings.hysteresis, 0, std::round((settings.headroom - 1) * 1e6) / 1e6},
      Range{"reserve", settings.reserve, 0, 0.9},
      Range{"condition-factor", settings.condition_factor, 0.1, 1},
      Range{"scarce-from", settings.scarce_from, 0.1, 1},
      Range{"scarce-until", settings.scarce_until, 0, settings.scarce_from},
      Range{"min-cpu", settings.min_cpu.cores(), kLimitStep.cores(), 1024},
      Range{"max-step", guards.max_step, 1.01, 1000},
      Range{"raise-max-step", guards.raise_max_step, 1.01, 1000},
      Range{"raise-rate", guards.raise_rate, 0.01, 1000},
  };
  for (const Range& range : ranges) {
    // Written so that NaN fails too.
    if (!(range.value >= range.least && range.value <= range.most)) {
      return failure(fmt::format("{}: {} is not between {} and {}", range.name, range.value,
                                 range.least, range.most));
    }
  }
  return {};
}

}  // namespace mbcas::control
