#include "mbcas/kube/health_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <thread>
#include <vector>

#include "mbcas/kube/metrics.h"

namespace mbcas::kube {
namespace {

using Checks = std::vector<std::pair<std::string, std::function<bool()>>>;

// As the API server reports it: "[+]name ok", "[-]name failed", then the sum.
void answer(const Checks& checks, httplib::Response& response) {
  std::string text;
  bool good = true;
  for (const auto& [name, check] : checks) {
    const bool passed = check();
    good = good && passed;
    text += fmt::format("[{}]{} {}\n", passed ? '+' : '-', name, passed ? "ok" : "failed");
  }
  response.status = good ? 200 : 503;
  response.set_content(good ? "ok" : text + "check failed\n", "text/plain; charset=utf-8");
}

}  // namespace

class HealthServer::Impl {
 public:
  explicit Impl(Metrics& metrics) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(2); };
    // The library's default would let a second process share the port.
    server_.set_socket_options([](socket_t fd) {
      const int yes = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.set_read_timeout(5);
    server_.set_write_timeout(5);
    server_.set_keep_alive_max_count(100);
    server_.set_payload_max_length(1024);
    const auto live = [this](const httplib::Request&, httplib::Response& response) {
      answer(live_, response);
    };
    server_.Get("/healthz", live);
    server_.Get("/livez", live);
    server_.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
      answer(ready_, response);
    });
    server_.Get("/metrics", [&metrics](const httplib::Request&, httplib::Response& response) {
      response.set_content(metrics.text(), "text/plain; version=0.0.4; charset=utf-8");
    });
  }

  Result<int> start(const std::string& address, int port) {
    const int bound = port == 0                             ? server_.bind_to_any_port(address)
                      : server_.bind_to_port(address, port) ? port
                                                            : -1;
    if (bound < 0) return failure(fmt::format("cannot listen on {}:{}", address, port));
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
    return bound;
  }

  void stop() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }

  void addPage(const std::string& path, std::string content_type,
               std::function<Result<std::string>()> text) {
    server_.Get(path, [type = std::move(content_type), text = std::move(text)](
                          const httplib::Request&, httplib::Response& response) {
      const Result<std::string> page = text();
      response.status = page ? 200 : 503;
      response.set_content(page ? *page : page.error().message() + "\n",
                           page ? type : "text/plain; charset=utf-8");
    });
  }

  Checks live_;
  Checks ready_;

 private:
  httplib::Server server_;
  std::thread thread_;
};

HealthServer::HealthServer(Metrics& metrics) : impl_(std::make_unique<Impl>(metrics)) {}
HealthServer::~HealthServer() {
  stop();
}

void HealthServer::addLiveCheck(std::string name, std::function<bool()> check) {
  impl_->live_.emplace_back(std::move(name), std::move(check));
}
void HealthServer::addReadyCheck(std::string name, std::function<bool()> check) {
  impl_->ready_.emplace_back(std::move(name), std::move(check));
}
void HealthServer::addPage(const std::string& path, std::string content_type,
                           std::function<Result<std::string>()> text) {
  impl_->addPage(path, std::move(content_type), std::move(text));
}
Result<int> HealthServer::start(const std::string& address, int port) {
  return impl_->start(address, port);
}
void HealthServer::stop() {
  impl_->stop();
}

}  // namespace mbcas::kube
