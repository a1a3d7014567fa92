#include "mbcas/kube/http_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace mbcas::kube {
namespace {

constexpr std::size_t kLongestLine = 1 << 10;  // of a chunk's size, and of a trailer

std::string quoted(std::string_view text) {
  std::string clean(text.substr(0, 80));
  std::ranges::replace_if(clean, [](char c) { return c < ' ' || c > '~'; }, '?');
  return clean;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

template <class T>
bool parseAll(std::string_view text, T& value, int base = 10) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  const auto found = headers_.find(name);
  return found == headers_.end() ? std::string_view() : std::string_view(found->second);
}

Result<void> HttpAnswer::head(std::string_view text) {
  std::string_view first = text.substr(0, text.find("\r\n"));
  const std::string_view whole = first;
  // "HTTP/1.1 101 Switching Protocols"
  const bool http = first.starts_with("HTTP/1.1 ") || first.starts_with("HTTP/1.0 ");
  if (http) first.remove_prefix(9);
  if (!http || first.size() < 3 || (first.size() > 3 && first[3] != ' ') ||
      !parseAll(first.substr(0, 3), status_) || status_ < 100) {
    return failure(fmt::format("not an HTTP/1.1 response: \"{}\"", quoted(whole)));
  }
  headers_.clear();
  text.remove_prefix(std::min(text.size(), whole.size() + 2));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find("\r\n"));
    text.remove_prefix(std::min(text.size(), line.size() + 2));
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos ||
        line.substr(0, colon).find_first_of(" \t") != std::string_view::npos) {
      return failure(fmt::format("no header: \"{}\"", quoted(line)));
    }
    std::string& value = headers_[lowered(line.substr(0, colon))];
    if (!value.empty()) value += ", ";
    value += trimmed(line.substr(colon + 1));
  }
  if (status_ < 200 && status_ != 101) {
    status_ = 0;  // another one follows
    return {};
  }
  const std::string_view coding = status_ == 101 ? std::string_view() : header("transfer-encoding");
  const std::string_view length = status_ == 101 ? std::string_view() : header("content-length");
  if (status_ == 204 || status_ == 304) {
    state_ = State::kComplete;
  } else if (!coding.empty()) {
    if (lowered(coding) != "chunked") {
      return failure(fmt::format("an unknown coding: \"{}\"", quoted(coding)));
    }
    state_ = State::kChunkSize;
  } else if (!length.empty()) {
    if (!parseAll(length, left_)) {
      return failure(fmt::format("no length: \"{}\"", quoted(length)));
    }
    state_ = left_ == 0 ? State::kComplete : State::kLength;
  } else {
    state_ = State::kUntilEnd;
  }
  return {};
}

Result<bool> HttpAnswer::line(std::string_view& piece, std::string& text) {
  const std::size_t end = piece.find('\n');
  partial_ += piece.substr(0, end);
  if (partial_.size() > kLongestLine) return failure("a line of a chunk is too long");
  if (end == std::string_view::npos) {
    piece = {};
    return false;
  }
  piece.remove_prefix(end + 1);
  if (!partial_.ends_with('\r')) return failure("a line of a chunk ends without a carriage return");
  partial_.pop_back();
  text = std::exchange(partial_, {});
  return true;
}

// One step; false: `body` wants no more.
Result<bool> HttpAnswer::take(std::string_view& piece) {
  std::string text;
  switch (state_) {
    case State::kHead: {
      const std::size_t before = partial_.size();
      partial_ += piece.substr(0, kLongestHead + 1 - std::min(kLongestHead, before));
      // The end may lie across two pieces.
      const std::size_t end = partial_.find("\r\n\r\n", before - std::min<std::size_t>(before, 3));
      if (end == std::string::npos) {
        if (partial_.size() > kLongestHead) return failure("the head of the response is too long");
        piece = {};
        return true;
      }
      piece.remove_prefix(end + 4 - before);
      partial_.resize(end + 2);
      const std::string all = std::exchange(partial_, {});
      if (Result<void> parsed = head(all); !parsed) return failure(std::move(parsed).error());
      return true;
    }
    case State::kLength:
    case State::kChunk: {
      const std::string_view part = piece.substr(0, left_);
      piece.remove_prefix(part.size());
      left_ -= part.size();
      if (left_ == 0) state_ = state_ == State::kChunk ? State::kChunkEnd : State::kComplete;
      return body_(status_, part);
    }
    case State::kUntilEnd:
      return body_(status_, std::exchange(piece, {}));
    case State::kChunkSize: {
      const Result<bool> whole = line(piece, text);
      if (!whole || !*whole) return whole ? Result<bool>(true) : whole;
      const std::string_view size = trimmed(std::string_view(text).substr(0, text.find(';')));
      if (!parseAll(size, left_, 16)) {
        return failure(fmt::format("not the size of a chunk: \"{}\"", quoted(text)));
      }
      state_ = left_ == 0 ? State::kTrailer : State::kChunk;
      return true;
    }
    case State::kChunkEnd: {
      const Result<bool> whole = line(piece, text);
      if (!whole || !*whole) return whole ? Result<bool>(true) : whole;
      if (!text.empty()) return failure("a chunk is longer than its size");
      state_ = State::kChunkSize;
      return true;
    }
    case State::kTrailer: {
      const Result<bool> whole = line(piece, text);
      if (!whole || !*whole) return whole ? Result<bool>(true) : whole;
      if (text.empty()) state_ = State::kComplete;
      return true;
    }
    case State::kComplete:
      break;
  }
  return failure("data after the end of the response");
}

Result<bool> HttpAnswer::receive(std::string_view piece) {
  while (!piece.empty()) {
    Result<bool> taken = take(piece);
    if (!taken || !*taken) return taken;
  }
  return true;
}

Result<void> HttpAnswer::finish() const {
  if (state_ == State::kComplete || state_ == State::kUntilEnd) return {};
  return failure("the connection ended before the end of the response");
}

}  // namespace mbcas::kube
