#include "apps/mbcas/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "apps/mbcas/command_line.h"
#include "mbcas/base/yaml.h"

namespace mbcas::app {
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
