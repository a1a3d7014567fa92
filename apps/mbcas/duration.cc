#include "apps/mbcas/duration.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "mbcas/policy/settings.h"

namespace mbcas::app {
namespace {

std::string durationText(double seconds) {
  return policy::formatDuration(nanos(seconds));
}

}  // namespace

Result<double> secondsOf(std::string_view text) {
  double seconds = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (error == std::errc{} && end == text.data() + text.size()) return seconds;
  const Result<Nanos> duration = policy::parseDuration(text);
  if (!duration) return failure(duration.error());
  return std::chrono::duration<double>(*duration).count();
}

CLI::Option* addDuration(CLI::App& command, const std::string& name, double& seconds,
                         const std::string& description, double least, double most) {
  CLI::Option* const option =
      command.add_option(name, seconds, description)
          ->type_name("DURATION")
          ->transform(CLI::Validator(
              [least, most](std::string& text) -> std::string {
                const Result<double> parsed = secondsOf(text);
                if (!parsed) return text + " is not a duration such as 500ms, 30s or 1m30s";
                if (*parsed < least || *parsed > most) {
                  return fmt::format("{} is not between {} and {}", text, durationText(least),
                                     durationText(most));
                }
                text = fmt::format("{}", *parsed);
                return "";
              },
              ""));
  if (seconds > 0) option->default_str(durationText(seconds));
  return option;
}

}  // namespace mbcas::app
