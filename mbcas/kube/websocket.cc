#include "mbcas/kube/websocket.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "mbcas/kube/base64.h"

namespace mbcas::kube {
namespace {

constexpr std::uint64_t kLongestControl = 125;
constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

// FIPS 180-4. The protocol wants it as a mark that the server speaks WebSocket; nothing is kept
// secret by it.
std::string sha1(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift);
  std::array<std::uint32_t, 5> hash = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  for (std::size_t block = 0; block < padded.size(); block += 64) {
    std::array<std::uint32_t, 80> w{};
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        w[i] = (w[i] << 8) | static_cast<unsigned char>(padded[block + 4 * i + j]);
      }
    }
    for (std::size_t i = 16; i < 80; ++i) {
      w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    auto [a, b, c, d, e] = hash;
    for (std::size_t i = 0; i < 80; ++i) {
      std::uint32_t mix = b ^ c ^ d;
      std::uint32_t constant = i < 40 ? 0x6ED9EBA1 : 0xCA62C1D6;
      if (i < 20) {
        mix = (b & c) | (~b & d);
        constant = 0x5A827999;
      } else if (i >= 40 && i < 60) {
        mix = (b & c) | (b & d) | (c & d);
        constant = 0x8F1BBCDC;
      }
      const std::uint32_t next = std::rotl(a, 5) + mix + e + constant + w[i];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    hash[0] += a;
    hash[1] += b;
    hash[2] += c;
    hash[3] += d;
    hash[4] += e;
  }
  std::string out;
  for (const std::uint32_t word : hash) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift);
  }
  return out;
}

bool isControl(WebSocketOp op) {
  return static_cast<unsigned>(op) >= 8;
}

std::uint64_t bigEndian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = (number << 8) | static_cast<unsigned char>(byte);
  return number;
}

}  // namespace

std::string webSocketKey(const WebSocketKey& key) {
  return base64(std::string_view(reinterpret_cast<const char*>(key.data()), key.size()));
}

std::string webSocketAccept(std::string_view key) {
  return base64(sha1(std::string(key) + std::string(kGuid)));
}

std::string webSocketFrame(WebSocketOp op, std::string_view payload, std::uint32_t mask) {
  std::string out;
  out += static_cast<char>(0x80U | static_cast<unsigned>(op));
  const std::uint64_t size = payload.size();
  const int bytes = size < 126 ? 0 : size < 0x10000 ? 2 : 8;
  out += static_cast<char>(0x80U | (bytes == 0 ? size : bytes == 2 ? 126U : 127U));
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i));
  std::array<char, 4> key{};
  for (std::size_t i = 0; i < 4; ++i) key[i] = static_cast<char>(mask >> (24 - 8 * i));
  out.append(key.data(), key.size());
  for (std::size_t i = 0; i < payload.size(); ++i) {
    out += static_cast<char>(payload[i] ^ key[i % 4]);
  }
  return out;
}

// The frame's first bytes are there.
Result<void> WebSocketReader::header() {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(head_[i]); };
  if ((byte(0) & 0x70U) != 0) return failure("a frame uses an extension that was not asked for");
  if ((byte(1) & 0x80U) != 0) return failure("a server must not mask its frames");
  const unsigned length = byte(1) & 0x7FU;
  head_size_ = length == 126 ? 4 : length == 127 ? 10 : 2;
  if (head_.size() < head_size_) return {};
  left_ = head_size_ == 2 ? length : bigEndian(std::string_view(head_).substr(2));
  if ((head_size_ == 4 && left_ < 126) || (head_size_ == 10 && left_ < 0x10000)) {
    return failure("the length of a frame is not in its shortest form");
  }
  final_ = (byte(0) & 0x80U) != 0;
  const unsigned op = byte(0) & 0x0FU;
  if (op > 10 || (op > 2 && op < 8)) return failure(fmt::format("unknown code of a frame: {}", op));
  op_ = static_cast<WebSocketOp>(op);
  if (isControl(op_)) {
    if (!final_ || left_ > kLongestControl) {
      return failure("a control frame is longer than 125 bytes, or in pieces");
    }
    control_.clear();
  } else if (op_ == WebSocketOp::kContinuation) {
    if (message_op_ == WebSocketOp::kContinuation) return failure("a frame continues no message");
  } else {
    if (message_op_ != WebSocketOp::kContinuation) {
      return failure("a message begins before the one before has ended");
    }
    message_op_ = op_;
    message_.clear();
  }
  if (!isControl(op_) && left_ > longest_ - message_.size()) {
    return failure(fmt::format("a message is longer than {} bytes", longest_));
  }
  in_payload_ = true;
  return {};
}

// All of the frame is there.
Result<void> WebSocketReader::frame() {
  head_.clear();
  head_size_ = 2;
  in_payload_ = false;
  if (isControl(op_)) {
    closed_ = op_ == WebSocketOp::kClose;
    return take_({op_, control_});
  }
  if (!final_) return {};
  const WebSocketOp op = std::exchange(message_op_, WebSocketOp::kContinuation);
  Result<void> taken = take_({op, message_});
  // One large message should not be paid for ever.
  if (message_.capacity() > (256U << 10)) std::string().swap(message_);
  return taken;
}

Result<void> WebSocketReader::receive(std::string_view piece) {
  while (!closed_ && (!piece.empty() || (in_payload_ && left_ == 0))) {
    if (!in_payload_) {
      const std::string_view part = piece.substr(0, head_size_ - head_.size());
      head_ += part;
      piece.remove_prefix(part.size());
      if (head_.size() < head_size_) return {};
      if (Result<void> read = header(); !read) return read;
    } else {
      const std::string_view part = piece.substr(0, left_);
      (isControl(op_) ? control_ : message_) += part;
      piece.remove_prefix(part.size());
      left_ -= part.size();
      if (left_ > 0) return {};
      if (Result<void> read = frame(); !read) return read;
    }
  }
  return {};
}

}  // namespace mbcas::kube
