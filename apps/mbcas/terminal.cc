#include "apps/mbcas/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "mbcas/view/text.h"

namespace mbcas::app {

void say(std::string_view line) {
  fmt::print("{}\n", view::printable(line));
}

void complain(std::string_view speaker, std::string_view message) {
  fmt::print(stderr, "{}: {}\n", speaker, view::printable(message));
}

bool isTerminal() {
  return ::isatty(STDOUT_FILENO) != 0;
}

bool wantsColours() {
  const char* none = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): one thread
  return isTerminal() && (none == nullptr || *none == '\0');
}

TerminalSize terminalSize() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

struct Patience::Saved {
  termios settings{};
};

Patience::Patience(Keys keys) : q_stops_(keys == Keys::kQuit) {
  sigset_t stop;
  ::sigemptyset(&stop);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) ::sigaddset(&stop, signal);
  ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  signals_ = ::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
  if (keys == Keys::kNone || ::isatty(STDIN_FILENO) == 0 || !isTerminal()) return;
  termios raw{};
  if (::tcgetattr(STDIN_FILENO, &raw) != 0) return;
  saved_ = std::make_unique<Saved>(Saved{raw});
  watch_keys_ = true;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

Patience::~Patience() {
  if (saved_) ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_->settings);
  if (signals_ >= 0) ::close(signals_);
}

bool Patience::wait(Nanos at_most) {
  using Steady = std::chrono::steady_clock;
  const auto until = Steady::now() + at_most;
  while (true) {
    const Wake wake = next(until - Steady::now());
    if (wake == Wake::kStop) return false;
    if (wake == Wake::kTime) return true;
  }
}

// False: there is no terminal any more.
bool Patience::readKeys() {
  char buffer[64];
  const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (got <= 0) return false;
  typed_.append(buffer, static_cast<std::size_t>(got));
  for (const view::Key key : view::takeKeys(typed_)) {
    if (q_stops_ && (key == view::key('q') || key == view::key('Q'))) {
      enough_ = true;
    } else {
      keys_.push_back(key);
    }
  }
  return true;
}

Patience::Wake Patience::next(Nanos at_most, int fd) {
  using Steady = std::chrono::steady_clock;
  const auto until = Steady::now() + at_most;
  while (!enough_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now());
    if (left.count() <= 0) return Wake::kTime;
    // poll() passes over descriptors below 0.
    pollfd sources[] = {
        {signals_, POLLIN, 0}, {watch_keys_ ? STDIN_FILENO : -1, POLLIN, 0}, {fd, POLLIN, 0}};
    if (::poll(sources, 3, static_cast<int>(left.count())) <= 0) continue;
    if ((sources[0].revents & POLLIN) != 0) {
      signalfd_siginfo signal{};
      if (::read(signals_, &signal, sizeof signal) != sizeof signal) continue;
      if (signal.ssi_signo == SIGWINCH) return Wake::kResize;
      enough_ = true;
    }
    if (sources[1].revents != 0) {
      watch_keys_ = readKeys();  // when the terminal is gone, SIGHUP tells
      if (!enough_ && !keys_.empty()) return Wake::kKey;
    }
    if (!enough_ && (sources[2].revents & POLLIN) != 0) return Wake::kReadable;
  }
  return Wake::kStop;
}

Screen::Screen() {
  fmt::print("\x1b[?1049h\x1b[?25l");
  std::fflush(stdout);
}

Screen::~Screen() {
  fmt::print("\x1b[?25h\x1b[?1049l");
  std::fflush(stdout);
}

void Screen::draw(const std::vector<std::string>& lines) {
  // Each line cleared before it is written (after a line as wide as the screen its last character
  // would go), and the rest below the last: no flicker, and nothing stays when the window changes
  // its size.
  std::string frame = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    frame += "\x1b[K" + lines[i];
    if (i + 1 < lines.size()) frame += "\r\n";
  }
  if (lines.size() < terminalSize().height) frame += "\r\n\x1b[J";
  fmt::print("{}", frame);
  std::fflush(stdout);
}

}  // namespace mbcas::app
