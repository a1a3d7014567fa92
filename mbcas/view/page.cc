#include "mbcas/view/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/view/page_parts.h"

namespace mbcas::view {

void Page::heading(const std::string& text) {
  body_ += "<h2>" + escapeXml(text) + "</h2>\n";
}

void Page::paragraph(const std::string& text) {
  body_ += "<p>" + escapeXml(text) + "</p>\n";
}

void Page::table(const std::vector<Row>& rows, const Cells& best) {
  // With a sign before it, perhaps, and a unit behind it; a sentence may begin with a number, too.
  const auto isNumber = [](const std::string& cell) {
    constexpr std::size_t kLongest = 20;
    const std::size_t sign = cell.starts_with('+') || cell.starts_with('-') ? 1 : 0;
    return cell.size() > sign && cell.size() <= kLongest && cell[sign] >= '0' && cell[sign] <= '9';
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
  has_plots_ = true;
}

std::string Page::toString() const {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escapeXml(title_) + "</title>\n<style>" + kPageStyle + "</style></head><body>\n<h1>" +
         escapeXml(title_) + "</h1>\n" + body_ +
         (has_plots_ ? fmt::format("<script>{}</script>", kPageScript) : "") + "</body></html>\n";
}

}  // namespace mbcas::view
