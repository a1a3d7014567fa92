#include "mbcas/view/keys.h"

#include <optional>
#include <string_view>

namespace mbcas::view {
namespace {

struct Sequence {
  std::string_view end;  // after ESC [ or ESC O
  Key key;
};
constexpr Sequence kSequences[] = {
    {"A", Key::kUp},      {"B", Key::kDown},      {"C", Key::kRight}, {"D", Key::kLeft},
    {"5~", Key::kPageUp}, {"6~", Key::kPageDown}, {"H", Key::kHome},  {"F", Key::kEnd},
    {"1~", Key::kHome},   {"4~", Key::kEnd},
};

std::optional<Key> keyOf(std::string_view end) {
  for (const Sequence& sequence : kSequences) {
    if (sequence.end == end) return sequence.key;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Key> takeKeys(std::string& typed) {
  std::vector<Key> keys;
  std::size_t at = 0;
  while (at < typed.size()) {
    if (typed[at] != '\x1b') {
      keys.push_back(key(typed[at++]));
      continue;
    }
    if (at + 1 == typed.size()) {
      keys.push_back(Key::kEscape);
      ++at;
      break;
    }
    if (typed[at + 1] != '[' && typed[at + 1] != 'O') {
      keys.push_back(Key::kEscape);
      ++at;
      continue;
    }
    std::size_t end = at + 2;  // of the final byte: parameters are digits and punctuation
    while (end < typed.size() && (typed[end] < '@' || typed[end] > '~')) ++end;
    if (end == typed.size()) break;
    if (const auto known = keyOf(std::string_view(typed).substr(at + 2, end - at - 1))) {
      keys.push_back(*known);
    }
    at = end + 1;
  }
  typed.erase(0, at);
  return keys;
}

}  // namespace mbcas::view
