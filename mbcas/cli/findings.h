// What a check-up found: each thing with what to do about it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mbcas::cli {

struct Finding {
  enum class Level : std::uint8_t {
    kGood,
    kNote,     // works, but worth knowing
    kProblem,  // does not work, or not everywhere
  };
  Level level = Level::kGood;
  std::string area;      // "agents"
  std::string what;      // one sentence
  std::string remedy{};  // what to do; empty: nothing

  friend bool operator==(const Finding&, const Finding&) = default;
};
std::string_view name(Finding::Level level);  // "ok", "note", "problem"

using Findings = std::vector<Finding>;

bool healthy(const Findings& findings);  // no problems
// Wrapped at `width` columns (0: not at all), with a count of the problems at the end.
std::string findingsText(const Findings& findings, bool colours, std::size_t width = 0);
std::string findingsJson(const Findings& findings);

// "a, b, c and 4 more"
std::string namesText(std::span<const std::string> names, std::size_t most = 3);

}  // namespace mbcas::cli
