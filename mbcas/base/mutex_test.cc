#include "mbcas/base/mutex.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <thread>
#include <vector>

namespace mbcas {
namespace {

class Counter {
 public:
  void add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  int waitFor(int count) {
    MutexLock lock(mutex_);
    changed_.wait(lock.native(), [this, count] MBCAS_REQUIRES(mutex_) { return count_ >= count; });
    return count_;
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  int count_ MBCAS_GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, KeepsThreadsApartAndLetsThemWait) {
  Counter counter;
  std::vector<std::jthread> threads(4);
  for (std::jthread& thread : threads) {
    thread = std::jthread([&] {
      for (int i = 0; i < 1000; ++i) counter.add();
    });
  }
  EXPECT_EQ(counter.waitFor(4000), 4000);
}

class Register {
 public:
  void write(int value) {
    const WriterLock lock(mutex_);
    first_ = value;
    second_ = value;
  }
  bool isWhole() const {
    const ReaderLock lock(mutex_);
    return first_ == second_;
  }

 private:
  mutable SharedMutex mutex_;
  int first_ MBCAS_GUARDED_BY(mutex_) = 0;
  int second_ MBCAS_GUARDED_BY(mutex_) = 0;
};

TEST(SharedMutex, ReadersSeeNoHalfWrite) {
  Register shared;
  const std::jthread writer([&] {
    for (int i = 0; i < 1000; ++i) shared.write(i);
  });
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(shared.isWhole());
}

}  // namespace
}  // namespace mbcas
