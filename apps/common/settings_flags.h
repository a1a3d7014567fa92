// Flags for the settings that agents and controller share. They are checked together, where they
// are parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

#include "mbcas/policy/settings.h"

namespace mbcas {

struct SettingFlag {
  const char* key;  // as in the ConfigMap
  const char* help;
};

inline void addSettings(CLI::App& app, std::span<const SettingFlag> settings,
                        policy::SettingsData& data) {
  for (const SettingFlag& setting : settings) {
    app.add_option_function<std::string>(
           std::string("--") + setting.key,
           [&data, key = setting.key](const std::string& value) { data[key] = value; },
           setting.help)
        ->group("Settings");
  }
}

}  // namespace mbcas
