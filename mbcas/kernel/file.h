// File descriptors, and reading a small kernel file whole.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace mbcas::kernel {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Opens for reading, close-on-exec; an empty Fd and errno on failure.
Fd openDirectory(int at, const char* path);
Fd openFile(int at, const char* path);

// The file's content from its beginning, in `buffer`; 0 or an errno in `error`. A longer file is
// truncated to the size of the buffer; no file that is read here comes near that size.
std::string_view readWhole(int fd, std::span<char> buffer, int& error);

}  // namespace mbcas::kernel
