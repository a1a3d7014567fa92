// Cuts a byte stream into whole JSON values as the bytes come in, whatever the chunks: a watch is a
// sequence of events, a list is one document whose "items" are wanted one by one. Thus a list of
// any length needs the memory of its largest object, and both go through the same decoder.
//
// Looks only at brackets and quotes. Whether a frame is good JSON is for the parser to say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::kube {

class JsonSplitter {
 public:
  enum class Mode {
    kSequence,  // concatenated documents: each is a frame
    kList,      // one document: each element of its member "items" is a frame
  };
  // A frame larger than `max_frame` bytes is refused.
  JsonSplitter(Mode mode, std::size_t max_frame) : mode_(mode), max_frame_(max_frame) {}

  // Calls onFrame for every value completed by this chunk. The string is the splitter's buffer,
  // good during the call. onFrame returns false to stop early; then push returns success and what
  // is left of the chunk is dropped.
  Result<void> push(std::string_view chunk, FunctionRef<bool(std::string& frame)> on_frame);

  // The stream has ended: an error if it did so inside a value.
  Result<void> finish() const;

  // kList: the document without its items ({"kind":..,"metadata":{..},"items":[]}), once complete.
  std::string& envelope() { return outer_; }
  bool complete() const { return complete_; }

 private:
  void keep(std::string_view bytes);
  Result<void> checkSize() const;

  Mode mode_;
  std::size_t max_frame_;
  std::string frame_;
  std::string outer_;
  std::string key_;        // the last string seen at the top level of a list
  std::size_t depth_ = 0;  // open brackets, strings aside
  bool in_string_ = false;
  bool escaped_ = false;   // the last byte was a backslash inside a string
  bool in_items_ = false;  // kList: inside the array of items
  bool complete_ = false;  // kList: the outer document is closed
};

}  // namespace mbcas::kube
