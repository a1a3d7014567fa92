// The words of a command line before and after the parser has seen them: global flags in front of
// the command, and what to say about words that it does not accept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
class ParseError;
}  // namespace CLI

namespace mbcas::app {

// The one of `candidates` that was probably meant; empty: none is near.
std::string nearest(std::string_view text, const std::vector<std::string>& candidates);

// As kubectl has it, flags may stand before the command: {"-n", "shop", "top"} becomes
// {"top", "-n", "shop"}. Words that are no flags of a command stay where they are.
std::vector<std::string> flagsAfterCommand(const CLI::App& app, std::vector<std::string> words);

// The last of two equal flags counts, as kubectl has it. Of the whole tree of commands.
void lastFlagCounts(CLI::App& app);

// What is wrong with the words and what to do next, in one line.
struct Complaint {
  std::string speaker;  // "mbcas pods list"
  std::string message;
};
Complaint complaintAbout(const CLI::App& app, const std::vector<std::string>& words,
                         const CLI::ParseError& error);

// The command that the words name, which only contains commands; null: they name another.
const CLI::App* groupOf(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace mbcas::app
