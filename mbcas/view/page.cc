#include "mbcas/view/page.h"

#include <fmt/format.h>

namespace mbcas::view {

void Page::heading(const std::string& text) {
  body_ += "<h2>" + escapeXml(text) + "</h2>\n";
}

void Page::paragraph(const std::string& text) {
  body_ += "<p>" + escapeXml(text) + "</p>\n";
}

void Page::table(const std::vector<std::vector<std::string>>& rows) {
  body_ += "<div class=\"scroll\"><table>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    body_ += "<tr>";
    for (const std::string& cell : rows[r]) {
      const bool number = r > 0 && !cell.empty() && cell[0] >= '0' && cell[0] <= '9';
      const std::string tag = r == 0 ? "th" : "td";
      body_ += fmt::format("<{0}{1}>{2}</{0}>", tag, number ? " class=\"n\"" : "", escapeXml(cell));
    }
    body_ += "</tr>\n";
  }
  body_ += "</table></div>\n";
}

void Page::plot(const Plot& plot) {
  body_ += "<figure>" + svg(plot) + "</figure>\n";
}

std::string Page::toString() const {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escapeXml(title_) +
         "</title>\n<style>\n"
         "body { font: 15px/1.5 sans-serif; color: #222; max-width: 820px; margin: 2em auto; "
         "padding: 0 1em; }\n"
         "h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }\n"
         ".scroll { overflow-x: auto; } table { border-collapse: collapse; }\n"
         "th, td { padding: .3em .8em; border-bottom: 1px solid #ddd; text-align: left; }\n"
         "td.n { text-align: right; font-variant-numeric: tabular-nums; }\n"
         "figure { margin: 1em 0; } svg { width: 100%; height: auto; }\n"
         "</style></head><body>\n<h1>" +
         escapeXml(title_) + "</h1>\n" + body_ + "</body></html>\n";
}

}  // namespace mbcas::view
