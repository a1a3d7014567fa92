// A recording: what the page of `mbcas ui` saw, as it saves it, for `mbcas ui FILE`.
//
//   {"mbcasRecording":1,"title":"node-1"}      the first line
//   {"node":"node-1","time":...}               a state in each further line, as in record.h
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"

namespace mbcas::cli {

inline constexpr std::size_t kLongestRecording = 64 << 20;  // bytes
inline constexpr std::size_t kMostStates = 7200;            // two hours, one each second

struct Recording {
  std::string title;
  // As this version writes states, whatever version wrote the file. Fields that are not known here
  // are gone.
  std::vector<std::string> states;

  friend bool operator==(const Recording&, const Recording&) = default;
};

// An error names the line.
Result<Recording> parseRecording(std::string_view text);
std::string recordingText(const Recording& recording);

}  // namespace mbcas::cli
