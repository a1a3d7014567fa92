// Requests to one API server: authenticated, throttled, retried where the server asks for it,
// counted, and decoded into typed objects.
//
//   HttpLoop loop;
//   Client client(loop, config, clock, {.user_agent = "example/1.0"});
//   ApiResult<std::shared_ptr<const Pod>> pod = client.get<Pod>("default", "web-1");
//
// The typed calls wait for the answer; they are for any thread but the loop's. send() does not
// wait.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/kube/access.h"
#include "mbcas/kube/api_error.h"
#include "mbcas/kube/config.h"
#include "mbcas/kube/http_loop.h"
#include "mbcas/kube/object.h"

namespace mbcas::kube {

class Metrics;

struct ClientOptions {
  std::string user_agent = "mbcas-kube";
  // Requests per second, and how many at once after a pause. 0: no limit, the server's priority and
  // fairness decides.
  double qps = 0;
  int burst = 10;
  int max_retries = 10;  // where the server sent Retry-After, and for a GET whose connection broke
  Nanos timeout = std::chrono::seconds(30);  // of one try
  // Of a call with all its tries and the waits between them; or the timeout of one try, if that is
  // longer. When it is over, the last try's error is the call's.
  Nanos overall = std::chrono::minutes(2);
  Nanos list_idle = std::chrono::seconds(60);  // a list that brings nothing for so long has failed
  std::size_t max_response = 16 << 20;         // bytes of an answer that is kept whole
  Metrics* metrics = nullptr;
  // Asked on the loop right before every try of anything but a GET. Where the answer is false the
  // call fails with kFenced and nothing is sent. A leader puts LeaderElector::leads() here.
  std::function<bool()> may_write{};
};

struct Call {
  std::string method = "GET";
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
  std::string body;
  std::string content_type = "application/json";
  std::string accept = "application/json";
  std::optional<Nanos> timeout;  // of one try; 0: none. Default: the client's
  Nanos idle_timeout{0};
  bool retry = true;
  bool gzip = true;
  // If set, the body of a successful answer goes here piece by piece and is not kept; no more tries
  // after the first piece. An error ends the call with kMalformed and its text.
  std::function<Result<void>(std::string_view piece)> receive;
  // For the three below see HttpRequest. Of a call with `upgrade`, `receive` is required; a stream
  // that ends is a complete answer.
  std::string upgrade{};
  std::vector<std::string> headers{};  // sent too
  std::function<Result<void>(const HttpAnswer& answer)> upgraded{};
};

enum class PatchType { kStrategic, kMerge, kJson, kApply };

struct WriteOptions {
  std::string subresource;
  std::string field_manager;
  bool force = false;  // apply: take over fields that others manage
  bool dry_run = false;
};

struct ListOptions {
  std::string name_space;  // empty: all
  std::string label_selector;
  std::string field_selector;
  int page = 500;
};

struct DeleteOptions {
  std::string uid;               // delete only this incarnation
  std::string resource_version;  // delete only if unchanged
  std::optional<int> grace_seconds;
  std::string propagation;  // Background, Foreground, Orphan; empty: the kind's default
};

template <class T>
struct ObjectList {
  std::string resource_version;
  std::vector<std::shared_ptr<const T>> items;
  std::vector<PassedOver> passed_over;  // on the server, but unreadable here
};

struct ListPosition {  // where a list, or a page of it, ended
  std::string resource_version;
  std::string next;  // token of the next page; empty at the end
};

struct ServerVersion {
  std::string git_version;  // "v1.35.4"
  int major = 0;
  int minor = 0;
};

class Client {
 public:
  using Id = std::uint64_t;

  // `loop`, `clock` and the metrics must outlive the client.
  Client(HttpLoop& loop, ClientConfig config, const Clock& clock, ClientOptions options = {});
  ~Client();  // closes, and waits for the end of what was under way; not on the loop
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Does not wait; `done` runs on the loop, once. Any thread.
  Id send(Call call, std::function<void(ApiResult<std::string> body)> done);
  // `done` comes with kCancelled, or with what came before. Any thread.
  void cancel(Id call);
  // More for the stream of a call with `upgrade`. Any thread.
  void write(Id call, std::string bytes);
  // Ends what is under way and whatever is begun later, with kCancelled. Any thread but the loop's.
  void close();
  // Sends and waits; not on the loop. A stop request cancels the call.
  ApiResult<std::string> perform(Call call, const std::stop_token& stop = {});

  template <class T>
  ApiResult<std::shared_ptr<const T>> get(std::string_view name_space, std::string_view name,
                                          std::string_view subresource = {}) {
    return typed<T>(exchange(T::kind(), {.path = T::kind().path(name_space, name, subresource)}));
  }
  template <class T>
  ApiResult<std::shared_ptr<const T>> create(std::string_view name_space, std::string body,
                                             const WriteOptions& options = {}) {
    return typed<T>(
        exchange(T::kind(), createCall(T::kind(), name_space, std::move(body), options)));
  }
  // Replaces the object; the body's resourceVersion, if any, must be the current one.
  template <class T>
  ApiResult<std::shared_ptr<const T>> update(std::string_view name_space, std::string_view name,
                                             std::string body, const WriteOptions& options = {}) {
    return typed<T>(
        exchange(T::kind(), updateCall(T::kind(), name_space, name, std::move(body), options)));
  }
  template <class T>
  ApiResult<std::shared_ptr<const T>> patch(std::string_view name_space, std::string_view name,
                                            PatchType type, std::string body,
                                            const WriteOptions& options = {}) {
    return typed<T>(exchange(
        T::kind(), patchCall(T::kind(), name_space, name, type, std::move(body), options)));
  }
  // Server-side apply: `options.field_manager` is required. When others manage a field of the body
  // the answer is an applyConflict() whose causes name field and manager.
  template <class T>
  ApiResult<std::shared_ptr<const T>> apply(std::string_view name_space, std::string_view name,
                                            std::string body, const WriteOptions& options) {
    return patch<T>(name_space, name, PatchType::kApply, std::move(body), options);
  }
  template <class T>
  ApiResult<void> remove(std::string_view name_space, std::string_view name,
                         const DeleteOptions& options = {}) {
    return removeObject(T::kind(), name_space, name, options);
  }
  template <class T>
  ApiResult<ObjectList<T>> list(const ListOptions& options = {}) {
    ObjectList<T> list;
    ApiResult<std::string> version = listObjects(
        T::kind(), options,
        [&](ObjectPtr object) {
          list.items.push_back(std::static_pointer_cast<const T>(std::move(object)));
        },
        [&](PassedOver object) { list.passed_over.push_back(std::move(object)); });
    if (!version) return apiFailure(std::move(version).error());
    list.resource_version = *std::move(version);
    return list;
  }
  // The same object by object, without keeping them. Returns the list's resource version.
  ApiResult<std::string> listObjects(const Kind& kind, const ListOptions& options,
                                     const std::function<void(ObjectPtr)>& each,
                                     const std::function<void(PassedOver)>& passed_over = {});

  // What a server can do, and what we may do there.
  ApiResult<ServerVersion> version();
  // The resources of "v1" or "apps/v1": "pods", "pods/resize", ...
  ApiResult<std::vector<std::string>> resources(std::string_view api_version,
                                                const std::stop_token& stop = {});
  // An error that says so, with the server's version, if it does not serve the resource.
  Result<void> require(std::string_view api_version, std::string_view resource);
  ApiResult<AccessAnswer> mayI(const AccessQuestion& question);
  // Which of these we may not do. Costs one request if the rules that hold in `name_space` grant
  // everything. A question that they do not answer is asked by itself.
  ApiResult<std::vector<AccessQuestion>> mayNot(const std::vector<AccessQuestion>& questions,
                                                std::string_view name_space);

  // Whether the server answered the last exchange that ended, whatever it said. Any thread.
  bool answers() const;

  const ClientConfig& config() const;
  HttpLoop& loop() const { return loop_; }
  const Clock& clock() const { return clock_; }
  Metrics* metrics() const;

  static Call createCall(const Kind& kind, std::string_view name_space, std::string body,
                         const WriteOptions& options);
  static Call updateCall(const Kind& kind, std::string_view name_space, std::string_view name,
                         std::string body, const WriteOptions& options);
  static Call patchCall(const Kind& kind, std::string_view name_space, std::string_view name,
                        PatchType type, std::string body, const WriteOptions& options);

 private:
  template <class T>
  static ApiResult<std::shared_ptr<const T>> typed(ApiResult<ObjectPtr> object) {
    if (!object) return apiFailure(std::move(object).error());
    return std::static_pointer_cast<const T>(*std::move(object));
  }
  ApiResult<ObjectPtr> exchange(const Kind& kind, Call call);
  ApiResult<void> removeObject(const Kind& kind, std::string_view name_space, std::string_view name,
                               const DeleteOptions& options);

  class Impl;
  HttpLoop& loop_;
  const Clock& clock_;
  std::shared_ptr<Impl> impl_;
};

// What to accept for lists and watches of a kind.
std::string acceptFor(const Kind& kind);

// Reads one page of a list from a stream, JSON or protobuf as the first byte tells. Used by Client
// and by the watch cache. An item that cannot be decoded is passed over and does not end the list.
class ListReader {
 public:
  // The decoder outlives the reader: pages of one list share it.
  ListReader(const Kind& kind, Decoder& decoder, std::function<void(ObjectPtr)> each,
             std::function<void(PassedOver)> passed_over = {});
  ~ListReader();
  Result<void> receive(std::string_view piece);
  // After the last piece.
  Result<ListPosition> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Largest object that is accepted. An API server takes no more than 3 MiB, and etcd by default no
// more than 1.5; JSON writes a control character of a text in six bytes.
constexpr std::size_t kMaxObject = 20 << 20;

}  // namespace mbcas::kube
