#include "mbcas/kube/http_answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mbcas::kube {
namespace {

struct Seen {
  int status = 0;
  std::string body;
  std::string error;  // of a piece, or of the end
  bool complete = false;
  bool operator==(const Seen&) const = default;
};

Seen read(std::string_view bytes, std::size_t piece) {
  Seen seen;
  HttpAnswer answer([&](int status, std::string_view part) {
    EXPECT_EQ(status, answer.status());
    seen.body += part;
    return true;
  });
  for (; !bytes.empty() && seen.error.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    if (const Result<bool> done = answer.receive(bytes.substr(0, piece)); !done) {
      seen.error = done.error().message();
    }
  }
  seen.status = answer.status();
  seen.complete = answer.complete();
  if (seen.error.empty()) {
    if (const Result<void> end = answer.finish(); !end) seen.error = end.error().message();
  }
  return seen;
}

// The same in any pieces.
Seen read(const std::string& bytes) {
  const Seen whole = read(bytes, bytes.size());
  for (const std::size_t piece : {1U, 2U, 3U, 7U}) EXPECT_EQ(read(bytes, piece), whole) << bytes;
  return whole;
}

TEST(HttpAnswerTest, AfterTheChangeOfProtocolAllIsItsStream) {
  const Seen seen = read(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nstream"
      "\r\n\r\nof any length");
  EXPECT_EQ(seen, (Seen{101, "stream\r\n\r\nof any length", "", false}));
}

TEST(HttpAnswerTest, BodiesOfEveryKind) {
  EXPECT_EQ(read("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nbody"),
            (Seen{403, "body", "", true}));
  EXPECT_EQ(read("HTTP/1.1 403 \r\ncontent-length: 0\r\n\r\n"), (Seen{403, "", "", true}));
  EXPECT_EQ(read("HTTP/1.0 500 No\r\n\r\nuntil it ends"), (Seen{500, "until it ends", "", false}));
  EXPECT_EQ(read("HTTP/1.1 204 Nothing\r\n\r\n"), (Seen{204, "", "", true}));
  EXPECT_EQ(read("HTTP/1.1 403 F\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0A;x=y\r\n"
                 "0123456789\r\n0\r\nTrailer: 1\r\n\r\n"),
            (Seen{403, "abc0123456789", "", true}));
  EXPECT_EQ(read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 Who\r\nContent-Length: 1\r\n\r\nx"),
            (Seen{401, "x", "", true}));
}

TEST(HttpAnswerTest, HeadersByTheirName) {
  HttpAnswer answer([](int, std::string_view) { return true; });
  ASSERT_TRUE(answer.receive("HTTP/1.1 429 Slow\r\nRetry-After:\t 5 \r\nVia: a\r\nVIA: b\r\n\r\n"));
  EXPECT_EQ(answer.header("retry-after"), "5");
  EXPECT_EQ(answer.header("via"), "a, b");
  EXPECT_EQ(answer.header("nothing"), "");
}

TEST(HttpAnswerTest, RefusesWhatIsNoAnswer) {
  for (const auto& [bytes, error] : std::vector<std::pair<std::string, std::string>>{
           {"SSH-2.0-OpenSSH\r\n\r\n", "not an HTTP/1.1 response: \"SSH-2.0-OpenSSH\""},
           {"HTTP/1.1 99 Low\r\n\r\n", "not an HTTP/1.1 response: \"HTTP/1.1 99 Low\""},
           {"HTTP/1.1 2000\r\n\r\n", "not an HTTP/1.1 response: \"HTTP/1.1 2000\""},
           {"HTTP/2 200\r\n\r\n", "not an HTTP/1.1 response: \"HTTP/2 200\""},
           {"HTTP/1.1 200 OK\r\nwithout\x01 end\r\n\r\n", "no header: \"without? end\""},
           {"HTTP/1.1 200 OK\r\nName : x\r\n\r\n", "no header: \"Name : x\""},
           {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no length: \"-1\""},
           {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "no length: \"1, 2\""},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "an unknown coding: \"gzip\""},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "not the size of a chunk: \"x\""},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            "a chunk is longer than its size"},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\n",
            "a line of a chunk ends without a carriage return"},
           {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            "the connection ended before the end of the response"},
           {"HTTP/1.1 200 OK\r\nContent-Le", "the connection ended before the end of the response"},
       }) {
    EXPECT_EQ(read(bytes).error, error);
  }
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nx: " + std::string(70'000, 'x')).error,
            "the head of the response is too long");
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", 100).error,
            "data after the end of the response");
}

TEST(HttpAnswerTest, WhoTakesTheBodyCanEndIt) {
  HttpAnswer answer([](int, std::string_view) { return false; });
  const Result<bool> taken = answer.receive("HTTP/1.1 101 S\r\n\r\nx");
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
}

}  // namespace
}  // namespace mbcas::kube
