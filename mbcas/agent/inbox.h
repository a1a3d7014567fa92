// What other threads want done on the agent's own: they post it, poll() wakes the agent, and the
// agent runs it. Outlives the agent, if need be: what is posted then is dropped.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace mbcas::agent {

class Inbox {
 public:
  Inbox() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Inbox() { ::close(fd_); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  int fd() const { return fd_; }  // readable when there is something

  // Any thread.
  void post(std::function<void()> run) {
    const std::scoped_lock lock(mutex_);
    if (closed_) return;
    posted_.push_back(std::move(run));
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
  }

  // The agent's thread. What is posted meanwhile waits for the next call.
  void run() {
    std::vector<std::function<void()>> now;
    {
      const std::scoped_lock lock(mutex_);
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(fd_, &count, sizeof count);
      now.swap(posted_);
    }
    for (const std::function<void()>& each : now) each();
  }

  // From now on nothing is taken.
  void close() {
    std::vector<std::function<void()>> dropped;
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    dropped.swap(posted_);
  }

 private:
  const int fd_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
  bool closed_ = false;                        // guarded by mutex_
};

}  // namespace mbcas::agent
