// JSON as YAML, in the style in which kubectl prints objects.
//
//   Result<std::string> yaml = yamlFromJson(R"({"pod":"web-1","tags":["a",true]})");
//   // pod: web-1
//   // tags:
//   // - a
//   // - true
//
// A text that YAML could take for anything but that text, such as "no", "1e3" or one with a colon,
// is quoted. Control characters and what a terminal would obey become escapes. Texts that are not
// valid UTF-8 are an error, as is all else that is not JSON, or that is nested deeper than 100.
#pragma once

#include <string>
#include <string_view>

#include "mbcas/base/result.h"

namespace mbcas {

// Ends with a line break.
Result<std::string> yamlFromJson(std::string_view json);

}  // namespace mbcas
