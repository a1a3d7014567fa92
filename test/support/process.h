// Runs a program as its users do: with arguments and input, to its end.
#pragma once

#include <string>
#include <vector>

namespace mbcas::test {

struct Finished {
  int exit_code = -1;  // -1 if it did not exit by itself
  std::string out;
  std::string err;
};
// The first word is the path of the program.
Finished runProcess(std::vector<std::string> words, const std::string& input = {});

}  // namespace mbcas::test
