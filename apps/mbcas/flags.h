// Kinds of flags that several commands have, so that they are written, checked and explained alike.
#pragma once

#include <string>
#include <vector>

#include "apps/mbcas/duration.h"
#include "mbcas/base/units.h"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
class Option;
}  // namespace CLI

namespace mbcas::app {

// Groups of flags in the help of a command. Flags without a group come first.
inline constexpr const char* kPodGroup = "Which pods";
inline constexpr const char* kHostGroup = "This machine";
inline constexpr const char* kClusterGroup = "Cluster";

// Only these values; completion offers them, and an error suggests the nearest.
CLI::Option* oneOf(CLI::Option* option, const std::vector<std::string>& values);

// --dry-run: nothing is changed. With "server" the API server checks the change as if it were
// made; with "client" only reading is done. Empty: the flag was not given.
CLI::Option* addDryRun(CLI::App& command, std::string& dry_run);

// -o: how results are printed; the first of the formats is the default.
CLI::Option* addOutput(CLI::App& command, std::string& output,
                       const std::vector<std::string>& formats);
bool isDocument(const std::string& output);  // json or yaml
// A JSON text in that format.
void printDocument(const std::string& json, const std::string& output);
// One of several in a row.
void printNextDocument(const std::string& json, const std::string& output);

}  // namespace mbcas::app
