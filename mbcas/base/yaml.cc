#include "mbcas/base/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>

#include "mbcas/base/utf8.h"

namespace mbcas {
namespace {

constexpr int kDeepest = 100;
constexpr std::size_t kLongestKey = 1000;  // YAML has no key of more than 1024 before its colon

// What YAML 1.1 or 1.2 reads as something else than a text, in small letters. "e" and "n" are such
// in some readers only.
constexpr std::array<std::string_view, 10> kWords = {"true", "false", "yes", "no", "on",
                                                     "off",  "null",  "y",   "n",  "nan"};

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

// Whether the text needs no quotes: a cautious choice of what YAML allows.
bool isPlain(std::string_view text) {
  if (text.empty() || text.back() == ' ') return false;
  if (!isLetter(text.front()) && text.front() != '/') return false;
  for (const char c : text) {
    if (!isLetter(c) && !isDigit(c) && std::string_view(" _./-+,()=;").find(c) == text.npos) {
      return false;
    }
  }
  std::string small(text.substr(0, 6));
  std::ranges::transform(small, small.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return std::ranges::find(kWords, small) == kWords.end();
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Utf8Character character = firstCharacter(text);
    const char c = text.front();
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (!isInvisible(character.code) && (character.code & 0xFFFE) != 0xFFFE) {
      out += text.substr(0, character.bytes);
    } else if (character.code < 0x10000) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}",
                     static_cast<std::uint32_t>(character.code));
    } else {
      fmt::format_to(std::back_inserter(out), "\\U{:08x}",
                     static_cast<std::uint32_t>(character.code));
    }
    text.remove_prefix(character.bytes);
  }
  return out + '"';
}

void appendUtf8(std::string& out, char32_t code) {
  const auto byte = [&](char32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | (code >> 6));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

// Reads the JSON from front to end and writes the YAML of it. The first error ends it.
class Converter {
 public:
  explicit Converter(std::string_view json) : rest_(json) {}

  Result<std::string> run() {
    value(0, Place::kLineBegins, 0);
    blanks();
    if (error_.empty() && !rest_.empty()) fail("something after the end");
    if (!error_.empty()) return failure(error_);
    if (!out_.ends_with('\n')) out_ += '\n';
    return std::move(out_);
  }

 private:
  // Where a value stands: it alone decides what comes before a nested one.
  enum class Place : std::uint8_t { kLineBegins, kAfterKey, kAfterDash };

  void fail(std::string_view what) {
    if (error_.empty()) {
      error_ = fmt::format("not JSON: {} before \"{}\"", what, rest_.substr(0, 20));
    }
  }

  void blanks() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_.front()) != rest_.npos) {
      rest_.remove_prefix(1);
    }
  }

  bool take(char c) {
    blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void indent(std::size_t columns) { out_.append(columns, ' '); }

  void value(std::size_t columns, Place place, int depth) {
    blanks();
    if (depth > kDeepest) return fail("nested too deep");
    if (rest_.empty()) return fail("the end, where a value belongs,");
    switch (rest_.front()) {
      case '{':
        return object(columns, place, depth);
      case '[':
        return array(columns, place, depth);
      default:
        break;
    }
    if (place != Place::kLineBegins) out_ += ' ';
    if (rest_.front() == '"') {
      const std::string string = text();
      out_ += isPlain(string) ? string : quoted(string);
    } else {
      scalar();
    }
    out_ += '\n';
  }

  void object(std::size_t columns, Place place, int depth) {
    take('{');
    if (take('}')) {
      out_ += place == Place::kLineBegins ? "{}\n" : " {}\n";
      return;
    }
    if (place == Place::kAfterKey) out_ += '\n';
    if (place == Place::kAfterDash) out_ += ' ';
    bool first = place == Place::kAfterDash;  // its line has begun
    do {
      blanks();
      if (rest_.empty() || rest_.front() != '"') return fail("no key");
      if (!first) indent(columns);
      first = false;
      const std::string key = text();
      const std::string written = isPlain(key) ? key : quoted(key);
      if (written.size() > kLongestKey) {
        out_ += "? " + written + "\n";
        indent(columns);
      } else {
        out_ += written;
      }
      out_ += ':';
      if (!take(':')) return fail("no colon");
      value(columns + 2, Place::kAfterKey, depth + 1);
    } while (error_.empty() && take(','));
    if (error_.empty() && !take('}')) fail("no end of an object");
  }

  void array(std::size_t columns, Place place, int depth) {
    take('[');
    if (take(']')) {
      out_ += place == Place::kLineBegins ? "[]\n" : " []\n";
      return;
    }
    // As kubectl has it: the dashes stand below the key.
    if (place == Place::kAfterKey) {
      out_ += '\n';
      columns -= 2;
    }
    if (place == Place::kAfterDash) out_ += ' ';
    bool first = place == Place::kAfterDash;
    do {
      if (!first) indent(columns);
      first = false;
      out_ += '-';
      value(columns + 2, Place::kAfterDash, depth + 1);
    } while (error_.empty() && take(','));
    if (error_.empty() && !take(']')) fail("no end of a list");
  }

  // Numbers, true, false and null are the same in YAML.
  void scalar() {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!rest_.starts_with(word)) continue;
      out_ += word;
      rest_.remove_prefix(word.size());
      return;
    }
    std::size_t at = 0;
    const auto digits = [&] {
      const std::size_t before = at;
      while (at < rest_.size() && isDigit(rest_[at])) ++at;
      return at > before;
    };
    if (at < rest_.size() && rest_[at] == '-') ++at;
    const std::size_t whole = at;
    bool good = digits() && (rest_[whole] != '0' || at == whole + 1);
    const bool has_point = good && at < rest_.size() && rest_[at] == '.';
    if (has_point) {
      ++at;
      good = digits();
    }
    const std::size_t mantissa = at;
    if (good && at < rest_.size() && (rest_[at] == 'e' || rest_[at] == 'E')) {
      ++at;
      if (at < rest_.size() && (rest_[at] == '-' || rest_[at] == '+')) ++at;
      good = digits();
    }
    if (!good) return fail("no value");
    out_ += rest_.substr(0, mantissa);
    // YAML 1.1 takes 1e+20 for a text, and 1.0e+20 for a number.
    if (at > mantissa && !has_point) out_ += ".0";
    out_ += rest_.substr(mantissa, at - mantissa);
    rest_.remove_prefix(at);
  }

  std::string text() {
    std::string out;
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_.front() != '"') {
      if (rest_.front() == '\\') {
        escape(out);
        if (!error_.empty()) return "";
        continue;
      }
      const Utf8Character character = firstCharacter(rest_);
      if (character.bytes == 0 || character.code < 0x20) {
        fail("a text that is not UTF-8, or with a control character,");
        return "";
      }
      out += rest_.substr(0, character.bytes);
      rest_.remove_prefix(character.bytes);
    }
    if (rest_.empty()) {
      fail("a text without end");
      return "";
    }
    rest_.remove_prefix(1);
    return out;
  }

  void escape(std::string& out) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    const char c = rest_.size() < 2 ? '\0' : rest_[1];
    if (const std::size_t known = kFrom.find(c); known != kFrom.npos) {
      out += kTo[known];
      rest_.remove_prefix(2);
      return;
    }
    char32_t code = 0;
    if (!unit(code)) return fail("an invalid escape");
    if (code >= 0xD800 && code < 0xDC00 && rest_.starts_with("\\u")) {
      const std::string_view before = rest_;
      char32_t low = 0;
      if (unit(low) && low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else {
        rest_ = before;
      }
    }
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;  // half a character
    appendUtf8(out, code);
  }

  // "\u00e4"
  bool unit(char32_t& code) {
    if (!rest_.starts_with("\\u") || rest_.size() < 6) return false;
    code = 0;
    for (const char c : rest_.substr(2, 4)) {
      const char small = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (!isDigit(c) && (small < 'a' || small > 'f')) return false;
      code = code * 16 + static_cast<char32_t>(isDigit(c) ? c - '0' : small - 'a' + 10);
    }
    rest_.remove_prefix(6);
    return true;
  }

  std::string_view rest_;
  std::string out_;
  std::string error_;
};

}  // namespace

Result<std::string> yamlFromJson(std::string_view json) {
  return Converter(json).run();
}

}  // namespace mbcas
