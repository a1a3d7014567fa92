#include "apps/mbcas/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "apps/mbcas/command_line.h"
#include "apps/mbcas/duration.h"
#include "mbcas/base/yaml.h"
#include "mbcas/policy/settings.h"

namespace mbcas::app {
namespace {

std::string durationText(double seconds) {
  return policy::formatDuration(nanos(seconds));
}

}  // namespace

CLI::Option* oneOf(CLI::Option* option, const std::vector<std::string>& values) {
  return option->check(CLI::Validator(
      [values](std::string& text) -> std::string {
        if (std::ranges::find(values, text) != values.end()) return "";
        const std::string near = nearest(text, values);
        return fmt::format("{} is not one of {}{}", text, fmt::join(values, ", "),
                           near.empty() ? "" : "; did you mean " + near + "?");
      },
      fmt::format("{{{}}}", fmt::join(values, ","))));
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

CLI::Option* addDryRun(CLI::App& command, std::string& dry_run) {
  return oneOf(command.add_flag("--dry-run{server}", dry_run,
                                "Change nothing: let the API server check it (server, the "
                                "default), or only look (client)"),
               {"client", "server"});
}

CLI::Option* addOutput(CLI::App& command, std::string& output,
                       const std::vector<std::string>& formats) {
  output = formats.front();
  return oneOf(command.add_option("-o,--output", output, "How to print it"), formats)
      ->capture_default_str();
}

bool isDocument(const std::string& output) {
  return output == "json" || output == "yaml";
}

void printDocument(const std::string& json, const std::string& output) {
  // What the commands print is always JSON, and all JSON is YAML.
  fmt::print("{}", output == "yaml" ? yamlFromJson(json).value_or(json + "\n") : json + "\n");
}

void printNextDocument(const std::string& json, const std::string& output) {
  if (output == "yaml") fmt::print("---\n");
  printDocument(json, output);
}

}  // namespace mbcas::app
