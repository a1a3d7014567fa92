#include "mbcas/base/json_writer.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <iterator>

#include "mbcas/base/utf8.h"

namespace mbcas {
void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
  } else {
    assert((open_.empty() || open_.back() == '[') && "a member of an object needs a key");
    if (needs_comma_) out_.push_back(',');
  }
  needs_comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_.push_back(bracket);
  open_.push_back(bracket);
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  assert(!open_.empty() && open_.back() == (bracket == '}' ? '{' : '[') && !after_key_);
  out_.push_back(bracket);
  open_.pop_back();
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  assert(!open_.empty() && open_.back() == '{' && !after_key_);
  if (needs_comma_) out_.push_back(',');
  quote(name);
  out_.push_back(':');
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  separate();
  out_ += truth ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t number) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return *this;
}

JsonWriter& JsonWriter::natural(std::uint64_t number) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  out_ += "null";
  return *this;
}

void JsonWriter::quote(std::string_view text) {
  const auto escape = [&](char32_t unit) {
    fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<std::uint32_t>(unit));
  };
  out_.push_back('"');
  while (!text.empty()) {
    const Utf8Character character = firstCharacter(text);
    const char c = text.front();
    if (character.bytes == 0) {
      out_ += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out_.push_back('\\');
      out_.push_back(c);
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (c == '\t') {
      out_ += "\\t";
    } else if (c == '\r') {
      out_ += "\\r";
    } else if (!isInvisible(character.code)) {
      out_.append(text.substr(0, character.bytes));
    } else if (character.code < 0x10000) {
      // JSON asks for this below U+0020 only. The rest is for people who read it on a terminal.
      escape(character.code);
    } else {
      escape(0xD800 + ((character.code - 0x10000) >> 10));
      escape(0xDC00 + ((character.code - 0x10000) & 0x3FF));
    }
    text.remove_prefix(character.bytes == 0 ? 1 : character.bytes);
  }
  out_.push_back('"');
}

}  // namespace mbcas
