// The client and the watch cache against an HTTP server of the test's own, on loopback.
#include "mbcas/kube/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "mbcas/kube/events.h"
#include "mbcas/kube/health_server.h"
#include "mbcas/kube/informer.h"
#include "mbcas/kube/metrics.h"
#include "mbcas/kube/types.h"

namespace mbcas::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kPod = R"({"metadata":{"name":"p","namespace":"ns","resourceVersion":"1"}})";
constexpr std::chrono::seconds kPatience{60};  // for what should happen at once

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return false;
}

class ClientTest : public testing::Test {
 protected:
  using Handler = std::function<void(const httplib::Request&, httplib::Response&)>;

  /// Ends the server. A test holds it, so that no handler outlives the variables that it uses.
  class [[nodiscard]] Serving {
   public:
    explicit Serving(ClientTest& test) : test_(test) {}
    ~Serving() {
      test_.client.reset();
      test_.ending = true;
      test_.server.stop();
      test_.thread.join();
    }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

   private:
    ClientTest& test_;
  };

  Serving serve(Handler handler) {
    const auto any = [this, handler = std::move(handler)](const httplib::Request& request,
                                                          httplib::Response& response) {
      {
        const std::scoped_lock lock(mutex);
        requests.push_back(request);
      }
      handler(request, response);
    };
    server.Get(".*", any);
    server.Post(".*", any);
    server.Put(".*", any);
    server.Patch(".*", any);
    server.Delete(".*", any);
    server.set_keep_alive_max_count(keep_alive);
    port = server.bind_to_any_port("127.0.0.1");
    thread = std::thread([this] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::yield();
    config.server = fmt::format("http://127.0.0.1:{}", port);
    return Serving(*this);
  }
  Client& connect(ClientOptions options = {}) {
    options.metrics = &metrics;
    client = std::make_unique<Client>(loop, config, clock, options);
    return *client;
  }
  std::size_t requestCount() {
    const std::scoped_lock lock(mutex);
    return requests.size();
  }

  SystemClock clock;
  Metrics metrics;
  HttpLoop loop;
  ClientConfig config;
  std::unique_ptr<Client> client;
  httplib::Server server;
  std::thread thread;
  std::size_t keep_alive = 1;  // requests of a connection; stop() would wait for idle ones
  int port = 0;
  std::mutex mutex;
  std::vector<httplib::Request> requests;
  std::atomic<bool> ending = false;
};

TEST_F(ClientTest, NothingIsWrittenWithoutLeave) {
  std::atomic<bool> may = false;
  std::atomic<bool> busy = false;
  const Serving serving = serve([&](const auto& request, auto& response) {
    if (busy && request.method != "GET") {
      may = false;  // the leave ends between two tries
      response.status = 429;
      response.set_header("Retry-After", "0");
      return;
    }
    response.set_content(kPod, "application/json");
  });
  Client& c = connect({.may_write = [&] { return may.load(); }});
  EXPECT_TRUE(c.get<Pod>("ns", "p")) << "reading is free";
  const auto refused = c.patch<Pod>("ns", "p", PatchType::kMerge, "{}");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, ApiError::kFenced);
  EXPECT_FALSE(c.remove<Pod>("ns", "p"));
  EXPECT_EQ(requestCount(), 1u);
  may = true;
  EXPECT_TRUE(c.patch<Pod>("ns", "p", PatchType::kMerge, "{}"));
  EXPECT_EQ(requestCount(), 2u);
  busy = true;
  const auto late = c.patch<Pod>("ns", "p", PatchType::kMerge, "{}");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason, ApiError::kFenced) << "every try asks";
  EXPECT_EQ(requestCount(), 3u);
}

TEST_F(ClientTest, AStopRequestEndsACall) {
  const Serving serving = serve([&](const auto&, auto& response) {
    while (!ending) std::this_thread::sleep_for(milliseconds(1));
    response.set_content(kPod, "application/json");
  });
  Client& c = connect();
  std::stop_source stop;
  std::jthread stopper([&] {
    eventually([&] { return requestCount() == 1; });
    stop.request_stop();
  });
  const auto ended = c.perform({.path = "/version"}, stop.get_token());
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().reason, ApiError::kCancelled);
}

TEST_F(ClientTest, SendsWhoItIsAndWhatItWants) {
  const Serving serving =
      serve([](const auto&, auto& response) { response.set_content(kPod, "application/json"); });
  config.token = "tok";
  config.impersonate = {
      .user = "boss", .uid = "7", .groups = {"g1", "g2"}, .extra = {{"Scopes", {"x"}}}};
  Client& c = connect({.user_agent = "test/1.0"});
  ASSERT_TRUE(c.get<Pod>("ns", "p"));
  ASSERT_TRUE(c.patch<Pod>(
      "ns", "p", PatchType::kApply, "{}",
      {.subresource = "resize", .field_manager = "me", .force = true, .dry_run = true}));
  ASSERT_TRUE(
      c.remove<Pod>("ns", "p", {.uid = "u", .grace_seconds = 0, .propagation = "Background"}));
  const httplib::Request& get = requests[0];
  EXPECT_EQ(get.path, "/api/v1/namespaces/ns/pods/p");
  EXPECT_EQ(get.get_header_value("Authorization"), "Bearer tok");
  EXPECT_EQ(get.get_header_value("User-Agent"), "test/1.0");
  EXPECT_EQ(get.get_header_value("Accept-Encoding"), "gzip");
  EXPECT_EQ(get.get_header_value("Impersonate-User"), "boss");
  EXPECT_EQ(get.get_header_value("Impersonate-Uid"), "7");
  EXPECT_EQ(get.get_header_value_count("Impersonate-Group"), 2u);
  EXPECT_EQ(get.get_header_value("Impersonate-Extra-Scopes"), "x");
  const httplib::Request& patch = requests[1];
  EXPECT_EQ(patch.method, "PATCH");
  EXPECT_EQ(patch.path, "/api/v1/namespaces/ns/pods/p/resize");
  EXPECT_EQ(patch.get_header_value("Content-Type"), "application/apply-patch+yaml");
  EXPECT_EQ(patch.get_param_value("fieldManager"), "me");
  EXPECT_EQ(patch.get_param_value("force"), "true");
  EXPECT_EQ(patch.get_param_value("dryRun"), "All");
  EXPECT_EQ(requests[2].body, R"({"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,)"
                              R"("propagationPolicy":"Background","preconditions":{"uid":"u"}})");
  EXPECT_NE(metrics.text().find("rest_client_requests_total{code=\"200\",host=\"127.0.0.1:"),
            std::string::npos);
}

TEST_F(ClientTest, TurnsAStatusIntoAnError) {
  const Serving serving = serve([](const auto&, auto& response) {
    response.status = 409;
    response.set_content(
        R"({"kind":"Status","status":"Failure","reason":"Conflict","code":409,"message":"Apply failed",
        "details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"other\"","field":".spec.a"}]}})",
        "application/json");
  });
  const auto result = connect().apply<Pod>("ns", "p", "{}", {.field_manager = "me"});
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().applyConflict());
  EXPECT_TRUE(result.error().conflict());
  EXPECT_FALSE(result.error().transient());
  EXPECT_EQ(result.error().causes[0].field, ".spec.a");
  EXPECT_EQ(result.error().describe(), "409 Conflict: Apply failed");
}

TEST_F(ClientTest, AnAnswerThatIsNoStatusIsStillAnError) {
  const Serving serving = serve([](const auto&, auto& response) {
    response.status = 502;
    response.set_content("<html>\nBad\tGateway</html>", "text/html");
  });
  EXPECT_EQ(connect().get<Pod>("ns", "p").error().describe(),
            "502 Unknown: <html> Bad Gateway</html>");
}

TEST_F(ClientTest, TriesAgainWhenToldTo) {
  int count = 0;
  const Serving serving = serve([&](const auto&, auto& response) {
    if (++count < 3) {
      response.status = count == 1 ? 429 : 503;
      response.set_header("Retry-After", "0");
      return;
    }
    response.set_content(kPod, "application/json");
  });
  EXPECT_TRUE(connect().create<Pod>("ns", "{}"));
  EXPECT_EQ(requestCount(), 3u);
  EXPECT_EQ(requests[2].body, "{}");
}

TEST_F(ClientTest, GivesUpAfterSoManyTries) {
  const Serving serving = serve([&](const auto&, auto& response) {
    response.status = 429;
    response.set_header("Retry-After", "0");
  });
  const auto result = connect({.max_retries = 4}).get<Pod>("ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, 429);
  EXPECT_EQ(result.error().retry_after, Nanos(0));
  EXPECT_EQ(requestCount(), 5u);
}

TEST_F(ClientTest, DoesNotWaitLongerThanTheCallMayTake) {
  const Serving serving = serve([&](const auto&, auto& response) {
    response.status = 429;
    response.set_header("Retry-After", "86400");
  });
  // A day becomes a minute, which is more than this call has.
  const auto result = connect({.timeout = seconds(20), .overall = seconds(30)}).get<Pod>("ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, 429);
  EXPECT_EQ(result.error().retry_after, ApiError::kMostRetryAfter);
  EXPECT_EQ(requestCount(), 1u);
}

TEST_F(ClientTest, AllTriesTogetherHaveADeadline) {
  const Serving serving = serve([&](const auto&, auto& response) {
    response.status = 503;
    response.set_header("Retry-After", "0");
    std::this_thread::sleep_for(milliseconds(20));
  });
  const auto result =
      connect(
          {.max_retries = 1'000'000, .timeout = milliseconds(300), .overall = milliseconds(300)})
          .get<Pod>("ns", "p");
  ASSERT_FALSE(result);
  EXPECT_LE(requestCount(), 16u) << "one every 20 ms";
}

TEST_F(ClientTest, WhoWouldWaitTooLongForItsTurnIsToldAtOnce) {
  const Serving serving =
      serve([&](const auto&, auto& response) { response.set_content(kPod, "application/json"); });
  Client& slow = connect({.qps = 0.001, .burst = 1});
  EXPECT_TRUE(slow.get<Pod>("ns", "p"));
  const auto result = slow.get<Pod>("ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, ApiError::kTimeout);
}

TEST_F(ClientTest, DoesNotTryAgainUnasked) {
  const Serving serving = serve([&](const auto&, auto& response) { response.status = 500; });
  EXPECT_FALSE(connect().get<Pod>("ns", "p"));
  EXPECT_EQ(requestCount(), 1u);
}

TEST_F(ClientTest, RefusesAnAnswerBeyondItsBound) {
  const Serving serving = serve([](const auto&, auto& response) {
    response.set_content(std::string(100'000, ' ') + kPod, "application/json");
  });
  const auto result = connect({.max_response = 50'000}).get<Pod>("ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, ApiError::kTooLarge);
}

TEST_F(ClientTest, ReportsMalformedAnswersWithTheirPlace) {
  const Serving serving = serve([](const auto&, auto& response) {
    response.set_content(R"({"metadata":{"name":"p","labels":{"a":[]}}})", "application/json");
  });
  const auto result = connect().get<Pod>("ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, ApiError::kMalformed);
  EXPECT_NE(result.error().message.find("metadata.labels.a"), std::string::npos);
}

TEST_F(ClientTest, TimesOut) {
  const Serving serving = serve([this](const auto&, auto&) {
    for (int i = 0; i < 3000 && !ending; ++i) std::this_thread::sleep_for(milliseconds(10));
  });
  const auto result = connect({.timeout = milliseconds(100)}).get<Pod>("ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, ApiError::kTimeout);
}

// A server drops a request that waits in its queue when the connection ends. So what is sent again
// after a time-out is there once.
TEST_F(ClientTest, ARequestThatTimedOutLeavesTheServer) {
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listening, 1), 0);
  ASSERT_EQ(::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size), 0);
  config.server = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));

  ssize_t last = -1;
  std::thread queue([&] {
    const int fd = ::accept(listening, nullptr, nullptr);
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char piece[512];
    while ((last = ::recv(fd, piece, sizeof piece, 0)) > 0) {
    }
    ::close(fd);
  });
  const auto result = connect({.timeout = milliseconds(100)})
                          .perform({.method = "PATCH", .path = "/queued", .body = "{}"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, ApiError::kTimeout);
  queue.join();
  EXPECT_EQ(last, 0) << "the client has not closed the connection";
  ::close(listening);
}

TEST_F(ClientTest, SaysWhenNobodyIsThere) {
  config.server = "http://127.0.0.1:1";
  const auto result = connect().get<Pod>("ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, ApiError::kConnect);
  EXPECT_TRUE(result.error().transient());
  EXPECT_NE(metrics.text().find("code=\"<error>\""), std::string::npos);
}

TEST_F(ClientTest, ThrottlesItself) {
  const Serving serving =
      serve([](const auto&, auto& response) { response.set_content(kPod, "application/json"); });
  Client& c = connect({.qps = 20, .burst = 2});
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(c.get<Pod>("ns", "p"));
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(190));  // 4 beyond the burst
}

TEST_F(ClientTest, FetchesANewTokenWhenRefusedAndNeverShowsIt) {
  std::string pattern = (std::filesystem::temp_directory_path() / "mbcas-token-XXXXXX").string();
  const int fd = ::mkstemp(pattern.data());
  ASSERT_GE(fd, 0);
  ::close(fd);
  std::ofstream(pattern) << "old-secret";
  config.token_file = pattern;
  const Serving serving = serve([](const auto& request, auto& response) {
    if (request.get_header_value("Authorization") == "Bearer new-secret") {
      response.set_content(kPod, "application/json");
    } else {
      response.status = 401;
    }
  });
  Client& c = connect();
  const auto refused = c.get<Pod>("ns", "p");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 401);
  EXPECT_EQ(refused.error().describe().find("secret"), std::string::npos);
  EXPECT_EQ(requestCount(), 2u);
  std::ofstream(pattern) << "new-secret";
  EXPECT_TRUE(c.get<Pod>("ns", "p"));
  std::filesystem::remove(pattern);
}

TEST_F(ClientTest, NoFailureShowsTheToken) {
  config.token = "hush-hush";
  const Serving serving = serve([](const auto& request, auto& response) {
    if (request.path.ends_with("cut")) {
      response.set_content_provider(
          1000, "application/json",
          [](std::size_t, std::size_t, httplib::DataSink&) { return false; });
    } else if (request.path.ends_with("garbage")) {
      response.set_content("\x01\x02 garbage", "application/json");
    } else {
      response.status = 403;
      response.set_content("{\"message\":\"no\"}", "application/json");
    }
  });
  Client& c = connect({.max_retries = 0});
  std::string texts;
  for (const char* name : {"cut", "garbage", "forbidden"}) {
    const auto result = c.get<Pod>("ns", name);
    ASSERT_FALSE(result) << name;
    texts += result.error().describe() + "\n";
  }
  server.stop();
  texts += c.get<Pod>("ns", "down").error().describe();
  config.token = "bad\r\nX-Injected: hush-hush";
  texts += connect().get<Pod>("ns", "p").error().describe();
  config.server = "https://127.0.0.1:" + std::to_string(port);
  config.token = "hush-hush";
  texts += connect().get<Pod>("ns", "p").error().describe();
  EXPECT_EQ(texts.find("hush"), std::string::npos) << texts;
  EXPECT_EQ(metrics.text().find("hush"), std::string::npos);
}

TEST_F(ClientTest, RunsAnExecPluginWithoutHoldingUpTheLoop) {
  std::string pattern = (std::filesystem::temp_directory_path() / "mbcas-plugin-XXXXXX").string();
  const int fd = ::mkstemp(pattern.data());
  ASSERT_GE(fd, 0);
  ::close(fd);
  std::ofstream(pattern)
      << "#!/bin/sh\nsleep 0.3\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\","
         "\"status\":{\"token\":\"from-plugin\"}}'\n";
  std::filesystem::permissions(pattern, std::filesystem::perms::owner_all);
  config.exec = ExecPlugin{.command = pattern, .api_version = "client.authentication.k8s.io/v1"};
  const Serving serving = serve([](const auto& request, auto& response) {
    if (request.get_header_value("Authorization") != "Bearer from-plugin") response.status = 401;
    response.set_content(kPod, "application/json");
  });
  Client& c = connect();
  std::atomic<int> good = 0;
  for (int i = 0; i < 5; ++i) {
    c.send({.path = "/api/v1/namespaces/ns/pods/p"},
           [&](const auto& body) { good += body ? 1 : 0; });
  }
  bool ticked = false;
  loop.runAndWait([&] { ticked = good == 0; });  // the loop answers while the plugin runs
  EXPECT_TRUE(ticked);
  EXPECT_TRUE(eventually([&] { return good == 5; }));
  std::filesystem::remove(pattern);
}

TEST_F(ClientTest, ACancelledCallEnds) {
  const Serving serving = serve([this](const auto&, auto&) {
    for (int i = 0; i < 3000 && !ending; ++i) std::this_thread::sleep_for(milliseconds(10));
  });
  Client& c = connect();
  std::atomic<bool> cancelled = false;
  const Client::Id id = c.send({.path = "/x"}, [&](const auto& body) {
    cancelled = !body && body.error().reason == ApiError::kCancelled;
  });
  ASSERT_TRUE(eventually([&] { return requestCount() == 1; }));
  c.cancel(id);
  EXPECT_TRUE(eventually([&] { return cancelled.load(); }));
}

// What goes on when a client ends, ends with it: nothing of the client's is used later.
TEST_F(ClientTest, EndsItsCallsBeforeItIsGone) {
  const Serving serving = serve([this](const auto&, auto&) {
    for (int i = 0; i < 3000 && !ending; ++i) std::this_thread::sleep_for(milliseconds(10));
  });
  int ended = 0;
  {
    Metrics own;
    Client brief(loop, config, clock, {.metrics = &own});
    for (int i = 0; i < 3; ++i) brief.send({.path = "/x"}, [&](const auto&) { ++ended; });
    ASSERT_TRUE(eventually([&] { return requestCount() >= 1; }));
  }
  EXPECT_EQ(ended, 3);
}

TEST_F(ClientTest, ListsInPages) {
  const Serving serving = serve([](const auto& request, auto& response) {
    const bool second = request.get_param_value("continue") == "tok/2=";
    response.set_content(
        fmt::format(
            R"({{"metadata":{{"resourceVersion":"9"{}}},"items":[{{"metadata":{{"name":"{}"}}}}]}})",
            second ? "" : R"(,"continue":"tok/2=")", second ? "b" : "a"),
        "application/json");
  });
  const auto list =
      connect().list<Pod>({.name_space = "ns", .label_selector = "a in (b)", .page = 1});
  ASSERT_TRUE(list);
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[1]->meta.name, "b");
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(requests[0].get_param_value("labelSelector"), "a in (b)");
  EXPECT_EQ(requests[0].get_param_value("limit"), "1");
}

TEST_F(ClientTest, ReportsAMissingResourceAsSuch) {
  const Serving serving = serve([](const auto& request, auto& response) {
    if (request.path == "/version") {
      response.set_content(R"({"major":"1","minor":"31+","gitVersion":"v1.31.2"})",
                           "application/json");
    } else {
      response.set_content(R"({"resources":[{"name":"pods"},{"name":"pods/status"}]})",
                           "application/json");
    }
  });
  Client& c = connect();
  EXPECT_TRUE(c.require("v1", "pods"));
  EXPECT_EQ(c.require("v1", "pods/resize").error().message(),
            "the API server (v1.31.2) does not serve pods/resize in v1");
  EXPECT_EQ(c.version()->minor, 31);
}

TEST_F(ClientTest, RecordsEvents) {
  const Serving serving =
      serve([](const auto&, auto& response) { response.set_content("{}", "application/json"); });
  EventRecorder recorder(connect(), "tester");
  const Note note{.about = {"v1", "Pod", "ns", "p", "u", "1"},
                  .type = EventType::kWarning,
                  .reason = "Slow",
                  .message = "too slow"};
  recorder.record(note);
  recorder.record(note);
  for (int i = 0; i < 100; ++i) recorder.record(note);
  ASSERT_TRUE(recorder.flush(kPatience));
  EXPECT_EQ(requestCount(), 25u);  // the rest is spam
  EXPECT_EQ(recorder.dropped(), 77u);
  EXPECT_EQ(requests[0].path, "/api/v1/namespaces/ns/events");
  EXPECT_NE(requests[0].body.find(R"("reason":"Slow","message":"too slow")"), std::string::npos);
  EXPECT_EQ(requests[1].method, "PATCH");
  EXPECT_NE(requests[1].body.find(R"("count":2)"), std::string::npos);
}

// --- the watch cache ---

std::string podJson(const std::string& name, int version) {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","namespace":"ns","uid":"{0}","resourceVersion":"{1}"}}}})",
      name, version);
}
std::string eventJson(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}
WatchOptions quick() {
  WatchOptions options;
  options.tuning.first_delay = milliseconds(5);
  options.tuning.max_delay = milliseconds(20);
  options.tuning.shortest_watch = milliseconds(1);
  options.seed = 1;
  return options;
}

TEST_F(ClientTest, AnInformerFallsBackToListsResumesAndNotices410) {
  std::atomic<int> watches = 0;
  std::atomic<int> lists = 0;
  const Serving serving = serve([&](const auto& request, auto& response) {
    if (request.has_param("sendInitialEvents")) {
      response.status = 422;
    } else if (!request.has_param("watch")) {
      const int version = ++lists == 1 ? 10 : 50;
      response.set_content(fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},"items":[{}]}})",
                                       version, podJson(version == 10 ? "a" : "z", version)),
                           "application/json");
    } else {
      const int number = ++watches;
      const std::string from = request.get_param_value("resourceVersion");
      if (number == 1) {
        response.set_content(eventJson("ADDED", podJson("b", 11)) +
                                 eventJson("BOOKMARK", R"({"metadata":{"resourceVersion":"20"}})"),
                             "application/json");
      } else if (number == 2) {
        EXPECT_EQ(from, "20");
        response.set_content(eventJson("ERROR", R"({"code":410,"reason":"Expired"})"),
                             "application/json");
      } else {
        if (number == 3) {
          EXPECT_EQ(from, "50");
        }
        response.set_chunked_content_provider("application/json",
                                              [this](std::size_t, httplib::DataSink&) {
                                                std::this_thread::sleep_for(milliseconds(5));
                                                return !ending;
                                              });
      }
    }
  });
  std::mutex told_mutex;
  std::string told;
  std::vector<int> errors;
  WatchOptions options = quick();
  options.on_error = [&](const ApiError& error) {
    const std::scoped_lock lock(told_mutex);
    errors.push_back(error.code);
  };
  Informer<Pod> pods(connect(), options);
  pods.onChange([&](const TypedChange<Pod>& change) {
    const std::scoped_lock lock(told_mutex);
    told += fmt::format("{}{}{} ", change.before ? "" : "+", change.after ? "" : "-", change.key());
  });
  EXPECT_FALSE(pods.hasSynced());
  pods.start();
  ASSERT_TRUE(pods.waitForSync(kPatience));
  ASSERT_TRUE(eventually([&] { return watches >= 3; }));
  EXPECT_EQ(pods.size(), 1u);
  EXPECT_TRUE(pods.find("ns", "z"));
  pods.stop();
  const std::scoped_lock lock(told_mutex);
  EXPECT_EQ(errors, std::vector{410}) << "a server that does not stream lists is no error";
  EXPECT_EQ(told.substr(0, 12), "+ns/a +ns/b ");
  EXPECT_NE(told.find("-ns/a"), std::string::npos);
  EXPECT_NE(told.find("-ns/b"), std::string::npos);
  EXPECT_NE(told.find("+ns/z"), std::string::npos);
}

// A memory limit that no reader of this kind understands.
std::string badPodJson(const std::string& name, int version) {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","namespace":"ns","uid":"{0}","resourceVersion":"{1}"}},)"
      R"("spec":{{"containers":[{{"resources":{{"limits":{{"memory":"a\u001b[31m lot"}}}}}}]}}}})",
      name, version);
}

TEST_F(ClientTest, AListReturnsWhatCanBeRead) {
  const Serving serving = serve([&](const auto&, auto& response) {
    response.set_content(
        fmt::format(R"({{"metadata":{{"resourceVersion":"9"}},"items":[{},{},{}]}})",
                    podJson("a", 1), badPodJson("bad", 2), podJson("c", 3)),
        "application/json");
  });
  const auto list = connect().list<Pod>();
  ASSERT_TRUE(list);
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[1]->meta.name, "c");
  ASSERT_EQ(list->passed_over.size(), 1u);
  EXPECT_EQ(list->passed_over[0].name, "bad");
  EXPECT_EQ(list->passed_over[0].name_space, "ns");
  EXPECT_NE(list->passed_over[0].why.find("resources.limits.memory: not a quantity"),
            std::string::npos);
  EXPECT_EQ(list->passed_over[0].why.find('\x1b'), std::string::npos);
}

// A server that sends these texts as a watch, one whenever `next` is called, from any version.
class WatchScript {
 public:
  void add(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    text_ += text;
  }
  void serve(httplib::Response& response, const std::atomic<bool>& ending) {
    auto sent = std::make_shared<std::size_t>(0);
    response.set_chunked_content_provider(
        "application/json", [this, sent, &ending](std::size_t, httplib::DataSink& sink) {
          std::string more;
          {
            const std::scoped_lock lock(mutex_);
            more = text_.substr(*sent);
          }
          *sent += more.size();
          if (!more.empty()) sink.write(more.data(), more.size());
          std::this_thread::sleep_for(milliseconds(2));
          return !ending;
        });
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

TEST_F(ClientTest, AnInformerPassesOverWhatItCannotRead) {
  WatchScript script;
  const Serving serving = serve([&](const auto& request, auto& response) {
    if (request.has_param("sendInitialEvents")) {
      response.status = 422;
    } else if (!request.has_param("watch")) {
      response.set_content(
          fmt::format(R"({{"metadata":{{"resourceVersion":"10"}},"items":[{},{}]}})",
                      badPodJson("old", 9), podJson("a", 10)),
          "application/json");
    } else {
      EXPECT_EQ(request.get_param_value("resourceVersion"), "10");
      script.serve(response, ending);
    }
  });
  std::mutex told_mutex;
  std::vector<std::string> reported;
  WatchOptions options = quick();
  options.on_error = [&](const ApiError& error) {
    const std::scoped_lock lock(told_mutex);
    reported.push_back(error.describe());
  };
  const auto names = [](const Informer<Pod>& pods) {
    std::string text;
    for (const PassedOver& object : pods.passedOver()) text += object.name + " ";
    return text;
  };
  Informer<Pod> pods(connect(), options);
  std::string told;
  pods.onChange([&](const TypedChange<Pod>& change) {
    const std::scoped_lock lock(told_mutex);
    told += fmt::format("{}{}{} ", change.before ? "" : "+", change.after ? "" : "-", change.key());
  });
  pods.start();
  ASSERT_TRUE(pods.waitForSync(kPatience));
  EXPECT_EQ(pods.size(), 1u);
  EXPECT_EQ(names(pods), "old ");
  // A good one becomes bad again and again, a bad one comes, one is mended, one is deleted.
  script.add(eventJson("MODIFIED", badPodJson("a", 11)));
  script.add(eventJson("MODIFIED", badPodJson("a", 12)));
  script.add(eventJson("ADDED", badPodJson("new", 13)));
  script.add(eventJson("MODIFIED", podJson("new", 14)));
  script.add(eventJson("DELETED", badPodJson("old", 15)));
  script.add(eventJson("ADDED", podJson("last", 16)));
  ASSERT_TRUE(eventually([&] { return pods.find("ns", "last") != nullptr; }));
  EXPECT_EQ(names(pods), "a ");
  EXPECT_EQ(pods.size(), 2u);
  EXPECT_NE(metrics.text().find("kube_watch_passed_over_objects{kind=\"Pod\"} 1\n"),
            std::string::npos);
  EXPECT_NE(metrics.text().find("kube_watch_stuck_seconds{kind=\"Pod\"} 0\n"), std::string::npos);
  pods.stop();
  const std::scoped_lock lock(told_mutex);
  EXPECT_EQ(told, "+ns/a -ns/a +ns/new +ns/last ");
  ASSERT_EQ(reported.size(), 3u) << "each once";
  EXPECT_NE(reported[0].find("UnreadableObject: Pod ns/old is passed over: "), std::string::npos)
      << reported[0];
  EXPECT_NE(reported[1].find("Pod ns/a "), std::string::npos) << reported[1];
  EXPECT_NE(reported[2].find("Pod ns/new "), std::string::npos) << reported[2];
}

TEST_F(ClientTest, AnInformerNamesABoundedNumberOfThem) {
  WatchScript script;
  const Serving serving =
      serve([&](const auto&, auto& response) { script.serve(response, ending); });
  constexpr int kBad = WatchCache::kMostPassedOver + 50;
  for (int i = 0; i < kBad; ++i) {
    script.add(eventJson("ADDED", badPodJson(fmt::format("bad{}", i), i + 1)));
  }
  script.add(eventJson(
      "BOOKMARK",
      R"({"metadata":{"resourceVersion":"500","annotations":{"k8s.io/initial-events-end":"true"}}})"));
  std::atomic<int> reported = 0;
  WatchOptions options = quick();
  options.on_error = [&](const ApiError&) { ++reported; };
  Informer<Pod> pods(connect(), options);
  pods.start();
  ASSERT_TRUE(pods.waitForSync(kPatience));
  EXPECT_EQ(pods.passedOver().size(), WatchCache::kMostPassedOver);
  EXPECT_EQ(reported, static_cast<int>(WatchCache::kMostPassedOver) + 1)
      << "and that there are more";
  script.add(eventJson("ADDED", podJson("good", 600)));
  EXPECT_TRUE(eventually([&] { return pods.find("ns", "good") != nullptr; }));
  pods.stop();
}

TEST_F(ClientTest, AnInformerTellsHowLongItHasBeenStuck) {
  std::atomic<bool> works = false;
  WatchScript script;
  const Serving serving = serve([&](const auto& request, auto& response) {
    if (!works) {
      response.status = 500;
    } else if (request.has_param("watch")) {
      script.serve(response, ending);
    } else {
      response.set_content(R"({"metadata":{"resourceVersion":"5"},"items":[]})",
                           "application/json");
    }
  });
  Informer<Pod> pods(connect(), quick());
  EXPECT_EQ(pods.stuckFor(clock.monotonic()), Nanos(0)) << "it has not begun";
  pods.start();
  ASSERT_TRUE(eventually([&] { return pods.health().failing_since.has_value(); }));
  EXPECT_GT(pods.stuckFor(clock.monotonic()), Nanos(0));
  EXPECT_EQ(pods.stuckFor(clock.monotonic() + seconds(100)) / seconds(100), 1);
  EXPECT_NE(pods.health().last_error.find("500"), std::string::npos);
  EXPECT_EQ(metrics.text().find("kube_watch_stuck_seconds{kind=\"Pod\"} 0\n"), std::string::npos);
  works = true;
  ASSERT_TRUE(pods.waitForSync(kPatience));
  EXPECT_EQ(pods.stuckFor(clock.monotonic() + seconds(100)), Nanos(0)) << "an open watch is not";
  EXPECT_EQ(pods.health().last_error, "");
  pods.stop();
}

TEST_F(ClientTest, AnInformerListsRoundAnEventThatIsNone) {
  std::atomic<int> watches = 0;
  std::atomic<int> lists = 0;
  WatchScript script;
  const Serving serving = serve([&](const auto& request, auto& response) {
    if (request.has_param("sendInitialEvents")) {
      response.status = 422;
    } else if (!request.has_param("watch")) {
      const int version = ++lists == 1 ? 10 : 50;
      response.set_content(fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},"items":[{}]}})",
                                       version, podJson("a", version)),
                           "application/json");
    } else if (request.get_param_value("resourceVersion") == "10") {
      ++watches;
      response.set_content(eventJson("ADDED", R"({"metadata":{"name":7}})"), "application/json");
    } else {
      script.serve(response, ending);
    }
  });
  Informer<Pod> pods(connect(), quick());
  pods.start();
  script.add(eventJson("ADDED", podJson("good", 60)));
  EXPECT_TRUE(eventually([&] { return pods.find("ns", "good") != nullptr; }));
  EXPECT_EQ(watches, 1);
  pods.stop();
}

TEST_F(ClientTest, AnInformerGivesUpASilentWatch) {
  std::atomic<int> watches = 0;
  const Serving serving = serve([&](const auto&, auto& response) {
    ++watches;
    auto sent = std::make_shared<bool>(false);
    response.set_chunked_content_provider("application/json", [this, sent](
                                                                  std::size_t,
                                                                  httplib::DataSink& sink) {
      if (!*sent) {
        const std::string text = eventJson(
            "BOOKMARK",
            R"({"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}})");
        sink.write(text.data(), text.size());
        *sent = true;
      }
      std::this_thread::sleep_for(milliseconds(5));
      return !ending;
    });
  });
  WatchOptions options = quick();
  options.idle_timeout = milliseconds(100);
  std::atomic<int> timeouts = 0;
  options.on_error = [&](const ApiError& error) { timeouts += error.reason == ApiError::kTimeout; };
  Informer<Pod> pods(connect(), options);
  pods.start();
  EXPECT_TRUE(eventually([&] { return watches >= 3 && timeouts >= 2; }));
  pods.stop();
}

TEST_F(ClientTest, KeepsItsConnectionsBesideManyWatches) {
  constexpr int kWatches = 16;
  keep_alive = 1000;
  server.new_task_queue = [] { return new httplib::ThreadPool(kWatches + 8); };
  // The handler refers to nothing of this function: watches that end are opened again at once, and
  // such a request may arrive when this function has returned.
  const Serving serving = serve([this](const auto& request, auto& response) {
    if (!request.has_param("watch")) {
      response.set_content(podJson("a", 7), "application/json");
      return;
    }
    response.set_chunked_content_provider("application/json",
                                          [this](std::size_t, httplib::DataSink& /*sink*/) {
                                            std::this_thread::sleep_for(milliseconds(5));
                                            return !ending;
                                          });
  });
  Client& api = connect();
  std::vector<std::unique_ptr<Informer<Pod>>> informers;
  for (int i = 0; i < kWatches; ++i) {
    informers.push_back(std::make_unique<Informer<Pod>>(api, quick()));
    informers.back()->start();
  }
  ASSERT_TRUE(eventually([&] {
    const std::scoped_lock lock(mutex);
    return std::ranges::count_if(requests, [](const auto& request) {
             return request.has_param("watch");
           }) == kWatches;
  }));
  constexpr std::size_t kCalls = 20;
  for (std::size_t i = 0; i < kCalls; ++i) ASSERT_TRUE(api.get<Pod>("ns", "a"));
  std::set<int> connections;
  {
    const std::scoped_lock lock(mutex);
    for (const httplib::Request& request : requests) {
      // An informer whose watch did not begin in time lists, on a connection of its own.
      if (request.path.ends_with("/pods/a")) connections.insert(request.remote_port);
    }
  }
  EXPECT_GE(connections.size(), 1u);
  // A client that loses its connections to the watches opens one for each call. On a busy machine
  // the server may close some that look idle to it, so a few are no fault.
  EXPECT_LE(connections.size(), kCalls / 4);
  for (const auto& informer : informers) informer->stop();
}

TEST_F(ClientTest, AnInformerListsWhenAStreamingListDoesNotEnd) {
  std::atomic<int> lists = 0;
  const Serving serving = serve([&](const auto& request, auto& response) {
    if (!request.has_param("watch")) {
      ++lists;
      response.set_content(
          fmt::format(R"({{"metadata":{{"resourceVersion":"9"}},"items":[{}]}})", podJson("a", 7)),
          "application/json");
      return;
    }
    // Objects, then bookmarks without end and without the mark.
    auto started = std::make_shared<bool>(false);
    response.set_chunked_content_provider(
        "application/json", [this, started](std::size_t, httplib::DataSink& sink) {
          const std::string text =
              *started ? eventJson("BOOKMARK", R"({"metadata":{"resourceVersion":"8"}})")
                       : eventJson("ADDED", podJson("a", 7));
          *started = true;
          sink.write(text.data(), text.size());
          std::this_thread::sleep_for(milliseconds(5));
          return !ending;
        });
  });
  WatchOptions options = quick();
  options.streaming_list_idle = milliseconds(100);
  Informer<Pod> pods(connect(), options);
  pods.start();
  EXPECT_TRUE(pods.waitForSync(kPatience));
  EXPECT_EQ(lists, 1);
  EXPECT_EQ(pods.size(), 1u);
  pods.stop();
}

TEST_F(ClientTest, HealthEndpointsAnswer) {
  HealthServer health(metrics);
  std::atomic<bool> ready = false;
  health.addLiveCheck("ping", [] { return true; });
  health.addReadyCheck("synced", [&] { return ready.load(); });
  health.addPage("/state", "application/json", [] { return std::string("{}"); });
  health.addPage("/broken", "application/json", [] { return failure("no answer"); });
  metrics.addText([] { return std::string("own_metric 1\n"); });
  const Result<int> bound = health.start("127.0.0.1", 0);
  ASSERT_TRUE(bound) << bound.error().message();
  httplib::Client http("127.0.0.1", *bound);
  EXPECT_EQ(http.Get("/healthz")->status, 200);
  EXPECT_EQ(http.Get("/livez")->body, "ok");
  EXPECT_EQ(http.Get("/readyz")->status, 503);
  EXPECT_NE(http.Get("/readyz")->body.find("[-]synced failed"), std::string::npos);
  ready = true;
  EXPECT_EQ(http.Get("/readyz")->status, 200);
  metrics.leading("lease", true);
  EXPECT_NE(http.Get("/metrics")->body.find("leader_election_master_status{name=\"lease\"} 1"),
            std::string::npos);
  EXPECT_TRUE(http.Get("/metrics")->body.ends_with("\nown_metric 1\n"));
  EXPECT_EQ(http.Get("/state")->body, "{}");
  EXPECT_EQ(http.Get("/state")->get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(http.Get("/broken")->status, 503);
  EXPECT_EQ(http.Get("/other")->status, 404);
  HealthServer second(metrics);
  EXPECT_FALSE(second.start("127.0.0.1", *bound));
}

TEST_F(ClientTest, LivenessSaysWhatIsWrong) {
  HealthServer health(metrics);
  std::atomic<bool> alive = true;
  health.addLiveCheck("engine", [&]() -> Result<void> {
    if (alive) return {};
    return failure("no worker has ended for 10 minutes");
  });
  const Result<int> bound = health.start("127.0.0.1", 0);
  ASSERT_TRUE(bound) << bound.error().message();
  httplib::Client http("127.0.0.1", *bound);
  EXPECT_EQ(http.Get("/healthz")->status, 200);
  alive = false;
  EXPECT_EQ(http.Get("/healthz")->status, 503);
  EXPECT_EQ(http.Get("/livez")->body,
            "[-]engine failed: no worker has ended for 10 minutes\ncheck failed\n");
  EXPECT_EQ(http.Get("/readyz")->status, 200);
}

int connectTo(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST_F(ClientTest, SlowConnectionsDoNotKeepProbesOut) {
  HealthServer health(metrics);
  std::mutex page_mutex;
  health.addPage("/slow", "text/plain", [&]() -> Result<std::string> {
    const std::scoped_lock lock(page_mutex);
    return std::string("slow");
  });
  const Result<int> bound = health.start("127.0.0.1", 0);
  ASSERT_TRUE(bound) << bound.error().message();
  std::unique_lock page_waits(page_mutex);
  std::vector<int> open;
  for (std::size_t i = 0; i < 2 * HealthServer::kMostConnections; ++i) {
    open.push_back(connectTo(*bound));
    // Nothing, half a request, or a page that is not made yet.
    const std::string_view text = i % 3 == 0   ? ""
                                  : i % 3 == 1 ? "GET /healthz HTTP/1.1\r\nHost:"
                                               : "GET /slow HTTP/1.1\r\n\r\n";
    if (!text.empty()) (void)!::send(open.back(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  httplib::Client http("127.0.0.1", *bound);
  http.set_read_timeout(kPatience);
  for (int i = 0; i < 5; ++i) {
    const auto answer = http.Get("/healthz");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
  }
  page_waits.unlock();
  EXPECT_EQ(http.Get("/slow")->body, "slow");
  for (const int fd : open) ::close(fd);
}

TEST_F(ClientTest, TheHealthServerRefusesWhatIsNoRequest) {
  HealthServer health(metrics);
  const Result<int> bound = health.start("127.0.0.1", 0);
  ASSERT_TRUE(bound) << bound.error().message();
  const auto ask = [&](const std::string& text) {
    const int fd = connectTo(*bound);
    (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    std::string answer;
    char piece[512];
    for (ssize_t got = 0; (got = ::recv(fd, piece, sizeof piece, 0)) > 0;)
      answer.append(piece, static_cast<std::size_t>(got));
    ::close(fd);
    return answer.substr(0, answer.find("\r\n"));
  };
  EXPECT_EQ(ask("nonsense\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(ask("POST /healthz HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(ask("GET /healthz?verbose HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
  EXPECT_EQ(ask(std::string(20'000, 'x')), "") << "too long";
}

}  // namespace
}  // namespace mbcas::kube
