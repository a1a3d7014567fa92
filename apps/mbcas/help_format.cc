#include "apps/mbcas/help_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apps/mbcas/completion.h"
#include "apps/mbcas/flags.h"
#include "mbcas/view/text.h"

namespace mbcas::app {
namespace {

constexpr std::size_t kWidest = 100;
constexpr std::size_t kColumn = 30;  // where descriptions begin
constexpr std::size_t kNarrow = 70;  // below this they have lines of their own
constexpr std::size_t kShortValues = 22;

// A name on the left, and what it means on the right or, where there is no room, below.
std::string entry(const std::string& left, const std::string& right, std::size_t width) {
  const std::size_t column = width < kNarrow ? 8 : kColumn;
  const bool below = width < kNarrow || left.size() + 2 > column;
  std::string text = left;
  bool first = true;
  for (const std::string& line : view::wrap(right, width - column)) {
    if (right.empty()) break;
    if (first && !below) {
      text.append(column - left.size(), ' ');
    } else {
      text += '\n';
      text.append(column, ' ');
    }
    text += line;
    first = false;
  }
  return text + "\n";
}

// Paragraphs fill the width; lines that begin with a blank, such as examples, stay as they are.
std::string reflow(const std::string& text, std::size_t width) {
  std::string out;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (paragraph.empty()) return;
    for (const std::string& line : view::wrap(paragraph, width)) out += line + "\n";
    paragraph.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line.front() == ' ') {
      end_paragraph();
      out += line + "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
      if (line.back() == ':') end_paragraph();
    }
  }
  end_paragraph();
  return out;
}

class HelpFormat final : public CLI::Formatter {
 public:
  explicit HelpFormat(std::size_t width) : width_(std::clamp<std::size_t>(width, 40, kWidest)) {}

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    return reflow(app->get_description(), width_) + "\n" + make_usage(app, std::move(name)) +
           arguments(app) + flags(app) + commands(app) + "\n" + reflow(app->get_footer(), width_);
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = "Usage: " + name;
    const bool group = !app->get_subcommands([](const CLI::App*) { return true; }).empty();
    if (group) return usage + " COMMAND\n";
    if (!groupsOf(app).empty()) usage += " [FLAGS]";
    for (const CLI::Option* option : positionalsOf(app)) {
      const bool many = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
      const std::string word = option->get_name(true, false) + (many ? "..." : "");
      usage += option->get_required() ? " " + word : " [" + word + "]";
    }
    return usage + "\n";
  }

 private:
  static std::vector<const CLI::Option*> positionalsOf(const CLI::App* app) {
    return app->get_options([](const CLI::Option* option) { return option->get_positional(); });
  }

  // -h is well known, so only `mbcas --help` lists it.
  static std::vector<const CLI::Option*> flagsOf(const CLI::App* app, const std::string& group) {
    return app->get_options([&](const CLI::Option* option) {
      return option->get_group() == group && option->nonpositional() &&
             (option != app->get_help_ptr() || app->get_parent() == nullptr);
    });
  }
  // Those of the command itself come first; those of the cluster, which are always the same, last.
  static std::vector<std::string> groupsOf(const CLI::App* app) {
    const auto rank = [](const std::string& group) {
      return group == "Options" ? 0 : group == kPodGroup ? 1 : group == kClusterGroup ? 3 : 2;
    };
    std::vector<std::string> groups;
    for (const int next : {0, 1, 2, 3}) {
      for (const std::string& group : app->get_groups()) {
        if (rank(group) != next || group.empty() || flagsOf(app, group).empty()) continue;
        groups.push_back(group);
      }
    }
    return groups;
  }

  std::string arguments(const CLI::App* app) const {
    const auto positionals = positionalsOf(app);
    std::string text = positionals.empty() ? "" : "\nArguments:\n";
    for (const CLI::Option* option : positionals) {
      text += entry("  " + option->get_name(true, false), description(*option), width_);
    }
    return text;
  }

  std::string flags(const CLI::App* app) const {
    std::string text;
    for (const std::string& group : groupsOf(app)) {
      text += "\n" + (group == "Options" ? "Flags" : group) + ":\n";
      for (const CLI::Option* option : flagsOf(app, group)) {
        text += entry(nameOf(*option), description(*option), width_);
      }
    }
    return text;
  }

  std::string commands(const CLI::App* app) const {
    std::vector<std::string> groups;
    const auto all = app->get_subcommands([](const CLI::App*) { return true; });
    for (const CLI::App* command : all) {
      if (std::ranges::find(groups, command->get_group()) == groups.end()) {
        groups.push_back(command->get_group());
      }
    }
    std::string text;
    for (const std::string& group : groups) {
      text += "\n" + (group == "Subcommands" ? "Commands" : group) + ":\n";
      for (const CLI::App* command : all) {
        if (command->get_group() != group) continue;
        text += entry("  " + command->get_name(), command->get_description(), width_);
      }
    }
    return text;
  }

  // "  -n, --namespace NAME"; of several long names the first.
  static std::string nameOf(const CLI::Option& option) {
    const std::vector<std::string>& shorts = option.get_snames();
    const std::vector<std::string>& longs = option.get_lnames();
    std::string name = shorts.empty() ? "      " : "  -" + shorts.front();
    if (!longs.empty()) name += (shorts.empty() ? "--" : ", --") + longs.front();
    const std::vector<std::string> values = valuesOf(option);
    const std::string listed = fmt::format("{}", fmt::join(values, "|"));
    if (option.get_expected_max() == 0) return name + (values.empty() ? "" : "[=" + listed + "]");
    if (values.empty()) return name + " " + plainType(option);
    return name + " " + (listed.size() <= kShortValues ? listed : "VALUE");
  }

  // What CLI11 calls FLOAT, INT:INT in [1 - 9] or UINT is a number.
  static std::string plainType(const CLI::Option& option) {
    std::string type = option.get_type_name();
    type = type.substr(0, type.find(':'));
    for (const char* number : {"INT", "UINT", "FLOAT"}) {
      if (type == number) return "NUMBER";
    }
    return type;
  }

  static std::string description(const CLI::Option& option) {
    std::string text = option.get_description();
    const std::vector<std::string> values = valuesOf(option);
    const bool listed = option.get_expected_max() == 0 || option.get_positional() ||
                        fmt::format("{}", fmt::join(values, "|")).size() <= kShortValues;
    if (!values.empty() && !listed) text += fmt::format(": {}", fmt::join(values, ", "));
    if (option.get_expected_max() != 0 && !option.get_default_str().empty()) {
      text += fmt::format(" (default {})", option.get_default_str());
    }
    if (option.get_required() && option.nonpositional()) text += " (required)";
    return text;
  }

  std::size_t width_;
};

}  // namespace

namespace {

// A line of a topic: what stands on the left, and from which column on what it means. Lines without
// a gap have no such column.
struct TopicLine {
  std::size_t indent = 0;
  std::string left;  // with its indent
  std::size_t column = 0;
  std::string text;
};

TopicLine topicLine(const std::string& line) {
  TopicLine read;
  read.indent = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", read.indent);
  read.left = line.substr(0, gap);
  if (gap == std::string::npos) return read;
  read.column = line.find_first_not_of(' ', gap);
  read.text = line.substr(std::min(read.column, line.size()));
  return read;
}

std::string fitted(const TopicLine& entry, std::size_t width) {
  constexpr std::size_t kBelow = 8;
  const bool beside = entry.column * 5 <= width * 2;
  const std::size_t column = beside ? entry.column : kBelow;
  std::string out = entry.left;
  for (const std::string& line : view::wrap(entry.text, width - column)) {
    if (beside && out.size() == entry.left.size()) {
      out.append(column - out.size(), ' ');
    } else {
      out += '\n';
      out.append(column, ' ');
    }
    out += line;
  }
  return out + "\n";
}

}  // namespace

std::string topicText(const std::string& text, std::size_t width) {
  constexpr std::size_t kContinues = 4;  // blanks at the beginning of a line that goes on
  width = std::max<std::size_t>(width, 40);
  std::vector<std::string> lines;
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    widest = std::max(widest, lines.back().size());
    at = end + 1;
  }
  if (widest <= width) return text;
  std::string out;
  std::string paragraph;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    TopicLine entry = topicLine(lines[i]);
    const bool of_paragraph = entry.indent == 0 && entry.column == 0 && !lines[i].empty();
    if (of_paragraph) {
      paragraph += (paragraph.empty() ? "" : " ") + lines[i];
      const bool goes_on = i + 1 < lines.size() && !lines[i + 1].empty() &&
                           topicLine(lines[i + 1]).indent == 0 &&
                           topicLine(lines[i + 1]).column == 0;
      if (goes_on) continue;
      out += reflow(std::exchange(paragraph, {}), width);
    } else if (entry.column == 0) {
      out += lines[i] + "\n";
    } else {
      while (i + 1 < lines.size() && topicLine(lines[i + 1]).indent >= kContinues) {
        const std::string& more = lines[++i];
        entry.text += " " + more.substr(more.find_first_not_of(' '));
      }
      out += fitted(entry, width);
    }
  }
  return out;
}

std::shared_ptr<CLI::FormatterBase> helpFormat(std::size_t width) {
  return std::make_shared<HelpFormat>(width);
}

}  // namespace mbcas::app
