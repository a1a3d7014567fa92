#include "apps/mbcas/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <numeric>

#include "apps/mbcas/completion.h"

namespace mbcas::app {
namespace {

// Words from kubectl and other tools, and what they are called here.
const std::map<std::string_view, const char*> kOtherWords = {
    {"apply", "run"},        {"check", "doctor"},     {"continue", "resume"},
    {"describe", "explain"}, {"diagnose", "doctor"},  {"get", "pods list"},
    {"list", "pods list"},   {"ls", "pods list"},     {"patch", "resize"},
    {"ps", "pods list"},     {"rollback", "restore"}, {"scale", "resize"},
    {"set", "resize"},       {"status", "doctor"},    {"stop", "pause"},
    {"undo", "restore"},     {"unpause", "resume"},   {"usage", "pods usage"},
    {"verify", "doctor"},    {"watch", "top"},        {"why", "explain"}};

// Steps from one word to the other: letters added, left out, replaced or exchanged.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last.back();
}

bool isFlagWord(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && word != "--";
}

// "--node" of "--node=n1", "-o" of "-oyaml".
std::string flagName(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

const CLI::Option* findOption(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional() && option->check_name(name)) return option;
  }
  return nullptr;
}

const CLI::Option* findBelow(const CLI::App& app, const std::string& name) {
  if (const CLI::Option* const own = findOption(app, name)) return own;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (const CLI::Option* const option = findBelow(*command, name)) return option;
  }
  return nullptr;
}

// Whether the word after this one is the flag's value.
bool takesNext(const CLI::Option& option, const std::string& word) {
  if (option.get_expected_max() == 0) return false;
  return word.starts_with("--") ? word.find('=') == word.npos : word.size() == 2;
}

std::vector<std::string> commandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> flagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The words as far as they are understood: the command that they end in, and the first word that
// does not belong there.
struct Reading {
  const CLI::App* at;
  std::string command;  // "mbcas pods list"
  std::string unknown_command;
  std::string unknown_flag;
  std::string surplus;
  std::string without_value;  // a flag at the end that takes one
};

Reading readWords(const CLI::App& app, const std::vector<std::string>& words) {
  Reading reading{.at = &app, .command = app.get_name()};
  std::size_t positionals = 0;
  bool only_positionals = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--" && !only_positionals) {
      only_positionals = true;
      continue;
    }
    if (isFlagWord(word) && !only_positionals) {
      const CLI::Option* const option = findOption(*reading.at, flagName(word));
      if (option == nullptr) {
        reading.unknown_flag = flagName(word);
        return reading;
      }
      if (!takesNext(*option, word)) continue;
      if (++i == words.size()) reading.without_value = flagName(word);
      continue;
    }
    const std::vector<const CLI::Option*> places =
        reading.at->get_options([](const CLI::Option* option) { return option->get_positional(); });
    if (const CLI::App* const command = findCommand(*reading.at, word)) {
      reading.at = command;
      reading.command += " " + word;
    } else if (places.empty() && !commandNames(*reading.at).empty()) {
      reading.unknown_command = word;
      return reading;
    } else if (++positionals > places.size() &&
               (places.empty() || places.back()->get_items_expected_max() <= 1)) {
      reading.surplus = word;
      return reading;
    }
  }
  return reading;
}

std::string suggestion(const std::string& near) {
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

}  // namespace

std::string nearest(std::string_view text, const std::vector<std::string>& candidates) {
  const std::size_t most = text.size() < 3 ? 1 : text.size() < 8 ? 2 : 3;
  std::string best;
  std::size_t smallest = most + 1;
  for (const std::string& candidate : candidates) {
    // What it begins with is as near as one letter.
    const std::size_t d = text.size() > 1 && candidate.starts_with(text)
                              ? 1
                              : distance(text.substr(0, 100), candidate);
    if (d < smallest && d < candidate.size()) {
      smallest = d;
      best = candidate;
    }
  }
  return best;
}

std::vector<std::string> flagsAfterCommand(const CLI::App& app, std::vector<std::string> words) {
  std::vector<std::string> path;
  std::vector<std::string> flags;
  const CLI::App* at = &app;
  std::size_t i = 0;
  for (; i < words.size() && !commandNames(*at).empty(); ++i) {
    const std::string& word = words[i];
    if (isFlagWord(word)) {
      if (findOption(*at, flagName(word)) != nullptr) break;  // of the group itself: --help
      const CLI::Option* const option = findBelow(*at, flagName(word));
      if (option == nullptr) break;
      flags.push_back(word);
      if (takesNext(*option, word) && i + 1 < words.size()) flags.push_back(words[++i]);
    } else if (const CLI::App* const command = findCommand(*at, word)) {
      path.push_back(word);
      at = command;
    } else {
      break;
    }
  }
  // Without a command they belong nowhere, and are complained about as they stand.
  if (flags.empty() || path.empty()) return words;
  path.insert(path.end(), flags.begin(), flags.end());
  path.insert(path.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return path;
}

void lastFlagCounts(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const bool one = option->get_items_expected_max() == 1;
    if (one && option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw) {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    lastFlagCounts(*command);
  }
}

const CLI::App* groupOf(const CLI::App& app, const std::vector<std::string>& words) {
  const Reading reading = readWords(app, words);
  const bool understood = reading.unknown_command.empty() && reading.unknown_flag.empty() &&
                          reading.surplus.empty() && reading.without_value.empty();
  return understood && !commandNames(*reading.at).empty() ? reading.at : nullptr;
}

Complaint complaintAbout(const CLI::App& app, const std::vector<std::string>& words,
                         const CLI::ParseError& error) {
  const Reading reading = readWords(app, words);
  Complaint complaint{.speaker = reading.command, .message = ""};
  const std::string help = reading.command + " --help";
  if (!reading.unknown_command.empty()) {
    std::string near = nearest(reading.unknown_command, commandNames(*reading.at));
    if (const auto other = kOtherWords.find(reading.unknown_command);
        near.empty() && reading.at == &app && other != kOtherWords.end()) {
      near = other->second;
    }
    complaint.message =
        fmt::format("unknown command {}{} {} lists all commands", reading.unknown_command,
                    near.empty() ? ";" : suggestion(near), help);
    return complaint;
  }
  if (!reading.unknown_flag.empty()) {
    const std::string near = nearest(reading.unknown_flag, flagNames(*reading.at));
    // Of a group, or of no command at all, one of its commands may have it.
    const bool misses_command = near.empty() && !commandNames(*reading.at).empty() &&
                                findBelow(*reading.at, reading.unknown_flag) != nullptr;
    complaint.message =
        misses_command
            ? fmt::format("{} belongs to a command, and no command is given; {} lists all commands",
                          reading.unknown_flag, help)
            : fmt::format("unknown flag {}{} {} lists all flags", reading.unknown_flag,
                          near.empty() ? ";" : suggestion(near), help);
    return complaint;
  }
  if (!reading.surplus.empty()) {
    complaint.message =
        fmt::format("{} is one argument too many; {} shows what it takes", reading.surplus, help);
    return complaint;
  }
  if (!reading.without_value.empty()) {
    complaint.message = fmt::format("{} needs a value; {} says which", reading.without_value, help);
    return complaint;
  }
  std::string said = error.what();
  said = said.substr(0, said.find('\n'));
  if (const std::string_view begin = "Could not convert: "; said.starts_with(begin)) {
    const std::size_t equals = said.find(" = ");
    said = fmt::format("{}: {} is not a number", said.substr(begin.size(), equals - begin.size()),
                       equals == said.npos ? "it" : said.substr(equals + 3));
  } else if (const std::size_t required = said.find(" is required"); required != said.npos) {
    said = said.substr(0, required) + " is missing";
  }
  complaint.message = fmt::format("{}; {} shows what it takes", said, help);
  return complaint;
}

}  // namespace mbcas::app
