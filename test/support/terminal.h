// A program in a terminal of its own: a real pseudo-terminal, and behind it a screen that
// understands what the programs here write (cursor, erasing, colours, the alternate screen).
//
//   Terminal terminal({"mbcas", "top"}, {.columns = 80, .rows = 24});
//   ASSERT_TRUE(terminal.until([](const std::string& screen) { return screen.contains("web-1");
//   })); terminal.type("q"); EXPECT_EQ(terminal.wait(), 0);
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mbcas::test {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// What is to be seen, cell by cell.
class VirtualScreen {
 public:
  explicit VirtualScreen(TerminalSize size);

  // Calls `frame` whenever a picture is complete: before the cursor goes home for the next one, or
  // the screen is left.
  void feed(std::string_view bytes, const std::function<void()>& frame);
  void resize(TerminalSize size);

  // Lines without the blanks at their ends, each with a line break, down to the last that is not
  // empty.
  std::string text() const;
  bool alternate() const { return alternate_; }
  bool cursorVisible() const { return cursor_visible_; }
  bool coloured() const { return coloured_; }              // a colour was ever set
  bool overflowed() const { return overflowed_; }          // a line was ever longer than the screen
  const std::string& unknown() const { return unknown_; }  // the first sequence nobody here knows

 private:
  using Grid = std::vector<std::vector<std::string>>;
  Grid blank() const;
  void put(std::string_view character);
  void newLine();
  void sequence(std::string_view parameters, char final, const std::function<void()>& frame);

  TerminalSize size_;
  Grid grid_;
  Grid other_;  // the screen that is not shown
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  std::size_t other_row_ = 0;
  std::size_t other_column_ = 0;
  std::string pending_;  // a sequence or character that has only begun
  bool alternate_ = false;
  bool cursor_visible_ = true;
  bool coloured_ = false;
  bool overflowed_ = false;
  std::string unknown_;
};

class Terminal {
 public:
  // `environment`: variables to be set, besides those of this process; "NAME=" unsets.
  Terminal(const std::vector<std::string>& words, TerminalSize size,
           const std::vector<std::string>& environment = {});
  ~Terminal();  // ends the program
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(std::string_view keys);
  void resize(TerminalSize size);

  // Reads until a picture is so; true if one was. The first such is then in seen().
  bool until(const std::function<bool(const std::string& screen)>& condition);
  bool untilShows(const std::string& text) {
    return until([&](const std::string& screen) { return screen.find(text) != std::string::npos; });
  }
  const std::string& seen() const { return seen_; }
  // Reads to the end; the exit code, or nothing if it did not end by itself in time.
  std::optional<int> wait();

  const VirtualScreen& screen() const { return screen_; }
  pid_t pid() const { return pid_; }

 private:
  enum class Read { kSome, kNothing, kEnd };
  Read read(const std::function<void()>& frame);

  VirtualScreen screen_;
  std::string seen_;
  int fd_ = -1;
  pid_t pid_ = -1;
};

}  // namespace mbcas::test
