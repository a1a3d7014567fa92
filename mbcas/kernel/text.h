// What the parsers of this folder share.
#pragma once

#include <cstdint>
#include <string_view>

#include "mbcas/base/result.h"

namespace mbcas::kernel {

// An error that quotes the line, at most 80 characters of it.
std::unexpected<Error> notUnderstood(std::string_view what, std::string_view line);

// Cuts the text up to the next `separator` off the front of `rest`.
std::string_view cut(std::string_view& rest, char separator);

// The whole text has to be one number.
bool toNumber(std::string_view text, std::uint64_t& number);

// The one line of a file that holds one value.
std::string_view onlyLine(std::string_view text);

}  // namespace mbcas::kernel
