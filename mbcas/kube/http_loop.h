// One thread that carries every HTTP exchange, and timers beside them. Streams do not block each
// other, nothing else in the runtime needs a thread, and whatever runs on the loop needs no lock.
//
// HTTP/1.1: a watch has a connection of its own, other requests share kept-alive ones. A transfer
// is never paused: the receiver takes what comes or ends it. Every exchange ends, with exactly one
// call of `done`, because each has a deadline or an idle deadline.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kube/config.h"
#include "mbcas/kube/http_answer.h"

namespace mbcas::kube {

enum class HttpEnd {
  kComplete,       // the whole answer came
  kConnectFailed,  // no connection: nothing was sent (DNS, TCP, TLS, proxy)
  kBroken,         // the connection ended too early
  kTimeout,        // the deadline, or the idle deadline, passed
  kTooLarge,       // more than max_body bytes
  kStopped,        // the receiver wanted no more, or cancel(), or the loop ended
};

struct HttpOutcome {
  HttpEnd end = HttpEnd::kStopped;
  int status = 0;  // 0 if no answer began
  std::optional<Nanos> retry_after;
  std::string message;  // of the transport; holds no header
};

struct HttpTls {  // what of the configuration concerns a connection
  PemSource ca;
  PemSource client_cert;
  PemSource client_key;
  std::string server_name;
  bool insecure = false;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;
  std::string body;
  std::shared_ptr<const HttpTls> tls;
  std::string proxy_url;
  bool gzip = false;
  // Asks the server to change to this protocol, as "websocket". If it does (status 101), the rest
  // of the connection is a stream both ways: `receive` gets what the server sends, send() is for
  // the other way, and the end of the connection is a complete exchange. If it does not, the answer
  // is one like any other. Such a request has no body.
  std::string upgrade{};
  // On the loop, once, before any piece of the stream; an error ends the exchange as broken.
  std::function<Result<void>(const HttpAnswer& answer)> upgraded{};
  Nanos connect_timeout = std::chrono::seconds(10);
  Nanos timeout{0};          // of the whole exchange; 0: none
  Nanos idle_timeout{0};     // since the last byte; 0: none
  std::size_t max_body = 0;  // after decompression; 0: no bound, the receiver sees to it
  // A piece of the answer's body, on the loop. Returns false to end the exchange.
  std::function<bool(int status, std::string_view piece)> receive;
  // On the loop, once.
  std::function<void(HttpOutcome)> done;
};

class HttpLoop {
 public:
  using Id = std::uint64_t;

  HttpLoop();
  ~HttpLoop();  // ends all exchanges (kStopped), drops what is posted or timed, joins the thread
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  // All of these from any thread, the loop's own included; the functions run on the loop.
  void post(std::function<void()> run);
  Id after(Nanos delay, std::function<void()> run);
  void cancelTimer(Id timer);  // called on the loop, it is sure not to run any more
  Id start(HttpRequest request);
  void cancel(Id exchange);  // `done` comes with kStopped, later
  // More for the stream of an exchange with `upgrade`; dropped where that is over. What the server
  // does not take is kept, up to kMostUnsent bytes; more than that ends the exchange.
  void send(Id exchange, std::string bytes);
  static constexpr std::size_t kMostUnsent = 1 << 20;

  bool onLoop() const;
  // Runs on the loop and waits for it. At once if called there.
  void runAndWait(const std::function<void()>& run);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::kube
