// Base64, RFC 4648, with padding.
#pragma once

#include <string>
#include <string_view>

namespace mbcas::kube {

inline std::string base64(std::string_view text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = (bits << 8) | (i + j < text.size() ? static_cast<unsigned char>(text[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out.push_back(i + j > text.size() ? '=' : kAlphabet[(bits >> (18 - 6 * j)) & 63]);
    }
  }
  return out;
}

}  // namespace mbcas::kube
