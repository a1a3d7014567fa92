// An HTTP/1.1 request, as far as a browser needs it to talk to a page on its own machine.
//
//   Result<std::optional<Request>> request = parseRequest(received_so_far);
//   if (!request) refuse; else if (!*request) wait for more; else answer **request;
//
// Pure. Whatever a browser does not send is refused instead of interpreted: chunked bodies, folded
// or repeated header fields, other versions.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"

namespace mbcas::ui {

inline constexpr std::size_t kLongestHead = 8 << 10;  // bytes of request line and header
inline constexpr std::size_t kLongestBody = 1 << 20;
inline constexpr std::size_t kMostFields = 64;

struct Request {
  std::string method;
  std::string path;                                         // begins with '/', no query
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string body;

  // "" where the field is absent.
  std::string_view header(std::string_view name) const;
};

// Nothing: the request is not complete yet.
Result<std::optional<Request>> parseRequest(std::string_view bytes);

}  // namespace mbcas::ui
