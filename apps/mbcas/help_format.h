// How the help of a command looks: flags in groups, values and defaults in plain words, and text
// that fits the terminal.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class FormatterBase;
}

namespace mbcas::app {

// For a terminal of that many columns; text is never wider than 100.
std::shared_ptr<CLI::FormatterBase> helpFormat(std::size_t width);

// A topic of `mbcas help`, whose lines are "WORD    what it means", paragraphs, and, indented,
// commands. As it is where the terminal is wide enough for it; of commands no line is broken.
std::string topicText(const std::string& text, std::size_t width);

}  // namespace mbcas::app
