#include "mbcas/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace mbcas {
namespace {

// The encoding as the standard has it, also of what is no character.
std::string encoded(char32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCodePoint) {
  for (char32_t code = 0; code <= 0x120000; ++code) {
    const bool valid = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    const std::string text = encoded(code);
    const Utf8Character read = firstCharacter(text + "x");
    ASSERT_EQ(read.bytes, valid ? text.size() : 0) << static_cast<unsigned>(code);
    if (valid) {
      ASSERT_EQ(read.code, code);
    }
    for (std::size_t less = 1; less < text.size(); ++less) {
      ASSERT_EQ(firstCharacter(text.substr(0, less)).bytes, 0u) << static_cast<unsigned>(code);
    }
  }
}

TEST(Utf8, RefusesOtherBytes) {
  for (const char* const bytes :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(",
        "\xE2\x82(", "\xF0\x80\x80\x80"}) {
    EXPECT_EQ(firstCharacter(bytes).bytes, 0u);
  }
}

TEST(Utf8, KnowsWhatIsObeyedInsteadOfShown) {
  for (const char32_t code : {U'\0', U'\n', U'\x1b', U'\x7f', U'\x80', U'\x9b', U'\x9f', U'\u200e',
                              U'\u202e', U'\u2028', U'\u2066', U'\ufeff', U'\U000e0041'}) {
    EXPECT_TRUE(isInvisible(code)) << static_cast<unsigned>(code);
  }
  for (const char32_t code : {U' ', U'~', U'\xa0', U'é', U'█', U'…', U'→', U'中', U'\U0001f600'}) {
    EXPECT_FALSE(isInvisible(code)) << static_cast<unsigned>(code);
  }
}

}  // namespace
}  // namespace mbcas
