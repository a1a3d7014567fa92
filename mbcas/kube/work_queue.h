// Keys of objects that want attention, with client-go's guarantees:
//   - a key is never with two workers at once: added while it is worked on, it is handed out again
//     after done();
//   - a key that is added many times before a worker takes it is taken once;
//   - the most urgent key comes first, and of equally urgent ones (by default all are) the one that
//     was added first; of several delayed adds of a key the earliest counts;
//   - retry() waits longer each time, per key, until forget();
//   - after shutDown() nothing is accepted, keys in line are still handed out, and get() returns
//     nothing once the line is empty.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "mbcas/base/clock.h"
#include "mbcas/base/mutex.h"
#include "mbcas/kube/token_bucket.h"

namespace mbcas::kube {

class Metrics;

struct QueueOptions {
  std::string name = "queue";
  // Of a key that fails: first, doubling, at most.
  Nanos first_delay = std::chrono::milliseconds(5);
  Nanos max_delay = std::chrono::seconds(1000);
  // Of all keys that fail together.
  double retries_per_second = 10;
  double retry_burst = 100;
  // How urgent a key is; asked when it comes into line, and again when it is added there. Called
  // with the queue locked: it must not wait, nor touch the queue. Null: all alike.
  std::function<double(const std::string& key)> urgency{};
  Metrics* metrics = nullptr;
};

// The rules, without threads: the caller passes the time and locks.
class QueueRules {
 public:
  explicit QueueRules(const QueueOptions& options)
      : first_delay_(options.first_delay),
        max_delay_(options.max_delay),
        bucket_(options.retries_per_second, options.retry_burst),
        urgency_(options.urgency) {}

  // Returns whether the key is newly in line (not: coalesced, held back or refused).
  bool add(const std::string& key, MonotonicTime now);
  void addAfter(const std::string& key, Nanos delay, MonotonicTime now);
  Nanos retry(const std::string& key, MonotonicTime now);  // returns the delay
  void forget(const std::string& key) { failures_.erase(key); }
  int failures(const std::string& key) const;

  struct Taken {
    std::string key;
    Nanos waited{0};
  };
  std::optional<Taken> take(MonotonicTime now);
  // Every taken key is given back. Returns how long the work took.
  Nanos done(const std::string& key, MonotonicTime now);

  void shutDown();
  void abandon();  // shutDown, and what waits in line is dropped
  bool isShutDown() const { return shut_down_; }

  std::optional<MonotonicTime> nextDue() const;  // when a delayed key comes into line
  std::size_t waiting() const { return line_.size(); }
  std::size_t working() const { return working_.size(); }
  const std::unordered_map<std::string, MonotonicTime>& inWork() const { return working_; }

 private:
  struct Place {
    double urgency = 0;
    std::uint64_t order = 0;
    const std::string* key = nullptr;  // of dirty_
    friend bool operator<(const Place& a, const Place& b) {
      return a.urgency != b.urgency ? a.urgency > b.urgency : a.order < b.order;
    }
  };
  struct Wanting {
    MonotonicTime since;
    std::optional<Place> place{};  // nothing: it is with a worker
  };
  void lineUp(const std::string& key, Wanting& wanting, std::uint64_t order);
  void moveDue(MonotonicTime now);

  Nanos first_delay_;
  Nanos max_delay_;
  TokenBucket bucket_;
  std::function<double(const std::string&)> urgency_;
  std::set<Place> line_;
  std::uint64_t last_order_ = 0;
  std::unordered_map<std::string, Wanting> dirty_;          // wants attention
  std::unordered_map<std::string, MonotonicTime> working_;  // with a worker, since
  std::set<std::pair<MonotonicTime, std::string>> delayed_;
  std::unordered_map<std::string, MonotonicTime> due_;  // of the keys in delayed_
  std::unordered_map<std::string, int> failures_;
  bool shut_down_ = false;
};

// Thread-safe.
class WorkQueue {
 public:
  WorkQueue(const Clock& clock, QueueOptions options);
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(const std::string& key);
  void addAfter(const std::string& key, Nanos delay);
  void retry(const std::string& key);
  void forget(const std::string& key);

  // Waits for a key; nothing once shut down and empty.
  std::optional<std::string> get();
  void done(const std::string& key);

  void shutDown();
  // shutDown, then waits until every key that was taken is done and the line is empty.
  void drain();
  // shutDown, and what waits in line is dropped: for work that whoever comes next finds again.
  void abandon();

  std::size_t waiting() const;
  // How long the key that was taken first, of those in work, has been in work; zero: none is.
  Nanos longestInWork() const;
  const std::string& name() const { return options_.name; }

 private:
  const Clock& clock_;
  const QueueOptions options_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  QueueRules rules_ MBCAS_GUARDED_BY(mutex_);
  std::shared_ptr<void> metrics_refresher_;
};

}  // namespace mbcas::kube
