// Where a daemon serves its metrics and probes, as its flags say it.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "mbcas/base/result.h"

namespace mbcas {

// ":8080", "127.0.0.1:0"; "0" means no server.
struct Address {
  std::string host;
  int port = -1;
};

inline Result<Address> parseAddress(const std::string& text) {
  if (text == "0") return Address{};
  const std::size_t colon = text.rfind(':');
  Address address;
  char* end = nullptr;
  if (colon != std::string::npos) {
    address.host = colon == 0 ? "0.0.0.0" : text.substr(0, colon);
    const long port = std::strtol(text.c_str() + colon + 1, &end, 10);
    if (end != nullptr && *end == '\0' && end != text.c_str() + colon + 1 && port >= 0 &&
        port <= 65535) {
      address.port = static_cast<int>(port);
      return address;
    }
  }
  return failure(fmt::format("not an address, as :8080 or 127.0.0.1:8080: {}", text));
}

}  // namespace mbcas
