// A program run as its users run it: as a process.
#pragma once

#include <string>
#include <vector>

namespace mbcas::test {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// `words`: the program and its arguments.
Outcome runCommand(std::vector<std::string> words, const std::string& input = "");

}  // namespace mbcas::test
