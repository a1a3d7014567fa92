// Flags of the daemons for times.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

#include "mbcas/policy/settings.h"

namespace mbcas {

// A time as 500ms, 30s or 10m; a number is that many seconds.
inline void addTime(CLI::App& app, const char* name, Nanos& time, const char* help, Nanos least,
                    Nanos most) {
  app.add_option_function<std::string>(
         name,
         [&time, name, least, most](const std::string& text) {
           int seconds = 0;
           const char* const end = text.data() + text.size();
           const auto [rest, error] = std::from_chars(text.data(), end, seconds);
           const bool plain = error == std::errc() && rest == end && seconds >= 0;
           const Result<Nanos> parsed = policy::parseDuration(plain ? text + "s" : text);
           if (!parsed || *parsed < least || *parsed > most) {
             throw CLI::ValidationError(
                 name, fmt::format("{} is not a duration from {} to {}", text,
                                   policy::formatDuration(least), policy::formatDuration(most)));
           }
           time = *parsed;
         },
         help)
      ->type_name("DURATION")
      ->default_str(policy::formatDuration(time));
}

}  // namespace mbcas
