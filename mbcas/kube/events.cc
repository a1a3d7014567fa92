#include "mbcas/kube/events.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <random>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/mutex.h"
#include "mbcas/base/time.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/types.h"

namespace mbcas::kube {
namespace {

using std::chrono::seconds;

constexpr double kSpamBurst = 25;
constexpr double kSpamRate = 1.0 / 300;
constexpr std::size_t kSimilarLimit = 10;
constexpr Nanos kSimilarPeriod = seconds(600);
constexpr std::size_t kMaxMessage = 1024;
constexpr std::size_t kMaxQueue = 1000;
constexpr int kMaxTries = 12;
constexpr Nanos kTryDelay = seconds(10);

std::string_view typeName(EventType type) {
  return type == EventType::kNormal ? "Normal" : "Warning";
}

// Never in the middle of a character.
std::string cut(std::string text) {
  if (text.size() <= kMaxMessage) return text;
  std::size_t end = kMaxMessage;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

std::string nameSpaceOf(const Note& note) {
  return note.about.name_space.empty() ? "default" : note.about.name_space;
}

}  // namespace

ObjectReference ObjectReference::to(const Kind& kind, const ObjectMeta& meta) {
  return {kind.apiVersion(),  std::string(kind.name), meta.namespace_.string(),
          meta.name.string(), meta.uid.string(),      meta.resource_version.string()};
}

template <class V>
V& NoteCorrelator::Recent<V>::at(const std::string& key, bool& fresh) {
  fresh = false;
  if (const auto found = map_.find(key); found != map_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    return order_.front().second;
  }
  fresh = true;
  if constexpr (std::is_same_v<V, TokenBucket>) {
    order_.emplace_front(key, TokenBucket(kSpamRate, kSpamBurst));
  } else {
    order_.emplace_front(key, V{});
  }
  map_[key] = order_.begin();
  if (map_.size() > kMemory) {
    map_.erase(order_.back().first);
    order_.pop_back();
  }
  return order_.front().second;
}

template <class V>
void NoteCorrelator::Recent<V>::erase(const std::string& key) {
  const auto found = map_.find(key);
  if (found == map_.end()) return;
  order_.erase(found->second);
  map_.erase(found);
}

std::string NoteCorrelator::keyOf(const Note& note) {
  const ObjectReference& about = note.about;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", about.api_version, about.kind, about.name_space,
                     about.name, about.uid, typeName(note.type), note.reason);
}

NoteDecision NoteCorrelator::decide(const Note& note, MonotonicTime now, WallTime wall) {
  NoteDecision decision;
  decision.message = cut(note.message);
  const std::string key = keyOf(note);
  bool fresh = false;

  Similar& similar = similar_.at(key, fresh);
  if (!fresh && now - similar.last > kSimilarPeriod) similar.messages.clear();
  similar.last = now;
  similar.messages.insert(decision.message);
  std::string same_key = key + "|" + decision.message;
  if (similar.messages.size() >= kSimilarLimit) {
    similar.messages.erase(similar.messages.begin());  // enough to know that there are many
    decision.message = cut("(combined from similar events): " + decision.message);
    same_key = key;
  }

  Same& same = same_.at(same_key, fresh);
  if (fresh) {
    same.first = wall;
    same.name = fmt::format("{}.{:016x}", note.about.name.substr(0, 200), next_name_++);
  }
  ++same.count;
  decision.name = same.name;
  decision.count = same.count;
  decision.first = same.first;

  const ObjectReference& about = note.about;
  const std::string source = fmt::format("{}|{}|{}", about.kind, about.name_space, about.name);
  bool unused = false;
  if (!buckets_.at(source, unused).take(now)) return decision;  // dropped, but counted
  decision.action = same.count == 1 ? NoteDecision::Do::kCreate : NoteDecision::Do::kCount;
  return decision;
}

void NoteCorrelator::forget(const Note& note, const std::string& message) {
  same_.erase(keyOf(note));
  same_.erase(keyOf(note) + "|" + message);
}

// All of it on the loop but for the counters.
class EventRecorder::Impl : public std::enable_shared_from_this<EventRecorder::Impl> {
 public:
  Impl(Client& client, std::string component)
      : client_(client), component_(std::move(component)), correlator_(std::random_device()()) {}

  HttpLoop& loop() { return client_.loop(); }
  void close() { closed_ = true; }

  bool admit() {
    const MutexLock lock(mutex_);
    if (pending_ >= kMaxQueue) {
      ++dropped_;
      return false;
    }
    ++pending_;
    return true;
  }
  std::uint64_t dropped() {
    const MutexLock lock(mutex_);
    return dropped_;
  }
  bool flush(Nanos timeout) {
    MutexLock lock(mutex_);
    return idle_.wait_for(lock.native(), timeout,
                          [this] MBCAS_REQUIRES(mutex_) { return pending_ == 0; });
  }

  void enqueue(Note note) {
    queue_.push_back(std::move(note));
    if (!sending_) sendNext();
  }

 private:
  // One at a time, so that a count never overtakes its Event.
  void sendNext() {
    if (closed_ || queue_.empty()) return;
    const Note& note = queue_.front();
    decision_ = correlator_.decide(note, client_.clock().monotonic(), client_.clock().wall());
    if (decision_.action == NoteDecision::Do::kDrop) {
      settle(true);
      return;
    }
    sending_ = true;
    tries_ = 0;
    send();
  }

  void send() {
    const Note& note = queue_.front();
    ++tries_;
    Call call = decision_.action == NoteDecision::Do::kCreate
                    ? Client::createCall(Event::kind(), nameSpaceOf(note), bodyOf(note), {})
                    : Client::patchCall(Event::kind(), nameSpaceOf(note), decision_.name,
                                        PatchType::kMerge, countOf(), {});
    client_.send(std::move(call), [self = weak_from_this()](ApiResult<std::string> body) {
      if (const auto impl = self.lock(); impl && !impl->closed_) impl->sent(std::move(body));
    });
  }

  void sent(ApiResult<std::string> body) {
    if (body) return settle(false);
    const ApiError& error = body.error();
    if (error.notFound() && decision_.action == NoteDecision::Do::kCount) {
      decision_.action = NoteDecision::Do::kCreate;  // it has expired: write it anew
      return send();
    }
    if (error.transient() && tries_ < kMaxTries) {
      loop().after(kTryDelay, [self = weak_from_this()] {
        if (const auto impl = self.lock(); impl && !impl->closed_) impl->send();
      });
      return;
    }
    correlator_.forget(queue_.front(), decision_.message);
    settle(true);
  }

  void settle(bool lost) {
    queue_.pop_front();
    sending_ = false;
    {
      const MutexLock lock(mutex_);
      --pending_;
      if (lost) ++dropped_;
      idle_.notify_all();
    }
    // Not directly: thousands of dropped notes must not nest.
    loop().post([self = weak_from_this()] {
      if (const auto impl = self.lock(); impl && !impl->sending_) impl->sendNext();
    });
  }

  std::string bodyOf(const Note& note) const {
    const std::string now = formatRfc3339(client_.clock().wall());
    std::string body;
    JsonWriter json(body);
    json.beginObject();
    json.key("apiVersion").value("v1").key("kind").value("Event");
    json.key("metadata").beginObject();
    json.key("name").value(decision_.name).key("namespace").value(nameSpaceOf(note));
    json.endObject();
    json.key("involvedObject").beginObject();
    json.key("apiVersion").value(note.about.api_version).key("kind").value(note.about.kind);
    json.key("namespace").value(note.about.name_space).key("name").value(note.about.name);
    json.key("uid").value(note.about.uid);
    json.key("resourceVersion").value(note.about.resource_version);
    json.endObject();
    json.key("type").value(typeName(note.type));
    json.key("reason").value(note.reason);
    json.key("message").value(decision_.message);
    json.key("source").beginObject().key("component").value(component_).endObject();
    json.key("reportingComponent").value(component_).key("reportingInstance").value("");
    json.key("count").value(decision_.count);
    json.key("firstTimestamp").value(formatRfc3339(decision_.first));
    json.key("lastTimestamp").value(now);
    json.endObject();
    return body;
  }

  std::string countOf() const {
    std::string body;
    JsonWriter json(body);
    json.beginObject();
    json.key("count").value(decision_.count);
    json.key("message").value(decision_.message);
    json.key("lastTimestamp").value(formatRfc3339(client_.clock().wall()));
    json.endObject();
    return body;
  }

  Client& client_;
  const std::string component_;
  NoteCorrelator correlator_;
  std::deque<Note> queue_;  // the first is being sent, if sending_
  NoteDecision decision_;
  bool sending_ = false;
  int tries_ = 0;
  bool closed_ = false;

  Mutex mutex_;
  std::condition_variable idle_;
  std::size_t pending_ MBCAS_GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ MBCAS_GUARDED_BY(mutex_) = 0;
};

EventRecorder::EventRecorder(Client& client, std::string component)
    : impl_(std::make_shared<Impl>(client, std::move(component))) {}

EventRecorder::~EventRecorder() {
  impl_->loop().runAndWait([this] { impl_->close(); });
}

void EventRecorder::record(Note note) {
  if (!impl_->admit()) return;
  impl_->loop().post(
      [impl = impl_, note = std::move(note)] mutable { impl->enqueue(std::move(note)); });
}

std::uint64_t EventRecorder::dropped() const {
  return impl_->dropped();
}

bool EventRecorder::flush(Nanos timeout) {
  return impl_->flush(timeout);
}

}  // namespace mbcas::kube
