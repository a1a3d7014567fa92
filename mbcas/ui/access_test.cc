#include "mbcas/ui/access.h"

#include <gtest/gtest.h>

namespace mbcas::ui {
namespace {

Request request(std::string path, std::map<std::string, std::string, std::less<>> headers,
                std::string method = "GET") {
  return {.method = std::move(method), .path = std::move(path), .headers = std::move(headers)};
}

class AccessTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(access.open(4711)); }
  std::string token() const {
    const std::string address = access.address();
    return address.substr(address.find('#') + 1);
  }
  bool has(const std::string& authorization) const {
    return access.hasSession(request("/api/events", {{"authorization", authorization}}));
  }
  Access access;
};

TEST_F(AccessTest, ATokenIsGoodOnce) {
  const std::string first = token();
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(access.address(), "http://127.0.0.1:4711/#" + first);
  EXPECT_FALSE(access.exchange(""));
  EXPECT_FALSE(access.exchange(first.substr(1)));
  EXPECT_EQ(token(), first);
  const auto session = access.exchange(first);
  ASSERT_TRUE(session);
  EXPECT_NE(*session, first);
  EXPECT_FALSE(access.exchange(first));
  EXPECT_NE(token(), first);
  EXPECT_TRUE(has("Bearer " + *session));
  EXPECT_FALSE(has(*session));
  EXPECT_FALSE(has("Bearer " + first));
  EXPECT_FALSE(has("Bearer " + token()));
  EXPECT_FALSE(has("Bearer "));
  EXPECT_FALSE(access.hasSession(request("/api/events", {})));
}

TEST_F(AccessTest, TheOldestSessionEnds) {
  const std::string first = *access.exchange(token());
  for (std::size_t i = 1; i < Access::kMostSessions; ++i) {
    ASSERT_TRUE(access.exchange(token()));
  }
  EXPECT_TRUE(has("Bearer " + first));
  ASSERT_TRUE(access.exchange(token()));
  EXPECT_FALSE(has("Bearer " + first));
}

TEST_F(AccessTest, OnlyThisPageMayAsk) {
  const std::string host = "127.0.0.1:4711";
  const std::string origin = "http://" + host;
  EXPECT_FALSE(access.refusal(request("/", {{"host", host}})));
  EXPECT_FALSE(access.refusal(request("/", {{"host", "localhost:4711"}})));
  EXPECT_FALSE(
      access.refusal(request("/api/events", {{"host", host}, {"sec-fetch-site", "same-origin"}})));
  EXPECT_FALSE(
      access.refusal(request("/api/session", {{"host", host}, {"origin", origin}}, "POST")));
  // A link on any page may lead here.
  EXPECT_FALSE(access.refusal(request("/", {{"host", host}, {"sec-fetch-site", "cross-site"}})));

  EXPECT_TRUE(access.refusal(request("/", {})));
  EXPECT_TRUE(access.refusal(request("/", {{"host", "127.0.0.1"}})));
  EXPECT_TRUE(access.refusal(request("/", {{"host", "evil.example:4711"}})));
  EXPECT_TRUE(access.refusal(request("/", {{"host", host}, {"origin", "http://evil.example"}})));
  EXPECT_TRUE(access.refusal(request("/", {{"host", host}, {"origin", "null"}})));
  EXPECT_TRUE(access.refusal(request("/", {{"host", host}, {"origin", "http://localhost:4711"}})));
  EXPECT_TRUE(
      access.refusal(request("/api/events", {{"host", host}, {"sec-fetch-site", "cross-site"}})));
  EXPECT_TRUE(
      access.refusal(request("/api/events", {{"host", host}, {"sec-fetch-site", "same-site"}})));
  EXPECT_TRUE(access.refusal(request("/api/session", {{"host", host}}, "POST")));
}

TEST(Secret, AreCompared) {
  EXPECT_TRUE(sameSecret("ab", "ab"));
  EXPECT_FALSE(sameSecret("ab", "ac"));
  EXPECT_FALSE(sameSecret("ab", "abc"));
  EXPECT_FALSE(sameSecret("", ""));
  EXPECT_NE(randomSecret(), randomSecret());
}

}  // namespace
}  // namespace mbcas::ui
