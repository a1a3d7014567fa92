#include "mbcas/view/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace mbcas::view {
namespace {

constexpr double kWidth = 760, kHeight = 260;
constexpr double kLeft = 58, kRight = 14, kTop = 46, kBottom = 40;

// Told apart also by those who see red and green alike (Okabe and Ito).
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#000000"};

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
  for (const char c : text) {
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

std::string svg(const Plot& plot) {
  double x_low = 0, x_high = 1, top = plot.y_top.value_or(0);
  bool first = true;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      if (!std::isfinite(point.y) || !std::isfinite(point.x)) continue;
      x_low = first ? point.x : std::min(x_low, point.x);
      x_high = first ? point.x : std::max(x_high, point.x);
      top = std::max(top, point.y);
      first = false;
    }
  }
  if (x_high <= x_low) x_high = x_low + 1;
  if (top <= 0) top = 1;
  const double y_step = tickStep(top, 4);
  const Scale x{x_low, x_high, kLeft, kWidth - kRight};
  const Scale y{0, std::ceil(top / y_step - 1e-9) * y_step, kHeight - kBottom, kTop};

  std::string out = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img" font-family="sans-serif" font-size="11">)"
      "\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"{}\" y=\"16\" font-size=\"13\" font-weight=\"bold\">{}</text>\n",
      kWidth, kHeight, kLeft, escapeXml(plot.title));
  const int y_ticks = static_cast<int>(std::lround(y.to / y_step));
  for (int i = 0; i <= y_ticks; ++i) {
    const double value = i * y_step;
    out += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#555\">{:g}</text>\n",
        kLeft, kWidth - kRight, y(value), y(value), kLeft - 6, y(value) + 4, value);
  }
  const double x_step = tickStep(x_high - x_low, 8);
  const double x_first = std::ceil(x_low / x_step - 1e-9) * x_step;
  const int x_ticks = static_cast<int>(std::floor((x_high - x_first) / x_step + 1e-9));
  for (int i = 0; i <= x_ticks; ++i) {
    const double value = x_first + i * x_step;
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#555\">{:g}</text>\n",
        x(value), kHeight - kBottom + 15, value);
  }
  out += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#555\">{}</text>\n"
      "<text x=\"12\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#555\" "
      "transform=\"rotate(-90 12 {:.1f})\">{}</text>\n",
      kWidth - kRight, kHeight - 8, escapeXml(plot.x_label), (kTop + kHeight - kBottom) / 2,
      (kTop + kHeight - kBottom) / 2, escapeXml(plot.y_label));
  for (const Plot::Mark& mark : plot.marks) {
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#888\" "
        "stroke-dasharray=\"2 3\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" fill=\"#555\">{5}</text>\n",
        x(mark.x), kTop, kHeight - kBottom, x(mark.x) + 4, kTop + 10, escapeXml(mark.text));
  }
  double legend = kLeft;
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const Series& series = plot.series[i];
    const char* colour = kColours[i % kColours.size()];
    std::string path;
    double last = 0;
    bool drawing = false;
    for (const Point& point : series.points) {
      if (!std::isfinite(point.y) || !std::isfinite(point.x)) {
        drawing = false;
        continue;
      }
      if (drawing && series.stepped) path += fmt::format("L{:.1f} {:.1f}", x(point.x), last);
      last = y(std::max(point.y, 0.0));
      path += fmt::format("{}{:.1f} {:.1f}", drawing ? 'L' : 'M', x(point.x), last);
      drawing = true;
    }
    const char* dash = series.dashed ? " stroke-dasharray=\"5 3\"" : "";
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.7\"{}/>\n",
                       path, colour, dash);
    out += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"30\" y2=\"30\" stroke=\"{}\" stroke-width=\"2\"{}/>"
        "<text x=\"{:.1f}\" y=\"34\">{}</text>\n",
        legend, legend + 16, colour, dash, legend + 20, escapeXml(series.name));
    legend += 36 + 6.4 * static_cast<double>(series.name.size());
  }
  return out + "</svg>\n";
}

}  // namespace mbcas::view
