#include "mbcas/ui/history.h"

#include <gtest/gtest.h>

namespace mbcas::ui {
namespace {

TEST(History, GivesWhatWasNotSeen) {
  History history;
  EXPECT_FALSE(history.next(0));
  history.add("a");
  history.add("b");
  EXPECT_EQ(history.next(0), 1u);
  EXPECT_EQ(history.frame(1), "a");
  EXPECT_EQ(history.next(1), 2u);
  EXPECT_EQ(history.frame(2), "b");
  EXPECT_FALSE(history.next(2));
}

TEST(History, ForgetsTheOldest) {
  History few(2);
  for (const char* frame : {"a", "b", "c"}) few.add(frame);
  EXPECT_EQ(few.next(0), 2u);
  EXPECT_EQ(few.frame(2), "b");

  History small(100, 4);
  for (const char* frame : {"aaa", "bbb", "ccccccc"}) small.add(frame);
  EXPECT_EQ(small.next(0), 3u);
  EXPECT_EQ(small.frame(3), "ccccccc");
  EXPECT_FALSE(small.next(3));
}

}  // namespace
}  // namespace mbcas::ui
