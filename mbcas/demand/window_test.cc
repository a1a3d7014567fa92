#include "mbcas/demand/window.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace mbcas::demand {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Feed {
  Window window;
  void add(Millicores value, int times = 1, Nanos interval = seconds(1)) {
    for (int i = 0; i < times; ++i) window.add(interval, value, value);
  }
};

TEST(Window, IsEmptyAtFirst) {
  EXPECT_EQ(Window().median(), 0_m);
  EXPECT_EQ(Window().highestMean(), 0_m);
}

TEST(Window, AShortOneCountsAsAWhole) {
  Feed feed;
  feed.add(100_m);
  EXPECT_EQ(feed.window.median(), 100_m);
  EXPECT_EQ(feed.window.highestMean(), 100_m);
  feed.add(300_m);
  EXPECT_EQ(feed.window.highestMean(), 200_m);
}

TEST(Window, MedianIgnoresAShortPeakAndTheMeanFindsIt) {
  Feed feed;
  feed.add(50_m, 10);
  feed.add(1000_m, 5);
  feed.add(50_m, 10);
  EXPECT_EQ(feed.window.median(), 50_m);
  EXPECT_EQ(feed.window.highestMean(), 1000_m);
}

TEST(Window, ForgetsAfterThirtySeconds) {
  Feed feed;
  feed.add(1000_m, 5);
  feed.add(0_m, 29);
  EXPECT_GT(feed.window.highestMean(), 0_m);
  feed.add(0_m, 2);
  EXPECT_EQ(feed.window.highestMean(), 0_m);
  EXPECT_EQ(feed.window.size(), 30u);
}

TEST(Window, WeighsByTime) {
  Feed feed;
  feed.add(100_m, 1, seconds(4));
  feed.add(600_m, 1, seconds(1));
  EXPECT_EQ(feed.window.highestMean(), 200_m);
  EXPECT_EQ(feed.window.median(), 100_m);
  feed.add(600_m, 9, milliseconds(300));
  EXPECT_EQ(feed.window.median(), 100_m) << "ten samples of 600m last 3.7 s, that of 100m 4 s";
  feed.add(600_m, 1, seconds(1));
  EXPECT_EQ(feed.window.median(), 600_m);
  feed.add(0_m, 1, seconds(20));
  EXPECT_EQ(feed.window.median(), 0_m);
  Feed fast;
  fast.add(10_m, 500, milliseconds(100));
  EXPECT_EQ(fast.window.median(), 10_m) << "more samples than it holds: the oldest go";
}

TEST(Window, GuessesAreCorrectedOnceAHigherLimitShowsTheLoad) {
  Feed feed;
  feed.window.add(seconds(1), 200_m, 1000_m, 200_m);
  feed.window.add(seconds(1), 200_m, 1000_m, 200_m);
  feed.window.correctGuesses(300_m, 200_m);
  EXPECT_EQ(feed.window.median(), 1000_m) << "the limit is not higher";
  feed.window.correctGuesses(300_m, 750_m);
  EXPECT_EQ(feed.window.median(), 300_m);
  feed.window.correctGuesses(50_m, 750_m);
  EXPECT_EQ(feed.window.median(), 200_m) << "so much was used";
  feed.window.correctGuesses(900_m, 750_m);
  EXPECT_EQ(feed.window.median(), 200_m) << "a correction only lowers";
}

TEST(Window, TellsWhatWasUsedFromWhatWasGuessed) {
  Feed feed;
  feed.add(100_m, 10);
  for (int i = 0; i < 5; ++i) feed.window.add(seconds(1), 200_m, 1000_m, 200_m);
  EXPECT_EQ(feed.window.highestMean(), 1000_m);
  EXPECT_EQ(feed.window.highestUsage(), 200_m);
}

TEST(Window, SpanAndMeanCanBeOthers) {
  Window window(seconds(10), seconds(2));
  for (int i = 0; i < 10; ++i) window.add(seconds(1), 100_m, 100_m);
  window.add(seconds(1), 500_m, 500_m);
  EXPECT_EQ(window.size(), 10u);
  EXPECT_EQ(window.highestMean(), 300_m);
}

TEST(Window, KnowsHowMuchOfTheTimeWasBusy) {
  Feed feed;
  EXPECT_EQ(feed.window.busyShare(0_m), 0);
  feed.add(500_m, 20);
  EXPECT_EQ(feed.window.busyShare(0_m), 1);
  feed.add(3_m, 10);
  EXPECT_NEAR(feed.window.busyShare(50_m), 2.0 / 3, 1e-9);
  Feed guessing;
  guessing.window.add(seconds(1), 10_m, 1000_m, 10_m);
  EXPECT_EQ(guessing.window.busyShare(50_m), 1) << "to be held back is no pause";
  guessing.window.correctGuesses(20_m, 500_m);
  EXPECT_EQ(guessing.window.busyShare(50_m), 0) << "but there was hardly anything to hold back";
}

RC_GTEST_PROP(Window, AgreesWithTheObvious, ()) {
  const auto values =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4000)));
  Feed feed;
  for (const int value : values) feed.add(Millicores(value));
  std::vector<int> last(
      values.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(30, values.size())),
      values.end());
  std::int64_t highest = 0;
  const std::size_t span = std::min<std::size_t>(5, last.size());
  for (std::size_t i = 0; i + span <= last.size(); ++i) {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < span; ++k) sum += last[i + k];
    highest = std::max(highest, sum / static_cast<std::int64_t>(span));
  }
  RC_ASSERT(feed.window.highestMean() == Millicores(highest));
  std::ranges::sort(last);
  const Millicores median(last[last.size() / 2]);
  RC_ASSERT(feed.window.median() == median);
}

}  // namespace
}  // namespace mbcas::demand
