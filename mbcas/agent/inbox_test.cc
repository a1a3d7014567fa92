#include "mbcas/agent/inbox.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

namespace mbcas::agent {
namespace {

bool readable(const Inbox& inbox, int patience_ms = 0) {
  pollfd fd{.fd = inbox.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&fd, 1, patience_ms) == 1;
}

TEST(Inbox, WakesAndRunsInOrderOnTheOwnersThread) {
  Inbox inbox;
  EXPECT_FALSE(readable(inbox));
  std::string order;
  std::thread other([&] {
    inbox.post([&] { order += 'a'; });
    inbox.post([&] { order += 'b'; });
  });
  while (order != "ab") {
    ASSERT_TRUE(readable(inbox, 60'000));
    inbox.run();
  }
  other.join();
  EXPECT_FALSE(readable(inbox));
}

TEST(Inbox, WhatIsPostedWhileRunningWaitsForTheNextRun) {
  Inbox inbox;
  int runs = 0;
  inbox.post([&] { inbox.post([&] { ++runs; }); });
  inbox.run();
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(readable(inbox));
  inbox.run();
  EXPECT_EQ(runs, 1);
}

TEST(Inbox, NothingIsRunAfterItIsClosed) {
  Inbox inbox;
  int runs = 0;
  inbox.post([&] { ++runs; });
  inbox.close();
  inbox.post([&] { ++runs; });
  inbox.run();
  EXPECT_EQ(runs, 0);
}

TEST(Inbox, ManyThreadsLoseNothing) {
  Inbox inbox;
  constexpr int kThreads = 4;
  constexpr int kEach = 1000;
  int runs = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) inbox.post([&] { ++runs; });
    });
  }
  while (runs < kThreads * kEach) {
    ASSERT_TRUE(readable(inbox, 60'000));
    inbox.run();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs, kThreads * kEach);
}

}  // namespace
}  // namespace mbcas::agent
