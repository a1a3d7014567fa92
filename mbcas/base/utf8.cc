#include "mbcas/base/utf8.h"

#include <algorithm>
#include <utility>

namespace mbcas {

Utf8Character firstCharacter(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3Fu);
  }
  if (bytes == 3 && (code < 0x800 || (code >= 0xD800 && code <= 0xDFFF))) return {};
  if (bytes == 4 && (code < 0x10000 || code > 0x10FFFF)) return {};
  return {code, bytes};
}

bool isInvisible(char32_t code) {
  using Range = std::pair<char32_t, char32_t>;
  static constexpr Range kRanges[] = {
      {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},       // controls, the soft hyphen
      {0x61C, 0x61C},   {0x180E, 0x180E},                     //
      {0x200B, 0x200F},                                       // no width, direction
      {0x2028, 0x202E},                                       // separators, direction
      {0x2060, 0x206F},                                       // no width, direction
      {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}  // marks, tags
  };
  return code < 0x20 || (code >= 0x7F && std::ranges::any_of(
                                             kRanges,
                                             [&](const Range& range) {
                                               return code >= range.first && code <= range.second;
                                             }));
}

}  // namespace mbcas
