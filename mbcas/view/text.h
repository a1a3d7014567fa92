// Numbers as text for people: bars, sparklines, tables for a terminal of any width. No terminal is
// touched here; all of it returns strings.
//
// Names and messages come from people that one need not trust, and a terminal obeys what is in
// them. So everything here that takes text makes it printable() first, and adds its own escape
// sequences afterwards: what it returns can be shown as it is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mbcas::view {

enum class Colour : std::uint8_t { kNone, kBold, kDim, kRed, kGreen, kYellow, kCyan };

// Without what a terminal would obey or not show: `\x1b`, `\u202e` and so on stand for it. Of
// `lines`, line breaks stay. Printable text is unchanged, so a second time does no harm.
std::string printable(std::string_view text, bool lines = false);

// The text in that colour; in none if `on` is false or there is nothing to colour.
std::string paint(std::string_view text, Colour colour, bool on);

// Columns that the text takes on a terminal: bytes that continue a UTF-8 character and escape
// sequences take none. (No wide characters occur here.)
std::size_t width(std::string_view text);
// Exactly `columns` wide: filled with blanks on the right, or cut with an ellipsis.
std::string fit(std::string_view text, std::size_t columns);
std::string fitRight(std::string_view text, std::size_t columns);  // blanks on the left

// "█████▌    ": eighths of a column, `columns` wide. A share outside 0 to 1 is clamped.
std::string bar(double share, std::size_t columns);

// Lines of at most `columns` (0: any), broken at blanks; a longer word has a line of its own. At
// least one line.
std::vector<std::string> wrap(std::string_view text, std::size_t columns);

// "▁▂▅█": the last `columns` values, against `top` (or the largest of them if that is more).
std::string sparkline(std::span<const double> values, std::size_t columns, double top = 0);

// A table whose columns are as wide as their widest cell, or narrower where that is too wide.
class Table {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
    std::size_t least = 0;  // its cells may be cut to so many columns; 0: never
  };
  explicit Table(std::vector<Column> columns);

  // Fewer cells than columns leave the rest empty. A colour is the whole row's.
  void row(std::vector<std::string> cells, Colour colour = Colour::kNone);
  // Lines of at most `max_width` columns (0: any), each with its line break. What is too wide first
  // loses blanks between columns, then the ends of cells that may be cut, then its last columns.
  std::string toString(bool colours, std::size_t max_width = 0) const;
  std::string toMarkdown() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Colour colour;
  };
  struct Layout {
    std::vector<std::size_t> widths;  // of the columns that are shown
    std::size_t gap = 2;
  };
  Layout layout(std::size_t max_width) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace mbcas::view
