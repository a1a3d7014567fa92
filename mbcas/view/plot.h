// Line plots as SVG, without scripts or fonts of their own: they go into a document as they are. In
// a Page they follow its colours, and values are shown under the pointer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace mbcas::view {

struct Point {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points;  // by x; a y that is not finite breaks the line
  bool stepped = false;       // a value holds until the next: limits do
  bool dashed = false;
  bool dots = false;                    // each point is marked
  std::optional<std::size_t> colour{};  // one of ten; else by its place in the plot
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  std::optional<double> y_top{};  // as high at least
  bool x_log = false;             // powers of ten; what is not above zero is left out
  struct Mark {
    double x = 0;
    std::string text;
  };
  std::vector<Mark> marks{};  // vertical lines: something happened here
};

// An <svg> element, 760 units wide and 260 high or as much higher as the legend needs, that scales
// with its container.
std::string svg(const Plot& plot);

// Text for HTML and SVG.
std::string escapeXml(const std::string& text);

}  // namespace mbcas::view
