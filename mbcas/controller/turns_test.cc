#include "mbcas/controller/turns.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <vector>

namespace mbcas::controller {
namespace {

TEST(Turns, OneAtATimeInANamespaceAndTheMostUrgentNext) {
  Turns turns(4);
  Turns::Turn first = turns.take("a", "a/1", 1);
  ASSERT_TRUE(first);
  EXPECT_FALSE(turns.take("a", "a/2", 5));
  EXPECT_FALSE(turns.take("a", "a/3", 9));
  EXPECT_TRUE(turns.take("b", "b/1", 0)) << "another namespace is not held up";
  EXPECT_EQ(turns.next(), std::nullopt) << "the turn of the namespace has not ended";
  first.end();
  EXPECT_EQ(turns.next(), "a/3");
  EXPECT_EQ(turns.next(), "a/2");
  EXPECT_EQ(turns.next(), std::nullopt);
}

TEST(Turns, SomeWorkersAreLeftForOtherWork) {
  Turns turns(2);
  const Turns::Turn a = turns.take("a", "a/1", 1);
  Turns::Turn b = turns.take("b", "b/1", 1);
  EXPECT_FALSE(turns.take("c", "c/1", 1));
  EXPECT_EQ(turns.next(), std::nullopt);
  b.end();
  EXPECT_EQ(turns.next(), "c/1");
}

TEST(Turns, WhoeverGetsItsTurnNoLongerWaits) {
  Turns turns(2);
  {
    const Turns::Turn a = turns.take("a", "a/1", 1);
    EXPECT_FALSE(turns.take("a", "a/2", 1));
  }
  EXPECT_TRUE(turns.take("a", "a/2", 1)) << "looked at again for another reason";
  EXPECT_EQ(turns.next(), std::nullopt);
}

// Workers that take keys in any order and end in any order: at the end nothing waits.
RC_GTEST_PROP(Turns, NoPodIsForgotten, ()) {
  Turns turns(2);
  std::deque<std::string> queue;
  for (int i = 0; i < 12; ++i)
    queue.push_back(std::string(1, static_cast<char>('a' + i % 3)) + "/" + std::to_string(i));
  std::set<std::string> unserved(queue.begin(), queue.end());
  struct Work {
    std::string key;
    Turns::Turn turn;
  };
  std::vector<Work> workers;
  const auto end = [&](std::size_t which) {
    if (workers[which].turn) unserved.erase(workers[which].key);
    workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(which));
    if (auto key = turns.next()) queue.push_back(*key);
  };
  const auto steps = *rc::gen::container<std::vector<int>>(200, rc::gen::inRange(0, 100));
  const auto step = [&](int choice) {
    if (workers.size() < 3 && !queue.empty() && (choice % 2 == 0 || workers.empty())) {
      const std::string key = queue.front();
      queue.pop_front();
      Turns::Turn turn;
      // Some find that they need no turn after all.
      if (choice % 10 != 0) {
        turn = turns.take(key.substr(0, 1), key, choice);
      } else {
        unserved.erase(key);
      }
      workers.push_back({key, std::move(turn)});
    } else if (!workers.empty()) {
      end(static_cast<std::size_t>(choice) % workers.size());
    }
  };
  for (const int choice : steps) step(choice);
  for (int i = 0; i < 1000 && (!queue.empty() || !workers.empty()); ++i) step(i % 2 == 0 ? 2 : 3);
  RC_ASSERT(workers.empty());
  RC_ASSERT(queue.empty());
  RC_ASSERT(unserved.empty());
}

}  // namespace
}  // namespace mbcas::controller
