#include "mbcas/base/json_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace mbcas {
namespace {

template <class Write>
std::string written(Write write) {
  std::string out;
  JsonWriter json(out);
  write(json);
  return out;
}

TEST(JsonWriter, WritesNestedValuesInOrder) {
  EXPECT_EQ(written([](JsonWriter& json) {
              json.beginObject();
              json.key("pod").value("web-1");
              json.key("cpu").value(250);
              json.key("tags").beginArray().value("a").value(true).null().endArray();
              json.key("none").beginObject().endObject();
              json.key("big").value(std::numeric_limits<std::uint64_t>::max());
              json.endObject();
            }),
            R"({"pod":"web-1","cpu":250,"tags":["a",true,null],"none":{},)"
            R"("big":18446744073709551615})");
}

TEST(JsonWriter, EscapesWhatJsonRequires) {
  EXPECT_EQ(written([](JsonWriter& json) { json.value("a\"b\\c\n\t\r\x01\x1f é"); }),
            R"("a\"b\\c\n\t\r\u0001\u001f é")");
}

TEST(JsonWriter, EscapesWhatATerminalWouldObey) {
  const std::string text = "a\x7f\u009b[31m\u202e\U000e0041 é中";
  const std::string json = written([&](JsonWriter& writer) { writer.value(text); });
  EXPECT_EQ(json, R"("a\u007f\u009b[31m\u202e\udb40\udc41 é中")");
  EXPECT_EQ(nlohmann::json::parse(json), text);
}

TEST(JsonWriter, ReplacesInvalidUtf8) {
  EXPECT_EQ(written([](JsonWriter& json) {
              json.value(
                  "a\xff"
                  "b\xc3");
            }),
            "\"a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\"");
  // Overlong, surrogate, and past the last code point: three bytes replaced one by one.
  EXPECT_EQ(written([](JsonWriter& json) { json.value("\xe0\x80\x80"); }),
            "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWriter, WritesDoublesThatReadBack) {
  EXPECT_EQ(written([](JsonWriter& json) { json.value(0.1); }), "0.1");
  EXPECT_EQ(written([](JsonWriter& json) { json.value(1e300); }), "1e+300");
  EXPECT_EQ(written([](JsonWriter& json) {
              json.beginArray()
                  .value(std::numeric_limits<double>::quiet_NaN())
                  .value(std::numeric_limits<double>::infinity())
                  .endArray();
            }),
            "[null,null]");
}

RC_GTEST_PROP(JsonWriter, AnyTextIsValidJsonAndValidTextReadsBack, (const std::string& text)) {
  const std::string out = written([&](JsonWriter& json) { json.value(text); });
  const auto parsed = nlohmann::json::parse(out);
  RC_ASSERT(parsed.is_string());
  std::string ascii;
  for (const char c : text) ascii.push_back(static_cast<char>(c & 0x7f));
  RC_ASSERT(nlohmann::json::parse(written([&](JsonWriter& json) { json.value(ascii); })) == ascii);
}

RC_GTEST_PROP(JsonWriter, AnyDoubleReadsBack, (double number)) {
  RC_ASSERT(nlohmann::json::parse(written([&](JsonWriter& json) { json.value(number); })) ==
            number);
}

}  // namespace
}  // namespace mbcas
