#include "mbcas/kube/informer.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>

#include "mbcas/kube/metrics.h"
#include "mbcas/kube/watch_stream.h"

namespace mbcas::kube {
namespace {

constexpr Nanos kListTimeout = std::chrono::minutes(5);

using Query = std::vector<std::pair<std::string, std::string>>;

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

  void stop() {
    input(watch_input::Stop{});
    handlers_.clear();
  }

  // Any thread.
  bool hasSynced() const { return synced_; }
  WatchPhase phase() const { return shown_phase_; }
  bool waitForSync(Nanos timeout) {
    std::unique_lock lock(sync_mutex_);
    return sync_changed_.wait_for(lock, timeout, [this] { return synced_.load(); });
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
        collected_.clear();
        count("list");
        return sendList({{"resourceVersion", step.resource_version}});
      case WatchStep::Do::kListNext:
        return sendList({{"continue", step.next}});
      case WatchStep::Do::kStreamList:
        collected_.clear();
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
        guarded([](Impl& self, ObjectPtr object) { self.collected_.insert(std::move(object)); }));
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
    if (options_.on_error && !machine_.refusesStreaming(error)) options_.on_error(error);
    input(watch_input::Failed{std::move(error)});
  }

  void onEvent(WatchEvent event) {
    if (event.object) stalled_ = false;
    if (event.type == WatchEvent::Type::kError) return fail(std::move(event.error));
    const bool collecting = machine_.phase() == WatchPhase::kStreamingList;
    if (event.object && collecting) {
      collected_.erase(event.object);
      if (event.type != WatchEvent::Type::kDeleted) collected_.insert(std::move(event.object));
    } else if (event.object) {
      tell(event.type == WatchEvent::Type::kDeleted ? store_.erase(event.object)
                                                    : store_.put(event.object));
    }
    input(watch_input::Progress{std::move(event.resource_version), event.initial_events_end});
  }

  void swapIn() {
    tell(store_.replace(std::exchange(collected_, {})));
    const std::scoped_lock lock(sync_mutex_);
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
  ObjectSet collected_;   // by a list that is not complete
  bool stalled_ = false;  // no object since expectInitialEvents()
  std::uint64_t attempt_ = 0;
  Client::Id call_ = 0;
  HttpLoop::Id timer_ = 0;

  std::atomic<bool> synced_ = false;
  std::atomic<WatchPhase> shown_phase_ = WatchPhase::kStopped;
  std::mutex sync_mutex_;
  std::condition_variable sync_changed_;
};

WatchCache::WatchCache(Client& client, const Kind& kind, WatchOptions options)
    : impl_(std::make_shared<Impl>(client, kind, std::move(options))) {}

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
  impl_->loop().post([impl = impl_] { impl->input(watch_input::Start{}); });
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

}  // namespace mbcas::kube
