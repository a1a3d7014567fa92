#include "mbcas/cli/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "mbcas/base/time.h"
#include "mbcas/cli/words.h"
#include "mbcas/view/text.h"

namespace mbcas::cli {
namespace {

using view::Colour, view::Key, view::key;

constexpr std::size_t kColumns = static_cast<std::size_t>(TopKey::kAge) + 1;
constexpr std::size_t kLongestFilter = 60;
constexpr std::size_t kBeyondTheEnd = 1'000'000;  // lines; render() knows where the end is

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<std::string> helpLines(std::size_t width) {
  std::vector<std::string> lines = {
      "q            quit",
      "?            this help",
      "Enter        explain the pod under the cursor",
      "up, down     move the cursor, also page up and page down",
      "/            show only pods that match what is typed",
      "Esc          show all pods again",
      "left, right  choose the column to sort by",
      "i            invert the order",
      "w            more columns, where there is room",
      "",
  };
  for (std::string& line : view::wrap("Sort by: " + topLetters(), width)) {
    lines.push_back(std::move(line));
  }
  lines.emplace_back();
  for (std::string& line : view::wrap("mbcas help columns says what the columns mean", width)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

bool isQuit(Key pressed) {
  return pressed == key('q') || pressed == key('Q');
}
bool isEnter(Key pressed) {
  return pressed == key('\n') || pressed == key('\r');
}

std::string small(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return text;
}

bool matches(const TopRow& row, const std::string& filter) {
  for (const std::string& text : {row.name_space + "/" + row.pod, row.node, row.phase}) {
    if (small(text).find(filter) != std::string::npos) return true;
  }
  return false;
}

// As many of the hints as fit, the most important first.
std::string hints(const std::vector<std::string>& all, std::size_t width) {
  std::string text;
  for (const std::string& hint : all) {
    std::string longer = text;
    longer.append(text.empty() ? "" : "  ").append(hint);
    if (view::width(longer) > width) break;
    text = std::move(longer);
  }
  return text;
}

}  // namespace

TopScreen::Action TopScreen::press(Key pressed) {
  switch (mode_) {
    case Mode::kTyping:
      pressWhileTyping(pressed);
      return Action::kNothing;
    case Mode::kHelp:
    case Mode::kExplanation:
      pressInText(pressed);
      return Action::kNothing;
    case Mode::kTable:
      break;
  }
  return pressInTable(pressed);
}

TopScreen::Action TopScreen::pressInTable(Key pressed) {
  const auto move_column = [&](std::size_t by) {
    const auto now = static_cast<std::size_t>(options_.sort);
    options_.sort = static_cast<TopKey>((now + by) % kColumns);
    options_.reverse = false;
  };
  switch (pressed) {
    case Key::kLeft:
      move_column(kColumns - 1);
      return Action::kNothing;
    case Key::kRight:
      move_column(1);
      return Action::kNothing;
    case Key::kUp:
      moveTo(cursor_ - std::min<std::size_t>(cursor_, 1));
      return Action::kNothing;
    case Key::kDown:
      moveTo(cursor_ + 1);
      return Action::kNothing;
    case Key::kPageUp:
      moveTo(cursor_ - std::min(cursor_, page_));
      return Action::kNothing;
    case Key::kPageDown:
      moveTo(cursor_ + page_);
      return Action::kNothing;
    case Key::kHome:
      moveTo(0);
      return Action::kNothing;
    case Key::kEnd:
      moveTo(view_.rows.size());
      return Action::kNothing;
    case Key::kEscape:
      filter_.clear();
      return Action::kNothing;
    default:
      break;
  }
  if (pressed > key('\x7f')) return Action::kNothing;
  if (isQuit(pressed)) return Action::kQuit;
  if (isEnter(pressed)) return selected() != nullptr ? Action::kExplain : Action::kNothing;
  if (pressed == key('?')) {
    mode_ = Mode::kHelp;
    text_first_ = 0;
  } else if (pressed == key('/')) {
    mode_ = Mode::kTyping;
  } else if (pressed == key('i')) {
    options_.reverse = !options_.reverse;
  } else if (pressed == key('w')) {
    options_.wide = !options_.wide;
  } else if (const auto column = topKeyOf(static_cast<char>(pressed))) {
    options_.sort = *column;
    options_.reverse = false;
  }
  return Action::kNothing;
}

void TopScreen::pressWhileTyping(Key pressed) {
  constexpr Key kBackspace = key('\x7f');
  if (isEnter(pressed)) {
    mode_ = Mode::kTable;
  } else if (pressed == Key::kEscape) {
    filter_.clear();
    mode_ = Mode::kTable;
  } else if (pressed == kBackspace || pressed == key('\b')) {
    if (!filter_.empty()) filter_.pop_back();
  } else if (pressed >= key(' ') && pressed < kBackspace && filter_.size() < kLongestFilter) {
    filter_ += static_cast<char>(pressed);  // names of Kubernetes have no other letters
  }
}

void TopScreen::pressInText(Key pressed) {
  switch (pressed) {
    case Key::kUp:
      text_first_ -= std::min<std::size_t>(text_first_, 1);
      return;
    case Key::kDown:
      ++text_first_;
      return;
    case Key::kPageUp:
      text_first_ -= std::min(text_first_, page_);
      return;
    case Key::kPageDown:
      text_first_ += page_;
      return;
    case Key::kHome:
      text_first_ = 0;
      return;
    case Key::kEnd:
      text_first_ = kBeyondTheEnd;
      return;
    default:
      break;
  }
  if (pressed == key(' ')) text_first_ += page_;
  if (isQuit(pressed) || isEnter(pressed) || pressed == key('?') || pressed == Key::kEscape) {
    mode_ = Mode::kTable;
  }
}

std::vector<TopRow> TopScreen::shownRows() {
  std::vector<TopRow> rows;
  const std::string filter = small(filter_);
  for (const TopRow& row : view_.rows) {
    if (filter.empty() || matches(row, filter)) rows.push_back(row);
  }
  sortRows(rows, options_.sort, options_.reverse);
  if (chosen_) {
    const auto found = std::ranges::find_if(rows, [&](const TopRow& row) {
      return row.name_space == chosen_->first && row.pod == chosen_->second;
    });
    if (found != rows.end()) cursor_ = static_cast<std::size_t>(found - rows.begin());
  } else {
    cursor_ = 0;
  }
  cursor_ = std::min(cursor_, rows.empty() ? 0 : rows.size() - 1);
  return rows;
}

void TopScreen::moveTo(std::size_t row) {
  const std::vector<TopRow> rows = shownRows();
  if (rows.empty()) return;
  cursor_ = std::min(row, rows.size() - 1);
  chosen_.emplace(rows[cursor_].name_space, rows[cursor_].pod);
}

const TopRow* TopScreen::selected() {
  const std::vector<TopRow> rows = shownRows();
  if (rows.empty()) return nullptr;
  const TopRow& under = rows[cursor_];
  const auto found = std::ranges::find_if(view_.rows, [&](const TopRow& row) {
    return row.name_space == under.name_space && row.pod == under.pod;
  });
  return found == view_.rows.end() ? nullptr : &*found;
}

void TopScreen::show(Explanation explanation) {
  explanation_ = std::move(explanation);
  trouble_.clear();
  text_first_ = 0;
  mode_ = Mode::kExplanation;
}

void TopScreen::show(std::string trouble) {
  explanation_.reset();
  trouble_ = std::move(trouble);
  text_first_ = 0;
  mode_ = Mode::kExplanation;
}

TopScreen::Lines TopScreen::text(const Lines& all, std::size_t width, std::size_t height,
                                 bool colours) {
  page_ = height > 2 ? height - 2 : 1;
  text_first_ = std::min(text_first_, all.size() > page_ ? all.size() - page_ : 0);
  Lines lines;
  for (std::size_t i = text_first_; i < std::min(all.size(), text_first_ + page_); ++i) {
    lines.push_back(view::width(all[i]) > width ? view::fit(all[i], width) : all[i]);
  }
  if (height >= 3) {
    lines.resize(height - 1);
    lines.push_back(view::paint(hints({"Esc back", "↑↓ scroll"}, width), Colour::kDim, colours));
  }
  return lines;
}

TopScreen::Lines TopScreen::render(const std::string& title, std::size_t width, std::size_t height,
                                   bool colours) {
  Lines lines;
  if (mode_ == Mode::kHelp) {
    lines = text(helpLines(width), width, height, colours);
  } else if (mode_ == Mode::kExplanation && explanation_) {
    lines = text(linesOf(explanationText(*explanation_, colours, width)), width, height, colours);
  } else if (mode_ == Mode::kExplanation) {
    lines = text(view::wrap(trouble_, width), width, height, colours);
  } else {
    lines = table(title, width, height, colours);
  }
  if (lines.size() > height) lines.resize(height);
  return lines;
}

TopScreen::Lines TopScreen::table(const std::string& title, std::size_t width, std::size_t height,
                                  bool colours) {
  const std::vector<TopRow> rows = shownRows();
  const std::string time = formatRfc3339(view_.at).substr(11, 8);
  std::string head = fmt::format("{}: {}, {} throttled", title, countText(view_.rows.size(), "pod"),
                                 throttledPods(view_.rows));
  if (!filter_.empty()) head += fmt::format(", {} with \"{}\"", rows.size(), filter_);
  const std::size_t room = width > time.size() + 1 ? width - time.size() - 1 : width;
  Lines lines;
  lines.push_back(view::paint(view::fit(head, room), Colour::kBold, colours) +
                  (room < width ? " " + time : ""));
  if (const std::string market = marketLine(view_); !market.empty()) {
    lines.push_back(view::fit(market, width));
  }
  for (const std::string& note : view_.notes) {
    lines.push_back(view::paint(view::fit(note, width), Colour::kDim, colours));
  }
  lines.emplace_back();

  // The header of the table, and the last line.
  page_ = height > lines.size() + 3 ? height - lines.size() - 2 : 1;
  const bool cut = rows.size() > page_;
  if (cut) --page_;
  page_ = std::max<std::size_t>(page_, 1);
  first_ = std::min(first_, rows.size() > page_ ? rows.size() - page_ : 0);
  first_ = std::min(first_, cursor_);
  if (cursor_ >= first_ + page_) first_ = cursor_ - page_ + 1;
  // Widths by all rows, so that nothing moves sideways when one scrolls. A column is the cursor's.
  const Lines table = linesOf(
      topTable(rows, options_, colours, std::max<std::size_t>(width > 1 ? width - 1 : 0, 19)));
  lines.push_back(" " + table.front());
  const std::size_t last = std::min(rows.size(), first_ + page_);
  visible_nodes_.clear();
  for (std::size_t i = first_; i < last; ++i) {
    if (!rows[i].node.empty()) visible_nodes_.insert(rows[i].node);
    lines.push_back((i == cursor_ ? ">" : " ") + table[i + 1]);
  }
  if (cut) lines.push_back(fmt::format("{} to {} of {}", first_ + 1, last, rows.size()));
  if (lines.size() + 1 > height) return lines;
  lines.resize(height - 1);
  if (mode_ == Mode::kTyping) {
    lines.push_back(view::fit(fmt::format("/{}_   Enter keeps it, Esc ends it", filter_), width));
  } else {
    lines.push_back(view::paint(hints({"q quit", "? help", "/ filter", "Enter explain", "←→ sort",
                                       "↑↓ select", "i invert", "w wide"},
                                      width),
                                Colour::kDim, colours));
  }
  return lines;
}

}  // namespace mbcas::cli
