#include "mbcas/view/text.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mbcas::view {
namespace {

constexpr std::array<std::string_view, 8> kEscapes = {
    "", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[36m"};
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

std::string fitted(std::string_view text, std::size_t columns, bool right) {
  const std::size_t used = width(text);
  if (used <= columns) {
    const std::string blanks(columns - used, ' ');
    return right ? blanks + std::string(text) : std::string(text) + blanks;
  }
  if (columns == 0 || text.find('\x1b') != std::string_view::npos) return std::string(text);
  return std::string(cut(text, columns - 1)) + "…";
}

}  // namespace

std::string paint(std::string_view text, Colour colour, bool on) {
  if (!on || colour == Colour::kNone || text.empty()) return std::string(text);
  std::string painted(kEscapes[static_cast<std::size_t>(colour)]);
  painted += text;
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

void Table::row(std::vector<std::string> cells, Colour colour) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), colour});
}

std::string Table::toString(bool colours, std::size_t max_width) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t widest = width(columns_[c].title);
    for (const Row& row : rows_) widest = std::max(widest, width(row.cells[c]));
    widths.push_back(widest);
  }
  const auto line = [&](auto cell, Colour colour) {
    std::string text;
    std::size_t used = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (max_width > 0 && used + widths[c] + (c > 0 ? 2 : 0) > max_width) break;
      if (c > 0) text += "  ";
      used += widths[c] + (c > 0 ? 2 : 0);
      text += columns_[c].align == Align::kRight ? fitRight(cell(c), widths[c])
                                                 : fit(cell(c), widths[c]);
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

}  // namespace mbcas::view
