#include "mbcas/kernel/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace mbcas::kernel {

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Fd openDirectory(int at, const char* path) {
  return Fd(::openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Fd openFile(int at, const char* path) {
  return Fd(::openat(at, path, O_RDONLY | O_CLOEXEC));
}

std::string_view readWhole(int fd, std::span<char> buffer, int& error) {
  ssize_t length = 0;
  do {
    length = ::pread(fd, buffer.data(), buffer.size(), 0);
  } while (length < 0 && errno == EINTR);
  error = length < 0 ? errno : 0;
  return {buffer.data(), length < 0 ? 0 : static_cast<std::size_t>(length)};
}

}  // namespace mbcas::kernel
