#include "mbcas/ui/request.h"

#include <gtest/gtest.h>

namespace mbcas::ui {
namespace {

std::string errorOf(std::string_view bytes) {
  const auto request = parseRequest(bytes);
  return request ? "" : request.error().message();
}

TEST(Request, IsReadWithItsFieldsAndItsBody) {
  const auto request = parseRequest(
      "POST /api/explain?x=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Length: 4\r\n"
      "X-Two:\t b \r\n\r\nbody");
  ASSERT_TRUE(request) << request.error().message();
  ASSERT_TRUE(*request);
  EXPECT_EQ((*request)->method, "POST");
  EXPECT_EQ((*request)->path, "/api/explain");
  EXPECT_EQ((*request)->header("host"), "127.0.0.1:80");
  EXPECT_EQ((*request)->header("x-two"), "b");
  EXPECT_EQ((*request)->header("x-three"), "");
  EXPECT_EQ((*request)->body, "body");
}

// However the bytes arrive, the answer is "not yet" until the last one.
TEST(Request, IsNotCompleteBeforeItsLastByte) {
  const std::string whole = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto request = parseRequest(std::string_view(whole).substr(0, n));
    ASSERT_TRUE(request) << n << ": " << request.error().message();
    EXPECT_FALSE(*request) << n;
  }
  EXPECT_TRUE(*parseRequest(whole));
}

TEST(Request, RefusesWhatBrowsersDoNotSend) {
  EXPECT_EQ(errorOf("GET\r\n\r\n"), "not a request line");
  EXPECT_EQ(errorOf("GET / HTTP/2\r\n\r\n"), "not HTTP/1.1");
  EXPECT_EQ(errorOf("G\"T / HTTP/1.1\r\n\r\n"), "not a method");
  EXPECT_EQ(errorOf("GET http://a/ HTTP/1.1\r\n\r\n"), "not a path");
  EXPECT_EQ(errorOf("GET /a b HTTP/1.1\r\n\r\n"), "not a path");
  EXPECT_EQ(errorOf("GET /\x01 HTTP/1.1\r\n\r\n"), "not a request line");
  EXPECT_EQ(errorOf("GET / HTTP/1.1\r\n folded\r\n\r\n"), "not a header field");
  EXPECT_EQ(errorOf("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), "not a header field");
  EXPECT_EQ(errorOf("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"), "host is repeated");
  EXPECT_EQ(errorOf("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "no transfer encodings");
  EXPECT_EQ(errorOf("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
            "content-length is not a number");
  EXPECT_EQ(errorOf("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
            "more than one request on a connection");
}

TEST(Request, IsBounded) {
  const std::string head = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(errorOf(head + "A: " + std::string(kLongestHead, 'a')),
            "a header of more than 8192 bytes");
  std::string many = head;
  for (int i = 0; i < 65; ++i) many += "a" + std::to_string(i) + ": b\r\n";
  EXPECT_EQ(errorOf(many + "\r\n"), "more than 64 header fields");
  EXPECT_EQ(errorOf(head + "Content-Length: 1048577\r\n\r\n"), "more than 1048576 bytes");
}

}  // namespace
}  // namespace mbcas::ui
