// The live screen of `mbcas top`: what it shows, and what keys do.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mbcas/cli/explain.h"
#include "mbcas/cli/top.h"
#include "mbcas/view/keys.h"

namespace mbcas::cli {

class TopScreen {
 public:
  explicit TopScreen(TopOptions options) : options_(options) {}

  void update(TopView view) { view_ = std::move(view); }
  // Instead of a newer view there is only this to say.
  void note(std::string text) { view_.notes = {std::move(text)}; }

  // What a key asks for that the screen cannot do by itself.
  enum class Action : std::uint8_t {
    kNothing,
    kQuit,
    kExplain,  // of selected()
  };
  Action press(view::Key key);
  // The pod that the cursor is on; null: there is none.
  const TopRow* selected();
  // The nodes of the pods that the last picture showed.
  const std::set<std::string>& visibleNodes() const { return visible_nodes_; }
  // Shows it until a key is pressed that leads back.
  void show(Explanation explanation);
  void show(std::string trouble);  // why there is none

  // At most `height` lines of at most `width` columns.
  std::vector<std::string> render(const std::string& title, std::size_t width, std::size_t height,
                                  bool colours);

 private:
  enum class Mode : std::uint8_t { kTable, kTyping, kHelp, kExplanation };
  using Lines = std::vector<std::string>;

  Action pressInTable(view::Key key);
  void pressWhileTyping(view::Key key);
  void pressInText(view::Key key);
  // The rows that the filter leaves, in order; the cursor stays on its pod.
  std::vector<TopRow> shownRows();
  void moveTo(std::size_t row);
  Lines table(const std::string& title, std::size_t width, std::size_t height, bool colours);
  Lines text(const Lines& all, std::size_t width, std::size_t height, bool colours);

  TopOptions options_;
  TopView view_;
  Mode mode_ = Mode::kTable;
  std::string filter_;
  std::set<std::string> visible_nodes_;
  std::size_t first_ = 0;   // row at the top
  std::size_t page_ = 1;    // rows that fit
  std::size_t cursor_ = 0;  // among the rows that are shown
  // The pod that the cursor was moved to, by namespace and name; until then it stays on top.
  std::optional<std::pair<std::string, std::string>> chosen_;
  std::optional<Explanation> explanation_;
  std::string trouble_;
  std::size_t text_first_ = 0;  // line at the top of help or explanation
};

}  // namespace mbcas::cli
