#include "mbcas/base/yaml.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <yaml-cpp/yaml.h>

#include "mbcas/base/json_writer.h"

namespace mbcas {
namespace {

TEST(Yaml, LooksAsKubectlPrintsIt) {
  EXPECT_EQ(yamlFromJson(R"({"kind":"List","items":[{"name":"web-1","cpu":500,"tags":["a","b"]},
                            {"name":"web-2","ready":true,"price":null,"share":0.25}],
                            "empty":{},"none":[],"nested":[[1,2],[]],"why":"short of CPU"})")
                .value(),
            "kind: List\n"
            "items:\n"
            "- name: web-1\n"
            "  cpu: 500\n"
            "  tags:\n"
            "  - a\n"
            "  - b\n"
            "- name: web-2\n"
            "  ready: true\n"
            "  price: null\n"
            "  share: 0.25\n"
            "empty: {}\n"
            "none: []\n"
            "nested:\n"
            "- - 1\n"
            "  - 2\n"
            "- []\n"
            "why: short of CPU\n");
  EXPECT_EQ(yamlFromJson("[]").value(), "[]\n");
  EXPECT_EQ(yamlFromJson(R"("web")").value(), "web\n");
  EXPECT_EQ(yamlFromJson("[1e+20,1.5e-3]").value(), "- 1.0e+20\n- 1.5e-3\n");
}

// Texts that a YAML parser takes for something else when they are not quoted, and texts that are
// meant to break out of the place where they stand.
TEST(Yaml, ATextStaysThatText) {
  for (const std::string text :
       {"",           " ",          "a ",        " a",         "no",       "Yes",
        "NULL",       "~",          "on",        "1",          "-1",       "0x10",
        "1e3",        ".inf",       "NaN",       "2026-01-01", "12:30:45", "- a",
        "a: b",       "a:",         "a #b",      "#a",         "&a",       "*a",
        "!!str a",    "{a: b}",     "[a]",       "a, b",       "|",        ">",
        "%YAML 1.2",  "---",        "...",       "@a",         "`a",       "'a'",
        "\"a\"",      "a\nb",       "a\n---\nb", "\t",         "a\tb",     "\\",
        "\\x41",      "?",          "? a",       "<<",         "=",        "a\r\nadmin: true",
        "\x1b[31m",   "\u202e",     "\u0085",    "\u2028",     "\ufeff",   "\uffff",
        "\U0001f600", "\U000e0041", "n",         "y",          "null",     "under_score",
        "a;b=(c)",    "/a/b.c",     "\x7f",      "\u009b2J",   "ä",        "a b c"}) {
    std::string json;
    JsonWriter(json).beginObject().key(text).value(text).endObject();
    const Result<std::string> yaml = yamlFromJson(json);
    ASSERT_TRUE(yaml) << yaml.error().message();
    const YAML::Node node = YAML::Load(*yaml);
    ASSERT_TRUE(node.IsMap()) << *yaml;
    ASSERT_EQ(node.size(), 1u) << *yaml;
    EXPECT_EQ(node.begin()->first.Scalar(), text) << *yaml;
    EXPECT_TRUE(node.begin()->second.IsScalar()) << *yaml;
    EXPECT_EQ(node.begin()->second.Scalar(), text) << *yaml;
    EXPECT_EQ(yaml->find('\x1b'), std::string::npos);
    bool truth = false;
    double number = 0;
    if (node.begin()->second.Tag() == "?") {  // not quoted
      EXPECT_FALSE(YAML::convert<bool>::decode(node.begin()->second, truth)) << *yaml;
      EXPECT_FALSE(YAML::convert<double>::decode(node.begin()->second, number)) << *yaml;
      EXPECT_FALSE(node.begin()->second.IsNull()) << *yaml;
    }
  }
}

RC_GTEST_PROP(Yaml, AnyTextsComeBack, (const std::vector<std::string>& texts)) {
  std::string json;
  JsonWriter writer(json);
  writer.beginArray();
  for (const std::string& text : texts) {
    writer.beginObject().key("text").value(text).key("list").beginArray().value(text);
    writer.endArray().endObject();
  }
  writer.endArray();
  const Result<std::string> yaml = yamlFromJson(json);
  RC_ASSERT(yaml.has_value());
  const YAML::Node list = YAML::Load(*yaml);
  RC_ASSERT(list.size() == texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    // The writer replaces what is not UTF-8.
    std::string expected;
    JsonWriter(expected).value(texts[i]);
    std::string actual;
    JsonWriter(actual).value(list[i]["text"].Scalar());
    RC_ASSERT(actual == expected);
    RC_ASSERT(list[i]["list"][0].Scalar() == list[i]["text"].Scalar());
  }
}

TEST(Yaml, AKeyOfAnyLength) {
  const std::string key(3000, 'k');
  std::string json;
  JsonWriter(json).beginObject().key(key).beginObject().key("a").value(1).endObject().endObject();
  const YAML::Node node = YAML::Load(yamlFromJson(json).value());
  EXPECT_EQ(node[key]["a"].as<int>(), 1);
}

TEST(Yaml, RefusesWhatIsNotJson) {
  for (const std::string text :
       {"", "{", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "tru", "01", "1.", "-", "1e", "\"",
        "\"\\x\"", "\"\\u12\"", "\"\xff\"", "\"a\nb\"", "1 2", "]"}) {
    EXPECT_FALSE(yamlFromJson(text)) << text;
  }
  EXPECT_FALSE(yamlFromJson(std::string(1000, '[')));
}

TEST(Yaml, PairsOfSurrogates) {
  EXPECT_EQ(yamlFromJson(R"("\ud83d\ude00")").value(), "\"\U0001f600\"\n");
  EXPECT_EQ(yamlFromJson(R"("\ud83d")").value(), "\"\uFFFD\"\n");
  EXPECT_EQ(yamlFromJson(R"("\ud83d\u0041")").value(), "\"\uFFFDA\"\n");
}

}  // namespace
}  // namespace mbcas
