// Times as people write them in flags.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
class Option;
}  // namespace CLI

namespace mbcas::app {

// Of a time as 500ms, 30s, 1m30s or 2h. "30" is that many seconds, in every command.
Result<double> secondsOf(std::string_view text);

// A time as 500ms, 30s, 1m30s, 2h, or a number of seconds. The default is what `seconds` holds; if
// that is 0, it is not shown.
CLI::Option* addDuration(CLI::App& command, const std::string& name, double& seconds,
                         const std::string& description, double least = 0.001, double most = 86400);
inline Nanos nanos(double seconds) {
  return std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(seconds));
}

}  // namespace mbcas::app
