// /healthz, /livez, /readyz and /metrics over plain HTTP, as Kubernetes' probes and Prometheus ask.
//
//   HealthServer server(metrics);
//   server.addReadyCheck("pods", [&] { return pods.hasSynced(); });
//   Result<int> port = server.start("0.0.0.0", 8080);
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mbcas/base/result.h"

namespace mbcas::kube {

class Metrics;

class HealthServer {
 public:
  explicit HealthServer(Metrics& metrics);
  ~HealthServer();  // stops

  // Before start(). A check is called on the server's threads.
  void addLiveCheck(std::string name, std::function<bool()> check);
  void addReadyCheck(std::string name, std::function<bool()> check);

  // Before start(). A page of one's own; an error is shown with status 503. Called on the server's
  // threads.
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
