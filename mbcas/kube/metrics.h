// The runtime's own metrics under the names that dashboards for client-go and controller-runtime
// expect. A component takes a Metrics*, null for none. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mbcas/base/units.h"

namespace prometheus {
class Registry;
}

namespace mbcas::kube {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // rest_client_requests_total{code,method,host}, rest_client_request_duration_seconds{verb,host}.
  // Code "<error>" when there was no answer.
  void requestDone(const std::string& code, const std::string& method, const std::string& host,
                   Nanos took);

  // workqueue_*{name}
  void queueAdded(const std::string& queue);
  void queueRetried(const std::string& queue);
  void queueTaken(const std::string& queue, Nanos waited);
  void queueDone(const std::string& queue, Nanos worked);
  void queueState(const std::string& queue, double depth, Nanos unfinished, Nanos longest);

  // controller_runtime_*{controller}; result is success, error, requeue_after.
  void reconciled(const std::string& controller, const std::string& result, Nanos took);
  void workers(const std::string& controller, int active, int max);

  // leader_election_master_status{name}
  void leading(const std::string& lease, bool leads);

  // kube_watch_restarts_total{kind,cause}: cause is list, resume
  void watchRestarted(const std::string& kind, const std::string& cause);

  // kube_watch_passed_over_objects{kind}, kube_watch_stuck_seconds{kind}: see
  // WatchHealth::stuckFor. Of several watches of one kind the sum and the longest. Only from a
  // beforeExposition().
  void watchState(const std::string& kind, std::size_t passed_over, Nanos stuck);

  // For metrics that are computed when asked for. `refresh` runs before each exposition until the
  // returned handle is dropped.
  std::shared_ptr<void> beforeExposition(std::function<void()> refresh);

  // Text of one's own at the end of each exposition. Before the first one.
  void addText(std::function<std::string()> text);

  // To add families of one's own.
  const std::shared_ptr<prometheus::Registry>& registry();

  // The text format, version 0.0.4.
  std::string text();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::kube
