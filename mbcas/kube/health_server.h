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

  // Port 0 takes any free one; returns the port.
  Result<int> start(const std::string& address, int port);
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::kube
