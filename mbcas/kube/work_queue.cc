#include "mbcas/kube/work_queue.h"

#include <algorithm>

#include "mbcas/kube/metrics.h"

namespace mbcas::kube {

bool QueueRules::add(const std::string& key, MonotonicTime now) {
  if (shut_down_) return false;
  const auto [found, fresh] = dirty_.try_emplace(key, Wanting{.since = now});
  Wanting& wanting = found->second;
  if (!fresh) {
    // What was added may have made it more urgent, or less; it keeps its place among its equals.
    if (wanting.place && urgency_) lineUp(found->first, wanting, wanting.place->order);
    return false;
  }
  if (working_.contains(key)) return false;  // done() puts it in line
  lineUp(found->first, wanting, ++last_order_);
  return true;
}

// `key` is the one in dirty_, which stays where it is.
void QueueRules::lineUp(const std::string& key, Wanting& wanting, std::uint64_t order) {
  if (wanting.place) line_.erase(*wanting.place);
  wanting.place = Place{urgency_ ? urgency_(key) : 0, order, &key};
  line_.insert(*wanting.place);
}

void QueueRules::addAfter(const std::string& key, Nanos delay, MonotonicTime now) {
  if (shut_down_) return;
  if (delay <= Nanos(0)) {
    add(key, now);
    return;
  }
  const MonotonicTime due = now + delay;
  const auto [known, added] = due_.emplace(key, due);
  if (!added) {
    if (known->second <= due) return;
    delayed_.erase({known->second, key});
    known->second = due;
  }
  delayed_.emplace(due, key);
}

Nanos QueueRules::retry(const std::string& key, MonotonicTime now) {
  int& failures = failures_[key];
  Nanos delay = first_delay_;
  for (int i = 0; i < failures && delay < max_delay_; ++i) delay *= 2;
  ++failures;
  delay = std::max(std::min(delay, max_delay_), bucket_.reserve(now));
  addAfter(key, delay, now);
  return delay;
}

int QueueRules::failures(const std::string& key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

void QueueRules::moveDue(MonotonicTime now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const std::string key = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    due_.erase(key);
    add(key, now);
  }
}

std::optional<QueueRules::Taken> QueueRules::take(MonotonicTime now) {
  moveDue(now);
  if (line_.empty()) return std::nullopt;
  std::string key = *line_.begin()->key;
  line_.erase(line_.begin());
  const auto wanting = dirty_.find(key);
  const Nanos waited = now - wanting->second.since;
  dirty_.erase(wanting);
  working_.emplace(key, now);
  return Taken{std::move(key), waited};
}

Nanos QueueRules::done(const std::string& key, MonotonicTime now) {
  const auto found = working_.find(key);
  if (found == working_.end()) return Nanos(0);
  const Nanos took = now - found->second;
  working_.erase(found);
  if (const auto wanting = dirty_.find(key); wanting != dirty_.end()) {
    lineUp(wanting->first, wanting->second, ++last_order_);
  }
  return took;
}

void QueueRules::shutDown() {
  shut_down_ = true;
  delayed_.clear();
  due_.clear();
}

void QueueRules::abandon() {
  shutDown();
  line_.clear();
  dirty_.clear();
}

std::optional<MonotonicTime> QueueRules::nextDue() const {
  if (delayed_.empty()) return std::nullopt;
  return delayed_.begin()->first;
}

WorkQueue::WorkQueue(const Clock& clock, QueueOptions options)
    : clock_(clock), options_(std::move(options)), rules_(options_) {
  if (options_.metrics == nullptr) return;
  metrics_refresher_ = options_.metrics->beforeExposition([this] {
    const MutexLock lock(mutex_);
    const MonotonicTime now = clock_.monotonic();
    Nanos unfinished{0};
    Nanos longest{0};
    for (const auto& [key, since] : rules_.inWork()) {
      unfinished += now - since;
      longest = std::max(longest, now - since);
    }
    options_.metrics->queueState(options_.name, static_cast<double>(rules_.waiting()), unfinished,
                                 longest);
  });
}

WorkQueue::~WorkQueue() {
  shutDown();
}

void WorkQueue::add(const std::string& key) {
  bool added = false;
  {
    const MutexLock lock(mutex_);
    added = rules_.add(key, clock_.monotonic());
  }
  if (options_.metrics != nullptr && added) options_.metrics->queueAdded(options_.name);
  changed_.notify_one();
}

void WorkQueue::addAfter(const std::string& key, Nanos delay) {
  {
    const MutexLock lock(mutex_);
    rules_.addAfter(key, delay, clock_.monotonic());
  }
  changed_.notify_one();
}

void WorkQueue::retry(const std::string& key) {
  {
    const MutexLock lock(mutex_);
    rules_.retry(key, clock_.monotonic());
  }
  if (options_.metrics != nullptr) options_.metrics->queueRetried(options_.name);
  changed_.notify_one();
}

void WorkQueue::forget(const std::string& key) {
  const MutexLock lock(mutex_);
  rules_.forget(key);
}

std::optional<std::string> WorkQueue::get() {
  MutexLock lock(mutex_);
  for (;;) {
    const MonotonicTime now = clock_.monotonic();
    if (std::optional<QueueRules::Taken> taken = rules_.take(now)) {
      lock.unlock();
      if (options_.metrics != nullptr) options_.metrics->queueTaken(options_.name, taken->waited);
      return std::move(taken->key);
    }
    // A key in work may come back into line even now.
    if (rules_.isShutDown() && rules_.working() == 0) return std::nullopt;
    if (const std::optional<MonotonicTime> due = rules_.nextDue()) {
      changed_.wait_for(lock.native(), *due - now);
    } else {
      changed_.wait(lock.native());
    }
  }
}

void WorkQueue::done(const std::string& key) {
  Nanos took{0};
  {
    const MutexLock lock(mutex_);
    took = rules_.done(key, clock_.monotonic());
  }
  if (options_.metrics != nullptr) options_.metrics->queueDone(options_.name, took);
  changed_.notify_all();
}

void WorkQueue::shutDown() {
  {
    const MutexLock lock(mutex_);
    rules_.shutDown();
  }
  changed_.notify_all();
}

void WorkQueue::drain() {
  MutexLock lock(mutex_);
  rules_.shutDown();
  changed_.notify_all();
  changed_.wait(lock.native(), [this] MBCAS_REQUIRES(mutex_) {
    return rules_.waiting() == 0 && rules_.working() == 0;
  });
}

void WorkQueue::abandon() {
  {
    const MutexLock lock(mutex_);
    rules_.abandon();
  }
  changed_.notify_all();
}

Nanos WorkQueue::longestInWork() const {
  const MutexLock lock(mutex_);
  const MonotonicTime now = clock_.monotonic();
  Nanos longest{0};
  for (const auto& [key, since] : rules_.inWork()) longest = std::max(longest, now - since);
  return longest;
}

std::size_t WorkQueue::waiting() const {
  const MutexLock lock(mutex_);
  return rules_.waiting();
}

}  // namespace mbcas::kube
