#include "mbcas/view/page.h"

#include <fmt/format.h>

#include <algorithm>

namespace mbcas::view {

void Page::heading(const std::string& text) {
  body_ += "<h2>" + escapeXml(text) + "</h2>\n";
}

void Page::paragraph(const std::string& text) {
  body_ += "<p>" + escapeXml(text) + "</p>\n";
}

void Page::table(const std::vector<Row>& rows, const Cells& best) {
  const auto isNumber = [](const std::string& cell) {
    return !cell.empty() && cell[0] >= '0' && cell[0] <= '9';
  };
  std::vector<bool> numbers;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    numbers.resize(std::max(numbers.size(), rows[r].size()));
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      numbers[c] = numbers[c] || isNumber(rows[r][c]);
    }
  }
  body_ += "<div class=\"scroll\"><table>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    body_ += "<tr>";
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      std::string kind = c < numbers.size() && numbers[c] ? "n" : "";
      if (best.contains({r, c})) kind += kind.empty() ? "best" : " best";
      if (!kind.empty()) kind = fmt::format(" class=\"{}\"", kind);
      body_ += fmt::format("<{0}{1}>{2}</{0}>", r == 0 ? "th" : "td", kind, escapeXml(rows[r][c]));
    }
    body_ += "</tr>\n";
  }
  body_ += "</table></div>\n";
}

void Page::beginFold(const std::string& text) {
  body_ += "<details><summary>" + escapeXml(text) + "</summary>\n";
}

void Page::endFold() {
  body_ += "</details>\n";
}

void Page::plot(const Plot& plot) {
  body_ += "<figure>" + svg(plot) + "</figure>\n";
}

std::string Page::toString() const {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escapeXml(title_) +
         "</title>\n<style>\n"
         "body { font: 15px/1.5 sans-serif; color: #222; max-width: 1000px; margin: 2em auto; "
         "padding: 0 1em; }\n"
         "h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }\n"
         ".scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; }\n"
         "th, td { padding: .3em .6em; border-bottom: 1px solid #ddd; text-align: left; }\n"
         "th { vertical-align: bottom; }\n"
         "th:first-child, td:first-child { position: sticky; left: 0; background: #fff; }\n"
         "th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; }\n"
         "td.best { font-weight: bold; background: #e3f4ec; }\n"
         "figure { margin: 1em 0; overflow-x: auto; }\n"
         "svg { width: 100%; min-width: 600px; height: auto; }\n"
         "summary { cursor: pointer; font-weight: bold; padding: .4em 0; }\n"
         "</style></head><body>\n<h1>" +
         escapeXml(title_) + "</h1>\n" + body_ + "</body></html>\n";
}

}  // namespace mbcas::view
