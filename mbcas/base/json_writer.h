// Writes JSON text straight into a string, in the order of the calls.
//
//   std::string out;
//   JsonWriter json(out);
//   json.beginObject();
//   json.key("pod").value("web-1");
//   json.key("cpu").value(250);
//   json.key("tags").beginArray().value("a").value(true).null().endArray();
//   json.endObject();                       // {"pod":"web-1","cpu":250,"tags":["a",true,null]}
//
// The caller keeps begin and end balanced and gives each member of an object a key; debug builds
// assert it. Text is escaped as JSON requires, and bytes that are not UTF-8 become U+FFFD, so the
// output is always valid. A double is written with the fewest digits that read back as the same
// value; NaN and infinities, which JSON cannot say, become null.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mbcas {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& beginObject() { return open('{'); }
  JsonWriter& endObject() { return close('}'); }
  JsonWriter& beginArray() { return open('['); }
  JsonWriter& endArray() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(bool truth);
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  JsonWriter& value(T number) {
    if constexpr (std::signed_integral<T>)
      return integer(static_cast<std::int64_t>(number));
    else
      return natural(static_cast<std::uint64_t>(number));
  }
  JsonWriter& null();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& integer(std::int64_t number);
  JsonWriter& natural(std::uint64_t number);
  void separate();
  void quote(std::string_view text);

  std::string& out_;
  std::vector<char> open_;    // the brackets still open, innermost last
  bool needs_comma_ = false;  // a value was written at this level
  bool after_key_ = false;
};

}  // namespace mbcas
