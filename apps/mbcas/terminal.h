// The terminal, as far as commands need it: whether there is one, its size, a screen to draw on,
// and the request to stop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/view/keys.h"

namespace mbcas::app {

struct TerminalSize {
  std::size_t width = 80;
  std::size_t height = 24;
};

// What a command says, a line each. Names and messages in it may be anybody's: what a terminal
// would obey is shown instead. Text that mbcas/view made, and JSON, can be printed as they are.
void say(std::string_view line);                                    // to standard output
void complain(std::string_view speaker, std::string_view message);  // "speaker: message"

bool isTerminal();    // standard output is one
bool wantsColours();  // it is, and NO_COLOR is not set
TerminalSize terminalSize();

// Waits between two steps of a command that goes on until the user has had enough: SIGINT,
// SIGTERM, SIGHUP, or the key q where keys are read and there is a terminal. From its construction
// on those signals end nothing by themselves, so that everything can be put back first.
class Patience {
 public:
  enum class Keys : std::uint8_t {
    kNone,
    kQuit,  // q stops
    kAll,   // q is a key like others: its meaning is the caller's
  };
  explicit Patience(Keys keys);
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  // False as soon as the user wants to stop, and ever after.
  bool wait(Nanos at_most);

  enum class Wake : std::uint8_t {
    kTime,      // it has passed
    kStop,      // the user wants to stop
    kKey,       // other keys were pressed: see keys()
    kResize,    // the terminal has another size
    kReadable,  // `fd`
  };
  // The same, and returns for more reasons.
  Wake next(Nanos at_most, int fd = -1);
  // Pressed since the last call.
  std::vector<view::Key> keys() { return std::exchange(keys_, {}); }

 private:
  bool readKeys();

  int signals_ = -1;
  struct Saved;
  std::unique_ptr<Saved> saved_;  // the terminal's settings, to be put back
  const bool q_stops_;
  bool watch_keys_ = false;
  bool enough_ = false;
  std::string typed_;
  std::vector<view::Key> keys_;
};

// The alternate screen of the terminal, for as long as the object lives.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(const std::vector<std::string>& lines);
};

}  // namespace mbcas::app
