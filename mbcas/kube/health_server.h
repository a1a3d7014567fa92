// /healthz, /livez, /readyz and /metrics over plain HTTP, as Kubernetes' probes and Prometheus ask.
//
//   HealthServer server(metrics);
//   server.addLiveCheck("loop", [&]() -> Result<void> { ... });
//   server.addReadyCheck("pods", [&] { return pods.hasSynced(); });
//   Result<int> port = server.start("0.0.0.0", 8080);
//
// Whoever reaches the port cannot keep probes from being answered: one thread serves all
// connections without waiting for any, a connection has ten seconds in all, and of more than
// kMostConnections the oldest is closed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mbcas/base/result.h"

namespace mbcas::kube {

class Metrics;

class HealthServer {
 public:
  static constexpr std::size_t kMostConnections = 64;

  explicit HealthServer(Metrics& metrics);
  ~HealthServer();  // stops

  // What /healthz and /livez, or /readyz, answer: "ok", or 503 and the errors. Before start(). A
  // check runs on the thread that serves, so that one that does not return fails every probe.
  using Check = std::function<Result<void>()>;
  void addLiveCheck(std::string name, Check check);
  void addReadyCheck(std::string name, Check check);
  void addLiveCheck(std::string name, std::function<bool()> check);
  void addReadyCheck(std::string name, std::function<bool()> check);

  // Before start(). A page of one's own; an error is shown with status 503. Pages and metrics are
  // made one by one on a thread of their own and may take their time.
  void addPage(const std::string& path, std::string content_type,
               std::function<Result<std::string>()> text);

  // Port 0 takes any free one; returns the port.
  Result<int> start(const std::string& address, int port);
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::kube
