#include "mbcas/kube/controller.h"

#include "mbcas/kube/metrics.h"

namespace mbcas::kube {
namespace {

constexpr std::chrono::seconds kOutOfReach{1};

QueueOptions queueOptions(const ControllerOptions& options) {
  QueueOptions queue = options.queue;
  queue.name = options.name;
  queue.metrics = options.metrics;
  return queue;
}

}  // namespace

Controller::Controller(const Clock& clock, ControllerOptions options, Reconcile reconcile)
    : clock_(clock),
      options_(std::move(options)),
      reconcile_(std::move(reconcile)),
      queue_(clock, queueOptions(options_)) {}

Controller::~Controller() {
  stop();
}

void Controller::start() {
  if (!workers_.empty()) return;
  if (options_.metrics != nullptr) options_.metrics->workers(options_.name, 0, options_.workers);
  for (int i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
}

void Controller::stop() {
  queue_.shutDown();
  join();
}

void Controller::abandon() {
  queue_.abandon();
  join();
}

void Controller::join() {
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void Controller::work() {
  Metrics* const metrics = options_.metrics;
  while (const std::optional<std::string> key = queue_.get()) {
    const int active = ++active_;
    if (metrics != nullptr) metrics->workers(options_.name, active, options_.workers);
    const MonotonicTime began = clock_.monotonic();
    const Reconciled result = reconcile_(*key);
    const Nanos took = clock_.monotonic() - began;
    const char* outcome = "success";
    if (result.error()) {
      outcome = "error";
      if (options_.on_error) options_.on_error(*key, *result.error());
      queue_.retry(*key);
    } else {
      queue_.forget(*key);
      if (result.after()) {
        outcome = "requeue_after";
        queue_.addAfter(*key, *result.after());
      }
    }
    queue_.done(*key);
    const int left = --active_;
    if (metrics != nullptr) {
      metrics->workers(options_.name, left, options_.workers);
      metrics->reconciled(options_.name, outcome, took);
    }
    if (result.error() && options_.out_of_reach && options_.out_of_reach()) {
      std::this_thread::sleep_for(kOutOfReach);
    }
  }
}

}  // namespace mbcas::kube
