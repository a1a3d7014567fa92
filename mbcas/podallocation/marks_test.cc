#include "mbcas/podallocation/marks.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace mbcas::podallocation {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kStart{1000s};

// A reader that has seen the first text, which says "everything".
struct Read {
  Marks marks{1};
  MarkReader reader;
  Read() {
    marks.add("n", "first", kStart - 10min);
    reader.read(marks.text("n", kStart - 10min));
  }
  News next(MonotonicTime now = kStart) { return reader.read(marks.text("n", now)); }
};

TEST(Marks, SayWhichObjectsHaveChanged) {
  Read read;
  read.marks.add("n", "a", kStart);
  read.marks.add("n", "b", kStart);
  read.marks.add("other", "c", kStart);
  EXPECT_EQ(read.next(), (News{.uids = {"a", "b"}}));
  EXPECT_EQ(read.next(), News{}) << "each is news once";
  read.marks.add("n", "a", kStart + 1s);
  EXPECT_EQ(read.next(kStart + 1s), (News{.uids = {"a"}})) << "it has changed again";
}

TEST(Marks, TheFirstTextOfAWriterSaysEverything) {
  Marks before(1);
  MarkReader reader;
  before.add("n", "a", kStart);
  EXPECT_EQ(reader.read(before.text("n", kStart)), News{.everything = true});
  Marks after(1'000'000);  // the next leader
  after.add("n", "b", kStart);
  EXPECT_EQ(reader.read(after.text("n", kStart)), News{.everything = true});
  EXPECT_EQ(Marks(1).text("n", kStart), "") << "nothing to say";
}

TEST(Marks, ManyAreOne) {
  Read read;
  for (std::size_t i = 0; i <= kMostMarks; ++i) {
    read.marks.add("n", "pod-" + std::to_string(i), kStart);
  }
  EXPECT_EQ(read.next(), News{.everything = true});
  read.marks.add("n", "a", kStart);
  EXPECT_EQ(read.next(), (News{.uids = {"a"}}));
}

TEST(Marks, StayForSeveralRenewals) {
  Read read;
  read.marks.add("n", "a", kStart);
  EXPECT_EQ(read.next(kStart + kMarkStays), (News{.uids = {"a"}}));
  EXPECT_EQ(read.marks.text("n", kStart + kMarkStays + 1s), "");
}

TEST(Marks, TextThatIsNoListOfMarksBringsNoNews) {
  for (const char* text : {"", " ", "a", ":", "1:", "  1: :", "::::: "}) {
    const News news = MarkReader().read(text);
    EXPECT_FALSE(news.everything) << text;
    EXPECT_LE(news.uids.size(), 1u) << text;
  }
  EXPECT_EQ(MarkReader().read(std::string(kLongestMarks + 1, ':')), News{});
}

TEST(Marks, TheLongestTextIsTaken) {
  Marks marks(~std::uint64_t{0} - 1000);
  marks.add("n", "first", kStart - 10min);
  for (std::size_t i = 0; i < kMostMarks; ++i) {
    std::string uid = std::to_string(i);
    uid.insert(0, 63 - uid.size(), 'u');
    marks.add("n", uid, kStart);
  }
  EXPECT_LE(marks.text("n", kStart).size(), kLongestMarks);
  EXPECT_EQ(MarkReader().read(marks.text("n", kStart)).uids.size(), kMostMarks);
}

// Whatever changes, and however seldom the agent looks: if it looks before marks go away, it reads
// each object that has changed since it last looked.
RC_GTEST_PROP(MarksProperty, NoChangeIsMissed, ()) {
  Read read;
  MonotonicTime now = kStart;
  std::set<std::string> changed;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 90));
  MonotonicTime looked = now;
  for (const int step : steps) {
    if (step < 80) {
      const std::string uid = std::to_string(step);
      read.marks.add("n", uid, now);
      changed.insert(uid);
      continue;
    }
    now = std::min(now + Nanos(1s) * (step - 79) * 6, looked + kMarkStays);
    looked = now;
    const News news = read.next(now);
    if (!news.everything) {
      RC_ASSERT((std::set<std::string>(news.uids.begin(), news.uids.end()) == changed));
    }
    changed.clear();
  }
}

RC_GTEST_PROP(MarksProperty, AnyTextIsRead, (const std::string& text)) {
  MarkReader reader;
  reader.read(text);
  RC_ASSERT(reader.read(text) == News{});
}

}  // namespace
}  // namespace mbcas::podallocation
