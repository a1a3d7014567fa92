#include "mbcas/ui/server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <list>

#include "mbcas/ui/page.h"

namespace mbcas::ui {
namespace {

// A connection as a browser would have it. Whatever fails reads as the end.
class Caller {
 public:
  explicit Caller(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval most{.tv_sec = 120, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Caller() { ::close(fd_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void say(const std::string& text) {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // All that came so far, once `wanted` is in it or the connection has ended.
  const std::string& until(std::string_view wanted) {
    char piece[4096];
    while (heard_.find(wanted) == std::string::npos) {
      const ssize_t got = ::recv(fd_, piece, sizeof piece, 0);
      if (got <= 0) break;
      heard_.append(piece, static_cast<std::size_t>(got));
    }
    return heard_;
  }
  const std::string& all() { return until("\x01"); }

 private:
  int fd_;
  std::string heard_;
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    server.answer("/api/twice", [](const std::string& body) -> Result<std::string> {
      if (body.empty()) return failure("nothing to repeat");
      return body + body;
    });
    const Result<void> started = server.start(0);
    ASSERT_TRUE(started) << started.error().message();
    host = fmt::format("127.0.0.1:{}", server.port());
  }
  std::string ask(const std::string& head, const std::string& body = "") {
    Caller caller(server.port());
    caller.say(withHost(head, body));
    return caller.all();
  }
  std::string withHost(const std::string& head, const std::string& body = "") const {
    std::string text = head + "\r\nHost: " + host;
    if (head.starts_with("POST")) {
      text += fmt::format("\r\nOrigin: http://{}\r\nContent-Length: {}", host, body.size());
    }
    return text + "\r\n\r\n" + body;
  }
  std::string token() const {
    const std::string address = server.address();
    return address.substr(address.find('#') + 1);
  }
  std::string session() {
    const std::string answer = ask("POST /api/session HTTP/1.1", token());
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }
  std::string stream(const std::string& with, const std::string& more = "") const {
    return withHost("GET /api/events HTTP/1.1\r\nAuthorization: Bearer " + with + more);
  }

  Server server;
  std::string host;
};

TEST_F(ServerTest, ServesThePageAndProtectsIt) {
  const std::string page = ask("GET / HTTP/1.1");
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\n")) << page;
  EXPECT_TRUE(contains(page, "<!doctype html>"));
  for (const char* field : {"script-src 'self'", "require-trusted-types-for 'script'", "nosniff",
                            "no-referrer", "no-store", "frame-ancestors 'none'"}) {
    EXPECT_TRUE(contains(page, field)) << field;
  }
  EXPECT_FALSE(contains(page, "unsafe"));
  EXPECT_FALSE(contains(page, "Access-Control"));
  EXPECT_FALSE(contains(page, "Set-Cookie"));
  for (const Asset& asset : assets()) {
    const std::string answer = ask(fmt::format("GET {} HTTP/1.1", asset.path));
    EXPECT_TRUE(answer.ends_with(asset.body)) << asset.path;
    EXPECT_TRUE(contains(answer, asset.content_type)) << asset.path;
  }
}

TEST_F(ServerTest, RefusesWithTheRightStatus) {
  const auto status = [](const std::string& answer) { return answer.substr(9, 3); };
  EXPECT_EQ(status(ask("GET /../etc/passwd HTTP/1.1")), "404");
  EXPECT_EQ(status(ask("DELETE / HTTP/1.1")), "405");
  EXPECT_EQ(status(ask("POST /api/events HTTP/1.1")), "405");
  EXPECT_EQ(status(ask("GET /api/twice HTTP/1.1")), "405");
  EXPECT_EQ(status(ask("nonsense")), "400");
  EXPECT_EQ(status(ask("GET /api/events HTTP/1.1")), "401");
  EXPECT_EQ(status(ask("POST /api/twice HTTP/1.1", "a")), "401");
  EXPECT_EQ(status(ask("POST /api/session HTTP/1.1", "wrong")), "403");
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\nOrigin: http://evil.example")), "403");
  host = "evil.example";
  EXPECT_EQ(status(ask("GET / HTTP/1.1")), "403");
}

TEST_F(ServerTest, AnswersQuestionsOfASession) {
  const std::string good = session();
  const std::string head = "POST /api/twice HTTP/1.1\r\nAuthorization: Bearer " + good;
  EXPECT_TRUE(ask(head, "ab").ends_with("\r\n\r\nabab"));
  const std::string refused = ask(head);
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 422 ")) << refused;
  EXPECT_TRUE(contains(refused, "nothing to repeat"));
  EXPECT_TRUE(
      ask("POST /api/none HTTP/1.1\r\nAuthorization: Bearer " + good).starts_with("HTTP/1.1 404 "));
}

TEST_F(ServerTest, StreamsWhatWasAndWhatComes) {
  server.describe(R"({"name":"x"})");
  server.publish("first");
  server.publish("second");
  const std::string good = session();
  Caller caller(server.port());
  caller.say(stream(good));
  EXPECT_TRUE(contains(caller.until("id: 2\nevent: frame\ndata: second\n\n"),
                       "event: source\ndata: {\"name\":\"x\"}\n\n"
                       "id: 1\nevent: frame\ndata: first\n\n"));
  server.setStatus("gone");
  EXPECT_TRUE(contains(caller.until("gone\n\n"), "event: status\ndata: gone\n\n"));
  server.publish("third");
  EXPECT_TRUE(contains(caller.until("third\n\n"), "id: 3\n"));

  Caller again(server.port());
  again.say(stream(good, "\r\nLast-Event-ID: 2"));
  EXPECT_TRUE(contains(again.until("third\n\n"), "id: 3\n"));
  EXPECT_FALSE(contains(again.until("third\n\n"), "id: 2\n"));
}

TEST_F(ServerTest, KeepsThePicturesOfARecordingAndOfOthersTheNewest) {
  server.publishPicture("one");
  server.publishPicture("two");
  server.publish("state");
  server.setCluster("old");
  server.setCluster("new");
  const std::string good = session();
  Caller caller(server.port());
  caller.say(stream(good));
  const std::string& heard = caller.until("id: 3\nevent: frame\ndata: state\n\n");
  EXPECT_TRUE(contains(heard,
                       "id: 1\nevent: cluster\ndata: one\n\n"
                       "id: 2\nevent: cluster\ndata: two\n\n"))
      << heard;
  EXPECT_TRUE(contains(heard, "event: cluster\ndata: new\n\n"));
  EXPECT_FALSE(contains(heard, "old"));
}

TEST_F(ServerTest, SendsALongHistoryToAReaderThatTakesItsTime) {
  const std::string good = session();
  Caller caller(server.port());
  for (int i = 0; i < 200; ++i) server.publish(std::string(100'000, 'x'));
  server.publish("last");
  caller.say(stream(good));
  EXPECT_TRUE(contains(caller.until("data: last\n\n"), "id: 201\n"));
}

TEST_F(ServerTest, BoundsConnectionsAndStreams) {
  const std::string good = session();
  std::list<Caller> callers;
  for (std::size_t i = 0; i < Server::kMostStreams; ++i) {
    callers.emplace_back(server.port()).say(stream(good));
    EXPECT_TRUE(contains(callers.back().until("event: status"), "200 OK"));
  }
  EXPECT_TRUE(
      ask("GET /api/events HTTP/1.1\r\nAuthorization: Bearer " + good).starts_with("HTTP/1.1 503"));
  // Silent connections do not keep others out: the oldest one makes room.
  std::list<Caller> silent;
  for (std::size_t i = 0; i < Server::kMostConnections; ++i) silent.emplace_back(server.port());
  EXPECT_TRUE(ask("GET / HTTP/1.1").starts_with("HTTP/1.1 200"));
  // And no stream ends for them.
  server.publish("still there");
  for (Caller& caller : callers) EXPECT_TRUE(contains(caller.until("still there"), "still there"));
}

TEST(Server, SaysWhenThePortIsTaken) {
  Server first;
  ASSERT_TRUE(first.start(0));
  Server second;
  const Result<void> started = second.start(first.port());
  ASSERT_FALSE(started);
  EXPECT_TRUE(contains(started.error().message(),
                       fmt::format("cannot listen on 127.0.0.1:{}", first.port())));
}

}  // namespace
}  // namespace mbcas::ui
