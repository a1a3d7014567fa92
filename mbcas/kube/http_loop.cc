#include "mbcas/kube/http_loop.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "mbcas/base/mutex.h"

namespace mbcas::kube {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A peer that vanished without a word is noticed by the kernel in about half a minute.
constexpr long kKeepAliveIdleSeconds = 15;
constexpr long kKeepAliveIntervalSeconds = 5;
constexpr unsigned kTcpUserTimeoutMs = 30'000;
constexpr long kMaxIdleConnections = 8;
constexpr milliseconds kLongestSleep{1000};

int onSocket(void* /*unused*/, curl_socket_t fd, curlsocktype /*purpose*/) {
  const unsigned timeout = kTcpUserTimeoutMs;
  // Fails on sockets that are not TCP, which do not need it.
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
  return CURL_SOCKOPT_OK;
}

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// The rest of an exchange with `upgrade`: libcurl makes the connection, with TLS and proxies, and
// carries bytes; request and answer are written and read here.
struct Upgrade {
  explicit Upgrade(std::function<bool(int, std::string_view)> body) : answer(std::move(body)) {}

  HttpAnswer answer;
  std::string unsent;
  curl_socket_t socket = CURL_SOCKET_BAD;  // once it is connected
  bool announced = false;                  // `upgraded` was called
};

struct Exchange {
  HttpRequest request;
  std::unique_ptr<Upgrade> upgrade;
  std::unique_ptr<CURL, FreeEasy> easy;
  std::unique_ptr<curl_slist, FreeList> headers;
  std::unique_ptr<curl_slist, FreeList> connect_to;
  char error[CURL_ERROR_SIZE] = "";
  SteadyTime deadline = SteadyTime::max();
  SteadyTime last_byte;
  std::size_t received = 0;
  std::optional<Nanos> retry_after;
  std::optional<HttpEnd> stopped;  // why we ended it ourselves

  int status() const {
    if (upgrade) return upgrade->answer.status();
    long code = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }
};

std::optional<Nanos> retryAfter(std::string_view value) {
  int wait = 0;  // the form with a date is not used by Kubernetes
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), wait);
  if (parsed.ec != std::errc() || wait < 0) return std::nullopt;
  return seconds(wait);
}

std::size_t onHeader(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  exchange.last_byte = std::chrono::steady_clock::now();
  std::string_view line(data, size * count);
  constexpr std::string_view kName = "retry-after:";
  if (line.size() > kName.size() &&
      std::equal(kName.begin(), kName.end(), line.begin(),
                 [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); })) {
    line.remove_prefix(kName.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    exchange.retry_after = retryAfter(line);
  }
  return size * count;
}

void explainFailure(Exchange& exchange, const Error& error) {
  *fmt::format_to_n(exchange.error, sizeof exchange.error - 1, "{}", error.message()).out = '\0';
}

// Tells that the protocol has changed, once. False: the exchange is to end.
bool announce(Exchange& exchange) {
  if (std::exchange(exchange.upgrade->announced, true) || !exchange.request.upgraded) return true;
  const Result<void> accepted = exchange.request.upgraded(exchange.upgrade->answer);
  if (accepted) return true;
  explainFailure(exchange, accepted.error());
  exchange.stopped = HttpEnd::kBroken;
  return false;
}

// False: the exchange is to end.
bool takeBody(Exchange& exchange, std::string_view piece) {
  if (exchange.stopped) return false;
  if (exchange.upgrade && exchange.status() == 101 && !announce(exchange)) return false;
  exchange.received += piece.size();
  if (exchange.request.max_body > 0 && exchange.received > exchange.request.max_body) {
    exchange.stopped = HttpEnd::kTooLarge;
    return false;
  }
  if (!exchange.request.receive) return true;
  if (!exchange.request.receive(exchange.status(), piece)) {
    exchange.stopped = HttpEnd::kStopped;
    return false;
  }
  return true;
}

std::size_t onBody(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  exchange.last_byte = std::chrono::steady_clock::now();
  return takeBody(exchange, std::string_view(data, size * count)) ? size * count : 0;
}

template <class T>
void set(CURL* easy, CURLoption option, T value) {
  curl_easy_setopt(easy, option, value);
}

void setPem(CURL* easy, const PemSource& pem, CURLoption file, CURLoption blob) {
  if (!pem.data.empty()) {
    curl_blob bytes{const_cast<char*>(pem.data.data()), pem.data.size(), CURL_BLOB_COPY};
    set(easy, blob, &bytes);
  } else if (!pem.path.empty()) {
    set(easy, file, pem.path.c_str());
  }
}

// scheme://host:port/path -> host, port. IPv6 hosts keep their brackets.
struct HostPort {
  std::string host;
  std::string port;
};
HostPort hostPortOf(std::string_view url) {
  url.remove_prefix(std::min(url.size(), url.find("://") + 3));
  url = url.substr(0, url.find('/'));
  const std::size_t colon = url.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && url.find(']', colon) == std::string_view::npos;
  return {std::string(url.substr(0, has_port ? colon : url.size())),
          has_port ? std::string(url.substr(colon + 1)) : "443"};
}

// With a server name of its own, the name goes into the URL (so into SNI and verification) and the
// connection to the real host. The Host header stays that of the real server.
void redirect(Exchange& exchange) {
  const HostPort real = hostPortOf(exchange.request.url);
  const std::string& name = exchange.request.tls->server_name;
  exchange.connect_to.reset(curl_slist_append(
      nullptr, fmt::format("{}:{}:{}:{}", name, real.port, real.host, real.port).c_str()));
  exchange.headers.reset(curl_slist_append(
      exchange.headers.release(), fmt::format("Host: {}:{}", real.host, real.port).c_str()));
  std::string url = exchange.request.url;
  url.replace(url.find(real.host), real.host.size(), name);
  curl_easy_setopt(exchange.easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(exchange.easy.get(), CURLOPT_CONNECT_TO, exchange.connect_to.get());
  curl_easy_setopt(exchange.easy.get(), CURLOPT_HTTPHEADER, exchange.headers.get());
}

void setTls(CURL* easy, const HttpTls& tls) {
  setPem(easy, tls.ca, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB);
  setPem(easy, tls.client_cert, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB);
  setPem(easy, tls.client_key, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB);
  if (!tls.ca.empty()) set(easy, CURLOPT_CAPATH, nullptr);  // ours, not the system's as well
  set(easy, CURLOPT_CA_CACHE_TIMEOUT, 60L);                 // a renewed file is noticed
  set(easy, CURLOPT_SSL_VERIFYPEER, tls.insecure ? 0L : 1L);
  set(easy, CURLOPT_SSL_VERIFYHOST, tls.insecure ? 0L : 2L);
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
}

std::string headOf(const HttpRequest& request) {
  std::string_view path = request.url;
  path.remove_prefix(path.find("://") + 3);
  path.remove_prefix(std::min(path.size(), path.find('/')));
  const std::size_t authority = request.url.size() - path.size();
  const std::size_t scheme = request.url.find("://") + 3;
  std::string head =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, path.empty() ? "/" : path,
                  std::string_view(request.url).substr(scheme, authority - scheme));
  head += fmt::format("Connection: Upgrade\r\nUpgrade: {}\r\n", request.upgrade);
  for (const std::string& header : request.headers) head += header + "\r\n";
  return head + "\r\n";
}

HttpEnd endOf(CURLcode code, const Exchange& exchange) {
  if (exchange.stopped) return *exchange.stopped;
  switch (code) {
    case CURLE_OK:
      return HttpEnd::kComplete;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_PROXY:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return HttpEnd::kConnectFailed;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpEnd::kTimeout;
    default:
      return HttpEnd::kBroken;
  }
}

}  // namespace

class HttpLoop::Impl {
 public:
  Impl() : multi_(curl_multi_init()) {
    keepConnections();
    curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    thread_ = std::thread([this] { run(); });
  }

  ~Impl() {
    stopping_ = true;
    curl_multi_wakeup(multi_);
    thread_.join();
    curl_multi_cleanup(multi_);
  }

  void post(std::function<void()> run) {
    {
      const MutexLock lock(mutex_);
      posted_.push_back(std::move(run));
    }
    if (!onLoop()) curl_multi_wakeup(multi_);
  }

  Id after(Nanos delay, std::function<void()> run) {
    const Id id = next_id_++;
    const SteadyTime when = std::chrono::steady_clock::now() + delay;
    if (onLoop()) {
      timers_.emplace(id, Timer{when, std::move(run)});
    } else {
      post([this, id, timer = Timer{when, std::move(run)}] mutable {
        timers_.emplace(id, std::move(timer));
      });
    }
    return id;
  }

  void cancelTimer(Id id) {
    if (onLoop()) {
      timers_.erase(id);
    } else {
      post([this, id] { timers_.erase(id); });
    }
  }

  Id start(HttpRequest request) {
    const Id id = next_id_++;
    // Posted even on the loop: curl must not be entered from one of its own callbacks.
    post([this, id, request = std::move(request)] mutable { begin(id, std::move(request)); });
    return id;
  }

  void cancel(Id id) {
    post([this, id] {
      if (const auto found = exchanges_.find(id); found != exchanges_.end()) {
        found->second->stopped = HttpEnd::kStopped;
        finish(id, CURLE_ABORTED_BY_CALLBACK);
      }
    });
  }

  void send(Id id, std::string bytes) {
    post([this, id, bytes = std::move(bytes)] {
      const auto found = exchanges_.find(id);
      if (found == exchanges_.end() || !found->second->upgrade) return;
      Exchange& exchange = *found->second;
      if (exchange.upgrade->unsent.size() + bytes.size() > kMostUnsent) {
        return finish(id, CURLE_SEND_ERROR);
      }
      exchange.upgrade->unsent += bytes;
    });
  }

  bool onLoop() const { return std::this_thread::get_id() == thread_id_.load(); }

 private:
  struct Timer {
    SteadyTime when;
    std::function<void()> run;
  };

  void run() {
    thread_id_ = std::this_thread::get_id();
    while (!stopping_) {
      runPosted();
      runTimers();
      int running = 0;
      curl_multi_perform(multi_, &running);
      collect();
      const bool more = carryStreams();
      checkDeadlines();
      std::vector<curl_waitfd> streams = waitForStreams();
      curl_multi_poll(multi_, streams.data(), static_cast<unsigned>(streams.size()),
                      more ? 0 : static_cast<int>(sleepTime().count()), nullptr);
    }
    // Twice: requests that were posted and never begun are told, too.
    endAll();
    runPosted();
    endAll();
    timers_.clear();
  }

  void endAll() {
    while (!exchanges_.empty()) {
      exchanges_.begin()->second->stopped = HttpEnd::kStopped;
      finish(exchanges_.begin()->first, CURLE_ABORTED_BY_CALLBACK);
    }
  }

  void runPosted() {
    std::vector<std::function<void()>> now;
    {
      const MutexLock lock(mutex_);
      now.swap(posted_);
    }
    for (std::function<void()>& run : now) run();
  }

  void runTimers() {
    // One at a time: a timer's function may cancel another.
    for (;;) {
      const auto due = std::min_element(
          timers_.begin(), timers_.end(),
          [](const auto& a, const auto& b) { return a.second.when < b.second.when; });
      if (due == timers_.end() || due->second.when > std::chrono::steady_clock::now()) return;
      const std::function<void()> run = std::move(due->second.run);
      timers_.erase(due);
      run();
    }
  }

  milliseconds sleepTime() {
    const SteadyTime now = std::chrono::steady_clock::now();
    SteadyTime wake = now + kLongestSleep;
    for (const auto& [id, timer] : timers_) wake = std::min(wake, timer.when);
    for (const auto& [id, exchange] : exchanges_) wake = std::min(wake, deadlineOf(*exchange));
    {
      const MutexLock lock(mutex_);
      if (!posted_.empty()) wake = now;
    }
    return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(wake - now));
  }

  static SteadyTime deadlineOf(const Exchange& exchange) {
    if (exchange.request.idle_timeout <= Nanos(0)) return exchange.deadline;
    return std::min(exchange.deadline, exchange.last_byte + exchange.request.idle_timeout);
  }

  void begin(Id id, HttpRequest request) {
    auto exchange = std::make_unique<Exchange>();
    exchange->request = std::move(request);
    HttpRequest& r = exchange->request;
    exchange->easy.reset(curl_easy_init());
    CURL* const easy = exchange->easy.get();
    const SteadyTime now = std::chrono::steady_clock::now();
    exchange->last_byte = now;
    if (r.timeout > Nanos(0)) exchange->deadline = now + r.timeout;
    curl_slist* headers = nullptr;
    for (const std::string& header : r.headers)
      headers = curl_slist_append(headers, header.c_str());
    headers = curl_slist_append(headers, "Expect:");  // send the body at once
    exchange->headers.reset(headers);

    if (!r.upgrade.empty()) {
      exchange->upgrade =
          std::make_unique<Upgrade>([at = exchange.get()](int /*status*/, std::string_view piece) {
            return takeBody(*at, piece);
          });
      set(easy, CURLOPT_CONNECT_ONLY, 1L);
      set(easy, CURLOPT_FRESH_CONNECT, 1L);  // one that no other exchange would use again
      set(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    }
    set(easy, CURLOPT_URL, r.url.c_str());
    set(easy, CURLOPT_PATH_AS_IS, 1L);  // a name may be ".."
    set(easy, CURLOPT_CUSTOMREQUEST, r.method.c_str());
    set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(easy, CURLOPT_HTTPHEADER, exchange->headers.get());
    if (!r.body.empty()) {
      set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(r.body.size()));
      set(easy, CURLOPT_POSTFIELDS, r.body.data());
    }
    if (r.gzip) set(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    set(easy, CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(std::chrono::ceil<milliseconds>(r.connect_timeout).count()));
    set(easy, CURLOPT_NOSIGNAL, 1L);
    set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    set(easy, CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
    set(easy, CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
    set(easy, CURLOPT_SOCKOPTFUNCTION, &onSocket);
    set(easy, CURLOPT_ERRORBUFFER, exchange->error);
    set(easy, CURLOPT_HEADERFUNCTION, &onHeader);
    set(easy, CURLOPT_HEADERDATA, exchange.get());
    set(easy, CURLOPT_WRITEFUNCTION, &onBody);
    set(easy, CURLOPT_WRITEDATA, exchange.get());
    set(easy, CURLOPT_BUFFERSIZE, 128L * 1024);
    // Only what the configuration says, never the environment's proxies.
    set(easy, CURLOPT_PROXY, r.proxy_url.c_str());
    if (r.tls) setTls(easy, *r.tls);
    if (r.tls && !r.tls->server_name.empty()) redirect(*exchange);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): libcurl carries it back, nobody dereferences it.
    set(easy, CURLOPT_PRIVATE, reinterpret_cast<char*>(static_cast<std::uintptr_t>(id)));
    curl_multi_add_handle(multi_, easy);
    exchanges_.emplace(id, std::move(exchange));
    keepConnections();
  }

  // libcurl's bound is on all connections, and what is in use counts. With a fixed one, as many
  // watches as that would leave nothing for the rest, and every request would need a new handshake.
  void keepConnections() {
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS,
                      kMaxIdleConnections + static_cast<long>(exchanges_.size()));
  }

  void collect() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      char* tag = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &tag);
      const Id id = static_cast<Id>(reinterpret_cast<std::uintptr_t>(tag));
      const CURLcode result = message->data.result;
      if (result == CURLE_OK && connected(id)) continue;
      finish(id, result);
    }
  }

  // Whether there is only a connection so far, on which the exchange begins.
  bool connected(Id id) {
    const auto found = exchanges_.find(id);
    if (found == exchanges_.end() || !found->second->upgrade) return false;
    Exchange& exchange = *found->second;
    Upgrade& upgrade = *exchange.upgrade;
    curl_easy_getinfo(exchange.easy.get(), CURLINFO_ACTIVESOCKET, &upgrade.socket);
    if (upgrade.socket == CURL_SOCKET_BAD) return false;
    upgrade.unsent.insert(0, headOf(exchange.request));
    return true;
  }

  std::vector<curl_waitfd> waitForStreams() const {
    std::vector<curl_waitfd> streams;
    for (const auto& [id, exchange] : exchanges_) {
      if (!exchange->upgrade || exchange->upgrade->socket == CURL_SOCKET_BAD) continue;
      const bool unsent = !exchange->upgrade->unsent.empty();
      streams.push_back(
          {.fd = exchange->upgrade->socket,
           .events = static_cast<short>(CURL_WAIT_POLLIN | (unsent ? CURL_WAIT_POLLOUT : 0)),
           .revents = 0});
    }
    return streams;
  }

  // Sends and receives what is possible without waiting. True: there may be more at once.
  bool carryStreams() {
    std::vector<Id> ids;
    for (const auto& [id, exchange] : exchanges_) {
      if (exchange->upgrade && exchange->upgrade->socket != CURL_SOCKET_BAD) ids.push_back(id);
    }
    bool more = false;
    for (const Id id : ids) {
      Exchange& exchange = *exchanges_.at(id);
      CURLcode code = sendUnsent(exchange);
      if (code == CURLE_AGAIN) code = receiveStream(exchange, more);
      if (code != CURLE_AGAIN) finish(id, code);
    }
    return more;
  }

  // CURLE_AGAIN: the exchange goes on.
  static CURLcode sendUnsent(Exchange& exchange) {
    std::string& unsent = exchange.upgrade->unsent;
    std::size_t done = 0;
    CURLcode code = CURLE_AGAIN;
    while (done < unsent.size()) {
      std::size_t sent = 0;
      code = curl_easy_send(exchange.easy.get(), unsent.data() + done, unsent.size() - done, &sent);
      if (code != CURLE_OK) break;
      done += sent;
    }
    unsent.erase(0, done);
    return code == CURLE_OK ? CURLE_AGAIN : code;
  }

  static CURLcode receiveStream(Exchange& exchange, bool& more) {
    constexpr int kMostPieces = 16;  // then the others have their turn
    Upgrade& upgrade = *exchange.upgrade;
    char bytes[16 << 10];
    for (int i = 0; i < kMostPieces; ++i) {
      std::size_t got = 0;
      const CURLcode code = curl_easy_recv(exchange.easy.get(), bytes, sizeof bytes, &got);
      if (code != CURLE_OK) return code;
      if (got == 0) {
        const Result<void> whole = upgrade.answer.finish();
        if (whole) return CURLE_OK;
        explainFailure(exchange, whole.error());
        return CURLE_PARTIAL_FILE;
      }
      exchange.last_byte = std::chrono::steady_clock::now();
      if (const CURLcode taken = takeStream(exchange, std::string_view(bytes, got));
          taken != CURLE_AGAIN) {
        return taken;
      }
    }
    more = true;
    return CURLE_AGAIN;
  }

  static CURLcode takeStream(Exchange& exchange, std::string_view piece) {
    Upgrade& upgrade = *exchange.upgrade;
    const Result<bool> taken = upgrade.answer.receive(piece);
    if (!taken) {
      explainFailure(exchange, taken.error());
      return CURLE_RECV_ERROR;
    }
    if (!*taken) return CURLE_WRITE_ERROR;
    if (upgrade.answer.status() != 0) {
      exchange.retry_after = retryAfter(upgrade.answer.header("retry-after"));
    }
    return upgrade.answer.complete() ? CURLE_OK : CURLE_AGAIN;
  }

  void checkDeadlines() {
    const SteadyTime now = std::chrono::steady_clock::now();
    std::vector<Id> late;
    for (const auto& [id, exchange] : exchanges_) {
      if (deadlineOf(*exchange) <= now) late.push_back(id);
    }
    for (const Id id : late) finish(id, CURLE_OPERATION_TIMEDOUT);
  }

  void finish(Id id, CURLcode code) {
    const auto found = exchanges_.find(id);
    if (found == exchanges_.end()) return;
    const std::unique_ptr<Exchange> exchange = std::move(found->second);
    exchanges_.erase(found);
    HttpOutcome outcome;
    outcome.status = exchange->status();
    outcome.end = endOf(code, *exchange);
    outcome.retry_after = exchange->retry_after;
    if (outcome.end == HttpEnd::kTimeout && exchange->error[0] == '\0') {
      outcome.message = "no data arrived for too long";
    } else if (outcome.end != HttpEnd::kComplete) {
      outcome.message = exchange->error[0] != '\0' ? exchange->error : curl_easy_strerror(code);
    }
    curl_multi_remove_handle(multi_, exchange->easy.get());
    if (exchange->request.done) exchange->request.done(std::move(outcome));
  }

  CURLM* multi_;
  Mutex mutex_;
  std::vector<std::function<void()>> posted_ MBCAS_GUARDED_BY(mutex_);
  std::atomic<Id> next_id_ = 1;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::thread::id> thread_id_;
  std::map<Id, Timer> timers_;                         // loop thread only
  std::map<Id, std::unique_ptr<Exchange>> exchanges_;  // loop thread only
  std::thread thread_;
};

HttpLoop::HttpLoop() {
  static const CURLcode kGlobal = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)kGlobal;
  impl_ = std::make_unique<Impl>();
}
HttpLoop::~HttpLoop() = default;

void HttpLoop::post(std::function<void()> run) {
  impl_->post(std::move(run));
}
HttpLoop::Id HttpLoop::after(Nanos delay, std::function<void()> run) {
  return impl_->after(delay, std::move(run));
}
void HttpLoop::cancelTimer(Id timer) {
  impl_->cancelTimer(timer);
}
void HttpLoop::send(Id exchange, std::string bytes) {
  impl_->send(exchange, std::move(bytes));
}
HttpLoop::Id HttpLoop::start(HttpRequest request) {
  return impl_->start(std::move(request));
}
void HttpLoop::cancel(Id exchange) {
  impl_->cancel(exchange);
}
bool HttpLoop::onLoop() const {
  return impl_->onLoop();
}

void HttpLoop::runAndWait(const std::function<void()>& run) {
  if (onLoop()) return run();
  std::mutex mutex;
  std::condition_variable done;
  bool finished = false;
  post([&] {
    run();
    const std::scoped_lock lock(mutex);
    finished = true;
    done.notify_one();
  });
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return finished; });
}

}  // namespace mbcas::kube
