#include "mbcas/controller/limited_log.h"

#include <gtest/gtest.h>

#include <vector>

namespace mbcas::controller {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST(LimitedLog, AStormIsCountedInsteadOfShown) {
  Lines lines;
  LimitedLog log("resizes", 1, 3, [&](const std::string& line) { lines.push_back(line); });
  const MonotonicTime start{1h};
  for (int i = 0; i < 10; ++i) log.say(std::to_string(i), start);
  EXPECT_EQ(lines, (Lines{"0", "1", "2"}));
  log.flush(start);
  EXPECT_EQ(lines.size(), 3u) << "the storm is not over";
  log.say("later", start + 1s);
  EXPECT_EQ(lines,
            (Lines{"0", "1", "2", "7 more resizes are not shown here: there were too many at once",
                   "later"}));
  log.flush(start + 2s);
  EXPECT_EQ(lines.size(), 5u) << "nothing more was left out";
}

TEST(LimitedLog, WhatAStormLeftOutIsToldAfterItEnds) {
  Lines lines;
  LimitedLog log("errors", 1, 1, [&](const std::string& line) { lines.push_back(line); });
  const MonotonicTime start{1h};
  log.say("a", start);
  log.say("b", start);
  log.flush(start + 5s);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], "1 more errors are not shown here: there were too many at once");
}

}  // namespace
}  // namespace mbcas::controller
