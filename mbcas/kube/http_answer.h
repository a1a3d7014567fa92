// The answer to an HTTP/1.1 request that was written by hand, for a connection that may change its
// protocol. Everything else is libcurl's.
//
//   HttpAnswer answer([&](int status, std::string_view piece) { ... return true; });
//   Result<void> read = answer.receive(bytes);   // as they come, in any pieces
//   answer.complete()                            // nothing more belongs to it
//
// After status 101 all that follows is the new protocol's, without an end of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"

namespace mbcas::kube {

class HttpAnswer {
 public:
  static constexpr std::size_t kLongestHead = 64 << 10;
  using Headers = std::map<std::string, std::string, std::less<>>;  // names in lower case

  // `body` gets the pieces of the body, and returns false to end the exchange.
  explicit HttpAnswer(std::function<bool(int status, std::string_view piece)> body)
      : body_(std::move(body)) {}

  // After an error the object is of no more use. False: `body` wants no more.
  Result<bool> receive(std::string_view piece);
  // The connection has ended: an error if the answer has not.
  Result<void> finish() const;

  int status() const { return status_; }  // 0: the head has not come yet
  bool complete() const { return state_ == State::kComplete; }
  // "": there is no such header. Repeated ones are joined by commas.
  std::string_view header(std::string_view name) const;

 private:
  enum class State : std::uint8_t {
    kHead,
    kLength,     // as many bytes as the head says
    kUntilEnd,   // until the connection ends
    kChunkSize,  // a line with a size
    kChunk,
    kChunkEnd,  // the line break after a chunk
    kTrailer,   // lines up to an empty one
    kComplete,
  };
  Result<void> head(std::string_view text);
  // A line without its end, once all of it is there; takes it from `piece`.
  Result<bool> line(std::string_view& piece, std::string& text);
  Result<bool> take(std::string_view& piece);

  std::function<bool(int status, std::string_view piece)> body_;
  State state_ = State::kHead;
  int status_ = 0;
  Headers headers_;
  std::string partial_;     // of the head or of a line
  std::uint64_t left_ = 0;  // of the body or of a chunk
};

}  // namespace mbcas::kube
