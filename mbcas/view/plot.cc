#include "mbcas/view/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mbcas/view/text.h"

namespace mbcas::view {
namespace {

constexpr double kWidth = 760, kHeight = 260;
constexpr double kLeft = 58, kRight = 14, kTop = 46, kBottom = 40, kLegendLine = 16;

// Distinguishable also for people who see red and green alike (the first seven: Okabe and Ito). A
// page has others for its dark mode, by the classes c0 to c9.
constexpr std::array<const char*, 10> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000", "#999999",
                                                  "#7b4f1d", "#5b2a86"};

// 1, 2 or 5 times a power of ten, so that about `count` of them make up the range.
double tickStep(double range, int count) {
  const double rough = range / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

struct Scale {
  double from, to, at_from, at_to;
  double operator()(double value) const {
    return at_from + (value - from) / (to - from) * (at_to - at_from);
  }
};

}  // namespace

std::string escapeXml(const std::string& text) {
  std::string escaped;
  for (const char c : printable(text, true)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

namespace {

bool drawable(const Plot& plot, const Point& point) {
  return std::isfinite(point.y) && std::isfinite(point.x) && (!plot.x_log || point.x > 0);
}
double across(const Plot& plot, double x) {
  return plot.x_log ? std::log10(x) : x;
}

// Where each series stands in the legend: as many in a line as there is room for.
struct Place {
  double x;
  int line;
};
std::vector<Place> legendOf(const Plot& plot) {
  std::vector<Place> places;
  Place next{kLeft, 0};
  for (const Series& series : plot.series) {
    const double width = 36 + 6.4 * static_cast<double>(series.name.size());
    if (next.x > kLeft && next.x + width > kWidth) next = {kLeft, next.line + 1};
    places.push_back(next);
    next.x += width;
  }
  return places;
}

std::string xTicks(const Plot& plot, double low, double high, const Scale& x, double bottom) {
  std::string out;
  const auto tick = [&](double at, const std::string& label) {
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#555\">{}</text>\n", x(at),
        bottom + 15, label);
  };
  if (plot.x_log) {
    for (double power = std::ceil(low - 1e-9); power <= high + 1e-9; ++power) {
      tick(power, fmt::format("{:g}", std::pow(10, power)));
    }
    return out;
  }
  const double step = tickStep(high - low, 8);
  const double first = std::ceil(low / step - 1e-9) * step;
  const int count = static_cast<int>(std::floor((high - first) / step + 1e-9));
  for (int i = 0; i <= count; ++i) tick(first + i * step, fmt::format("{:g}", first + i * step));
  return out;
}

// The line of a series and its dots. Points along a level are left out: most of what is drawn are
// limits, which hold for long.
std::pair<std::string, std::string> linesOf(const Plot& plot, const Series& series, const Scale& x,
                                            const Scale& y, const std::string& dot) {
  std::string path;
  std::string dots;
  std::string level;               // of the last point; empty: a new line begins
  std::optional<std::string> end;  // of that level, not yet drawn
  const auto draw = [&](const std::string& at, const std::string& height) {
    path += fmt::format("{}{} {}", level.empty() ? 'M' : 'L', at, height);
  };
  const auto drawEnd = [&] {
    if (end) draw(*end, level);
    end.reset();
  };
  for (const Point& point : series.points) {
    if (!drawable(plot, point)) {
      drawEnd();
      level.clear();
      continue;
    }
    const std::string at = fmt::format("{:.1f}", x(across(plot, point.x)));
    const std::string height = fmt::format("{:.1f}", y(std::max(point.y, 0.0)));
    if (series.dots) {
      dots += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"3.5\"{}/>\n", at, height, dot);
    }
    if (height == level) {
      end = at;
      continue;
    }
    if (series.stepped && !level.empty()) end = at;
    drawEnd();
    draw(at, height);
    level = height;
  }
  drawEnd();
  return {path, dots};
}

}  // namespace

std::string svg(const Plot& plot) {
  double x_low = 0, x_high = 1, top = plot.y_top.value_or(0);
  bool first = true;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      if (!drawable(plot, point)) continue;
      const double at = across(plot, point.x);
      x_low = first ? at : std::min(x_low, at);
      x_high = first ? at : std::max(x_high, at);
      top = std::max(top, point.y);
      first = false;
    }
  }
  if (x_high <= x_low) x_high = x_low + 1;
  if (top <= 0) top = 1;
  const std::vector<Place> legend = legendOf(plot);
  const double lowered = legend.empty() ? 0 : kLegendLine * legend.back().line;
  const double height = kHeight + lowered;
  const double bottom = height - kBottom;
  const double y_step = tickStep(top, 4);
  const Scale x{x_low, x_high, kLeft, kWidth - kRight};
  const Scale y{0, std::ceil(top / y_step - 1e-9) * y_step, bottom, kTop + lowered};

  std::string out = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="group" tabindex="0" )"
      R"(aria-label="{}" font-family="sans-serif" font-size="11" data-left="{}" data-right="{}" )"
      R"(data-from="{}" data-to="{}" data-top="{}" data-bottom="{}" data-most="{}" data-log="{}" )"
      R"(data-unit="{}">)"
      "\n<rect class=\"back\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
      "\n<text x=\"{}\" y=\"16\" font-size=\"13\" font-weight=\"bold\" class=\"title\">{}</text>\n",
      kWidth, height, escapeXml(plot.title), x.at_from, x.at_to, x.from, x.to, y.at_to, y.at_from,
      y.to, plot.x_log ? 1 : 0, escapeXml(plot.x_label), kLeft, escapeXml(plot.title));
  const int y_ticks = static_cast<int>(std::lround(y.to / y_step));
  for (int i = 0; i <= y_ticks; ++i) {
    const double value = i * y_step;
    out += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\" "
        "stroke=\"#ddd\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#555\">{:g}</text>\n",
        kLeft, kWidth - kRight, y(value), y(value), kLeft - 6, y(value) + 4, value);
  }
  out += xTicks(plot, x_low, x_high, x, bottom);
  const double middle = (kTop + lowered + bottom) / 2;
  out += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#555\">{}</text>\n"
      "<text x=\"12\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#555\" "
      "transform=\"rotate(-90 12 {:.1f})\">{}</text>\n",
      kWidth - kRight, height - 8, escapeXml(plot.x_label), middle, middle,
      escapeXml(plot.y_label));
  for (const Plot::Mark& mark : plot.marks) {
    const double at = x(across(plot, mark.x));
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" class=\"mark\" "
        "stroke=\"#888\" "
        "stroke-dasharray=\"2 3\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" fill=\"#555\">{5}</text>\n",
        at, kTop + lowered, bottom, at + 4, kTop + lowered + 10, escapeXml(mark.text));
  }
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const Series& series = plot.series[i];
    const std::size_t place = series.colour.value_or(i);
    // Colours that come again are distinguished by dashes.
    constexpr std::array kDashes = {"", " stroke-dasharray=\"5 3\"", " stroke-dasharray=\"1 3\""};
    const std::size_t round = place / kColours.size() + (series.dashed ? 1 : 0);
    const char* dash = kDashes[round % kDashes.size()];
    const std::string name = escapeXml(series.name);
    const char* colour = kColours[place % kColours.size()];
    const std::string attributes =
        fmt::format(" class=\"curve c{}\" data-series=\"{}\"", place % kColours.size(), i);
    const auto [path, dots] =
        linesOf(plot, series, x, y, fmt::format("{} fill=\"{}\"", attributes, colour));
    out += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.7\" data-name=\"{}\"{}{}/>\n",
        path, colour, name, attributes, dash);
    out += dots;
    const double line = 30 + kLegendLine * legend[i].line;
    out += fmt::format(
        "<g class=\"key c{}\" tabindex=\"0\" role=\"button\" aria-pressed=\"true\">"
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"2\"{}/>"
        "<text x=\"{:.1f}\" y=\"{}\">{}</text></g>\n",
        place % kColours.size(), legend[i].x, legend[i].x + 16, line, line, colour, dash,
        legend[i].x + 20, line + 4, name);
  }
  return out + "</svg>\n";
}

}  // namespace mbcas::view
