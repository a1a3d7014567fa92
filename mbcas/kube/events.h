// Events: notes on objects for people (`kubectl describe`). Repeats are counted, floods of similar
// ones combined, and an object that talks without end is silenced, with client-go's numbers.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "mbcas/base/clock.h"
#include "mbcas/kube/object.h"
#include "mbcas/kube/token_bucket.h"

namespace mbcas::kube {

class Client;

struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string name_space;
  std::string name;
  std::string uid;
  std::string resource_version;

  static ObjectReference to(const Kind& kind, const ObjectMeta& meta);
};

enum class EventType { kNormal, kWarning };

struct Note {
  ObjectReference about;
  EventType type = EventType::kNormal;
  std::string reason;   // one word in CamelCase
  std::string message;  // for people; cut at 1024 bytes
};

// What becomes of a note: nothing, a new Event, or a higher count of one that exists.
struct NoteDecision {
  enum class Do { kDrop, kCreate, kCount };
  Do action = Do::kDrop;
  std::string name;     // of the Event
  std::string message;  // may say "(combined from similar events): "
  std::int32_t count = 1;
  WallTime first{};
};

// Decides. Pure but for its memory; remembers the last 4096 kinds of notes.
class NoteCorrelator {
 public:
  explicit NoteCorrelator(std::uint64_t seed) : next_name_(seed) {}
  NoteDecision decide(const Note& note, MonotonicTime now, WallTime wall);
  // The Event of that name is gone (it lives an hour): the next such note makes a new one.
  void forget(const Note& note, const std::string& message);

 private:
  static constexpr std::size_t kMemory = 4096;
  struct Similar {  // same object, type and reason
    std::set<std::string> messages;
    MonotonicTime last{};
  };
  struct Same {  // same message, too
    std::string name;
    std::int32_t count = 0;
    WallTime first{};
  };
  // A map that forgets what was used longest ago.
  template <class V>
  class Recent {
   public:
    V& at(const std::string& key, bool& fresh);
    void erase(const std::string& key);

   private:
    std::list<std::pair<std::string, V>> order_;  // most recent first
    std::unordered_map<std::string, typename std::list<std::pair<std::string, V>>::iterator> map_;
  };
  static std::string keyOf(const Note& note);

  Recent<TokenBucket> buckets_;
  Recent<Similar> similar_;
  Recent<Same> same_;
  std::uint64_t next_name_;
};

// Sends them, in the background and without ever holding anybody up: beyond 1000 that wait, notes
// are dropped and counted. Thread-safe.
class EventRecorder {
 public:
  // `component` names the program in the Event's source; `client` must outlive the recorder.
  EventRecorder(Client& client, std::string component);
  ~EventRecorder();

  void record(Note note);
  std::uint64_t dropped() const;
  // Waits until nothing is under way any more; false if that takes longer.
  bool flush(Nanos timeout);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace mbcas::kube
