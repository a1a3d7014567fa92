#include "mbcas/kube/websocket.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace mbcas::kube {
namespace {

using namespace std::string_literals;
using Op = WebSocketOp;

struct Seen {
  std::vector<std::pair<Op, std::string>> messages;
  std::string error;
  bool closed = false;
  bool operator==(const Seen&) const = default;
};

Seen read(const std::vector<std::string>& pieces, std::size_t longest = 1 << 20) {
  Seen seen;
  WebSocketReader reader(
      [&](const WebSocketReader::Message& message) -> Result<void> {
        seen.messages.emplace_back(message.op, message.payload);
        return {};
      },
      longest);
  for (const std::string& piece : pieces) {
    if (const Result<void> done = reader.receive(piece); !done) {
      seen.error = done.error().message();
      break;
    }
  }
  seen.closed = reader.closed();
  return seen;
}

// As a server writes it.
std::string frame(Op op, std::string_view payload, bool final = true) {
  std::string out(1, static_cast<char>((final ? 0x80U : 0U) | static_cast<unsigned>(op)));
  const std::size_t size = payload.size();
  const int bytes = size < 126 ? 0 : size < 0x10000 ? 2 : 8;
  out += static_cast<char>(bytes == 0 ? size : bytes == 2 ? 126 : 127);
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i));
  return out + std::string(payload);
}

TEST(WebSocketTest, TheHandshakeOfTheRfc) {
  // RFC 6455, section 1.3.
  EXPECT_EQ(webSocketAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  WebSocketKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i + 1);
  EXPECT_EQ(webSocketKey(key), "AQIDBAUGBwgJCgsMDQ4PEA==");
}

TEST(WebSocketTest, WritesTheFrameOfTheRfc) {
  // Section 5.7: "Hello" with the mask 0x37fa213d.
  EXPECT_EQ(webSocketFrame(Op::kText, "Hello", 0x37fa213d),
            "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"s);
  EXPECT_EQ(webSocketFrame(Op::kPong, "", 1), "\x8a\x80\x00\x00\x00\x01"s);
  const std::string medium = webSocketFrame(Op::kBinary, std::string(300, 'x'), 0);
  EXPECT_EQ(medium.substr(0, 8), "\x82\xfe\x01\x2c\x00\x00\x00\x00"s);
  EXPECT_EQ(medium.substr(8), std::string(300, 'x')) << "a mask of zeros changes nothing";
  EXPECT_EQ(webSocketFrame(Op::kBinary, std::string(70'000, 'x'), 0).substr(0, 10),
            "\x82\xff\x00\x00\x00\x00\x00\x01\x11\x70"s);
}

TEST(WebSocketTest, ReadsTheFramesOfTheRfc) {
  const Seen whole = read({"\x81\x05Hello"s});
  EXPECT_EQ(whole.error, "");
  EXPECT_EQ(whole.messages, (decltype(whole.messages){{Op::kText, "Hello"}}));
  // In two pieces, with a ping between them.
  const Seen pieces = read({"\x01\x03Hel\x89\x02hi\x80\x02lo"s});
  EXPECT_EQ(pieces.error, "");
  EXPECT_EQ(pieces.messages, (decltype(pieces.messages){{Op::kPing, "hi"}, {Op::kText, "Hello"}}));
}

TEST(WebSocketTest, ReadsEveryLength) {
  for (const std::size_t size : {0U, 1U, 125U, 126U, 127U, 65'535U, 65'536U, 200'000U}) {
    const std::string payload(size, 'a');
    const Seen seen = read({frame(Op::kBinary, payload)});
    ASSERT_EQ(seen.error, "") << size;
    ASSERT_EQ(seen.messages.size(), 1U) << size;
    EXPECT_EQ(seen.messages[0].second, payload) << size;
  }
}

TEST(WebSocketTest, NothingIsReadAfterTheEnd) {
  const Seen seen = read({frame(Op::kClose, "\x03\xe8"s) + "what follows is no frame"});
  EXPECT_TRUE(seen.closed);
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.messages, (decltype(seen.messages){{Op::kClose, "\x03\xe8"s}}));
}

TEST(WebSocketTest, RefusesWhatTheProtocolForbids) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\xc1\x05Hello"s, "a frame uses an extension that was not asked for"},
      {"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"s, "a server must not mask its frames"},
      {"\x82\x7e\x00\x05Hello"s, "the length of a frame is not in its shortest form"},
      {"\x82\x7f\x00\x00\x00\x00\x00\x00\x01\x00"s,
       "the length of a frame is not in its shortest form"},
      {"\x83\x01x"s, "unknown code of a frame: 3"},
      {"\x8f\x01x"s, "unknown code of a frame: 15"},
      {"\x09\x01x"s, "a control frame is longer than 125 bytes, or in pieces"},
      {"\x89\x7e\x00\x7e"s, "a control frame is longer than 125 bytes, or in pieces"},
      {"\x80\x01x"s, "a frame continues no message"},
      {"\x01\x01x\x81\x01y"s, "a message begins before the one before has ended"},
      {frame(Op::kBinary, std::string(101, 'x')), "a message is longer than 100 bytes"},
      {frame(Op::kBinary, std::string(60, 'x'), false) +
           frame(Op::kContinuation, std::string(41, 'x')),
       "a message is longer than 100 bytes"},
      {"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"s, "a message is longer than 100 bytes"},
  };
  for (const auto& [bytes, error] : cases) EXPECT_EQ(read({bytes}, 100).error, error);
}

TEST(WebSocketTest, WhoTakesMessagesCanEndTheReading) {
  WebSocketReader reader([](const auto&) -> Result<void> { return failure("enough"); });
  const Result<void> done = reader.receive(frame(Op::kBinary, "x"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "enough");
}

RC_GTEST_PROP(WebSocketProperties, AnyChunkingGivesTheSame,
              (const std::vector<std::string>& sent)) {
  std::string bytes;
  std::vector<std::pair<Op, std::string>> expected;
  for (const std::string& payload : sent) {
    const std::size_t half = payload.size() / 2;
    if (*rc::gen::arbitrary<bool>()) {
      bytes += frame(Op::kBinary, payload);
    } else {
      bytes += frame(Op::kBinary, payload.substr(0, half), false) + frame(Op::kPing, "p") +
               frame(Op::kContinuation, payload.substr(half));
      expected.emplace_back(Op::kPing, "p");
    }
    expected.emplace_back(Op::kBinary, payload);
  }
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 9);
    pieces.push_back(bytes.substr(at, size));
    at += size;
  }
  const Seen seen = read(pieces);
  RC_ASSERT(seen.error.empty());
  RC_ASSERT(seen.messages == expected);
}

}  // namespace
}  // namespace mbcas::kube
