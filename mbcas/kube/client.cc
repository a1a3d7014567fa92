#include "mbcas/kube/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <charconv>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "mbcas/base/json_writer.h"
#include "mbcas/kube/credentials.h"
#include "mbcas/kube/json_splitter.h"
#include "mbcas/kube/metrics.h"
#include "mbcas/kube/protobuf_splitter.h"
#include "mbcas/kube/token_bucket.h"

namespace mbcas::kube {
namespace {

using std::chrono::seconds;

constexpr std::size_t kMaxErrorBody = 64 << 10;
constexpr Nanos kBrokenRetryDelay = seconds(1);  // client-go's pause after a reset connection
constexpr Nanos kListTimeout = std::chrono::minutes(5);

constexpr ProtobufField kListMetaFields[] = {{2, "resourceVersion"}, {3, "continue"}};
constexpr ProtobufMessage kListMeta{kListMetaFields};

std::string hostOf(std::string_view server) {
  server.remove_prefix(std::min(server.size(), server.find("://") + 3));
  return std::string(server.substr(0, server.find('/')));
}

std::string urlOf(const ClientConfig& config, const Call& call) {
  std::string url = config.server + call.path;
  char separator = '?';
  for (const auto& [key, value] : call.query) {
    url += fmt::format("{}{}={}", separator, key, percentEncode(value));
    separator = '&';
  }
  return url;
}

std::vector<std::string> fixedHeaders(const ClientConfig& config, const std::string& user_agent) {
  std::vector<std::string> headers = {"User-Agent: " + user_agent};
  const Impersonation& as = config.impersonate;
  if (!as.user.empty()) headers.push_back("Impersonate-User: " + as.user);
  if (!as.uid.empty()) headers.push_back("Impersonate-Uid: " + as.uid);
  for (const std::string& group : as.groups) headers.push_back("Impersonate-Group: " + group);
  for (const auto& [key, values] : as.extra) {
    for (const std::string& value : values) {
      headers.push_back(fmt::format("Impersonate-Extra-{}: {}", percentEncode(key), value));
    }
  }
  return headers;
}

ApiError transportError(const HttpOutcome& outcome) {
  ApiError error;
  error.message = outcome.message;
  switch (outcome.end) {
    case HttpEnd::kConnectFailed:
      error.reason = ApiError::kConnect;
      break;
    case HttpEnd::kTimeout:
      error.reason = ApiError::kTimeout;
      break;
    case HttpEnd::kTooLarge:
      error.reason = ApiError::kTooLarge;
      error.message = "the response exceeds its size limit";
      break;
    case HttpEnd::kStopped:
      error.reason = ApiError::kCancelled;
      break;
    case HttpEnd::kComplete:
    case HttpEnd::kBroken:
      error.reason = ApiError::kBroken;
      break;
  }
  return error;
}

ApiError malformed(const Error& error) {
  ApiError result;
  result.reason = ApiError::kMalformed;
  result.message = error.message();
  return result;
}

// "35", or "35+" with some providers.
int leadingNumber(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void addWriteQuery(const WriteOptions& options, Call& call) {
  if (!options.field_manager.empty())
    call.query.emplace_back("fieldManager", options.field_manager);
  if (options.force) call.query.emplace_back("force", "true");
  if (options.dry_run) call.query.emplace_back("dryRun", "All");
}

}  // namespace

// All of it lives on the loop, except what the constructor set and what is atomic.
class Client::Impl : public std::enable_shared_from_this<Client::Impl> {
 public:
  using Done = std::function<void(ApiResult<std::string>)>;

  Impl(HttpLoop& loop, ClientConfig config, const Clock& clock, ClientOptions options)
      : config_(std::move(config)),
        options_(std::move(options)),
        loop_(loop),
        clock_(clock),
        host_(hostOf(config_.server)),
        headers_(fixedHeaders(config_, options_.user_agent)),
        source_(makeCredentialSource(config_, clock)),
        bucket_(options_.qps, options_.burst) {
    setTls({});
  }

  Id nextId() { return next_id_++; }
  const ClientConfig& config() const { return config_; }
  const ClientOptions& options() const { return options_; }
  bool answers() const { return answers_; }

  void begin(Id id, Call call, Done done) {
    auto active = std::make_unique<Active>();
    active->call = std::move(call);
    active->done = std::move(done);
    if (const Nanos once = active->call.timeout.value_or(options_.timeout); once > Nanos(0)) {
      active->deadline = clock_.monotonic() + std::max(once, options_.overall);
    }
    active_.emplace(id, std::move(active));
    if (closed_) return finish(id, cancelled());
    authenticate(id);
  }

  void cancel(Id id) {
    const auto found = active_.find(id);
    if (found == active_.end()) return;
    Active& active = *found->second;
    loop_.cancelTimer(active.timer);
    if (active.exchange != 0) {
      loop_.cancel(active.exchange);  // its end ends the call
    } else {
      finish(id, cancelled());
    }
  }

  void write(Id id, std::string bytes) {
    const auto found = active_.find(id);
    if (found == active_.end() || found->second->exchange == 0) return;
    loop_.send(found->second->exchange, std::move(bytes));
  }

  void close() {
    closed_ = true;
    std::vector<Id> ids;
    ids.reserve(active_.size());
    for (const auto& [id, active] : active_) ids.push_back(id);
    for (const Id id : ids) cancel(id);
  }

  // Waits for a running plugin. Not on the loop.
  void join() {
    if (refresher_.joinable()) refresher_.join();
  }

 private:
  struct Active {
    Call call;
    Done done;
    int tries = 0;
    bool reauthenticated = false;
    bool delivered = false;  // a piece went to the receiver
    HttpLoop::Id exchange = 0;
    HttpLoop::Id timer = 0;
    MonotonicTime started{};
    std::optional<MonotonicTime> deadline;  // of all tries
    std::string body;
    std::optional<Error> refused;  // by the receiver
  };

  static ApiResult<std::string> cancelled() {
    ApiError error;
    error.reason = ApiError::kCancelled;
    error.message = "the call was cancelled";
    return apiFailure(std::move(error));
  }

  void finish(Id id, ApiResult<std::string> result) {
    const auto found = active_.find(id);
    if (found == active_.end()) return;
    const std::unique_ptr<Active> active = std::move(found->second);
    active_.erase(found);
    active->done(std::move(result));
  }

  // A plugin may take seconds, so it runs on a thread of its own while calls queue up.
  void authenticate(Id id) {
    if (!refreshing_ && source_->ready()) return useCredential(id, source_->get());
    waiting_.push_back(id);
    if (refreshing_) return;
    refreshing_ = true;
    join();  // the one before has posted its result, so this does not wait
    refresher_ = std::thread([source = source_.get(), &loop = loop_, self = weak_from_this()] {
      auto credential = std::make_shared<Result<Credential>>(source->get());
      loop.post([self, credential] {
        if (const auto impl = self.lock()) impl->refreshed(*credential);
      });
    });
  }

  void refreshed(const Result<Credential>& credential) {
    refreshing_ = false;
    std::vector<Id> ids;
    ids.swap(waiting_);
    for (const Id id : ids) useCredential(id, credential);
  }

  void useCredential(Id id, const Result<Credential>& credential) {
    if (!active_.contains(id)) return;
    if (credential && credential->authorization.find_first_of("\r\n") == std::string::npos) {
      if (credential->client_cert != last_cert_) setTls(*credential);
      return throttle(id, credential->authorization);
    }
    ApiError error;
    error.reason = ApiError::kCredentials;
    error.message = credential ? "the token holds a line break" : credential.error().message();
    finish(id, apiFailure(std::move(error)));
  }

  void setTls(const Credential& credential) {
    auto tls = std::make_shared<HttpTls>();
    tls->ca = config_.ca;
    tls->client_cert = config_.client_cert;
    tls->client_key = config_.client_key;
    if (!credential.client_cert.empty()) {
      tls->client_cert = {{}, credential.client_cert};
      tls->client_key = {{}, credential.client_key};
    }
    tls->server_name = config_.tls_server_name;
    tls->insecure = config_.insecure;
    last_cert_ = credential.client_cert;
    tls_ = std::move(tls);
  }

  void throttle(Id id, const std::string& authorization) {
    const Nanos wait = bucket_.reserve(clock_.monotonic());
    if (wait <= Nanos(0)) return transmit(id, authorization);
    if (wait > left(*active_.at(id))) {
      ApiError error;
      error.reason = ApiError::kTimeout;
      error.message = "too many requests are queued before this one";
      return finish(id, apiFailure(std::move(error)));
    }
    active_.at(id)->timer = loop_.after(wait, [self = weak_from_this(), id, authorization] {
      if (const auto impl = self.lock()) impl->transmit(id, authorization);
    });
  }

  void transmit(Id id, const std::string& authorization) {
    const auto found = active_.find(id);
    if (found == active_.end()) return;
    Active& active = *found->second;
    const Call& call = active.call;
    if (options_.may_write && call.method != "GET" && !options_.may_write()) {
      ApiError error;
      error.reason = ApiError::kFenced;
      error.message = "this process may not write now";
      return finish(id, apiFailure(std::move(error)));
    }
    active.tries += 1;
    active.started = clock_.monotonic();
    active.body.clear();
    HttpRequest request;
    request.method = call.method;
    request.url = urlOf(config_, call);
    request.headers = headers_;
    request.headers.push_back("Accept: " + call.accept);
    if (!authorization.empty()) request.headers.push_back("Authorization: " + authorization);
    if (!call.body.empty()) request.headers.push_back("Content-Type: " + call.content_type);
    request.body = call.body;
    request.tls = tls_;
    request.proxy_url = config_.proxy_url;
    request.headers.insert(request.headers.end(), call.headers.begin(), call.headers.end());
    request.upgrade = call.upgrade;
    request.upgraded = call.upgraded;
    request.gzip = call.gzip && config_.compress;
    request.timeout = call.timeout.value_or(options_.timeout);
    if (request.timeout > Nanos(0)) {
      request.timeout = std::max(Nanos(1), std::min(request.timeout, left(active)));
    }
    request.idle_timeout = call.idle_timeout;
    if (!call.receive) request.max_body = options_.max_response;
    // The exchange may outlive the client, never this object.
    request.receive = [self = shared_from_this(), id](int status, std::string_view piece) {
      return self->received(id, status, piece);
    };
    request.done = [self = shared_from_this(), id](const HttpOutcome& outcome) {
      self->exchanged(id, outcome);
    };
    active.exchange = loop_.start(std::move(request));
  }

  static bool good(const Call& call, int status) {
    return call.upgrade.empty() ? status >= 200 && status < 300 : status == 101;
  }

  bool received(Id id, int status, std::string_view piece) {
    Active& active = *active_.at(id);
    if (good(active.call, status) && active.call.receive) {
      active.delivered = true;
      Result<void> taken = active.call.receive(piece);
      if (!taken) active.refused = std::move(taken).error();
      return !active.refused;
    }
    const bool failed = status >= 300;
    if (failed && active.body.size() >= kMaxErrorBody) return true;
    active.body += piece;
    return true;
  }

  void exchanged(Id id, const HttpOutcome& outcome) {
    Active& active = *active_.at(id);
    active.exchange = 0;
    const bool complete = outcome.end == HttpEnd::kComplete;
    if (outcome.end != HttpEnd::kStopped) answers_ = complete;
    if (options_.metrics != nullptr) {
      options_.metrics->requestDone(
          outcome.status == 0 ? "<error>" : std::to_string(outcome.status), active.call.method,
          host_, clock_.monotonic() - active.started);
    }
    if (complete && good(active.call, outcome.status)) {
      return finish(id, std::move(active.body));
    }
    if (active.refused) return finish(id, apiFailure(malformed(*active.refused)));
    if (closed_ || outcome.end == HttpEnd::kStopped) return finish(id, cancelled());

    if (outcome.status == 401 && !active.reauthenticated && !refreshing_ && source_->refused()) {
      active.reauthenticated = true;
      return authenticate(id);
    }
    ApiError error = complete ? errorFromResponse(outcome.status, active.body, outcome.retry_after)
                              : transportError(outcome);
    if (const std::optional<Nanos> delay = retryDelay(active, outcome)) {
      active.timer = loop_.after(*delay, [self = weak_from_this(), id] {
        if (const auto impl = self.lock(); impl && impl->active_.contains(id))
          impl->authenticate(id);
      });
      return;
    }
    finish(id, apiFailure(std::move(error)));
  }

  Nanos left(const Active& active) const {
    return active.deadline ? *active.deadline - clock_.monotonic() : Nanos::max();
  }

  std::optional<Nanos> retryDelay(const Active& active, const HttpOutcome& outcome) const {
    if (!active.call.retry || active.delivered || active.tries > options_.max_retries) return {};
    std::optional<Nanos> delay;
    if (outcome.end == HttpEnd::kComplete && (outcome.status == 429 || outcome.status >= 500)) {
      delay = outcome.retry_after;
      if (delay) delay = std::min<Nanos>(*delay, ApiError::kMostRetryAfter);
    } else if (outcome.end == HttpEnd::kBroken && active.call.method == "GET") {
      delay = kBrokenRetryDelay;
    }
    return delay && *delay < left(active) ? delay : std::nullopt;
  }

  const ClientConfig config_;
  const ClientOptions options_;
  HttpLoop& loop_;
  const Clock& clock_;
  const std::string host_;
  const std::vector<std::string> headers_;
  std::unique_ptr<CredentialSource> source_;  // the refresher's while refreshing_
  TokenBucket bucket_;
  std::shared_ptr<const HttpTls> tls_;
  std::string last_cert_;
  std::map<Id, std::unique_ptr<Active>> active_;
  std::vector<Id> waiting_;  // for a credential
  bool refreshing_ = false;
  bool closed_ = false;
  std::atomic<bool> answers_ = true;
  std::atomic<Id> next_id_ = 1;
  std::thread refresher_;
};

Client::Client(HttpLoop& loop, ClientConfig config, const Clock& clock, ClientOptions options)
    : loop_(loop),
      clock_(clock),
      impl_(std::make_shared<Impl>(loop, std::move(config), clock, std::move(options))) {}

void Client::close() {
  loop_.runAndWait([this] { impl_->close(); });
}

Client::~Client() {
  close();
  // What close() has cancelled ends in the loop's next round: after that, nobody touches the
  // metrics or the clock any more.
  loop_.runAndWait([] {});
  impl_->join();
}

bool Client::answers() const {
  return impl_->answers();
}
const ClientConfig& Client::config() const {
  return impl_->config();
}
Metrics* Client::metrics() const {
  return impl_->options().metrics;
}

Client::Id Client::send(Call call, std::function<void(ApiResult<std::string>)> done) {
  const Id id = impl_->nextId();
  loop_.post([impl = impl_, id, call = std::move(call), done = std::move(done)] mutable {
    impl->begin(id, std::move(call), std::move(done));
  });
  return id;
}

void Client::write(Id call, std::string bytes) {
  loop_.post([impl = impl_, call, bytes = std::move(bytes)] { impl->write(call, bytes); });
}

void Client::cancel(Id call) {
  loop_.post([impl = impl_, call] { impl->cancel(call); });
}

ApiResult<std::string> Client::perform(Call call, const std::stop_token& stop) {
  assert(!loop_.onLoop() && "would wait for itself");
  std::mutex mutex;
  std::condition_variable arrived;
  std::optional<ApiResult<std::string>> result;
  const Id id = send(std::move(call), [&](ApiResult<std::string> body) {
    const std::scoped_lock lock(mutex);
    result = std::move(body);
    arrived.notify_one();
  });
  const std::stop_callback cancel_call(stop, [&] { cancel(id); });
  std::unique_lock lock(mutex);
  arrived.wait(lock, [&] { return result.has_value(); });
  return *std::move(result);
}

Call Client::createCall(const Kind& kind, std::string_view name_space, std::string body,
                        const WriteOptions& options) {
  Call call{.method = "POST", .path = kind.path(name_space, {}, options.subresource)};
  call.body = std::move(body);
  addWriteQuery(options, call);
  return call;
}

Call Client::updateCall(const Kind& kind, std::string_view name_space, std::string_view name,
                        std::string body, const WriteOptions& options) {
  Call call{.method = "PUT", .path = kind.path(name_space, name, options.subresource)};
  call.body = std::move(body);
  addWriteQuery(options, call);
  return call;
}

Call Client::patchCall(const Kind& kind, std::string_view name_space, std::string_view name,
                       PatchType type, std::string body, const WriteOptions& options) {
  Call call{.method = "PATCH", .path = kind.path(name_space, name, options.subresource)};
  call.body = std::move(body);
  switch (type) {
    case PatchType::kStrategic:
      call.content_type = "application/strategic-merge-patch+json";
      break;
    case PatchType::kMerge:
      call.content_type = "application/merge-patch+json";
      break;
    case PatchType::kJson:
      call.content_type = "application/json-patch+json";
      break;
    case PatchType::kApply:
      call.content_type = "application/apply-patch+yaml";  // JSON is YAML
      break;
  }
  addWriteQuery(options, call);
  return call;
}

ApiResult<ObjectPtr> Client::exchange(const Kind& kind, Call call) {
  ApiResult<std::string> body = perform(std::move(call));
  if (!body) return apiFailure(std::move(body).error());
  Decoder decoder;
  Result<ObjectPtr> object = decoder.decode(kind, *body);
  if (!object) return apiFailure(malformed(object.error()));
  return *std::move(object);
}

ApiResult<void> Client::removeObject(const Kind& kind, std::string_view name_space,
                                     std::string_view name, const DeleteOptions& options) {
  Call call{.method = "DELETE", .path = kind.path(name_space, name)};
  JsonWriter json(call.body);
  json.beginObject();
  json.key("apiVersion").value("v1").key("kind").value("DeleteOptions");
  if (options.grace_seconds) json.key("gracePeriodSeconds").value(*options.grace_seconds);
  if (!options.propagation.empty()) json.key("propagationPolicy").value(options.propagation);
  if (!options.uid.empty() || !options.resource_version.empty()) {
    json.key("preconditions").beginObject();
    if (!options.uid.empty()) json.key("uid").value(options.uid);
    if (!options.resource_version.empty()) {
      json.key("resourceVersion").value(options.resource_version);
    }
    json.endObject();
  }
  json.endObject();
  ApiResult<std::string> body = perform(std::move(call));
  if (!body) return apiFailure(std::move(body).error());
  return {};
}

ApiResult<std::string> Client::listObjects(const Kind& kind, const ListOptions& options,
                                           const std::function<void(ObjectPtr)>& each,
                                           const std::function<void(PassedOver)>& passed_over) {
  Decoder decoder;
  std::string next;
  for (;;) {
    ListReader reader(kind, decoder, each, passed_over);
    Call call{.path = kind.path(options.name_space)};
    if (!options.label_selector.empty()) {
      call.query.emplace_back("labelSelector", options.label_selector);
    }
    if (!options.field_selector.empty()) {
      call.query.emplace_back("fieldSelector", options.field_selector);
    }
    if (options.page > 0) call.query.emplace_back("limit", std::to_string(options.page));
    if (!next.empty()) call.query.emplace_back("continue", next);
    call.accept = acceptFor(kind);
    call.timeout = kListTimeout;
    call.idle_timeout = impl_->options().list_idle;
    call.receive = [&](std::string_view piece) { return reader.receive(piece); };
    ApiResult<std::string> body = perform(std::move(call));
    if (!body) return apiFailure(std::move(body).error());
    Result<ListPosition> page = reader.finish();
    if (!page) return apiFailure(malformed(page.error()));
    if (page->next.empty()) return std::move(page->resource_version);
    next = std::move(page->next);
  }
}

ApiResult<ServerVersion> Client::version() {
  ApiResult<std::string> body = perform({.path = "/version"});
  if (!body) return apiFailure(std::move(body).error());
  ServerVersion version;
  JsonParser parser;
  Result<void> parsed = parser.parse(*body, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key == "gitVersion") version.git_version = value.text();
      if (key == "major") version.major = leadingNumber(value.text());
      if (key == "minor") version.minor = leadingNumber(value.text());
    });
  });
  if (!parsed) return apiFailure(malformed(parsed.error()));
  return version;
}

ApiResult<std::vector<std::string>> Client::resources(std::string_view api_version,
                                                      const std::stop_token& stop) {
  const bool core = api_version.find('/') == std::string_view::npos;
  ApiResult<std::string> body =
      perform({.path = fmt::format("/{}/{}", core ? "api" : "apis", api_version)}, stop);
  if (!body) return apiFailure(std::move(body).error());
  std::vector<std::string> names;
  JsonParser parser;
  Result<void> parsed = parser.parse(*body, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor list) {
      if (key != "resources") return;
      list.elements([&](JsonCursor resource) {
        resource.members([&](std::string_view name, JsonCursor value) {
          if (name == "name") names.emplace_back(value.text());
        });
      });
    });
  });
  if (!parsed) return apiFailure(malformed(parsed.error()));
  return names;
}

Result<void> Client::require(std::string_view api_version, std::string_view resource) {
  ApiResult<std::vector<std::string>> served = resources(api_version);
  if (!served && !served.error().notFound()) {
    return failure(served.error().toError().within(fmt::format("discovering {}", api_version)));
  }
  if (served && std::find(served->begin(), served->end(), resource) != served->end()) return {};
  const ApiResult<ServerVersion> server = version();
  return failure(fmt::format("the API server ({}) does not serve {} in {}",
                             server ? server->git_version : "version unknown", resource,
                             api_version));
}

ApiResult<AccessAnswer> Client::mayI(const AccessQuestion& question) {
  Call call{.method = "POST", .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"};
  JsonWriter json(call.body);
  json.beginObject();
  json.key("apiVersion").value("authorization.k8s.io/v1");
  json.key("kind").value("SelfSubjectAccessReview");
  json.key("spec").beginObject().key("resourceAttributes").beginObject();
  json.key("verb").value(question.verb);
  json.key("group").value(question.group);
  json.key("resource").value(question.resource);
  json.key("subresource").value(question.subresource);
  json.key("namespace").value(question.name_space);
  json.key("name").value(question.name);
  json.endObject().endObject().endObject();
  ApiResult<std::string> body = perform(std::move(call));
  if (!body) return apiFailure(std::move(body).error());
  AccessAnswer answer;
  JsonParser parser;
  Result<void> parsed = parser.parse(*body, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key != "status") return;
      value.members([&](std::string_view name, JsonCursor field) {
        if (name == "allowed") answer.allowed = field.boolean();
        if (name == "reason") answer.reason = field.text();
      });
    });
  });
  if (!parsed) return apiFailure(malformed(parsed.error()));
  return answer;
}

ApiResult<std::vector<AccessQuestion>> Client::mayNot(const std::vector<AccessQuestion>& questions,
                                                      std::string_view name_space) {
  Call call{.method = "POST", .path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"};
  JsonWriter json(call.body);
  json.beginObject();
  json.key("apiVersion").value("authorization.k8s.io/v1");
  json.key("kind").value("SelfSubjectRulesReview");
  json.key("spec").beginObject().key("namespace").value(name_space).endObject();
  json.endObject();
  ApiResult<std::string> body = perform(std::move(call));
  if (!body) return apiFailure(std::move(body).error());
  // An authorizer that cannot list its rules may still grant something.
  const Result<std::vector<AccessRule>> rules = readAccessRules(*std::move(body));
  std::vector<AccessQuestion> refused;
  for (const AccessQuestion& question : questions) {
    if (rules && granted(*rules, question)) continue;
    const ApiResult<AccessAnswer> answer = mayI(question);
    if (!answer) return apiFailure(answer.error());
    if (!answer->allowed) refused.push_back(question);
  }
  return refused;
}

std::string acceptFor(const Kind& kind) {
  return kind.protobuf == nullptr ? "application/json"
                                  : "application/vnd.kubernetes.protobuf,application/json";
}

struct ListReader::Impl {
  const Kind& kind;
  Decoder& decoder;
  std::function<void(ObjectPtr)> each;
  std::function<void(PassedOver)> passed_over;
  JsonSplitter json{JsonSplitter::Mode::kList, kMaxObject};
  std::optional<ProtobufList> protobuf;  // instead, if that is what comes
  bool begun = false;

  // False ends the reading.
  template <class Identify>
  bool take(Result<ObjectPtr> object, const Identify& identify, Result<void>& failed) const {
    if (object) {
      each(*std::move(object));
      return true;
    }
    Result<PassedOver> found = identify(object.error());
    if (!found) {
      failed = failure(std::move(found).error());
    } else if (passed_over) {
      passed_over(*std::move(found));
    }
    return failed.has_value();
  }
};

ListReader::ListReader(const Kind& kind, Decoder& decoder, std::function<void(ObjectPtr)> each,
                       std::function<void(PassedOver)> passed_over)
    : impl_(new Impl{.kind = kind,
                     .decoder = decoder,
                     .each = std::move(each),
                     .passed_over = std::move(passed_over)}) {}
ListReader::~ListReader() = default;

Result<void> ListReader::receive(std::string_view piece) {
  Impl& self = *impl_;
  if (!self.begun && !piece.empty()) {
    self.begun = true;
    if (self.kind.protobuf != nullptr && piece.front() == kProtobufMagic.front()) {
      self.protobuf.emplace(kMaxObject);
    }
  }
  Result<void> failed;
  const auto takeProtobuf = [&](std::string_view item) {
    return self.take(
        self.decoder.decodeProtobuf(self.kind, item),
        [&](const Error& why) { return Decoder::identifyProtobuf(item, why); }, failed);
  };
  const auto takeJson = [&](std::string& item) {
    return self.take(
        self.decoder.decode(self.kind, item),
        [&](const Error& why) { return self.decoder.identify(item, why); }, failed);
  };
  Result<void> split =
      self.protobuf ? self.protobuf->push(piece, takeProtobuf) : self.json.push(piece, takeJson);
  return failed ? split : failed;
}

Result<ListPosition> ListReader::finish() {
  Impl& self = *impl_;
  ListPosition position;
  const auto readMeta = [&](JsonCursor meta) {
    meta.members([&](std::string_view name, JsonCursor field) {
      if (name == "resourceVersion") position.resource_version = field.text();
      if (name == "continue") position.next = field.text();
    });
  };
  Result<void> parsed = self.protobuf ? self.protobuf->finish() : self.json.finish();
  if (!parsed) return failure(parsed.error());
  if (self.protobuf) {
    if (self.protobuf->kind() != fmt::format("{}List", self.kind.name)) {
      return failure(
          fmt::format("expected a list of {}, not a {}", self.kind.name, self.protobuf->kind()));
    }
    parsed = parseProtobuf(kListMeta, self.protobuf->metadata(), readMeta);
  } else {
    parsed = self.decoder.parser().parse(self.json.envelope(), [&](JsonCursor root) {
      root.members([&](std::string_view key, JsonCursor value) {
        if (key == "metadata") readMeta(value);
      });
    });
  }
  if (!parsed) return failure(std::move(parsed).error().within("decoding a list"));
  if (position.resource_version.empty()) return failure("decoding a list: no resourceVersion");
  return position;
}

}  // namespace mbcas::kube
