// The settings of the whole cluster. The controller publishes them in the ConfigMap mbcas of its
// own namespace, under the names of the flags, and agents follow the ConfigMap, so that both agree.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/control/settings.h"

namespace mbcas::policy {

// How far MBCAS may go.
enum class Mode : std::uint8_t {
  kOff,        // every pod has what it declared
  kRecommend,  // the same, and status says what would be set
  kRaiseOnly,  // never below what it declared
  kFull,
};
std::string_view name(Mode mode);
Result<Mode> parseMode(std::string_view text);

// Within which group pods on scarce nodes are helped; see siblings.h.
enum class Fairness : std::uint8_t { kOff, kNamespace, kWorkload };
std::string_view name(Fairness fairness);

struct Settings {
  bool paused = false;  // off everywhere, whatever a namespace says: `mbcas pause`
  Mode mode = Mode::kFull;
  control::Profile profile = control::Profile::kResponsive;
  control::Settings law;
  Nanos silence = std::chrono::seconds(60);  // of an agent, until its pods are given back
  Fairness fairness = Fairness::kOff;
  std::vector<std::string> excluded_namespaces = {"kube-system", "kube-public", "kube-node-lease",
                                                  "mbcas-system"};
  // Of agents only.
  Nanos sample_interval = std::chrono::seconds(1);
  int warmup = 5;  // samples before the first decision
  Nanos burst_hold = std::chrono::seconds(300);
  std::string estimator = "responsive";
  double ema_up = 0.3;
  double ema_down = 0.1;
  double throttle_threshold = 0.1;

  friend bool operator==(const Settings&, const Settings&) = default;
};

using SettingsData = std::map<std::string, std::string, std::less<>>;

struct ParsedSettings {
  Settings settings;
  std::vector<std::string> unknown;  // unknown keys, perhaps mistyped
};
// Keys that are absent keep the defaults of the profile. An error names the key.
Result<ParsedSettings> parseSettings(const SettingsData& data);
// Every key with its value; parses back to the same settings.
SettingsData settingsData(const Settings& settings);

// "1m30s", "500ms", "0"; units h, m, s, ms. At most a day.
Result<Nanos> parseDuration(std::string_view text);
std::string formatDuration(Nanos duration);

}  // namespace mbcas::policy
