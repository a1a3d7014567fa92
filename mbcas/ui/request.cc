#include "mbcas/ui/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace mbcas::ui {
namespace {

bool isTokenCharacter(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

bool isToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, isTokenCharacter);
}

// Printable ASCII and blanks.
bool isPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= ' ' && c <= '~') || c == '\t'; });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Result<void> parseFirstLine(std::string_view line, Request& request) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last == first || !isPlain(line)) {
    return failure("not a request line");
  }
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!isToken(method)) return failure("not a method");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return failure("not HTTP/1.1");
  target = target.substr(0, target.find_first_of("?#"));
  if (!target.starts_with('/') || target.find(' ') != std::string_view::npos) {
    return failure("not a path");
  }
  request.method = method;
  request.path = target;
  return {};
}

Result<void> parseField(std::string_view line, Request& request) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !isToken(line.substr(0, colon))) {
    return failure("not a header field");
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!isPlain(value)) return failure("a header field has characters that none may have");
  if (request.headers.size() == kMostFields) {
    return failure(fmt::format("more than {} header fields", kMostFields));
  }
  std::string name = lowered(line.substr(0, colon));
  if (!request.headers.try_emplace(name, value).second) {
    return failure(fmt::format("{} is repeated", name));
  }
  return {};
}

Result<std::size_t> bodyLength(const Request& request) {
  if (request.headers.contains("transfer-encoding")) return failure("no transfer encodings");
  const std::string_view text = request.header("content-length");
  if (text.empty()) return std::size_t{0};
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size()) {
    return failure("content-length is not a number");
  }
  if (length > kLongestBody) return failure(fmt::format("more than {} bytes", kLongestBody));
  return length;
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

Result<std::optional<Request>> parseRequest(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, kLongestHead).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() >= kLongestHead) {
      return failure(fmt::format("a header of more than {} bytes", kLongestHead));
    }
    return std::nullopt;
  }
  Request request;
  std::string_view head = bytes.substr(0, end);
  bool first = true;
  while (true) {
    const std::size_t line_end = head.find("\r\n");
    const std::string_view line = head.substr(0, line_end);
    const Result<void> parsed = first ? parseFirstLine(line, request) : parseField(line, request);
    if (!parsed) return failure(parsed.error());
    first = false;
    if (line_end == std::string_view::npos) break;
    head.remove_prefix(line_end + 2);
  }
  const Result<std::size_t> length = bodyLength(request);
  if (!length) return failure(length.error());
  const std::string_view body = bytes.substr(end + 4);
  if (body.size() < *length) return std::nullopt;
  if (body.size() > *length) return failure("more than one request on a connection");
  request.body = body;
  return request;
}

}  // namespace mbcas::ui
