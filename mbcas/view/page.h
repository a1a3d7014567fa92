// A page of text, tables and plots as one HTML file that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "mbcas/view/plot.h"

namespace mbcas::view {

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  // The first row is the header; a cell of a later row that begins with a digit is set right.
  void table(const std::vector<std::vector<std::string>>& rows);
  void plot(const Plot& plot);

  std::string toString() const;

 private:
  std::string title_;
  std::string body_;
};

}  // namespace mbcas::view
