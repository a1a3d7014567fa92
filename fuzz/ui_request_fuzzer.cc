// What anybody on the machine may send to the page's port: read or refused, and the same whatever
// is still to come.
#include <cstdint>
#include <cstdlib>

#include "mbcas/ui/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mbcas::ui;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto request = parseRequest(bytes);
  if (!request || !*request) return 0;
  const Request& read = **request;
  if (!read.path.starts_with('/') || read.body.size() > kLongestBody) std::abort();
  if (read.headers.size() > kMostFields) std::abort();
  // The request was not complete a byte earlier.
  const auto shorter = parseRequest(bytes.substr(0, size - 1));
  if (shorter && *shorter) std::abort();
  return 0;
}
