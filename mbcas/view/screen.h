// The live picture of one node's market, for a terminal of any size: of a host, of a model, or of
// a demonstration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/units.h"

namespace mbcas::view {

struct PodLine {
  std::string name;
  Millicores need;                  // what it could use, or the limit its bursts ask for
  std::optional<Millicores> limit;  // in force; nothing: unlimited
  Millicores usage;
  Millicores throttled;              // thread time held back per wall time: 1m is 1 ms/s
  std::vector<double> throttling{};  // its past, oldest first
  std::string note{};                // why the limit is what it is
};

struct NodeScreen {
  std::string title;
  std::string subtitle{};  // at the right end of the first line
  Millicores capacity;     // to be shared
  Millicores usage;        // of the managed pods together
  bool scarce = false;
  std::optional<double> price = 0.0;
  double welfare = 1;  // 0 to 1
  std::vector<PodLine> pods{};
  std::vector<std::string> notes{};  // below the table, newest last
};

// At most `height` lines of at most `width` columns; what does not fit is left out and said.
std::vector<std::string> render(const NodeScreen& screen, std::size_t width, std::size_t height,
                                bool colours);

}  // namespace mbcas::view
