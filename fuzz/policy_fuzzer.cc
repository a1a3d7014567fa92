// What people and other programs write, read by policy and controller: settings (lines of
// key=value), and who wrote a pod's limits (JSON). Nothing crashes, and settings that are accepted
// survive being written and read again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "mbcas/controller/writer.h"
#include "mbcas/policy/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mbcas;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    (void)controller::limitsWrittenBy("mbcas-controller", std::string(text));
    return 0;
  }
  policy::SettingsData settings;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    settings.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  const auto parsed = policy::parseSettings(settings);
  if (!parsed) return 0;
  const auto again = policy::parseSettings(policy::settingsData(parsed->settings));
  if (!again || !again->unknown.empty()) std::abort();
  // Durations are written in milliseconds, so only the second time is exact.
  const auto third = policy::parseSettings(policy::settingsData(again->settings));
  if (!third || !(third->settings == again->settings)) std::abort();
  return 0;
}
