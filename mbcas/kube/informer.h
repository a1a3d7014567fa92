// A local copy of a kind's objects that follows the server, and tells handlers what changed.
//
//   Informer<Pod> pods(client, {.field_selector = "spec.nodeName=n1"});
//   pods.onChange([&](const PodChange& change) { queue.add(change.key()); });
//   pods.start();
//   pods.waitForSync(std::chrono::minutes(2));
//   std::shared_ptr<const Pod> pod = pods.find("default", "web-1");
//
// Lists, watches, and survives whatever happens between it and the server; see watch_machine.h. An
// object that cannot be read is passed over: it counts as not there, it is reported once, and lists
// and watches go on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/kube/client.h"
#include "mbcas/kube/store.h"
#include "mbcas/kube/watch_machine.h"

namespace mbcas::kube {

struct WatchOptions {
  std::string name_space;  // empty: all
  std::string label_selector;
  std::string field_selector;
  int page = 500;
  // Keep only annotations, and labels, whose keys begin with one of these; nothing: all.
  std::optional<std::vector<std::string>> annotations;
  std::optional<std::vector<std::string>> labels;
  // An object of which more bytes than this would be kept is passed over: users choose how much
  // they write into objects, and how many of them there are.
  std::uint32_t most_kept = 64 << 10;
  // The server is asked to end a watch after a random time of one to two of these.
  Nanos watch_time = std::chrono::minutes(5);
  // A watch that brings nothing for so long is given up as dead. Bookmarks come every minute.
  Nanos idle_timeout = std::chrono::seconds(150);
  // A streaming list ends with a marked bookmark, which a busy server may lose (seen with 1.35.4
  // and 10,000 pods). When no object has come for so long and the mark has not either, a plain list
  // is quicker.
  Nanos streaming_list_idle = std::chrono::seconds(5);
  WatchTuning tuning;
  std::uint64_t seed = 0;  // of the jitter; 0: from the system
  // Told of every failure, and once of every object that is passed over (kUnreadable), on the loop.
  // The watch goes on by itself.
  std::function<void(const ApiError&)> on_error;
};

// Whether a watch keeps up with the server.
struct WatchHealth {
  bool started = false;
  bool synced = false;
  // When it last did: an event, a bookmark, a complete list. At first: when it was started.
  MonotonicTime progress{};
  std::optional<MonotonicTime> failing_since;  // the first failure after that
  std::string last_error;                      // since then; empty: none

  // Nothing while the watch is open or has been interrupted for a moment only. Else how long it has
  // been failing, or, before the first list is complete, how long it has been trying. Bookmarks
  // come every minute, so two minutes and more are no chance.
  Nanos stuckFor(MonotonicTime now) const {
    if (!started) return Nanos(0);
    if (!synced) return now - progress;
    return failing_since ? now - *failing_since : Nanos(0);
  }
};

// Without types; Informer<T> below puts them on.
class WatchCache {
 public:
  // `client` must outlive it. Indexes and handlers are added before start().
  WatchCache(Client& client, const Kind& kind, WatchOptions options);
  ~WatchCache();  // stops; not to be called from a handler
  WatchCache(const WatchCache&) = delete;
  WatchCache& operator=(const WatchCache&) = delete;

  void addIndex(std::string name, Store::IndexFunction function);
  // Called on the loop, in order, after the store has changed. Must not wait for anything. A
  // handler that is added after start() first gets all that is there.
  void addHandler(std::function<void(const Change&)> handler);

  void start();
  void stop();  // no handler runs after it returns

  // The first complete set is in the store and has been passed to the handlers.
  bool hasSynced() const;
  bool waitForSync(Nanos timeout) const;

  const Store& store() const;
  WatchPhase phase() const;  // for tests and reports
  WatchHealth health() const;
  // What the server has and cannot be read here, by name, at most kMostPassedOver of them.
  std::vector<PassedOver> passedOver() const;
  static constexpr std::size_t kMostPassedOver = 256;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  std::shared_ptr<void> exposition_;
};

template <class T>
struct TypedChange {
  std::shared_ptr<const T> before;
  std::shared_ptr<const T> after;
  bool noticed_late = false;

  const T& latest() const { return after ? *after : *before; }
  std::string key() const { return objectKey(latest().meta); }
};

template <class T>
class Informer {
 public:
  // `kind` may differ from T's own in how it is asked for, not in what it decodes to.
  explicit Informer(Client& client, WatchOptions options = {}, const Kind& kind = T::kind())
      : cache_(client, kind, std::move(options)) {}

  void addIndex(std::string name, std::function<std::vector<std::string>(const T&)> function) {
    cache_.addIndex(std::move(name), [function = std::move(function)](const Object& object) {
      return function(static_cast<const T&>(object));
    });
  }
  void onChange(std::function<void(const TypedChange<T>&)> handler) {
    cache_.addHandler([handler = std::move(handler)](const Change& change) {
      handler({std::static_pointer_cast<const T>(change.before),
               std::static_pointer_cast<const T>(change.after), change.noticed_late});
    });
  }
  void start() { cache_.start(); }
  void stop() { cache_.stop(); }
  bool hasSynced() const { return cache_.hasSynced(); }
  bool waitForSync(Nanos timeout) const { return cache_.waitForSync(timeout); }
  WatchPhase phase() const { return cache_.phase(); }
  WatchHealth health() const { return cache_.health(); }
  Nanos stuckFor(MonotonicTime now) const { return cache_.health().stuckFor(now); }
  std::vector<PassedOver> passedOver() const { return cache_.passedOver(); }

  std::shared_ptr<const T> find(std::string_view name_space, std::string_view name) const {
    return std::static_pointer_cast<const T>(cache_.store().find(name_space, name));
  }
  std::vector<std::shared_ptr<const T>> list() const { return typed(cache_.store().list()); }
  std::vector<std::shared_ptr<const T>> byIndex(const std::string& index,
                                                const std::string& value) const {
    return typed(cache_.store().byIndex(index, value));
  }
  std::size_t size() const { return cache_.store().size(); }

 private:
  static std::vector<std::shared_ptr<const T>> typed(const std::vector<ObjectPtr>& objects) {
    std::vector<std::shared_ptr<const T>> result;
    result.reserve(objects.size());
    for (const ObjectPtr& object : objects) {
      result.push_back(std::static_pointer_cast<const T>(object));
    }
    return result;
  }
  WatchCache cache_;
};

}  // namespace mbcas::kube
