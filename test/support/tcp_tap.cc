#include "test/support/tcp_tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <list>
#include <stdexcept>
#include <thread>
#include <vector>

namespace mbcas::test {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool sendAll(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

struct TcpTap::Impl {
  explicit Impl(int upstream_port) : upstream(upstream_port) {
    listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (listening < 0 || ::bind(listening, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listening, 16) != 0 ||
        ::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        ::pipe2(wake.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("the tap cannot listen");
    }
    port = ntohs(address.sin_port);
    thread = std::thread([this] { run(); });
  }
  ~Impl() {
    ::close(wake[1]);
    thread.join();
    ::close(wake[0]);
    ::close(listening);
    for (const Pair& pair : pairs) closePair(pair);
  }

  struct Pair {
    int client;
    int server;
  };
  static void closePair(const Pair& pair) {
    ::close(pair.client);
    ::close(pair.server);
  }

  void accept() {
    const int client = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(upstream);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(client);
      ::close(server);
      return;
    }
    // Passed on at once: what waits for an acknowledgement would make every write 40 ms longer.
    const int on = 1;
    for (const int fd : {client, server}) {
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ++connections;
    pairs.push_back({client, server});
  }

  static bool copy(int from, int to, std::atomic<std::uint64_t>& count) {
    std::array<char, 64 << 10> buffer;
    const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    count += static_cast<std::uint64_t>(got);
    return sendAll(to, buffer.data(), static_cast<std::size_t>(got));
  }

  void run() {
    for (;;) {
      std::vector<pollfd> fds{{.fd = wake[0], .events = POLLIN, .revents = 0},
                              {.fd = listening, .events = POLLIN, .revents = 0}};
      for (const Pair& pair : pairs) {
        fds.push_back({.fd = pair.client, .events = POLLIN, .revents = 0});
        fds.push_back({.fd = pair.server, .events = POLLIN, .revents = 0});
      }
      ::poll(fds.data(), fds.size(), -1);
      if (fds[0].revents != 0) return;
      std::size_t i = 2;
      for (auto pair = pairs.begin(); pair != pairs.end(); i += 2) {
        bool open = true;
        if (fds[i].revents != 0) open = copy(pair->client, pair->server, sent);
        if (open && fds[i + 1].revents != 0) open = copy(pair->server, pair->client, received);
        if (!open) closePair(*pair);
        pair = open ? std::next(pair) : pairs.erase(pair);
      }
      if (fds[1].revents != 0) accept();
    }
  }

  const int upstream;
  int listening = -1;
  int port = 0;
  std::array<int, 2> wake{-1, -1};
  std::atomic<std::uint64_t> connections = 0;
  std::atomic<std::uint64_t> sent = 0;
  std::atomic<std::uint64_t> received = 0;
  std::list<Pair> pairs;  // the thread's
  std::thread thread;
};

TcpTap::TcpTap(int upstream_port) : impl_(std::make_unique<Impl>(upstream_port)) {}
TcpTap::~TcpTap() = default;

int TcpTap::port() const {
  return impl_->port;
}
TcpTap::Counts TcpTap::counts() const {
  return {impl_->connections, impl_->sent, impl_->received};
}

}  // namespace mbcas::test
