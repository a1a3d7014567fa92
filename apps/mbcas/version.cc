// mbcas version: which version this is, also for scripts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/mbcas/commands.h"
#include "apps/mbcas/flags.h"
#include "mbcas/base/json_writer.h"

namespace mbcas::app {

void addVersion(CLI::App& app, int& exit_code) {
  const auto output = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer("Examples:\n  mbcas version\n  mbcas version -o json");
  addOutput(*command, *output, {"text", "json", "yaml"});
  command->callback([output, &exit_code] {
    if (isDocument(*output)) {
      std::string json;
      JsonWriter(json).beginObject().key("version").value(MBCAS_VERSION).endObject();
      printDocument(json, *output);
    } else {
      fmt::print("mbcas {}\n", MBCAS_VERSION);
    }
    exit_code = kDone;
  });
}

}  // namespace mbcas::app
