// What stands behind a JsonCursor: a document in one encoding or another, of which the first thing
// that goes wrong is remembered with its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::kube {

class JsonCursor::Document {
 public:
  virtual ~Document() = default;

  // The values are the document's own; none of these is asked of a null, nor after a failure.
  virtual bool isNull(void* value) = 0;
  virtual void members(void* value, VisitMember visit) = 0;
  virtual void elements(void* value, VisitElement visit) = 0;
  virtual std::string_view text(void* value) = 0;
  virtual std::string_view scalar(void* value) = 0;
  virtual std::int64_t integer(void* value) = 0;
  virtual bool boolean(void* value) = 0;

  void fail(std::string_view reason);
  bool failed() const { return !error_.empty(); }

 protected:
  struct Step {
    std::string_view key;  // of an object's member, or
    std::size_t index;     // of an array's element, when key.data() is null
  };
  void begin() {
    path_.clear();
    error_.clear();
  }
  Result<void> outcome() const {
    if (failed()) return failure(error_);
    return {};
  }
  const std::vector<Step>& path() const { return path_; }
  void visitMember(std::string_view key, void* value, VisitMember visit);
  void visitElement(std::size_t index, void* value, VisitElement visit);

 private:
  std::vector<Step> path_;
  std::string error_;
};

}  // namespace mbcas::kube
