// Any bytes, written as a text of JSON, come back from its YAML as that text; and any bytes taken
// for JSON are either refused or make YAML that can be read.
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <cstdlib>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mbcas;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string json;
  JsonWriter writer(json);
  writer.beginObject().key("before").value(1).key("text").value(input).key("list").beginArray();
  writer.value(input).endArray().endObject();
  const Result<std::string> yaml = yamlFromJson(json);
  if (!yaml) std::abort();
  const YAML::Node read = YAML::Load(*yaml);
  std::string expected;
  JsonWriter(expected).value(input);  // without what is not UTF-8
  for (const YAML::Node& text : {read["text"], read["list"][0]}) {
    std::string actual;
    JsonWriter(actual).value(text.Scalar());
    if (actual != expected) std::abort();
  }
  if (const Result<std::string> other = yamlFromJson(input)) (void)YAML::Load(*other);
  return 0;
}
