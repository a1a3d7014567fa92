// What was typed on a terminal. Pure: bytes in, keys out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mbcas::view {

// A character as it is, or one of the keys that send a sequence.
enum class Key : std::uint32_t {
  kUp = 0x110000,  // beyond every character
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEscape,
};
constexpr Key key(char character) {
  return static_cast<Key>(static_cast<unsigned char>(character));
}

// The keys that these bytes are, in order; unknown sequences are none. A sequence that has only
// begun stays in `typed` for the next call. An escape alone, at the end, is the key.
std::vector<Key> takeKeys(std::string& typed);

}  // namespace mbcas::view
