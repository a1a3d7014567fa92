#include "mbcas/agent/outbox.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "mbcas/base/backoff.h"
#include "mbcas/kube/token_bucket.h"

namespace mbcas::agent {
namespace {

constexpr int kLate = 100;  // so many failures: the longest wait
constexpr Nanos kLeastAsked = std::chrono::seconds(1);

}  // namespace

class Outbox::Impl {
 public:
  explicit Impl(const Options& options)
      : options_(options),
        bucket_(options.writes_per_second, options.burst),
        random_(options.seed),
        at_once_(options.in_flight) {}

  void put(const Wish& wish, MonotonicTime now) {
    Entry& entry = entries_[wish.uid];
    if (!entry.waiting) entry.since = ++order_;
    // What was refused is tried again late; something else may be accepted.
    if (entry.refused && entry.refused != wish.spec) {
      entry.refused.reset();
      entry.not_before = now;
    }
    entry.waiting = wish;
    entry.forgotten = false;
  }

  void forget(std::string_view uid) {
    const auto found = entries_.find(uid);
    if (found == entries_.end()) return;
    if (!found->second.under_way) {
      entries_.erase(found);
      return;
    }
    found->second.waiting.reset();
    found->second.forgotten = true;
  }

  std::optional<Wish> take(MonotonicTime now) {
    if (full() || now < asked_until_) return std::nullopt;
    Entry* first = nullptr;
    for (auto& [uid, entry] : entries_) {
      if (entry.ready() && entry.not_before <= now && (first == nullptr || entry.before(*first))) {
        first = &entry;
      }
    }
    if (first == nullptr || !bucket_.take(now)) return std::nullopt;
    ++under_way_;
    first->under_way = std::exchange(first->waiting, std::nullopt);
    return first->under_way;
  }

  void done(std::string_view uid, WriteResult result, MonotonicTime now,
            std::optional<Nanos> retry_after) {
    const auto found = entries_.find(uid);
    if (found == entries_.end() || !found->second.under_way) return;
    --under_way_;
    Entry& entry = found->second;
    Wish sent = *std::exchange(entry.under_way, std::nullopt);
    if (result == WriteResult::kGone || entry.forgotten) {
      entries_.erase(found);
      return;
    }
    entry.refused.reset();
    if (result == WriteResult::kFailed) at_once_ = 1;
    if (result == WriteResult::kDone) {
      at_once_ = std::min<double>(at_once_ + 1 / at_once_, options_.in_flight);
      entry.written = std::move(sent.spec);
      entry.failures = 0;
      entry.not_before = {};
      return;
    }
    if (result == WriteResult::kFailed && retry_after) {
      const auto asked = std::max(*retry_after, kLeastAsked);
      asked_until_ = std::max(
          asked_until_,
          now + asked +
              Nanos(static_cast<std::int64_t>(static_cast<double>(asked.count()) * chance() / 2)));
    } else if (result == WriteResult::kFailed) {
      entry.not_before = now + backoff(++entry.failures, chance());
    } else if (entry.waiting && entry.waiting->spec != sent.spec) {
      entry.not_before = now;
    } else {
      entry.refused = sent.spec;
      entry.not_before = now + backoff(kLate, chance());
    }
    if (!entry.waiting) {
      entry.since = ++order_;
      entry.waiting = std::move(sent);
    }
  }

  void answers(MonotonicTime now) {
    for (auto& [uid, entry] : entries_) {
      if (!entry.refused) entry.not_before = std::min(entry.not_before, now);
    }
  }

  std::optional<MonotonicTime> next(MonotonicTime now) const {
    if (full()) return std::nullopt;
    std::optional<MonotonicTime> earliest;
    for (const auto& [uid, entry] : entries_) {
      if (entry.ready()) earliest = std::min(earliest.value_or(entry.not_before), entry.not_before);
    }
    if (!earliest) return std::nullopt;
    return std::max({*earliest, asked_until_, now + bucket_.wait(now)});
  }

  std::size_t waiting() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        entries_, [](const auto& entry) { return entry.second.waiting.has_value(); }));
  }

  const podallocation::Spec* written(std::string_view uid) const {
    const auto found = entries_.find(uid);
    if (found == entries_.end() || !found->second.written) return nullptr;
    return &*found->second.written;
  }

 private:
  struct Entry {
    std::optional<Wish> waiting{};
    std::optional<Wish> under_way{};
    std::optional<podallocation::Spec> written{};
    std::optional<podallocation::Spec> refused{};  // by the last answer
    std::uint64_t since = 0;                       // the order in which they began to wait
    int failures = 0;
    MonotonicTime not_before{};
    bool forgotten = false;  // while it was under way

    bool ready() const { return waiting && !under_way; }
    bool before(const Entry& other) const {
      const auto rank = [](const Entry& entry) {
        return std::tuple(!entry.waiting->urgent, -entry.waiting->urgency, entry.since);
      };
      return rank(*this) < rank(other);
    }
  };

  bool full() const { return under_way_ >= static_cast<int>(at_once_); }
  double chance() { return std::uniform_real_distribution<>(0, 1)(random_); }

  Options options_;
  kube::TokenBucket bucket_;
  std::mt19937_64 random_;
  std::map<std::string, Entry, std::less<>> entries_;  // by UID
  MonotonicTime asked_until_{};                        // by the server
  std::uint64_t order_ = 0;
  int under_way_ = 0;
  double at_once_;  // writes that may be under way
};

Outbox::Outbox(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Outbox::~Outbox() = default;

void Outbox::put(const Wish& wish, MonotonicTime now) {
  impl_->put(wish, now);
}
void Outbox::forget(std::string_view uid) {
  impl_->forget(uid);
}
std::optional<Wish> Outbox::take(MonotonicTime now) {
  return impl_->take(now);
}
void Outbox::done(std::string_view uid, WriteResult result, MonotonicTime now,
                  std::optional<Nanos> retry_after) {
  impl_->done(uid, result, now, retry_after);
}
void Outbox::answers(MonotonicTime now) {
  impl_->answers(now);
}
std::optional<MonotonicTime> Outbox::next(MonotonicTime now) const {
  return impl_->next(now);
}
std::size_t Outbox::waiting() const {
  return impl_->waiting();
}
const podallocation::Spec* Outbox::written(std::string_view uid) const {
  return impl_->written(uid);
}

}  // namespace mbcas::agent
