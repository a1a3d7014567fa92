// Text that others have written, character by character.
#pragma once

#include <cstddef>
#include <string_view>

namespace mbcas {

struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: what stands there is not UTF-8
};

// The character that `text`, which is not empty, begins with. Overlong forms, surrogates and code
// points past U+10FFFF are not valid.
Utf8Character firstCharacter(std::string_view text);

// Whether a terminal or a browser obeys the character instead of showing it: controls (U+0080 to
// U+009F are such too), line separators, changes of the direction of writing, and what has no
// width.
bool isInvisible(char32_t code);

}  // namespace mbcas
