// Compares a text with a file that a person has reviewed. With MBCAS_UPDATE_GOLDEN=1 in the
// environment the file is written instead; `git diff` then shows what changed.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace mbcas::test {

inline std::string fileText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline void expectGolden(const std::string& path, const std::string& actual) {
  if (std::getenv("MBCAS_UPDATE_GOLDEN") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(path) << actual;
    return;
  }
  EXPECT_EQ(actual, fileText(path)) << path << ": MBCAS_UPDATE_GOLDEN=1 would write it";
}

}  // namespace mbcas::test
