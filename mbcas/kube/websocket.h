// The WebSocket protocol, RFC 6455, as a client speaks it: pure, without a connection. exec.h uses
// it for the streams of a program in a container.
//
// libcurl has a WebSocket interface of its own, but Debian 12's is built without it, it was an
// experiment in that version, and it cannot be used by a loop that carries other transfers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"

namespace mbcas::kube {

using WebSocketKey = std::array<unsigned char, 16>;  // random, another one for each connection

// The value of Sec-WebSocket-Key, and what the server has to answer in Sec-WebSocket-Accept.
std::string webSocketKey(const WebSocketKey& key);
std::string webSocketAccept(std::string_view key);

enum class WebSocketOp : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};

// A whole message as a client sends it, in one frame. `mask` must not be foreseeable.
std::string webSocketFrame(WebSocketOp op, std::string_view payload, std::uint32_t mask);

// What a server sends, byte by byte, into messages. Any chunking of the bytes gives the same.
class WebSocketReader {
 public:
  struct Message {
    WebSocketOp op = WebSocketOp::kBinary;  // no continuation: those are put together
    std::string_view payload;               // during the call
  };
  // The messages, pings and the end among them. An error ends the reading.
  using Take = std::function<Result<void>(const Message&)>;

  explicit WebSocketReader(Take take, std::size_t longest_message = 4 << 20)
      : take_(std::move(take)), longest_(longest_message) {}

  // After an error the reader is of no more use. What follows the closing frame is ignored.
  Result<void> receive(std::string_view piece);
  bool closed() const { return closed_; }  // the server has said that it is the end

 private:
  Result<void> header();
  Result<void> frame();

  Take take_;
  std::size_t longest_;
  std::string head_;           // of the frame, as far as it has come
  std::size_t head_size_ = 2;  // as far as that is known
  std::uint64_t left_ = 0;     // of the frame's payload
  bool in_payload_ = false;
  bool final_ = false;
  WebSocketOp op_ = WebSocketOp::kContinuation;
  WebSocketOp message_op_ = WebSocketOp::kContinuation;  // of the message that is not whole yet
  std::string control_;                                  // payload of a control frame
  std::string message_;                                  // of the others
  bool closed_ = false;
};

}  // namespace mbcas::kube
