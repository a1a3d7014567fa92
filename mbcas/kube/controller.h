// Workers that bring objects to their wanted state, one key at a time. Level-based: the function is
// given a name, not an event, and reads the present state.
//
//   Controller controller(clock, {.name = "widgets", .workers = 2}, [&](const std::string& key) {
//     ...
//     return Reconciled::done();
//   });
//   informer.onChange([&](const auto& change) { controller.queue().add(change.key()); });
//   controller.start();
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/kube/work_queue.h"

namespace mbcas::kube {

class Metrics;

// How a reconciliation ended.
class Reconciled {
 public:
  static Reconciled done() { return {}; }
  static Reconciled again(Nanos after) {  // reconcile again later, though nothing failed
    Reconciled result;
    result.after_ = after;
    return result;
  }
  static Reconciled failed(Error error) {  // try again, with growing delays
    Reconciled result;
    result.error_ = std::move(error);
    return result;
  }

  const std::optional<Nanos>& after() const { return after_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<Nanos> after_;
  std::optional<Error> error_;
};

struct ControllerOptions {
  std::string name = "controller";
  int workers = 1;
  QueueOptions queue;  // its name and metrics are set from here
  Metrics* metrics = nullptr;
  std::function<void(const std::string& key, const Error&)> on_error;
  // Asked after a failure. True: not the key is at fault, nothing can be done at present, and the
  // worker waits for a second before it takes the next. Else an outage of seconds would make every
  // key in line fail, and each would be due again only when it has waited for its failures.
  std::function<bool()> out_of_reach{};
};

class Controller {
 public:
  using Reconcile = std::function<Reconciled(const std::string& key)>;

  Controller(const Clock& clock, ControllerOptions options, Reconcile reconcile);
  ~Controller();  // stops

  WorkQueue& queue() { return queue_; }
  const WorkQueue& queue() const { return queue_; }

  void start();
  // Takes no new work, finishes what is in line, joins the workers.
  void stop();
  // The same, but what is only in line is dropped. Does not wait longer than the work in hand
  // takes.
  void abandon();

 private:
  void work();
  void join();

  const Clock& clock_;
  const ControllerOptions options_;
  Reconcile reconcile_;
  WorkQueue queue_;
  std::atomic<int> active_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace mbcas::kube
