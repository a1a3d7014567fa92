// Cuts protobuf from a server into objects as the bytes come in, whatever the chunks: what
// JsonSplitter is for JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/kube/json_cursor.h"
#include "mbcas/kube/protobuf.h"

namespace mbcas::kube {

// A watch: events, each behind its length in four bytes.
class ProtobufSequence {
 public:
  explicit ProtobufSequence(std::size_t max_frame) : max_frame_(max_frame) {}

  // Calls on_frame for every event completed by this chunk; the bytes are good during the call.
  // It returns false to stop early; then push returns success and the rest is dropped.
  Result<void> push(std::string_view chunk, FunctionRef<bool(std::string_view frame)> on_frame);
  // The stream has ended: an error if it did so inside an event.
  Result<void> finish() const;

 private:
  std::size_t max_frame_;
  std::string held_;  // of the frame that is not complete, its length included
};

// A list: one envelope around one message, whose items are wanted one by one.
class ProtobufList {
 public:
  // A field larger than `max_frame` bytes is refused.
  explicit ProtobufList(std::size_t max_frame) : max_frame_(max_frame) {}

  Result<void> push(std::string_view chunk, FunctionRef<bool(std::string_view item)> on_item);
  Result<void> finish() const;

  const std::string& kind() const { return kind_; }          // "PodList"
  const std::string& metadata() const { return metadata_; }  // the list's: an encoded ListMeta

 private:
  enum class Part { kMagic, kHead, kList, kTail };
  enum class Step { kGoOn, kWait, kStop };

  Result<Step> step(std::string_view& bytes, FunctionRef<bool(std::string_view item)> on_item);

  std::size_t max_frame_;
  Part part_ = Part::kMagic;
  std::uint64_t list_left_ = 0;  // bytes of the message that are yet to come
  std::string held_;             // of a field that is not complete
  std::string kind_;
  std::string metadata_;
};

}  // namespace mbcas::kube
