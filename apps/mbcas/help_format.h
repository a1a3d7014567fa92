// How the help of a command looks: flags in groups, values and defaults in plain words, and text
// that fits the terminal.
#pragma once

#include <memory>

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class FormatterBase;
}

namespace mbcas::cli {

// For a terminal of that many columns; text is never wider than 100.
std::shared_ptr<CLI::FormatterBase> helpFormat(std::size_t width);

}  // namespace mbcas::cli
