// Programs in containers, by a server of the test's own that says what it is told to, to the byte.
// What API server and kubelet make of it is for test/cluster.
#include "mbcas/kube/exec.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "mbcas/kube/websocket.h"

namespace mbcas::kube {
namespace {

using namespace std::string_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::chrono::seconds kPatience{60};

// Accepts one connection after the other.
class ByteServer {
 public:
  class Connection {
   public:
    explicit Connection(int fd) : fd_(fd) {}
    ~Connection() { ::close(fd_); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    // Up to and with the text; "" at the end of the connection.
    std::string readUntil(const std::string& text) {
      std::string all;
      char byte = 0;
      while (!all.ends_with(text) && ::recv(fd_, &byte, 1, 0) == 1) all += byte;
      return all.ends_with(text) ? all : "";
    }
    std::string read(std::size_t bytes) {
      std::string all(bytes, '\0');
      const ssize_t got = ::recv(fd_, all.data(), bytes, MSG_WAITALL);
      all.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      return all;
    }
    void write(std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      }
    }

   private:
    int fd_;
  };

  explicit ByteServer(std::function<void(Connection&, const std::string& head)> serve)
      : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listening_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listening_, 8), 0);
    ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, serve = std::move(serve)] {
      for (;;) {
        const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        Connection connection(fd);
        const std::string head = connection.readUntil("\r\n\r\n");
        if (!head.empty()) serve(connection, head);
      }
    });
  }
  ~ByteServer() {
    ::shutdown(listening_, SHUT_RDWR);
    thread_.join();
    ::close(listening_);
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }

 private:
  int listening_;
  int port_ = 0;
  std::thread thread_;
};

std::string headerOf(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

std::string switching(const std::string& head, const std::string& protocol) {
  return fmt::format(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: {}\r\n\r\n",
      webSocketAccept(headerOf(head, "Sec-WebSocket-Key")), protocol);
}

std::string frame(char op, const std::string& payload) {
  return ""s + static_cast<char>(0x80 | op) + static_cast<char>(payload.size()) + payload;
}
std::string message(char channel, const std::string& payload) {
  return frame(2, channel + payload);
}

struct Ended {
  ApiResult<int> code = 0;
  std::string out;
  std::string complaint;
};

class ExecTest : public testing::Test {
 protected:
  Ended run(const std::string& url, Nanos idle = kPatience) {
    ClientConfig config;
    config.server = url;
    config.token = "secret";
    config.impersonate.user = "alice";
    Client client(loop, config, clock, {.user_agent = "test/1"});
    Ended ended;
    std::promise<void> done;
    const Exec exec(client,
                    {.name_space = "ns",
                     .pod = "p",
                     .container = "c",
                     .command = {"run", "a b&c"},
                     .idle_timeout = idle},
                    {.out = [&](std::string_view piece) { ended.out += piece; },
                     .done =
                         [&](ApiResult<int> code, std::string complaint) {
                           ended.code = std::move(code);
                           ended.complaint = std::move(complaint);
                           done.set_value();
                         }});
    EXPECT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
    return ended;
  }

  SystemClock clock;
  HttpLoop loop;
};

constexpr const char* kSuccess = R"({"metadata":{},"status":"Success"})";

TEST_F(ExecTest, AProgramRuns) {
  for (const std::string protocol : {"v5.channel.k8s.io", "v4.channel.k8s.io"}) {
    std::string head;
    std::string pong;
    std::string close;
    Ended ended;
    {
      const ByteServer server([&](ByteServer::Connection& connection, const std::string& request) {
        head = request;
        // In the first bytes behind the head there is some of the stream.
        connection.write(switching(request, protocol) + message(1, "") + message(1, "hel"));
        connection.write(frame(9, "ping"));
        pong = connection.read(10);
        connection.write(message(2, "careful\n") + message(1, "lo") + message('\xff', "\x01"));
        connection.write(message(3, kSuccess) + frame(8, "\x03\xe8"));
        close = connection.read(8);
      });
      ended = run(server.url());
    }
    ASSERT_TRUE(ended.code) << ended.code.error().describe();
    EXPECT_EQ(*ended.code, 0);
    EXPECT_EQ(ended.out, "hello");
    EXPECT_EQ(ended.complaint, "careful\n");
    EXPECT_TRUE(
        head.starts_with("GET /api/v1/namespaces/ns/pods/p/exec?stdout=true&stderr=true&"
                         "container=c&command=run&command=a%20b%26c HTTP/1.1\r\n"))
        << head;
    for (const char* line :
         {"Connection: Upgrade", "Upgrade: websocket", "User-Agent: test/1",
          "Authorization: Bearer secret", "Impersonate-User: alice", "Sec-WebSocket-Version: 13",
          "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io"}) {
      EXPECT_NE(head.find(line + "\r\n"s), std::string::npos) << line << " in " << head;
    }
    ASSERT_EQ(pong.size(), 10U);
    EXPECT_EQ(pong.substr(0, 2), "\x8a\x84");
    for (std::size_t i = 0; i < 4; ++i) pong[6 + i] = static_cast<char>(pong[6 + i] ^ pong[2 + i]);
    EXPECT_EQ(pong.substr(6), "ping");
    EXPECT_EQ(close.substr(0, 2), "\x88\x82");
  }
}

TEST_F(ExecTest, ItsExitCode) {
  const ByteServer server([&](ByteServer::Connection& connection, const std::string& request) {
    connection.write(switching(request, "v4.channel.k8s.io") + message(2, "no such file\n") +
                     frame(2,
                           "\x03"
                           R"({"status":"Failure","message":"exit","reason":"NonZeroExitCode",)") +
                     message(3, R"("details":{"causes":[{"reason":"ExitCode","message":"7"}]}})"));
  });
  const Ended ended = run(server.url());
  ASSERT_TRUE(ended.code) << ended.code.error().describe();
  EXPECT_EQ(*ended.code, 7);
  EXPECT_EQ(ended.complaint, "no such file\n");
}

TEST_F(ExecTest, WhyItDidNotRun) {
  const ApiResult<int> missing = readExecStatus(
      R"({"status":"Failure","message":"container not\nfound","reason":"InternalError","code":500})");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().describe(), "500 InternalError: container not found");
  for (const char* text : {"", "[]", "x", R"({"status":"Failure"})", R"({"details":{"causes":1}})",
                           R"({"status":"Failure","reason":"NonZeroExitCode",
                               "details":{"causes":[{"reason":"ExitCode","message":"x"}]}})"}) {
    EXPECT_FALSE(readExecStatus(text)) << text;
  }
}

TEST_F(ExecTest, ARefusalIsTheServers) {
  const std::string body = R"({"kind":"Status","status":"Failure","code":403,
      "reason":"Forbidden","message":"pods \"p\" is forbidden: no pods/exec"})";
  for (const bool chunked : {false, true}) {
    const ByteServer server([&](ByteServer::Connection& connection, const std::string&) {
      connection.write("HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n");
      if (chunked) {
        connection.write(fmt::format("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                                     body.size(), body));
      } else {
        connection.write(fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body));
      }
      connection.readUntil("never");  // it does not close
    });
    const Ended ended = run(server.url());
    ASSERT_FALSE(ended.code);
    EXPECT_EQ(ended.code.error().code, 403);
    EXPECT_EQ(ended.code.error().message, "pods \"p\" is forbidden: no pods/exec");
  }
}

TEST_F(ExecTest, ServersThatDoOtherThings) {
  struct Case {
    std::function<std::string(const std::string& head)> answer;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](const std::string& head) { return switching(head, "v1.channel.k8s.io") + frame(2, "x"); },
       "the server speaks neither v5.channel.k8s.io nor v4.channel.k8s.io"},
      {[](const std::string&) {
         return switching("\r\nSec-WebSocket-Key: other\r\n", "v5.channel.k8s.io") + frame(2, "x");
       },
       "the server changed to a protocol that is not WebSocket"},
      {[](const std::string& head) {
         return switching(head, "v5.channel.k8s.io") + "\x81\x85xxxxxxxxx";
       },
       "a server must not mask its frames"},
      {[](const std::string& head) {
         return switching(head, "v5.channel.k8s.io") + message(1, "x");
       },
       "the connection ended before the program did"},
      {[](const std::string& head) { return switching(head, "v5.channel.k8s.io"); },
       "the connection ended before the program did"},
      {[](const std::string&) { return "SSH-2.0\r\n\r\n"s; },
       "not an HTTP/1.1 response: \"SSH-2.0\""},
      {[](const std::string&) { return ""s; },
       "the connection ended before the end of the response"},
  };
  for (const Case& each : cases) {
    const ByteServer server([&](ByteServer::Connection& connection, const std::string& head) {
      connection.write(each.answer(head));
    });
    const Ended ended = run(server.url());
    ASSERT_FALSE(ended.code) << each.message;
    EXPECT_FALSE(ended.code.error().answered());
    EXPECT_EQ(ended.code.error().message, each.message);
  }
}

TEST_F(ExecTest, AServerThatDoesNotChangeTheProtocol) {
  const ByteServer server([&](ByteServer::Connection& connection, const std::string&) {
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  const Ended ended = run(server.url());
  ASSERT_FALSE(ended.code);
  EXPECT_EQ(ended.code.error().code, 200);
  EXPECT_EQ(ended.out, "");
}

TEST_F(ExecTest, SilenceEndsIt) {
  const ByteServer server([&](ByteServer::Connection& connection, const std::string& head) {
    connection.write(switching(head, "v5.channel.k8s.io") + message(1, "x"));
    connection.readUntil("never");
  });
  const Ended ended = run(server.url(), milliseconds(500));
  ASSERT_FALSE(ended.code);
  EXPECT_EQ(ended.code.error().reason, ApiError::kTimeout);
}

TEST_F(ExecTest, NobodyListens) {
  const Ended ended = run("http://127.0.0.1:1");
  ASSERT_FALSE(ended.code);
  EXPECT_EQ(ended.code.error().reason, ApiError::kConnect);
}

TEST_F(ExecTest, GivingItUpClosesTheConnection) {
  std::promise<void> gone;
  const ByteServer server([&](ByteServer::Connection& connection, const std::string& head) {
    connection.write(switching(head, "v5.channel.k8s.io") + message(1, "x"));
    connection.readUntil("never");
    gone.set_value();
  });
  ClientConfig config;
  config.server = server.url();
  Client client(loop, config, clock);
  std::promise<void> begun;
  std::atomic<bool> ended = false;
  {
    const Exec exec(client, {.name_space = "ns", .pod = "p", .command = {"run"}},
                    {.out = [&](std::string_view) { begun.set_value(); },
                     .done = [&](auto, auto) { ended = true; }});
    ASSERT_EQ(begun.get_future().wait_for(kPatience), std::future_status::ready);
  }
  EXPECT_EQ(gone.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_FALSE(ended) << "who gives it up does not wait for it";
}

TEST_F(ExecTest, ManyAtOnceAndMuchOfIt) {
  // More than a pipe holds, next to ordinary requests on the same loop.
  const std::string large(100'000, 'y');
  std::string bytes;
  for (int i = 0; i < 30; ++i) {
    bytes += "\x82\x7f"s + std::string(5, '\0') + "\x01\x86\xa1" + "\x01" + large;
  }
  const ByteServer server([&](ByteServer::Connection& connection, const std::string& head) {
    connection.write(switching(head, "v5.channel.k8s.io") + bytes + message(3, kSuccess));
  });
  ClientConfig config;
  config.server = server.url();
  Client client(loop, config, clock);
  constexpr int kMany = 4;
  std::atomic<std::size_t> got = 0;
  std::promise<void> all;
  std::atomic<int> good = 0;
  std::atomic<int> left = kMany;
  std::vector<std::unique_ptr<Exec>> execs;
  for (int i = 0; i < kMany; ++i) {
    execs.push_back(std::make_unique<Exec>(
        client, ExecRequest{.name_space = "ns", .pod = "p", .command = {"run"}},
        ExecHandlers{.out = [&](std::string_view piece) { got += piece.size(); },
                     .done =
                         [&](ApiResult<int> code, const std::string&) {
                           if (code) good += 1;
                           if (--left == 0) all.set_value();
                         }}));
  }
  ASSERT_EQ(all.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(good, kMany);
  EXPECT_EQ(got, kMany * 30 * large.size());
}

}  // namespace
}  // namespace mbcas::kube
