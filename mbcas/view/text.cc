#include "mbcas/view/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "mbcas/base/utf8.h"

namespace mbcas::view {
namespace {

constexpr std::array<std::string_view, 7> kEscapes = {"",         "\x1b[1m",  "\x1b[2m", "\x1b[31m",
                                                      "\x1b[32m", "\x1b[33m", "\x1b[36m"};
constexpr std::string_view kReset = "\x1b[0m";
constexpr std::array<std::string_view, 9> kEighths = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
constexpr std::array<std::string_view, 8> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// The first `columns` characters of text without escape sequences.
std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  while (end < text.size() && (columns > 0 || continues(text[end]))) {
    if (!continues(text[end])) --columns;
    ++end;
  }
  return text.substr(0, end);
}

std::string fitted(std::string_view given, std::size_t columns, bool right) {
  std::string text = printable(given);
  const std::size_t used = width(text);
  if (used <= columns) {
    const std::string blanks(columns - used, ' ');
    return right ? blanks + text : text + blanks;
  }
  if (columns == 0) return text;
  return std::string(cut(text, columns - 1)) + "…";
}

}  // namespace

std::string printable(std::string_view text, bool lines) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = firstCharacter(text);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    const auto code = static_cast<std::uint32_t>(character.code);
    const auto out = std::back_inserter(safe);
    if (character.bytes == 0) {
      fmt::format_to(out, "\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (!isInvisible(character.code) || (lines && code == '\n')) {
      safe += text.substr(0, bytes);
    } else if (code < 0x80) {
      fmt::format_to(out, "\\x{:02x}", code);
    } else if (code < 0x10000) {
      fmt::format_to(out, "\\u{:04x}", code);
    } else {
      fmt::format_to(out, "\\U{:08x}", code);
    }
    text.remove_prefix(bytes);
  }
  return safe;
}

std::string paint(std::string_view text, Colour colour, bool on) {
  if (!on || colour == Colour::kNone || text.empty()) return printable(text);
  std::string painted(kEscapes[static_cast<std::size_t>(colour)]);
  painted += printable(text);
  painted += kReset;
  return painted;
}

std::size_t width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      const std::size_t end = text.find('m', i);
      if (end == std::string_view::npos) break;
      i = end;
    } else if (!continues(text[i])) {
      ++columns;
    }
  }
  return columns;
}

std::string fit(std::string_view text, std::size_t columns) {
  return fitted(text, columns, false);
}

std::string fitRight(std::string_view text, std::size_t columns) {
  return fitted(text, columns, true);
}

std::string bar(double share, std::size_t columns) {
  const double full = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  auto eighths = static_cast<std::size_t>(std::lround(full * static_cast<double>(columns) * 8));
  std::string text;
  for (std::size_t i = 0; i < columns; ++i) {
    const std::size_t here = std::min<std::size_t>(eighths, 8);
    text += kEighths[here];
    eighths -= here;
  }
  return text;
}

std::vector<std::string> wrap(std::string_view given, std::size_t columns) {
  const std::string safe = printable(given);
  if (columns == 0) return {safe};
  std::string_view text = safe;
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!lines.back().empty() && width(lines.back()) + 1 + width(word) > columns) {
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::string sparkline(std::span<const double> values, std::size_t columns, double top) {
  const auto shown = values.last(std::min(columns, values.size()));
  for (const double value : shown) top = std::max(top, value);
  std::string text(columns - shown.size(), ' ');
  for (const double value : shown) {
    const double share = top > 0 && std::isfinite(value) ? std::clamp(value / top, 0.0, 1.0) : 0.0;
    text += kHeights[static_cast<std::size_t>(std::lround(share * 7))];
  }
  return text;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = printable(column.title);
}

void Table::row(std::vector<std::string> cells, Colour colour) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back({std::move(cells), colour});
}

Table::Layout Table::layout(std::size_t max_width) const {
  Layout layout;
  std::vector<std::size_t>& widths = layout.widths;
  std::size_t total = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t widest = width(columns_[c].title);
    for (const Row& row : rows_) widest = std::max(widest, width(row.cells[c]));
    widths.push_back(widest);
    total += widest;
  }
  if (max_width == 0) return layout;
  const auto used = [&] { return total + (widths.empty() ? 0 : layout.gap * (widths.size() - 1)); };
  if (used() > max_width) layout.gap = 1;
  while (used() > max_width && !widths.empty()) {
    std::size_t widest = widths.size();  // of those that may be cut
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const std::size_t least = columns_[c].least;
      if (least == 0 || widths[c] <= least) continue;
      if (widest == widths.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest < widths.size()) {
      --widths[widest];
      --total;
    } else {
      total -= widths.back();
      widths.pop_back();
    }
  }
  layout.gap = 2;
  if (used() > max_width) layout.gap = 1;
  return layout;
}

std::string Table::toString(bool colours, std::size_t max_width) const {
  const Layout layout = this->layout(max_width);
  const auto line = [&](auto cell, Colour colour) {
    std::string text;
    for (std::size_t c = 0; c < layout.widths.size(); ++c) {
      if (c > 0) text.append(layout.gap, ' ');
      text += columns_[c].align == Align::kRight ? fitRight(cell(c), layout.widths[c])
                                                 : fit(cell(c), layout.widths[c]);
    }
    text.resize(text.find_last_not_of(' ') + 1);
    return paint(text, colour, colours) + "\n";
  };
  std::string text = line([&](std::size_t c) { return columns_[c].title; }, Colour::kBold);
  for (const Row& row : rows_) {
    text += line([&](std::size_t c) { return row.cells[c]; }, row.colour);
  }
  return text;
}

std::string Table::toMarkdown() const {
  std::string text = "|";
  for (const Column& column : columns_) text += " " + column.title + " |";
  text += "\n|";
  for (std::size_t c = 0; c < columns_.size(); ++c) text += "---|";
  text += '\n';
  for (const Row& row : rows_) {
    text += '|';
    for (const std::string& cell : row.cells) text += " " + cell + " |";
    text += '\n';
  }
  return text;
}

}  // namespace mbcas::view
