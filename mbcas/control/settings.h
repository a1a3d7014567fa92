// The settings of the control law. docs/control.md has the table of settings and what they do.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"

namespace mbcas::control {

// Limits are written in steps of 10m, rounded up: the kernel's granularity.
inline constexpr Millicores kLimitStep{10};

enum class Profile : std::uint8_t { kResponsive, kClassic };
enum class BidRule : std::uint8_t {
  kEntitlement,  // bid = weight: a budget that demand cannot inflate; demand enters as use
  kPressure,     // bid = weight x demand, clearing between floor and ceiling
};
enum class Reclaim : std::uint8_t {
  kScarce,  // below the declared limit only while CPU is scarce
  kAlways,  // every pod is trimmed to what it needs
  kNever,   // never below the declared limit
};

std::string_view name(Profile profile);
std::string_view name(BidRule rule);
std::string_view name(Reclaim reclaim);
Result<Profile> parseProfile(std::string_view text);  // "responsive", "classic"
Result<BidRule> parseBidRule(std::string_view text);  // "entitlement", "pressure"
Result<Reclaim> parseReclaim(std::string_view text);  // "scarce", "always", "never"

// When a limit may move, and how far. Enforced where the limit is written: by the controller on a
// cluster, by the host's own control plane without one.
struct GuardSettings {
  Nanos cooldown = std::chrono::seconds(30);  // from the last change to a decrease
  // From the last change to a raise: a second, less what ticks may be early.
  Nanos raise_cooldown = std::chrono::milliseconds(900);
  Nanos market_interval = std::chrono::seconds(15);  // between changes of a constrained pod
  double max_step = 1.5;                             // a decrease divides by at most this
  double raise_max_step = 8;                         // a raise multiplies by at most this
  double raise_rate = 2;      // a node's raises in a second, together, in units of its capacity
  bool follow_market = true;  // constrained pods in whole steps both ways, each market_interval

  friend bool operator==(const GuardSettings&, const GuardSettings&) = default;
};

struct Settings {
  BidRule bid_rule = BidRule::kEntitlement;
  bool strict_capacity = false;  // the sum of limits, not of use, stays within capacity
  Reclaim reclaim = Reclaim::kScarce;

  Nanos write_interval = std::chrono::seconds(15);  // between two changes that are not urgent
  double hysteresis = 0.10;                         // smaller changes are not worth writing
  double headroom = 1.25;                           // of a free pod's limit over its use
  Nanos lower_lasts = std::chrono::seconds(15);     // a lower need this long, before a decrease
  // A need that comes back this soon after a decrease was regular: twice as long next time.
  Nanos regret = std::chrono::minutes(10);

  // Slack for the bursts of a pod that others are bound for, as a multiple of its use.
  double insurance = 2;

  double reserve = 0.10;                       // of the node's capacity, never handed out
  double condition_factor = 0.9;               // for each of the node's pressure conditions
  double scarce_from = 0.95;                   // of capacity: demand at which CPU becomes scarce
  double scarce_until = 0.85;                  // and below which it no longer is
  Millicores min_cpu{100};                     // floor of a pod without one of its own
  Nanos not_ready = std::chrono::minutes(10);  // how long an unready pod is not lowered

  GuardSettings guards{};

  friend bool operator==(const Settings&, const Settings&) = default;
};

Settings settingsOf(Profile profile);
// Whether limits themselves are cleared, as in the classic profile.
bool isClassic(const Settings& settings);

// Names the setting: "hysteresis: 1.5 is not between 0 and 0.9".
Result<void> validate(const Settings& settings);

}  // namespace mbcas::control
