#include "mbcas/kube/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <list>
#include <map>

#include "mbcas/base/mutex.h"

namespace mbcas::kube {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;
template <class T>
using Family = prometheus::Family<T>;

double secondsOf(Nanos time) {
  return std::chrono::duration<double>(time).count();
}

// The buckets of client-go and component-base.
const Buckets& requestBuckets() {
  static const Buckets kBuckets = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
  return kBuckets;
}
const Buckets& queueBuckets() {
  static const Buckets kBuckets = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10};
  return kBuckets;
}
const Buckets& reconcileBuckets() {
  static const Buckets kBuckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,  0.35,
                                   0.4,   0.45, 0.5,   0.6,  0.7, 0.8,  0.9, 1.0,  1.25, 1.5,
                                   1.75,  2.0,  2.5,   3.0,  3.5, 4.0,  4.5, 5,    6,    7,
                                   8,     9,    10,    15,   20,  25,   30,  40,   50,   60};
  return kBuckets;
}

}  // namespace

struct Metrics::Impl {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  Mutex mutex;
  std::list<std::function<void()>> refreshers MBCAS_GUARDED_BY(mutex);
  std::list<std::function<std::string()>> texts;

  Family<prometheus::Counter>& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
  }
  Family<prometheus::Gauge>& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(*registry);
  }
  Family<prometheus::Histogram>& histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry);
  }

  Family<prometheus::Counter>& requests =
      counter("rest_client_requests_total", "HTTP requests by status code, method and host.");
  Family<prometheus::Histogram>& request_seconds =
      histogram("rest_client_request_duration_seconds", "Request latency by verb and host.");
  Family<prometheus::Gauge>& depth = gauge("workqueue_depth", "Keys waiting in the queue.");
  Family<prometheus::Counter>& adds = counter("workqueue_adds_total", "Keys added to the queue.");
  Family<prometheus::Counter>& retries =
      counter("workqueue_retries_total", "Keys added again after a failure.");
  Family<prometheus::Histogram>& queue_seconds =
      histogram("workqueue_queue_duration_seconds", "How long keys wait before work begins.");
  Family<prometheus::Histogram>& work_seconds =
      histogram("workqueue_work_duration_seconds", "How long work on a key takes.");
  Family<prometheus::Gauge>& unfinished = gauge("workqueue_unfinished_work_seconds",
                                                "Sum of the ages of the work that is in progress.");
  Family<prometheus::Gauge>& longest =
      gauge("workqueue_longest_running_processor_seconds", "Age of the oldest work in progress.");
  Family<prometheus::Counter>& reconciles =
      counter("controller_runtime_reconcile_total", "Reconciliations by controller and result.");
  Family<prometheus::Counter>& reconcile_errors =
      counter("controller_runtime_reconcile_errors_total", "Reconciliations that failed.");
  Family<prometheus::Histogram>& reconcile_seconds =
      histogram("controller_runtime_reconcile_time_seconds", "Length of a reconciliation.");
  Family<prometheus::Gauge>& active_workers =
      gauge("controller_runtime_active_workers", "Workers that are reconciling.");
  Family<prometheus::Gauge>& max_workers =
      gauge("controller_runtime_max_concurrent_reconciles", "Number of workers.");
  Family<prometheus::Gauge>& master =
      gauge("leader_election_master_status", "1 if this process leads, 0 if it stands by.");
  Family<prometheus::Counter>& watch_restarts =
      counter("kube_watch_restarts_total", "Watches that were restarted, by cause.");
  Family<prometheus::Gauge>& passed_over =
      gauge("kube_watch_passed_over_objects",
            "Objects on the server that cannot be read and are skipped.");
  Family<prometheus::Gauge>& stuck = gauge(
      "kube_watch_stuck_seconds", "How long a watch has failed without progress; 0 if it works.");
  struct WatchGauges {
    prometheus::Gauge* passed_over;
    prometheus::Gauge* stuck;
  };
  std::map<std::string, WatchGauges> watches;  // by kind; guarded by mutex
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::requestDone(const std::string& code, const std::string& method,
                          const std::string& host, Nanos took) {
  impl_->requests.Add({{"code", code}, {"method", method}, {"host", host}}).Increment();
  impl_->request_seconds.Add({{"verb", method}, {"host", host}}, requestBuckets())
      .Observe(secondsOf(took));
}

void Metrics::queueAdded(const std::string& queue) {
  impl_->adds.Add({{"name", queue}}).Increment();
}
void Metrics::queueRetried(const std::string& queue) {
  impl_->retries.Add({{"name", queue}}).Increment();
}
void Metrics::queueTaken(const std::string& queue, Nanos waited) {
  impl_->queue_seconds.Add({{"name", queue}}, queueBuckets()).Observe(secondsOf(waited));
}
void Metrics::queueDone(const std::string& queue, Nanos worked) {
  impl_->work_seconds.Add({{"name", queue}}, queueBuckets()).Observe(secondsOf(worked));
}
void Metrics::queueState(const std::string& queue, double depth, Nanos unfinished, Nanos longest) {
  impl_->depth.Add({{"name", queue}}).Set(depth);
  impl_->unfinished.Add({{"name", queue}}).Set(secondsOf(unfinished));
  impl_->longest.Add({{"name", queue}}).Set(secondsOf(longest));
}

void Metrics::reconciled(const std::string& controller, const std::string& result, Nanos took) {
  impl_->reconciles.Add({{"controller", controller}, {"result", result}}).Increment();
  if (result == "error") impl_->reconcile_errors.Add({{"controller", controller}}).Increment();
  impl_->reconcile_seconds.Add({{"controller", controller}}, reconcileBuckets())
      .Observe(secondsOf(took));
}
void Metrics::workers(const std::string& controller, int active, int max) {
  impl_->active_workers.Add({{"controller", controller}}).Set(active);
  impl_->max_workers.Add({{"controller", controller}}).Set(max);
}

void Metrics::leading(const std::string& lease, bool leads) {
  impl_->master.Add({{"name", lease}}).Set(leads ? 1 : 0);
}

void Metrics::watchRestarted(const std::string& kind, const std::string& cause) {
  impl_->watch_restarts.Add({{"kind", kind}, {"cause", cause}}).Increment();
}

void Metrics::watchState(const std::string& kind, std::size_t passed_over, Nanos stuck) {
  const auto [watch, is_new] = impl_->watches.try_emplace(kind);
  Impl::WatchGauges& gauges = watch->second;
  if (is_new) {
    gauges = {&impl_->passed_over.Add({{"kind", kind}}), &impl_->stuck.Add({{"kind", kind}})};
  }
  gauges.passed_over->Increment(static_cast<double>(passed_over));
  gauges.stuck->Set(std::max(gauges.stuck->Value(), secondsOf(stuck)));
}

std::shared_ptr<void> Metrics::beforeExposition(std::function<void()> refresh) {
  const MutexLock lock(impl_->mutex);
  const auto place = impl_->refreshers.insert(impl_->refreshers.end(), std::move(refresh));
  return {nullptr, [impl = impl_.get(), place](void*) {
            const MutexLock inner(impl->mutex);
            impl->refreshers.erase(place);
          }};
}

const std::shared_ptr<prometheus::Registry>& Metrics::registry() {
  return impl_->registry;
}

void Metrics::addText(std::function<std::string()> text) {
  impl_->texts.push_back(std::move(text));
}

std::string Metrics::text() {
  {
    const MutexLock lock(impl_->mutex);
    for (const auto& [kind, watch] : impl_->watches) {
      watch.passed_over->Set(0);
      watch.stuck->Set(0);
    }
    for (const auto& refresh : impl_->refreshers) refresh();
  }
  std::string text = prometheus::TextSerializer().Serialize(impl_->registry->Collect());
  for (const auto& more : impl_->texts) text += more();
  return text;
}

}  // namespace mbcas::kube
