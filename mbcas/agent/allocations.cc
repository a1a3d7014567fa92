#include "mbcas/agent/allocations.h"

#include <algorithm>
#include <utility>

#include "mbcas/base/backoff.h"
#include "mbcas/podallocation/original_resources.h"

namespace mbcas::agent {
namespace {

// The controller usually writes the bounds of a new object within a tenth of a second.
constexpr Nanos kFirstLook = std::chrono::milliseconds(100);
// The agent looks for bounds so often, each time after twice the time, so for three seconds. Later
// a mark reports them.
constexpr int kLooks = 5;
// Agents that read everything again, because the server was away, do so over this time.
constexpr Nanos kSpread = std::chrono::seconds(10);
constexpr Nanos kLongestDelay = std::chrono::seconds(60);

Nanos part(Nanos time, double share) {
  return Nanos(static_cast<std::int64_t>(static_cast<double>(time.count()) * share));
}

}  // namespace

Allocations::Allocations(const Options& options) : options_(options), random_(options.seed) {}

std::vector<Allocations::PodPtr> Allocations::follow(const std::vector<PodPtr>& pods,
                                                     MonotonicTime now) {
  std::vector<PodPtr> shown;
  std::map<std::string, Entry, std::less<>> before = std::exchange(entries_, {});
  for (const PodPtr& pod : pods) {
    const auto known = before.find(pod->meta.uid.view());
    if (known != before.end()) {
      Entry& entry = entries_.insert(before.extract(known)).position->second;
      shown.push_back(show(entry, pod, now));
      continue;
    }
    shown.push_back(pod);
    if (pod->terminal()) continue;
    Entry& entry = entries_[pod->meta.uid.string()];
    entry.name_space = pod->meta.namespace_.string();
    entry.pod = entry.shown = entry.read_with = pod;
    if (started_) {
      entry.known = true;
      plan(entry, now);
    } else {
      entry.due = now;
    }
  }
  // The answers to reads of pods that have ended are not waited for.
  for (const auto& [uid, entry] : before) under_way_ -= entry.under_way ? 1 : 0;
  started_ = true;
  return shown;
}

// Without an object there is nothing that could say what the pod had declared before.
Allocations::PodPtr Allocations::show(Entry& entry, const PodPtr& pod, MonotonicTime now) {
  const bool is_new = entry.pod != pod;
  entry.pod = pod;
  const auto same = [](const PodPtr& a, const PodPtr& b) {
    return a == b || podallocation::currentCpu(*a) == podallocation::currentCpu(*b);
  };
  if (!entry.object || same(pod, entry.shown) || (entry.matches && same(pod, entry.read_with))) {
    return entry.shown = pod;
  }
  if (is_new) readAgain(entry, now);
  return entry.shown;
}

std::optional<Allocations::Read> Allocations::take(MonotonicTime now) {
  if (under_way_ >= options_.in_flight || (not_before_ && now < *not_before_)) return std::nullopt;
  std::pair<const std::string, Entry>* first = nullptr;
  for (auto& each : entries_) {
    const Entry& entry = each.second;
    if (entry.under_way || !entry.due || *entry.due > now) continue;
    if (first == nullptr || *entry.due < *first->second.due) first = &each;
  }
  if (first == nullptr) return std::nullopt;
  Entry& entry = first->second;
  entry.under_way = true;
  entry.written = false;
  entry.reads_newest = std::exchange(entry.newest, false);
  entry.read_with = entry.pod;
  entry.matches = false;
  entry.due.reset();
  ++under_way_;
  return Read{entry.name_space, first->first, entry.reads_newest};
}

void Allocations::found(std::string_view uid, Object object, MonotonicTime now) {
  not_before_.reset();
  failures_ = 0;
  Entry* const entry = answered(uid);
  if (entry == nullptr) return;
  entry->known = true;
  entry->matches = true;
  keep(*entry, std::move(object));
  plan(*entry, now);
}

void Allocations::missing(std::string_view uid, MonotonicTime now) {
  not_before_.reset();
  failures_ = 0;
  Entry* const entry = answered(uid);
  if (entry == nullptr) return;
  entry->known = true;
  // A write that ended after the read was begun may have made it, and the server's cache may not
  // have it yet.
  if (entry->object && !entry->reads_newest) return readAgain(*entry, now);
  if (!entry->written) entry->object = nullptr;
  plan(*entry, now);
}

void Allocations::failed(std::string_view uid, std::optional<Nanos> retry_after,
                         MonotonicTime now) {
  Entry* const entry = answered(uid);
  const Nanos delay = std::max(std::min(kLongestDelay, backoff(++failures_, chance())),
                               retry_after.value_or(Nanos(0)));
  not_before_ = std::max(not_before_.value_or(now), now + delay);
  if (entry != nullptr) readAgain(*entry, now);
}

void Allocations::wrote(std::string_view uid, Object object, MonotonicTime now) {
  Entry* const entry = find(uid);
  if (entry == nullptr) return;
  entry->known = true;
  entry->written = true;
  keep(*entry, std::move(object));
  // What is to be read newest was changed by the controller after this write, perhaps.
  if (!entry->under_way && !entry->newest) plan(*entry, now);
}

void Allocations::renewed(std::string_view marks, MonotonicTime now) {
  const podallocation::News news = marks_.read(marks);
  // Marks may have come and gone since the last renewal.
  const bool missed = renewed_ && now - *renewed_ > podallocation::kMarkStays / 2;
  renewed_ = now;
  if (missed || news.everything) {
    for (auto& [uid, entry] : entries_) readAgain(entry, now + part(kSpread, chance()));
    return;
  }
  for (const std::string& uid : news.uids) {
    if (Entry* const entry = find(uid)) readAgain(*entry, now);
  }
}

bool Allocations::complete() const {
  return started_ &&
         std::ranges::all_of(entries_, [](const auto& each) { return each.second.known; });
}

std::vector<Allocations::Object> Allocations::list() const {
  std::vector<Object> objects;
  for (const auto& [uid, entry] : entries_) {
    if (entry.object) objects.push_back(entry.object);
  }
  return objects;
}

std::size_t Allocations::size() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [](const auto& each) { return each.second.object != nullptr; }));
}

std::optional<MonotonicTime> Allocations::next(MonotonicTime now) const {
  if (under_way_ >= options_.in_flight) return std::nullopt;
  std::optional<MonotonicTime> next;
  for (const auto& [uid, entry] : entries_) {
    if (entry.under_way || !entry.due) continue;
    next = std::min(next.value_or(*entry.due), *entry.due);
  }
  if (!next) return std::nullopt;
  return std::max({*next, not_before_.value_or(now), now});
}

Allocations::Entry* Allocations::find(std::string_view uid) {
  const auto found = entries_.find(uid);
  return found == entries_.end() ? nullptr : &found->second;
}

Allocations::Entry* Allocations::answered(std::string_view uid) {
  Entry* const entry = find(uid);
  if (entry == nullptr || !entry->under_way) return nullptr;
  entry->under_way = false;
  --under_way_;
  return entry;
}

// Answers may arrive in another order than the server gave them.
void Allocations::keep(Entry& entry, Object object) {
  if (entry.object && object && entry.object->meta.uid == object->meta.uid &&
      kube::isNewer(entry.object->meta.resource_version, object->meta.resource_version)) {
    return;
  }
  entry.object = std::move(object);
}

// When it is read next, unless a mark has said so already.
void Allocations::plan(Entry& entry, MonotonicTime now) {
  if (entry.newest) return;
  const bool judged = !entry.object || entry.object->bounds() != nullptr;
  if (judged) entry.without_bounds = 0;
  if (!judged && entry.without_bounds < kLooks) {
    entry.due = now + kFirstLook * (1 << entry.without_bounds++);
  } else {
    entry.due = now + part(options_.refresh, 0.75 + chance() / 2);
  }
}

void Allocations::readAgain(Entry& entry, MonotonicTime when) {
  entry.due = entry.due ? std::min(*entry.due, when) : when;
  entry.newest = true;
}

}  // namespace mbcas::agent
