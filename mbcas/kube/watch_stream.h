// A watch's answer, byte by byte, into events, JSON or protobuf as the first byte tells. Any
// chunking of the bytes gives the same events. An object that cannot be decoded is passed over: it
// does not end the stream as long as its name and its version can be found.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/kube/api_error.h"
#include "mbcas/kube/json_splitter.h"
#include "mbcas/kube/object.h"
#include "mbcas/kube/protobuf_splitter.h"

namespace mbcas::kube {

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kError;
  ObjectPtr object;                       // the first three; a deleted one in its last state
  std::optional<PassedOver> passed_over;  // instead of the object, where it cannot be read
  std::string resource_version;           // of all but kError
  bool initial_events_end = false;  // this bookmark closes the initial set of a streaming list
  ApiError error;                   // kError
};

class WatchReader {
 public:
  // `decoder` outlives the reader.
  WatchReader(const Kind& kind, Decoder& decoder, std::function<void(WatchEvent)> on_event);

  // After an error the reader is of no more use.
  Result<void> receive(std::string_view piece);
  // The stream has ended: an error if it did so inside an event.
  Result<void> finish() const { return protobuf_ ? protobuf_->finish() : json_.finish(); }

 private:
  Result<void> readJson(std::string& frame);
  Result<void> readProtobuf(std::string_view frame);
  Result<void> deliver(WatchEvent event);
  Result<void> passOver(WatchEvent::Type type, PassedOver object, Error why);
  std::unexpected<Error> malformed(Error error) const;

  const Kind& kind_;
  Decoder& decoder_;
  std::function<void(WatchEvent)> on_event_;
  JsonSplitter json_;
  std::optional<ProtobufSequence> protobuf_;  // instead, if that is what comes
  bool begun_ = false;
};

}  // namespace mbcas::kube
