#include "mbcas/base/local_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

namespace mbcas {
namespace {

std::string systemText(int error) {
  std::array<char, 128> text{};
  return ::strerror_r(error, text.data(), text.size());  // GNU's, which returns the text
}

std::unexpected<Error> failed(const std::string& path, std::string_view what, int error = errno) {
  return failure(fmt::format("{}: {}: {}", path, what, systemText(error)));
}

Result<sockaddr_un> addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return failure(fmt::format("{}: the path of a socket has 1 to {} characters", path,
                               sizeof address.sun_path - 1));
  }
  path.copy(address.sun_path, path.size());
  return address;
}

template <class Address>
const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

struct Descriptor {
  int fd;
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int release() { return std::exchange(fd, -1); }
};

// Removes what a dead process left behind; an error if it is anything else.
Result<void> clearTheWay(const std::string& path, const sockaddr_un& address) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return {};
    return failed(path, "cannot be examined");
  }
  if (!S_ISSOCK(found.st_mode)) return failure(path + ": exists already, and is not a socket");
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.fd < 0) return failed(path, "no socket");
  // EAGAIN: a process listens and has a full queue.
  if (::connect(probe.fd, generic(address), sizeof address) == 0 || errno == EAGAIN) {
    return failure(path + ": another process listens there");
  }
  if (errno != ECONNREFUSED) return failed(path, "cannot be connected to");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return failed(path, "cannot remove the socket of a dead process");
  }
  return {};
}

}  // namespace

Result<LocalSocket> LocalSocket::listen(const std::string& path) {
  const Result<sockaddr_un> address = addressOf(path);
  if (!address) return failure(address.error());
  if (Result<void> clear = clearTheWay(path, *address); !clear) return failure(clear.error());
  Descriptor listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (listening.fd < 0) return failed(path, "no socket");
  // Before anybody can connect: a socket's file takes the mode of its descriptor.
  ::fchmod(listening.fd, 0660);
  if (::bind(listening.fd, generic(*address), sizeof *address) != 0) {
    return failed(path, "cannot be made");
  }
  struct stat made{};
  Descriptor events(::epoll_create1(EPOLL_CLOEXEC));
  // Edges: where no descriptor is left for who waits, that must not keep us busy.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = listening.fd}};
  if (::chmod(path.c_str(), 0660) != 0 || ::stat(path.c_str(), &made) != 0 ||
      ::listen(listening.fd, 16) != 0 || events.fd < 0 ||
      ::epoll_ctl(events.fd, EPOLL_CTL_ADD, listening.fd, &event) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return failed(path, "cannot be listened on", error);
  }
  LocalSocket socket;
  socket.events_ = events.release();
  socket.listening_ = listening.release();
  socket.path_ = path;
  socket.inode_ = made.st_ino;
  return socket;
}

LocalSocket::LocalSocket(LocalSocket&& other) noexcept
    : events_(std::exchange(other.events_, -1)),
      listening_(std::exchange(other.listening_, -1)),
      path_(std::exchange(other.path_, {})),
      inode_(other.inode_),
      readers_(std::exchange(other.readers_, {})) {}

LocalSocket& LocalSocket::operator=(LocalSocket&& other) noexcept {
  std::swap(events_, other.events_);
  std::swap(listening_, other.listening_);
  std::swap(path_, other.path_);
  std::swap(inode_, other.inode_);
  std::swap(readers_, other.readers_);
  return *this;
}

LocalSocket::~LocalSocket() {
  if (listening_ < 0) return;
  while (!readers_.empty()) close(readers_.begin());
  struct stat found{};
  if (::lstat(path_.c_str(), &found) == 0 && found.st_ino == inode_) ::unlink(path_.c_str());
  ::close(listening_);
  ::close(events_);
}

void LocalSocket::serve(const std::function<std::string()>& text) {
  std::array<epoll_event, kMostReaders + 1> ready;
  const int count = ::epoll_wait(events_, ready.data(), static_cast<int>(ready.size()), 0);
  bool somebody_new = false;
  for (int i = 0; i < count; ++i) {
    const int fd = ready[static_cast<std::size_t>(i)].data.fd;
    somebody_new = somebody_new || fd == listening_;
    const auto reader =
        std::find_if(readers_.begin(), readers_.end(), [&](const Reader& r) { return r.fd == fd; });
    if (reader != readers_.end() && !send(*reader)) close(reader);
  }
  if (somebody_new) accept(text);
}

void LocalSocket::accept(const std::function<std::string()>& text) {
  // All who wait now see the same text. It is made when the last of them has been accepted, so that
  // a reader that comes back at once sees a newer one.
  for (;;) {
    const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) break;
    if (readers_.size() == kMostReaders) close(readers_.begin());
    readers_.push_back({.fd = fd, .text = nullptr});
  }
  std::shared_ptr<const std::string> shared;
  for (auto reader = readers_.begin(); reader != readers_.end();) {
    const auto next = std::next(reader);
    if (!reader->text) {
      if (!shared) shared = std::make_shared<const std::string>(text());
      reader->text = shared;
      epoll_event event{.events = EPOLLOUT, .data = {.fd = reader->fd}};
      if (!send(*reader) || ::epoll_ctl(events_, EPOLL_CTL_ADD, reader->fd, &event) != 0) {
        close(reader);
      }
    }
    reader = next;
  }
}

bool LocalSocket::send(Reader& reader) {
  while (reader.sent < reader.text->size()) {
    const ssize_t sent = ::send(reader.fd, reader.text->data() + reader.sent,
                                reader.text->size() - reader.sent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    reader.sent += static_cast<std::size_t>(sent);
  }
  return false;
}

void LocalSocket::close(std::list<Reader>::iterator reader) {
  ::close(reader->fd);  // leaves the epoll with it
  readers_.erase(reader);
}

Result<std::string> readLocalSocket(const std::string& path, Nanos timeout, std::size_t longest) {
  const Result<sockaddr_un> address = addressOf(path);
  if (!address) return failure(address.error());
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd < 0) return failed(path, "no socket");
  if (::connect(socket.fd, generic(*address), sizeof *address) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) {
      return failed(path, "no process listens there; is the program running, with this path?");
    }
    return failed(path, "cannot be connected to");
  }
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string text;
  std::array<char, 64 << 10> piece;
  for (;;) {
    const ssize_t got = ::recv(socket.fd, piece.data(), piece.size(), 0);
    if (got == 0) return text;
    if (got > 0) {
      if (text.size() + static_cast<std::size_t>(got) > longest) {
        return failure(fmt::format("{}: sends more than {} bytes", path, longest));
      }
      text.append(piece.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return failed(path, "cannot be read");
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd readable{.fd = socket.fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) == 0) {
      return failure(path + ": does not answer in time");
    }
  }
}

}  // namespace mbcas
