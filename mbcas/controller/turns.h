// Who may look for room in a quota and raise into it: one pod at a time in each namespace, since
// the room is read before it is taken, and at most so many pods in all, so that quotas whose
// reading takes long leave workers for everything else. No worker waits for its turn: a pod that
// has to wait is put down here, and next() names it when its turn may have come.
//
//   Turns::Turn turn = turns.take("shop", "shop/web-1", urgency);
//   if (!turn) return;              // its key is kept
//   ...
//   // at the end of every piece of work, whether or not it had a turn:
//   if (auto key = turns.next()) queue.add(*key);
//
// No pod is forgotten: whoever waits, waits for a turn that another has, or for a key that next()
// has named; the work of both ends with a call of next().
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "mbcas/base/mutex.h"

namespace mbcas::controller {

// Thread-safe.
class Turns {
 public:
  explicit Turns(std::size_t most) : most_(most) {}

  // Ends with the object.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), name_space_(std::move(other.name_space_)) {}
    Turn& operator=(Turn&& other) noexcept {
      end();
      turns_ = std::exchange(other.turns_, nullptr);
      name_space_ = std::move(other.name_space_);
      return *this;
    }
    ~Turn() { end(); }
    explicit operator bool() const { return turns_ != nullptr; }
    void end() {
      if (turns_ != nullptr) std::exchange(turns_, nullptr)->leave(name_space_);
    }

   private:
    friend class Turns;
    Turn(Turns* turns, std::string name_space)
        : turns_(turns), name_space_(std::move(name_space)) {}
    Turns* turns_ = nullptr;
    std::string name_space_;
  };

  // Nothing: not now; the key waits.
  Turn take(const std::string& name_space, const std::string& key, double urgency) {
    const MutexLock lock(mutex_);
    remove(name_space, key);
    if (busy_.size() < most_ && busy_.insert(name_space).second) return {this, name_space};
    Line& line = lines_[name_space];
    line.order.insert({-urgency, key});
    line.urgency[key] = urgency;
    return {};
  }

  // The most urgent of those whose turn may have come. It no longer waits.
  std::optional<std::string> next() {
    const MutexLock lock(mutex_);
    if (busy_.size() >= most_) return std::nullopt;
    const Line* best = nullptr;
    const std::string* where = nullptr;
    for (const auto& [name_space, line] : lines_) {
      if (busy_.contains(name_space)) continue;
      if (best != nullptr && best->order.begin()->first <= line.order.begin()->first) continue;
      best = &line;
      where = &name_space;
    }
    if (best == nullptr) return std::nullopt;
    std::string key = best->order.begin()->second;
    remove(std::string(*where), key);
    return key;
  }

 private:
  struct Line {                                      // never empty
    std::set<std::pair<double, std::string>> order;  // most urgent first
    std::map<std::string, double> urgency;
  };

  void leave(const std::string& name_space) {
    const MutexLock lock(mutex_);
    busy_.erase(name_space);
  }
  void remove(const std::string& name_space, const std::string& key) MBCAS_REQUIRES(mutex_) {
    const auto line = lines_.find(name_space);
    if (line == lines_.end()) return;
    const auto known = line->second.urgency.find(key);
    if (known == line->second.urgency.end()) return;
    line->second.order.erase({-known->second, key});
    line->second.urgency.erase(known);
    if (line->second.order.empty()) lines_.erase(line);
  }

  const std::size_t most_;
  Mutex mutex_;
  std::set<std::string> busy_ MBCAS_GUARDED_BY(mutex_);         // namespaces
  std::map<std::string, Line> lines_ MBCAS_GUARDED_BY(mutex_);  // by namespace
};

}  // namespace mbcas::controller
