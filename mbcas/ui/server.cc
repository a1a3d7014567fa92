#include "mbcas/ui/server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "mbcas/ui/access.h"
#include "mbcas/ui/history.h"
#include "mbcas/ui/page.h"
#include "mbcas/ui/request.h"

namespace mbcas::ui {
namespace {

using Steady = std::chrono::steady_clock;

// For a request and its answer, and for a stream that takes nothing of what is sent to it.
constexpr std::chrono::seconds kPatience{10};
// A stream without events says now and then that it is there.
constexpr std::chrono::seconds kHeartbeat{10};
constexpr std::size_t kAtOnce = 256 << 10;  // bytes that are prepared for a stream
constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";

// The page may load its own files and ask its own server, and nothing else; no text becomes code.
constexpr std::string_view kProtection =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

std::string_view phraseOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 422:
      return "Unprocessable Content";
    default:
      return "Service Unavailable";
  }
}

std::string response(int status, std::string_view content_type, std::string_view body) {
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}\r\n{}", status,
                     phraseOf(status), content_type, body.size(), kProtection, body);
}

std::string streamHead() {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{}\r\n", kProtection);
}

std::string event(std::string_view name, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

std::string systemText(int error) {
  std::array<char, 128> text{};
  return ::strerror_r(error, text.data(), text.size());  // GNU's, which returns the text
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket that listens.
Result<int> listenOn(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return failure("no socket: " + systemText(errno));
  const int yes = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = loopback(port);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  const int error = errno;
  ::close(fd);
  return failure(fmt::format("cannot listen on 127.0.0.1:{}: {}", port, systemText(error)));
}

int portOf(int fd) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return -1;
  return ntohs(address.sin_port);
}

std::uint64_t numberIn(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

class Server::Impl {
 public:
  Impl() = default;
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> start(int port) {
    Result<int> listening = listenOn(port);
    if (!listening) return failure(listening.error());
    listening_ = *listening;
    port_ = portOf(listening_);
    if (Result<void> opened = access_.open(port_); !opened) {
      ::close(std::exchange(listening_, -1));
      return opened;
    }
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread_ = std::thread([this] { serve(); });
    return {};
  }

  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      ending_ = true;
    }
    wake();
    thread_.join();
    for (const Connection& connection : connections_) ::close(connection.fd);
    connections_.clear();
    ::close(std::exchange(listening_, -1));
    ::close(std::exchange(wake_, -1));
  }

  template <class Change>
  void change(Change change) {
    {
      const std::scoped_lock lock(mutex_);
      change();
    }
    wake();
  }
  void describe(std::string source) {
    change([&] {
      source_ = std::move(source);
      ++source_number_;
    });
  }
  void setStatus(std::string status) {
    change([&] {
      if (status == status_) return;
      status_ = std::move(status);
      ++status_number_;
    });
  }
  void setCluster(std::string picture) {
    change([&] {
      if (picture == cluster_) return;
      cluster_ = std::move(picture);
      ++cluster_number_;
    });
  }
  void publish(std::string_view name, const std::string& data) {
    change([&] { history_.add(event(name, data)); });
  }

  std::map<std::string, Answer, std::less<>> answers_;
  Access access_;
  int port_ = 0;

 private:
  struct Connection {
    int fd;
    Steady::time_point deadline;
    std::string received{};
    std::string sending{};
    std::size_t sent = 0;
    bool streams = false;
    std::uint64_t source_seen = 0;
    std::uint64_t status_seen = 0;
    std::uint64_t cluster_seen = 0;
    std::uint64_t frame_seen = 0;

    bool idle() const { return sent == sending.size(); }
  };
  using Connections = std::list<Connection>;  // oldest first

  void wake() const {
    const std::uint64_t one = 1;
    if (wake_ >= 0) (void)!::write(wake_, &one, sizeof one);
  }

  void serve() {
    std::vector<pollfd> polled;
    while (true) {
      polled.clear();
      polled.push_back({.fd = wake_, .events = POLLIN, .revents = 0});
      polled.push_back({.fd = listening_, .events = POLLIN, .revents = 0});
      Steady::time_point next = Steady::now() + kHeartbeat;
      for (const Connection& connection : connections_) {
        const short events = connection.idle() ? POLLIN : POLLOUT;
        polled.push_back({.fd = connection.fd, .events = events, .revents = 0});
        next = std::min(next, connection.deadline);
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Steady::now());
      ::poll(polled.data(), polled.size(),
             static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
      std::uint64_t count = 0;
      (void)!::read(wake_, &count, sizeof count);
      {
        const std::scoped_lock lock(mutex_);
        if (ending_) return;
      }
      std::size_t place = 2;
      for (auto connection = connections_.begin(); connection != connections_.end();) {
        const bool ready = polled[place++].revents != 0;
        connection = advance(*connection, ready) ? std::next(connection) : drop(connection);
      }
      if (polled[1].revents != 0) accept();
    }
  }

  Connections::iterator drop(Connections::iterator connection) {
    // A process that was forked meanwhile may have the descriptor, too.
    (void)::shutdown(connection->fd, SHUT_WR);
    ::close(connection->fd);
    return connections_.erase(connection);
  }

  void accept() {
    while (true) {
      const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) {
        // Without descriptors, accept() fails at once as long as a client waits.
        if (errno == EMFILE || errno == ENFILE) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return;
      }
      if (connections_.size() == kMostConnections) {
        // There are fewer streams than that.
        drop(std::ranges::find(connections_, false, &Connection::streams));
      }
      connections_.push_back({.fd = fd, .deadline = Steady::now() + kPatience});
    }
  }

  // False: nothing is left to do for it.
  bool advance(Connection& connection, bool ready) {
    if (ready && connection.idle() && !receive(connection)) return false;
    while (true) {
      if (connection.streams && connection.idle()) prepare(connection);
      if (connection.idle()) break;
      if (!send(connection)) return false;
      if (!connection.idle()) break;          // it takes no more now
      if (!connection.streams) return false;  // it has its answer
    }
    return Steady::now() < connection.deadline;
  }

  bool receive(Connection& connection) {
    std::array<char, 16 << 10> piece;
    while (true) {
      const ssize_t got = ::recv(connection.fd, piece.data(), piece.size(), 0);
      if (got == 0) return false;
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      // A page has nothing more to say on its stream.
      if (connection.streams) return false;
      connection.received.append(piece.data(), static_cast<std::size_t>(got));
      const Result<std::optional<Request>> request = parseRequest(connection.received);
      if (!request) {
        connection.sending = response(400, kPlain, request.error().message() + "\n");
        return true;
      }
      if (!*request) continue;
      reply(connection, **request);
      connection.received.clear();
      return true;
    }
  }

  bool send(Connection& connection) {
    while (!connection.idle()) {
      const ssize_t sent = ::send(connection.fd, connection.sending.data() + connection.sent,
                                  connection.sending.size() - connection.sent, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      connection.sent += static_cast<std::size_t>(sent);
      if (connection.streams) connection.deadline = Steady::now() + kPatience + kHeartbeat;
    }
    if (connection.streams) {
      connection.sending.clear();
      connection.sent = 0;
    }
    return true;
  }

  // What the stream has not been sent yet, a bounded part of it. Without anything new a comment,
  // when it is time for one.
  void prepare(Connection& connection) {
    std::string& text = connection.sending;
    {
      const std::scoped_lock lock(mutex_);
      if (std::exchange(connection.source_seen, source_number_) != source_number_) {
        text += event("source", source_);
      }
      if (std::exchange(connection.cluster_seen, cluster_number_) != cluster_number_) {
        text += event("cluster", cluster_);
      }
      while (text.size() < kAtOnce) {
        const std::optional<std::uint64_t> id = history_.next(connection.frame_seen);
        if (!id) break;
        text += fmt::format("id: {}\n{}", *id, history_.frame(*id));
        connection.frame_seen = *id;
      }
      // After the frames, so that "over" comes after the last of them.
      if (!history_.next(connection.frame_seen) &&
          std::exchange(connection.status_seen, status_number_) != status_number_) {
        text += event("status", status_);
      }
    }
    if (text.empty() && Steady::now() + kPatience >= connection.deadline) text = ":\n\n";
  }

  void reply(Connection& connection, const Request& request) {
    const auto say = [&](int status, std::string_view text) {
      connection.sending = response(status, kPlain, text);
    };
    if (const std::optional<std::string> refused = access_.refusal(request)) {
      return say(403, *refused + "\n");
    }
    if (request.path == "/api/events") {
      if (request.method != "GET") return say(405, "only GET\n");
      return mayAsk(request) ? stream(connection, request) : say(401, "no session\n");
    }
    if (request.path.starts_with("/api/")) {
      if (request.method != "POST") return say(405, "only POST\n");
      connection.sending = replyTo(request);
      return;
    }
    if (request.method != "GET") return say(405, "only GET\n");
    for (const Asset& asset : assets()) {
      if (asset.path != request.path) continue;
      connection.sending = response(200, asset.content_type, asset.body);
      return;
    }
    say(404, "no such page\n");
  }

  bool mayAsk(const Request& request) const { return access_.hasSession(request); }

  std::string replyTo(const Request& request) {
    if (request.path == "/api/session") {
      const std::optional<std::string> session = access_.exchange(request.body);
      return session ? response(200, kPlain, *session)
                     : response(403, kPlain, "This address has been used, or is not complete.\n");
    }
    if (!mayAsk(request)) return response(401, kPlain, "no session\n");
    const auto found = answers_.find(request.path);
    if (found == answers_.end()) return response(404, kPlain, "no such question\n");
    const Result<std::string> answer = found->second(request.body);
    return answer ? response(200, kJson, *answer)
                  : response(422, kPlain, answer.error().message() + "\n");
  }

  void stream(Connection& connection, const Request& request) {
    const auto streams = std::ranges::count_if(connections_, &Connection::streams);
    if (static_cast<std::size_t>(streams) >= kMostStreams) {
      connection.sending = response(503, kPlain, "as many pages are open as can be\n");
      return;
    }
    connection.streams = true;
    connection.frame_seen = numberIn(request.header("last-event-id"));
    connection.sending = streamHead();
    connection.deadline = Steady::now() + kPatience + kHeartbeat;
  }

  // By the thread that serves, after start().
  int listening_ = -1;
  Connections connections_;

  int wake_ = -1;
  std::thread thread_;
  std::mutex mutex_;  // of what follows
  bool ending_ = false;
  std::string source_ = "{}";
  std::string status_ = "{}";
  std::uint64_t source_number_ = 1;
  std::uint64_t status_number_ = 1;
  std::string cluster_;
  std::uint64_t cluster_number_ = 0;  // none yet
  History history_;
};

Server::Server() : impl_(std::make_unique<Impl>()) {}
Server::~Server() = default;

void Server::answer(std::string path, Answer answer) {
  impl_->answers_[std::move(path)] = std::move(answer);
}
Result<void> Server::start(int port) {
  return impl_->start(port);
}
void Server::stop() {
  impl_->stop();
}
int Server::port() const {
  return impl_->port_;
}
std::string Server::address() const {
  return impl_->access_.address();
}
void Server::describe(std::string source) {
  impl_->describe(std::move(source));
}
void Server::setStatus(std::string status) {
  impl_->setStatus(std::move(status));
}
void Server::setCluster(std::string picture) {
  impl_->setCluster(std::move(picture));
}
void Server::publish(const std::string& frame) {
  impl_->publish("frame", frame);
}
void Server::publishPicture(const std::string& picture) {
  impl_->publish("cluster", picture);
}

}  // namespace mbcas::ui
