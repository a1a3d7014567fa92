#include "mbcas/kube/informer.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <random>

#include "mbcas/base/mutex.h"
#include "mbcas/kube/metrics.h"
#include "mbcas/kube/watch_stream.h"

namespace mbcas::kube {
namespace {

constexpr Nanos kListTimeout = std::chrono::minutes(5);

using Query = std::vector<std::pair<std::string, std::string>>;

struct PassedOverSet {
  std::map<std::string, PassedOver> objects;
  bool more = false;  // than are kept: they are not named

  void put(PassedOver object) {
    const std::string key = objectKey(object.name_space, object.name);
    if (objects.size() < WatchCache::kMostPassedOver || objects.contains(key)) {
      objects.insert_or_assign(key, std::move(object));
    } else {
      more = true;
    }
  }
  bool has(const std::string& key, const std::string& uid) const {
    const auto found = objects.find(key);
    return found != objects.end() && found->second.uid == uid;
  }
};

}  // namespace

// Lives on the loop but for what is marked otherwise.
class WatchCache::Impl : public std::enable_shared_from_this<WatchCache::Impl> {
 public:
  Impl(Client& client, const Kind& kind, WatchOptions options)
      : client_(client),
        kind_(kind),
        options_(std::move(options)),
        machine_(options_.tuning),
        random_(options_.seed != 0 ? options_.seed : std::random_device()()) {
    if (options_.annotations) decoder_.keepAnnotations(*options_.annotations);
    if (options_.labels) decoder_.keepLabels(*options_.labels);
    decoder_.keepAtMost(options_.most_kept);
  }

  HttpLoop& loop() { return client_.loop(); }
  Store& store() { return store_; }

  void addHandler(std::function<void(const Change&)> handler) {
    if (synced_) {
      for (ObjectPtr& object : store_.list()) handler({nullptr, std::move(object), false});
    }
    handlers_.push_back(std::move(handler));
  }

  void input(const WatchInput& input) {
    act(machine_.on(input, client_.clock().monotonic(),
                    std::uniform_real_distribution<double>(0, 1)(random_)));
  }

  void start() {
    {
      const MutexLock lock(seen_mutex_);
      if (health_.started) return;
      health_.started = true;
      health_.progress = client_.clock().monotonic();
    }
    input(watch_input::Start{});
  }

  void stop() {
    input(watch_input::Stop{});
    handlers_.clear();
    const MutexLock lock(seen_mutex_);
    health_.started = false;
  }

  // Any thread.
  bool hasSynced() const { return synced_; }
  WatchPhase phase() const { return shown_phase_; }
  WatchHealth health() const {
    const MutexLock lock(seen_mutex_);
    return health_;
  }
  std::vector<PassedOver> passedOver() const {
    std::vector<PassedOver> objects;
    const MutexLock lock(seen_mutex_);
    objects.reserve(passed_over_.objects.size());
    for (const auto& [key, object] : passed_over_.objects) objects.push_back(object);
    return objects;
  }
  void expose(Metrics& metrics) const {
    const MutexLock lock(seen_mutex_);
    metrics.watchState(std::string(kind_.name), passed_over_.objects.size(),
                       health_.stuckFor(client_.clock().monotonic()));
  }
  bool waitForSync(Nanos timeout) {
    MutexLock lock(sync_mutex_);
    return sync_changed_.wait_for(lock.native(), timeout, [this] { return synced_.load(); });
  }

 private:
  // Runs if the cache is still there and still in the attempt in which this was made.
  template <class F>
  auto guarded(const F& run) {
    return [self = weak_from_this(), attempt = attempt_, run](auto&&... args) {
      const auto impl = self.lock();
      if (impl && impl->attempt_ == attempt) run(*impl, std::forward<decltype(args)>(args)...);
    };
  }

  void act(WatchStep step) {
    shown_phase_ = machine_.phase();
    if (step.complete) swapIn();
    if (step.action == WatchStep::Do::kGoOn) return;
    endCall();
    switch (step.action) {
      case WatchStep::Do::kGoOn:
      case WatchStep::Do::kStop:
        return;
      case WatchStep::Do::kList:
        forgetCollected();
        count("list");
        return sendList({{"resourceVersion", step.resource_version}});
      case WatchStep::Do::kListNext:
        return sendList({{"continue", step.next}});
      case WatchStep::Do::kStreamList:
        forgetCollected();
        count("list");
        sendWatch({{"sendInitialEvents", "true"},
                   {"resourceVersionMatch", "NotOlderThan"},
                   {"resourceVersion", step.resource_version}});
        return expectInitialEvents();
      case WatchStep::Do::kWatch:
        count("resume");
        return sendWatch({{"resourceVersion", step.resource_version}});
      case WatchStep::Do::kWait:
        timer_ = loop().after(step.delay, guarded([](Impl& self) {
                                self.timer_ = 0;
                                self.input(watch_input::WaitOver{});
                              }));
        return;
    }
  }

  void count(const char* cause) {
    if (client_.metrics() != nullptr) {
      client_.metrics()->watchRestarted(std::string(kind_.name), cause);
    }
  }

  // The reader uses our decoder, so it must not run without us, and has no need to once its attempt
  // is over.
  template <class Reader>
  std::function<Result<void>(std::string_view)> receiverFor(std::shared_ptr<Reader> reader) {
    return [self = weak_from_this(), attempt = attempt_,
            reader = std::move(reader)](std::string_view piece) -> Result<void> {
      const auto impl = self.lock();
      if (!impl || impl->attempt_ != attempt) return {};
      return reader->receive(piece);
    };
  }

  // Whatever the last attempt still has to say is not heard.
  void endCall() {
    ++attempt_;
    if (call_ != 0) client_.cancel(call_);
    if (timer_ != 0) loop().cancelTimer(timer_);
    call_ = 0;
    timer_ = 0;
  }

  Call callFor(Query query) const {
    Call call{.path = kind_.path(options_.name_space), .query = std::move(query)};
    if (!options_.label_selector.empty()) {
      call.query.emplace_back("labelSelector", options_.label_selector);
    }
    if (!options_.field_selector.empty()) {
      call.query.emplace_back("fieldSelector", options_.field_selector);
    }
    call.accept = acceptFor(kind_);
    // Trying again is the machine's business.
    call.retry = false;
    call.idle_timeout = options_.idle_timeout;
    return call;
  }

  void sendList(Query query) {
    Call call = callFor(std::move(query));
    if (options_.page > 0) call.query.emplace_back("limit", std::to_string(options_.page));
    call.timeout = kListTimeout;
    auto reader = std::make_shared<ListReader>(
        kind_, decoder_,
        guarded([](Impl& self, ObjectPtr object) { self.collect(std::move(object)); }),
        guarded([](Impl& self, PassedOver object) {
          self.collected_passed_over_.put(std::move(object));
        }));
    call.receive = receiverFor(reader);
    call_ =
        client_.send(std::move(call), guarded([reader](Impl& self, ApiResult<std::string> body) {
                       self.call_ = 0;
                       if (!body) return self.fail(std::move(body).error());
                       Result<ListPosition> page = reader->finish();
                       if (!page) return self.fail(malformed(page.error()));
                       self.input(watch_input::PageEnded{page->resource_version, page->next});
                     }));
  }

  void sendWatch(Query query) {
    Call call = callFor(std::move(query));
    call.query.emplace_back("watch", "1");
    call.query.emplace_back("allowWatchBookmarks", "true");
    const auto base = std::chrono::duration_cast<std::chrono::seconds>(options_.watch_time).count();
    std::uniform_int_distribution<std::int64_t> time(base, 2 * base);
    call.query.emplace_back("timeoutSeconds", std::to_string(time(random_)));
    call.timeout = Nanos(0);
    call.gzip = false;  // would hold events back
    auto reader = std::make_shared<WatchReader>(
        kind_, decoder_,
        guarded([](Impl& self, WatchEvent event) { self.onEvent(std::move(event)); }));
    call.receive = receiverFor(reader);
    call_ = client_.send(std::move(call), guarded([reader](Impl& self, ApiResult<std::string> end) {
                           self.call_ = 0;
                           if (!end) return self.fail(std::move(end).error());
                           Result<void> whole = reader->finish();
                           if (!whole) return self.fail(malformed(whole.error()));
                           self.input(watch_input::Closed{});
                           if (self.machine_.phase() == WatchPhase::kWatching) {
                             self.progressed();
                           } else {
                             self.failing("the server closed the watch at once");
                           }
                         }));
  }

  void expectInitialEvents() {
    stalled_ = true;
    timer_ = loop().after(options_.streaming_list_idle, guarded([](Impl& self) {
                            self.timer_ = 0;
                            if (self.machine_.phase() != WatchPhase::kStreamingList) return;
                            if (!self.stalled_) return self.expectInitialEvents();
                            ApiError error;
                            error.reason = ApiError::kTimeout;
                            error.message = "the initial events of a streaming list do not end";
                            self.fail(std::move(error));
                          }));
  }

  static ApiError malformed(const Error& error) {
    ApiError result;
    result.reason = ApiError::kMalformed;
    result.message = error.message();
    return result;
  }

  void fail(ApiError error) {
    if (!machine_.refusesStreaming(error)) {
      failing(error.describe());
      if (options_.on_error) options_.on_error(error);
    }
    input(watch_input::Failed{std::move(error)});
  }

  void progressed() {
    const MutexLock lock(seen_mutex_);
    health_.progress = client_.clock().monotonic();
    health_.failing_since.reset();
    health_.last_error.clear();
  }

  void failing(std::string error) {
    const MutexLock lock(seen_mutex_);
    if (!health_.failing_since) health_.failing_since = client_.clock().monotonic();
    health_.last_error = std::move(error);
  }

  void onEvent(WatchEvent event) {
    if (event.object || event.passed_over) stalled_ = false;
    if (event.type == WatchEvent::Type::kError) return fail(std::move(event.error));
    if (event.object) onObject(event.type, std::move(event.object));
    if (event.passed_over) onUnreadable(event.type, *std::move(event.passed_over));
    input(watch_input::Progress{std::move(event.resource_version), event.initial_events_end});
    if (machine_.phase() == WatchPhase::kWatching) progressed();
  }

  void onObject(WatchEvent::Type type, ObjectPtr object) {
    const bool deleted = type == WatchEvent::Type::kDeleted;
    const ObjectName name = ObjectNameEqual::nameOf(object);
    if (machine_.phase() == WatchPhase::kStreamingList) {
      forget(collected_passed_over_, name);
      collected_.erase(object);
      if (!deleted) collect(std::move(object));
      return;
    }
    {
      const MutexLock lock(seen_mutex_);
      forget(passed_over_, name);
    }
    tell(deleted ? store_.erase(object) : store_.put(object));
  }

  // What has not changed since the last list is not kept twice until the new one is complete.
  void collect(ObjectPtr object) { collected_.insert(store_.known(std::move(object))); }

  void onUnreadable(WatchEvent::Type type, PassedOver object) {
    const bool deleted = type == WatchEvent::Type::kDeleted;
    const ObjectName name{object.name_space, object.name};
    if (machine_.phase() == WatchPhase::kStreamingList) {
      if (const auto found = collected_.find(name); found != collected_.end()) {
        collected_.erase(found);
      }
      if (deleted) return forget(collected_passed_over_, name);
      return collected_passed_over_.put(std::move(object));
    }
    tell(store_.erase(name));
    PassedOverSet now;
    {
      const MutexLock lock(seen_mutex_);
      now = passed_over_;
    }
    if (deleted) {
      forget(now, name);
    } else {
      now.put(std::move(object));
    }
    passOver(std::move(now));
  }

  static void forget(PassedOverSet& set, ObjectName name) {
    if (!set.objects.empty()) set.objects.erase(objectKey(name.name_space, name.name));
  }

  // From now on these. Reports those that are new.
  void passOver(PassedOverSet now) {
    PassedOverSet before;
    {
      const MutexLock lock(seen_mutex_);
      before = std::exchange(passed_over_, now);
    }
    if (!options_.on_error) return;
    ApiError error;
    error.reason = ApiError::kUnreadable;
    for (const auto& [key, object] : now.objects) {
      if (before.has(key, object.uid)) continue;
      error.message = fmt::format("{} {} is passed over: {}", kind_.name,
                                  key.empty() ? "without a name" : key, object.why);
      options_.on_error(error);
    }
    if (!now.more || before.more) return;
    error.message =
        fmt::format("more than {} objects of {} are passed over; the others are not named",
                    kMostPassedOver, kind_.name);
    options_.on_error(error);
  }

  void forgetCollected() {
    collected_.clear();
    collected_passed_over_ = {};
  }

  void swapIn() {
    tell(store_.replace(std::exchange(collected_, {})));
    passOver(std::exchange(collected_passed_over_, {}));
    progressed();
    {
      const MutexLock lock(seen_mutex_);
      health_.synced = true;
    }
    const MutexLock lock(sync_mutex_);
    synced_ = true;
    sync_changed_.notify_all();
  }

  void tell(const std::vector<Change>& changes) {
    for (const Change& change : changes) {
      for (const auto& handler : handlers_) handler(change);
    }
  }

  Client& client_;
  const Kind& kind_;
  const WatchOptions options_;
  WatchMachine machine_;
  std::mt19937_64 random_;
  Decoder decoder_;
  Store store_;  // thread-safe for readers
  std::vector<std::function<void(const Change&)>> handlers_;
  ObjectSet collected_;  // by a list that is not complete
  PassedOverSet collected_passed_over_;
  bool stalled_ = false;  // no object since expectInitialEvents()
  std::uint64_t attempt_ = 0;
  Client::Id call_ = 0;
  HttpLoop::Id timer_ = 0;

  mutable Mutex seen_mutex_;
  WatchHealth health_ MBCAS_GUARDED_BY(seen_mutex_);
  PassedOverSet passed_over_ MBCAS_GUARDED_BY(seen_mutex_);  // written on the loop

  std::atomic<bool> synced_ = false;
  std::atomic<WatchPhase> shown_phase_ = WatchPhase::kStopped;
  Mutex sync_mutex_;
  std::condition_variable sync_changed_;
};

WatchCache::WatchCache(Client& client, const Kind& kind, WatchOptions options)
    : impl_(std::make_shared<Impl>(client, kind, std::move(options))) {
  Metrics* const metrics = client.metrics();
  if (metrics == nullptr) return;
  exposition_ =
      metrics->beforeExposition([impl = impl_.get(), metrics] { impl->expose(*metrics); });
}

WatchCache::~WatchCache() {
  stop();
}

void WatchCache::addIndex(std::string name, Store::IndexFunction function) {
  impl_->store().addIndex(std::move(name), std::move(function));
}
void WatchCache::addHandler(std::function<void(const Change&)> handler) {
  impl_->loop().runAndWait([&] { impl_->addHandler(std::move(handler)); });
}
void WatchCache::start() {
  impl_->loop().post([impl = impl_] { impl->start(); });
}
void WatchCache::stop() {
  impl_->loop().runAndWait([this] { impl_->stop(); });
}
bool WatchCache::hasSynced() const {
  return impl_->hasSynced();
}
bool WatchCache::waitForSync(Nanos timeout) const {
  return impl_->waitForSync(timeout);
}
const Store& WatchCache::store() const {
  return impl_->store();
}
WatchPhase WatchCache::phase() const {
  return impl_->phase();
}
WatchHealth WatchCache::health() const {
  return impl_->health();
}
std::vector<PassedOver> WatchCache::passedOver() const {
  return impl_->passedOver();
}

}  // namespace mbcas::kube
