#include "mbcas/kube/health_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "mbcas/base/mutex.h"
#include "mbcas/kube/metrics.h"

namespace mbcas::kube {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using Checks = std::vector<std::pair<std::string, HealthServer::Check>>;

constexpr std::chrono::seconds kConnectionTime{10};
constexpr std::size_t kLongestRequest = 8 << 10;
constexpr const char* kPlain = "text/plain; charset=utf-8";

struct Page {
  std::string content_type;
  std::function<Result<std::string>()> text;
};

std::string response(int status, std::string_view content_type, std::string_view body) {
  const std::string_view phrase = status == 200   ? "OK"
                                  : status == 400 ? "Bad Request"
                                  : status == 404 ? "Not Found"
                                  : status == 405 ? "Method Not Allowed"
                                                  : "Service Unavailable";
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, phrase, content_type, body.size(), body);
}

// As the API server reports it: "[+]name ok", "[-]name failed: why", then the sum.
std::string answer(const Checks& checks) {
  std::string text;
  bool good = true;
  for (const auto& [name, check] : checks) {
    const Result<void> passed = check();
    good = good && passed;
    text += passed ? fmt::format("[+]{} ok\n", name)
                   : fmt::format("[-]{} failed: {}\n", name, passed.error().message());
  }
  return response(good ? 200 : 503, kPlain, good ? "ok" : text + "check failed\n");
}

std::string answer(const Page& page) {
  const Result<std::string> text = page.text();
  return text ? response(200, page.content_type, *text)
              : response(503, kPlain, text.error().message() + "\n");
}

HealthServer::Check withoutReason(std::function<bool()> check) {
  return [check = std::move(check)] -> Result<void> {
    if (!check()) return failure("not yet");
    return {};
  };
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};

// A socket that listens, or -1.
int listenOn(const addrinfo& address) {
  const int fd = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int yes = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd, address.ai_addr, address.ai_addrlen) == 0 && ::listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  ::close(fd);
  return -1;
}

int portOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return -1;
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

class HealthServer::Impl {
 public:
  explicit Impl(Metrics& metrics) {
    pages_["/metrics"] = {"text/plain; version=0.0.4; charset=utf-8",
                          [&metrics] -> Result<std::string> { return metrics.text(); }};
  }
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<int> start(const std::string& address, int port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
      return failure(fmt::format("cannot listen on {}:{}: no such address", address, port));
    }
    const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
    for (const addrinfo* each = found; each != nullptr && listening_ < 0; each = each->ai_next) {
      listening_ = listenOn(*each);
    }
    if (listening_ < 0) return failure(fmt::format("cannot listen on {}:{}", address, port));
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    maker_ = std::thread([this] { makePages(); });
    server_ = std::thread([this] { serve(); });
    return portOf(listening_);
  }

  void stop() {
    if (!server_.joinable()) return;
    {
      const MutexLock lock(mutex_);
      ending_ = true;
    }
    ordered_.notify_one();
    wake();
    server_.join();
    maker_.join();
    for (const Connection& connection : connections_) ::close(connection.fd);
    connections_.clear();
    ::close(std::exchange(listening_, -1));
    ::close(std::exchange(wake_, -1));
  }

  Checks live_;
  Checks ready_;
  std::map<std::string, Page, std::less<>> pages_;

 private:
  struct Connection {
    std::uint64_t id;
    int fd;
    SteadyTime deadline;
    std::string request;
    std::string answer;  // empty: not yet
    std::size_t sent = 0;
    bool asked = false;
  };
  using Connections = std::list<Connection>;  // oldest first

  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
  }

  // --- the thread of the pages ---

  void makePages() {
    MutexLock lock(mutex_);
    for (;;) {
      ordered_.wait(lock.native(),
                    [this] MBCAS_REQUIRES(mutex_) { return ending_ || !orders_.empty(); });
      if (ending_) return;
      const auto [id, page] = orders_.front();
      orders_.pop_front();
      lock.unlock();
      std::string made = answer(*page);
      lock.lock();
      made_.emplace_back(id, std::move(made));
      wake();
    }
  }

  // --- the thread of the connections ---

  void serve() {
    std::vector<pollfd> polled;
    for (;;) {
      polled.clear();
      polled.push_back({.fd = wake_, .events = POLLIN, .revents = 0});
      polled.push_back({.fd = listening_, .events = POLLIN, .revents = 0});
      std::optional<SteadyTime> next;
      for (const Connection& connection : connections_) {
        // While its page is being made only its deadline counts.
        short events = POLLIN;
        if (connection.asked) events = 0;
        if (!connection.answer.empty()) events = POLLOUT;
        polled.push_back({.fd = connection.fd, .events = events, .revents = 0});
        next = std::min(next.value_or(connection.deadline), connection.deadline);
      }
      const int timeout = next ? static_cast<int>(std::max<std::int64_t>(
                                     0, std::chrono::ceil<std::chrono::milliseconds>(
                                            *next - std::chrono::steady_clock::now())
                                            .count()))
                               : -1;
      ::poll(polled.data(), polled.size(), timeout);
      if (!takeMade()) return;
      std::size_t place = 2;
      for (auto connection = connections_.begin(); connection != connections_.end();) {
        const bool ready = polled[place++].revents != 0;
        const bool late = std::chrono::steady_clock::now() >= connection->deadline;
        // Nothing is awaited from one whose page is being made, except that it has gone.
        const bool gone = ready && connection->asked && connection->answer.empty();
        const bool stays = !late && !gone && (!ready || advance(*connection));
        connection = stays ? std::next(connection) : drop(connection);
      }
      if (polled[1].revents != 0) accept();
    }
  }

  Connections::iterator drop(Connections::iterator connection) {
    ::close(connection->fd);
    return connections_.erase(connection);
  }

  void accept() {
    for (;;) {
      const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) return waitForDescriptors();
      if (connections_.size() == kMostConnections) drop(connections_.begin());
      connections_.push_back({.id = next_id_++,
                              .fd = fd,
                              .deadline = std::chrono::steady_clock::now() + kConnectionTime});
      // Most requests are there already.
      if (!advance(connections_.back())) drop(std::prev(connections_.end()));
    }
  }

  // Out of descriptors, accept() fails at once as long as a client waits.
  static void waitForDescriptors() {
    if (errno != EMFILE && errno != ENFILE) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  // False: the process ends.
  bool takeMade() {
    std::uint64_t count = 0;
    (void)!::read(wake_, &count, sizeof count);
    const MutexLock lock(mutex_);
    for (auto& [id, text] : made_) {
      for (Connection& connection : connections_) {
        if (connection.id == id) connection.answer.swap(text);
      }
    }
    made_.clear();
    return !ending_;
  }

  // Reads, answers, sends. False: nothing is left to do.
  bool advance(Connection& connection) {
    if (!connection.asked && !receive(connection)) return false;
    while (connection.sent < connection.answer.size()) {
      const ssize_t sent = ::send(connection.fd, connection.answer.data() + connection.sent,
                                  connection.answer.size() - connection.sent, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      connection.sent += static_cast<std::size_t>(sent);
    }
    return connection.answer.empty();
  }

  bool receive(Connection& connection) {
    std::array<char, 2048> piece;
    for (;;) {
      const ssize_t got = ::recv(connection.fd, piece.data(), piece.size(), 0);
      if (got == 0) return false;
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      connection.request.append(piece.data(), static_cast<std::size_t>(got));
      if (connection.request.find("\r\n\r\n") != std::string::npos) {
        connection.asked = true;
        ask(connection);
        return true;
      }
      if (connection.request.size() > kLongestRequest) return false;
    }
  }

  void ask(Connection& connection) {
    std::string_view line = connection.request;
    line = line.substr(0, line.find("\r\n"));
    const std::size_t path_begin = line.find(' ');
    if (path_begin == std::string_view::npos) {
      connection.answer = response(400, kPlain, "not HTTP\n");
      return;
    }
    const std::string_view method = line.substr(0, path_begin);
    std::string_view path = line.substr(path_begin + 1);
    path = path.substr(0, path.find_first_of(" ?"));
    if (method != "GET") {
      connection.answer = response(405, kPlain, "only GET\n");
    } else if (path == "/healthz" || path == "/livez") {
      connection.answer = answer(live_);
    } else if (path == "/readyz") {
      connection.answer = answer(ready_);
    } else if (const auto page = pages_.find(path); page != pages_.end()) {
      const MutexLock lock(mutex_);
      orders_.emplace_back(connection.id, &page->second);
      ordered_.notify_one();
    } else {
      connection.answer = response(404, kPlain, "not found\n");
    }
  }

  int listening_ = -1;
  int wake_ = -1;
  std::thread server_;
  std::thread maker_;
  Connections connections_;
  std::uint64_t next_id_ = 1;

  Mutex mutex_;
  std::condition_variable ordered_;
  bool ending_ MBCAS_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<std::uint64_t, const Page*>> orders_
      MBCAS_GUARDED_BY(mutex_);  // of connections
  std::vector<std::pair<std::uint64_t, std::string>> made_ MBCAS_GUARDED_BY(mutex_);
};

HealthServer::HealthServer(Metrics& metrics) : impl_(std::make_unique<Impl>(metrics)) {}
HealthServer::~HealthServer() = default;

void HealthServer::addLiveCheck(std::string name, Check check) {
  impl_->live_.emplace_back(std::move(name), std::move(check));
}
void HealthServer::addReadyCheck(std::string name, Check check) {
  impl_->ready_.emplace_back(std::move(name), std::move(check));
}
void HealthServer::addLiveCheck(std::string name, std::function<bool()> check) {
  addLiveCheck(std::move(name), withoutReason(std::move(check)));
}
void HealthServer::addReadyCheck(std::string name, std::function<bool()> check) {
  addReadyCheck(std::move(name), withoutReason(std::move(check)));
}
void HealthServer::addPage(const std::string& path, std::string content_type,
                           std::function<Result<std::string>()> text) {
  impl_->pages_[path] = {std::move(content_type), std::move(text)};
}
Result<int> HealthServer::start(const std::string& address, int port) {
  return impl_->start(address, port);
}
void HealthServer::stop() {
  impl_->stop();
}

}  // namespace mbcas::kube
