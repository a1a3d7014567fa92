#include "test/support/terminal.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace mbcas::test {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{120};  // for what should happen at once

winsize windowOf(TerminalSize size) {
  return {.ws_row = static_cast<unsigned short>(size.rows),
          .ws_col = static_cast<unsigned short>(size.columns),
          .ws_xpixel = 0,
          .ws_ypixel = 0};
}

// Bytes of the UTF-8 character that begins so.
std::size_t lengthOf(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
}

}  // namespace

VirtualScreen::VirtualScreen(TerminalSize size) : size_(size), grid_(blank()), other_(blank()) {}

VirtualScreen::Grid VirtualScreen::blank() const {
  return Grid(size_.rows, std::vector<std::string>(size_.columns, " "));
}

void VirtualScreen::resize(TerminalSize size) {
  size_ = size;
  for (Grid* grid : {&grid_, &other_}) {
    grid->resize(size.rows);
    for (auto& line : *grid) line.resize(size.columns, " ");
  }
  row_ = std::min(row_, size.rows - 1);
  column_ = std::min(column_, size.columns);
}

void VirtualScreen::put(std::string_view character) {
  if (column_ >= size_.columns) {
    overflowed_ = true;
    column_ = 0;
    newLine();
  }
  grid_[row_][column_++] = character;
}

void VirtualScreen::newLine() {
  if (++row_ < size_.rows) return;
  row_ = size_.rows - 1;
  grid_.erase(grid_.begin());
  grid_.emplace_back(size_.columns, " ");
}

void VirtualScreen::sequence(std::string_view parameters, char final,
                             const std::function<void()>& frame) {
  const bool on = final == 'h';
  // Behind the last column the cursor still stands on it: erasing takes its character.
  const std::size_t column = std::min(column_, size_.columns - 1);
  if (final == 'H' && parameters.empty()) {
    frame();
    row_ = column_ = 0;
  } else if (final == 'K' && parameters.empty()) {
    for (std::size_t c = column; c < size_.columns; ++c) grid_[row_][c] = " ";
  } else if (final == 'J' && (parameters.empty() || parameters == "2")) {
    if (parameters == "2") {
      grid_ = blank();
    } else {
      for (std::size_t c = column; c < size_.columns; ++c) grid_[row_][c] = " ";
      for (std::size_t r = row_ + 1; r < size_.rows; ++r) grid_[r].assign(size_.columns, " ");
    }
  } else if (final == 'm') {
    coloured_ |= !parameters.empty() && parameters != "0";
  } else if ((on || final == 'l') && parameters == "?25") {
    cursor_visible_ = on;
  } else if ((on || final == 'l') && parameters == "?1049") {
    frame();
    if (on != alternate_) {
      std::swap(grid_, other_);
      std::swap(row_, other_row_);
      std::swap(column_, other_column_);
    }
    if (on) grid_ = blank();
    alternate_ = on;
  } else if (unknown_.empty()) {
    unknown_ = std::string(parameters) + final;
  }
}

void VirtualScreen::feed(std::string_view bytes, const std::function<void()>& frame) {
  for (const char byte : bytes) {
    pending_ += byte;
    const char first = pending_.front();
    if (first == '\x1b') {
      const bool complete = pending_.size() > 2 && byte >= '@' && byte <= '~';
      if (!complete) continue;
      const std::string whole = std::exchange(pending_, {});
      sequence(std::string_view(whole).substr(2, whole.size() - 3), byte, frame);
    } else if (first == '\r') {
      column_ = 0;
      pending_.clear();
    } else if (first == '\n') {
      newLine();
      pending_.clear();
    } else if (pending_.size() >= lengthOf(first)) {
      put(pending_);
      pending_.clear();
    }
  }
}

std::string VirtualScreen::text() const {
  std::string text;
  std::size_t end = 0;
  for (const auto& cells : grid_) {
    std::string line;
    for (const std::string& cell : cells) line += cell;
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (!line.empty()) end = text.size();
  }
  text.resize(end);
  return text;
}

Terminal::Terminal(const std::vector<std::string>& words, TerminalSize size,
                   const std::vector<std::string>& environment)
    : screen_(size) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  arguments.reserve(copies.size() + 1);
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const winsize window = windowOf(size);
  pid_ = ::forkpty(&fd_, nullptr, nullptr, &window);
  if (pid_ != 0) return;
  for (const std::string& variable : environment) {
    const std::size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    if (equals + 1 == variable.size()) {
      ::unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): alone after fork
    } else {
      // NOLINTNEXTLINE(concurrency-mt-unsafe): alone after fork
      ::setenv(name.c_str(), variable.substr(equals + 1).c_str(), 1);
    }
  }
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

Terminal::~Terminal() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (fd_ >= 0) ::close(fd_);
}

void Terminal::type(std::string_view keys) {
  while (!keys.empty()) {
    const ssize_t written = ::write(fd_, keys.data(), keys.size());
    if (written <= 0) return;
    keys.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Terminal::resize(TerminalSize size) {
  screen_.resize(size);
  const winsize window = windowOf(size);
  ::ioctl(fd_, TIOCSWINSZ, &window);
}

Terminal::Read Terminal::read(const std::function<void()>& frame) {
  pollfd source{fd_, POLLIN, 0};
  if (::poll(&source, 1, 100) <= 0) return Read::kNothing;
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
  if (got <= 0) return errno == EINTR ? Read::kNothing : Read::kEnd;  // EIO: all have closed it
  screen_.feed({buffer.data(), static_cast<std::size_t>(got)}, frame);
  return Read::kSome;
}

bool Terminal::until(const std::function<bool(const std::string& screen)>& condition) {
  bool found = false;
  const auto look = [&] {
    if (found) return;
    const std::string text = screen_.text();
    if (!condition(text)) return;
    found = true;
    seen_ = text;
  };
  const auto deadline = Steady::now() + kPatience;
  while (!found && Steady::now() < deadline) {
    const Read state = read(look);
    if (state == Read::kEnd) break;
    if (state == Read::kNothing) look();  // what is no picture, such as a prompt
  }
  return found;
}

std::optional<int> Terminal::wait() {
  const auto deadline = Steady::now() + kPatience;
  while (Steady::now() < deadline && read([] {}) != Read::kEnd) {
  }
  int status = 0;
  while (Steady::now() < deadline) {
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      pid_ = -1;
      if (!WIFEXITED(status)) return std::nullopt;
      return WEXITSTATUS(status);
    }
    ::usleep(10'000);
  }
  return std::nullopt;
}

}  // namespace mbcas::test
