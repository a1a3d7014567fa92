// What may come next on a command line, from the parser's own tree of commands, so that it is
// never behind it. Shells ask by `mbcas __complete WORDS...`; kubectl by running
// kubectl_complete-mbcas.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
class Option;
}  // namespace CLI

namespace mbcas::app {

// The values that an option takes, if they are a fixed few.
std::vector<std::string> valuesOf(const CLI::Option& option);

// The command of that name right below; null: there is none.
const CLI::App* findCommand(const CLI::App& app, const std::string& name);

struct Candidate {
  std::string text;
  std::string description{};
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

struct Completion {
  std::vector<Candidate> candidates;
  bool files = false;  // a file name may come too
};

// Values that only the cluster knows: of `what` ("pod", "namespace", "node"), for a command line
// with these words before.
using Lookup = std::function<std::vector<std::string>(const std::string& what,
                                                      const std::vector<std::string>& words)>;

// `words` come after the program's name; the last one is being typed.
Completion complete(const CLI::App& app, const std::vector<std::string>& words,
                    const Lookup& lookup);

// One candidate a line, after a tab what it is; the last line is ":0" where file names may come,
// and ":4" where not. (As cobra has it, whose protocol kubectl speaks.)
std::string completionText(const Completion& completion);

std::vector<std::string> lookUp(const std::string& what, const std::vector<std::string>& words);

}  // namespace mbcas::app
