#include "test/support/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace mbcas::test {
namespace {

constexpr int kPollMs = 20;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool readable(int fd) {
  pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, kPollMs) > 0;
}

bool sendAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void resetAndClose(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd);
}

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

}  // namespace

struct FaultProxy::Impl {
  explicit Impl(int upstream) : upstream_port(upstream) {}
  int upstream_port;
  int listener = -1;
  int port = 0;
  std::unique_ptr<SSL_CTX, FreeContext> context{SSL_CTX_new(TLS_client_method())};
  std::atomic<bool> stopping = false;
  std::atomic<int> cuts = 0;  // how often cutAll was called
  std::atomic<int> count = 0;
  std::mutex mutex;
  std::function<Fault(int)> plan;              // guarded by mutex
  std::function<bool(std::string_view)> hold;  // guarded by mutex
  std::string last_tunnel;                     // guarded by mutex
  std::atomic<int> held = 0;
  std::atomic<int> carriers = 0;  // connections that are being carried
  std::thread acceptor;

  bool listen() {
    SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener, 64) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      return false;
    }
    port = ntohs(address.sin_port);
    return true;
  }

  void accept() {
    while (!stopping) {
      if (!readable(listener)) continue;
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      Fault fault;
      {
        const std::scoped_lock lock(mutex);
        if (plan) fault = plan(count++);
      }
      ++carriers;
      // Detached, as a test may open thousands; the destructor waits for the last one.
      std::thread([this, fd, fault, cut = cuts.load()] {
        carry(fd, fault, cut);
        --carriers;
      }).detach();
    }
  }

  bool over(int cut) const { return stopping || cuts != cut; }

  void carry(int client, const Fault& fault, int cut) {
    if (fault.kind == Fault::Kind::kRefuse) return resetAndClose(client);
    if (fault.kind == Fault::Kind::kStatus) return answer(client, fault, cut);
    const int upstream = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(upstream_port);
    std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(context.get()));
    SSL_set_fd(ssl.get(), upstream);
    const bool connected =
        ::connect(upstream, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (connected && wantsTunnel(client, cut)) {
      tunnel(client, upstream, cut);
    } else if (connected && SSL_connect(ssl.get()) == 1) {
      forward(client, upstream, ssl.get(), fault, cut);
    }
    resetAndClose(client);
    ::close(upstream);
  }

  bool wantsTunnel(int client, int cut) const {
    constexpr std::string_view kVerb = "CONNECT ";
    std::array<char, kVerb.size()> start;
    while (!over(cut) && !readable(client)) {
    }
    const ssize_t got = ::recv(client, start.data(), start.size(), MSG_PEEK);
    return got == static_cast<ssize_t>(start.size()) &&
           std::equal(start.begin(), start.end(), kVerb.begin());
  }

  // The client speaks TLS itself: bytes are carried as they are.
  void tunnel(int client, int upstream, int cut) {
    const std::string request = readHead(client, cut);
    {
      const std::scoped_lock lock(mutex);
      last_tunnel = request.substr(8, request.find(' ', 8) - 8);
    }
    if (!sendAll(client, "HTTP/1.1 200 Connection established\r\n\r\n")) return;
    std::array<char, 16384> buffer;
    while (!over(cut)) {
      std::array<pollfd, 2> fds = {pollfd{client, POLLIN, 0}, pollfd{upstream, POLLIN, 0}};
      ::poll(fds.data(), fds.size(), kPollMs);
      for (std::size_t from = 0; from < fds.size(); ++from) {
        if (fds[from].revents == 0) continue;
        const ssize_t got = ::recv(fds[from].fd, buffer.data(), buffer.size(), 0);
        if (got <= 0) return;
        if (!sendAll(fds[1 - from].fd, {buffer.data(), static_cast<std::size_t>(got)})) return;
      }
    }
  }

  std::string readHead(int client, int cut) const {
    std::array<char, 16384> buffer;
    std::string head;
    while (!over(cut) && head.find("\r\n\r\n") == std::string::npos) {
      if (!readable(client)) continue;
      const ssize_t got = ::recv(client, buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      head.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return head;
  }

  // Reads the request and answers it here.
  void answer(int client, const Fault& fault, int cut) const {
    readHead(client, cut);
    std::string text = "HTTP/1.1 " + std::to_string(fault.status) + " Fault\r\n";
    if (fault.retry_after >= 0) {
      text += "Retry-After: " + std::to_string(fault.retry_after) + "\r\n";
    }
    sendAll(client, text + "Connection: close\r\nContent-Length: 0\r\n\r\n");
    ::close(client);
  }

  bool holds(std::string_view line) {
    const std::scoped_lock lock(mutex);
    return hold && hold(line);
  }

  // Waits while the request is held. False: the connection is over. Clients wait for the answer
  // before they send the next request, so a request begins with the piece that brings it; the rest
  // of one has no method and path at its beginning.
  bool letGo(int client, std::string_view piece, int cut) {
    const std::string_view line = piece.substr(0, piece.find('\r'));
    if (line.find(" /") == std::string_view::npos || !holds(line)) return true;
    ++held;
    bool open = true;
    while (open && !over(cut) && holds(line)) {
      std::array<char, 1> next;
      open = !readable(client) || ::recv(client, next.data(), next.size(), MSG_PEEK) > 0;
    }
    --held;
    return open && !over(cut);
  }

  // Both ways until one end closes or the fault strikes.
  void forward(int client, int upstream, SSL* ssl, const Fault& fault, int cut) {
    std::array<char, 16384> buffer;
    std::size_t answered = 0;
    bool silent = false;
    bool meant = fault.request.empty();  // the request under way is one that the fault is for
    while (!over(cut)) {
      std::array<pollfd, 2> fds = {pollfd{client, POLLIN, 0}, pollfd{upstream, POLLIN, 0}};
      if (SSL_pending(ssl) == 0) ::poll(fds.data(), silent ? 1 : 2, kPollMs);
      if (fds[0].revents != 0) {
        const ssize_t got = ::recv(client, buffer.data(), buffer.size(), 0);
        if (got <= 0) return;
        const std::string_view request(buffer.data(), static_cast<std::size_t>(got));
        if (!fault.request.empty() && request.find(" HTTP/1.1\r\n") != std::string_view::npos) {
          meant = request.find(fault.request) != std::string_view::npos;
          answered = 0;
        }
        if (!letGo(client, request, cut)) return;
        if (SSL_write(ssl, buffer.data(), static_cast<int>(got)) <= 0) return;
      }
      if (silent || (fds[1].revents == 0 && SSL_pending(ssl) == 0)) continue;
      const int got = SSL_read(ssl, buffer.data(), static_cast<int>(buffer.size()));
      if (got <= 0 && SSL_get_error(ssl, got) == SSL_ERROR_WANT_READ) continue;  // a session ticket
      if (got <= 0) return finish(client);
      std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
      const bool strikes = meant && fault.kind != Fault::Kind::kNone &&
                           fault.kind != Fault::Kind::kDelay &&
                           answered + piece.size() > fault.after;
      if (strikes) piece = piece.substr(0, fault.after - std::min(fault.after, answered));
      if (fault.kind == Fault::Kind::kDelay) std::this_thread::sleep_for(fault.delay);
      if (!sendAll(client, piece)) return;
      answered += piece.size();
      if (!strikes) continue;
      if (fault.kind == Fault::Kind::kCut) return;
      if (fault.kind == Fault::Kind::kHalfOpen) silent = true;
      if (fault.kind == Fault::Kind::kTruncate) {
        sendAll(client, "\r\n4000\r\n{\"type\":\"ADD");
        return finish(client);
      }
      if (fault.kind == Fault::Kind::kGarbage) {
        sendAll(client, "\r\n10\r\n}}\x01\x02<garbage>]]]\r\n0\r\n\r\n");
        return finish(client);
      }
    }
  }

  // A close that lets what was sent arrive: the reset that follows must not overtake it.
  void finish(int client) const {
    ::shutdown(client, SHUT_WR);
    std::array<char, 1024> rest;
    for (int i = 0; i < 50 && !stopping; ++i) {
      if (readable(client) && ::recv(client, rest.data(), rest.size(), 0) <= 0) return;
    }
  }
};

FaultProxy::FaultProxy(int upstream_port) : impl_(std::make_unique<Impl>(upstream_port)) {
  if (!impl_->listen()) throw std::runtime_error("the proxy cannot listen on loopback");
  impl_->acceptor = std::thread([this] { impl_->accept(); });
}

FaultProxy::~FaultProxy() {
  impl_->stopping = true;
  impl_->acceptor.join();
  while (impl_->carriers > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::close(impl_->listener);
}

std::string FaultProxy::url() const {
  return "http://127.0.0.1:" + std::to_string(impl_->port);
}

void FaultProxy::plan(std::function<Fault(int)> plan) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->plan = std::move(plan);
  impl_->count = 0;
}

void FaultProxy::hold(std::function<bool(std::string_view)> which) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->hold = std::move(which);
}

int FaultProxy::held() const {
  return impl_->held;
}

void FaultProxy::cutAll() {
  ++impl_->cuts;
}

std::string FaultProxy::lastTunnel() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->last_tunnel;
}

int FaultProxy::connections() const {
  return impl_->count;
}

}  // namespace mbcas::test
