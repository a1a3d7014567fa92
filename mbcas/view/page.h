// A page of text, tables and plots as one HTML file that needs nothing else, for any width of
// screen.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mbcas/view/plot.h"

namespace mbcas::view {

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  using Row = std::vector<std::string>;
  using Cells = std::set<std::pair<std::size_t, std::size_t>>;  // row and column, from 0
  // The first row is the header; a column in which a cell begins with a digit is set right.
  // `best` are marked. The first column stays in sight where the rest has to be scrolled.
  void table(const std::vector<Row>& rows, const Cells& best = {});
  void plot(const Plot& plot);
  // What follows until the end of the fold is shown on request.
  void beginFold(const std::string& text);
  void endFold();

  std::string toString() const;

 private:
  std::string title_;
  std::string body_;
  bool has_plots_ = false;
};

}  // namespace mbcas::view
