// The whole pipeline on a recording of tools/capture-cgroups, on the recording's own time: for bug
// reports and regression tests.
//
//   replay("capture.json", {.cpus = 4}, [](std::string line) { puts(line.c_str()); });
//
// A recording knows no cluster. Each pod in it counts as managed, within no bounds; the limit that
// a container has at first sight is the one that it declares, its request is 0, and its name is the
// beginning of its id. What is decided changes nothing in the recording, of course.
#pragma once

#include <functional>
#include <string>

#include "mbcas/base/result.h"
#include "mbcas/policy/settings.h"

namespace mbcas::agent {

struct ReplayOptions {
  policy::Settings settings{};  // the interval is the recording's
  unsigned cpus = 1;            // of the machine that was recorded
  bool state = false;           // print the state after the last step too
};

// Prints one line of JSON for each decision, as in the agent's log. Time is counted from 1970, as
// if the machine had been started then.
Result<void> replay(const std::string& path, const ReplayOptions& options,
                    const std::function<void(std::string line)>& print);

}  // namespace mbcas::agent
