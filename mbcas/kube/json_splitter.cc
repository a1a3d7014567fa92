#include "mbcas/kube/json_splitter.h"

#include <fmt/format.h>

namespace mbcas::kube {
namespace {

constexpr std::size_t kKeptBuffer = 256 << 10;

bool isSpace(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

std::size_t plainLength(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size() && text[i] != '"' && text[i] != '{' && text[i] != '}' && text[i] != '[' &&
         text[i] != ']') {
    ++i;
  }
  return i;
}

std::size_t stringLength(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size() && text[i] != '"' && text[i] != '\\') ++i;
  return i;
}

}  // namespace

void JsonSplitter::keep(std::string_view bytes) {
  const bool in_frame = mode_ == Mode::kSequence ? depth_ > 0 : in_items_ && depth_ > 2;
  if (in_frame) {
    frame_ += bytes;
  } else if (mode_ == Mode::kList) {
    outer_ += bytes;
  }
}

Result<void> JsonSplitter::checkSize() const {
  if (frame_.size() > max_frame_ || outer_.size() > max_frame_) {
    return failure(fmt::format("an object larger than {} bytes", max_frame_));
  }
  return {};
}

Result<void> JsonSplitter::push(std::string_view chunk,
                                FunctionRef<bool(std::string& frame)> on_frame) {
  const std::size_t item_depth = mode_ == Mode::kSequence ? 0 : 2;
  while (!chunk.empty()) {
    if (Result<void> size = checkSize(); !size) return size;
    if (in_string_) {
      std::size_t taken = 0;
      if (escaped_) {
        escaped_ = false;
        taken = 1;
      } else {
        taken = stringLength(chunk);
        if (taken < chunk.size()) {
          if (chunk[taken] == '"') {
            in_string_ = false;
          } else {
            escaped_ = true;
          }
          ++taken;
        }
      }
      keep(chunk.substr(0, taken));
      if (mode_ == Mode::kList && depth_ == 1) key_ += chunk.substr(0, taken);
      chunk.remove_prefix(taken);
      continue;
    }
    if (const std::size_t plain = plainLength(chunk); plain > 0) {
      const bool between = depth_ == 0 || (in_items_ && depth_ == 2);
      for (const char c : between ? chunk.substr(0, plain) : std::string_view()) {
        if (!isSpace(c) && !(in_items_ && c == ',')) {
          return failure(fmt::format("not JSON: unexpected byte 0x{:02x} between values",
                                     static_cast<unsigned char>(c)));
        }
      }
      if (!between) keep(chunk.substr(0, plain));
      chunk.remove_prefix(plain);
      continue;
    }
    const char c = chunk.front();
    if (c == '"') {
      if (depth_ == 0 || (in_items_ && depth_ == 2)) {
        return failure("not JSON objects: a string between values");
      }
      in_string_ = true;
      if (depth_ == 1) key_.clear();
      keep(chunk.substr(0, 1));
    } else if (c == '{' || c == '[') {
      if (complete_) return failure("not JSON: more after the end of the list");
      if (mode_ == Mode::kList && c == '[' && depth_ == 1 && key_ == "items\"") {
        keep("[");
        in_items_ = true;
        ++depth_;
      } else {
        ++depth_;
        keep(chunk.substr(0, 1));
      }
    } else {
      if (depth_ == 0) return failure("not JSON: a closing bracket without an opening one");
      if (in_items_ && depth_ == 2) {
        in_items_ = false;
        keep(chunk.substr(0, 1));
        --depth_;
      } else {
        keep(chunk.substr(0, 1));
        --depth_;
        if ((mode_ == Mode::kSequence || in_items_) && depth_ == item_depth) {
          if (Result<void> size = checkSize(); !size) return size;
          const bool more = on_frame(frame_);
          // One large object must not cost its size for as long as the stream lasts.
          if (frame_.capacity() > kKeptBuffer) frame_ = std::string();
          frame_.clear();
          if (!more) return {};
        } else if (mode_ == Mode::kList && depth_ == 0) {
          complete_ = true;
        }
      }
    }
    chunk.remove_prefix(1);
  }
  return checkSize();
}

Result<void> JsonSplitter::finish() const {
  if (depth_ > 0) return failure("the stream ended inside a JSON value");
  if (mode_ == Mode::kList && !complete_) return failure("the response is empty");
  return {};
}

}  // namespace mbcas::kube
