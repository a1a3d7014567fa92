#include "apps/mbcas/scenario_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace mbcas::app {

Result<sim::Scenario> loadScenario(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) return failure("");
  const std::filesystem::path path(file);
  Result<sim::Scenario> scenario =
      sim::parseScenario(text.str(), path.has_parent_path() ? path.parent_path().string() : ".");
  if (!scenario) return failure(std::move(scenario).error().within(file));
  if (scenario->name.empty()) scenario->name = path.stem().string();
  return scenario;
}

}  // namespace mbcas::app
