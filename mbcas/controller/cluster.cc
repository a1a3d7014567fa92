#include "mbcas/controller/cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/base/mutex.h"
#include "mbcas/policy/names.h"
#include "mbcas/policy/workload.h"

namespace mbcas::controller {
namespace {

using kube::Informer;
using kube::objectKey;

constexpr const char* kByNamespace = "namespace";
constexpr const char* kByNode = "node";
constexpr const char* kByWorkload = "workload";
constexpr const char* kByPod = "pod";

std::vector<std::string> one(std::string value) {
  std::vector<std::string> values;
  if (!value.empty()) values.push_back(std::move(value));
  return values;
}

bool same(const kube::List<kube::KeyValue>& a, const kube::List<kube::KeyValue>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.key == y.key && x.value == y.value;
  });
}

bool lacksPods(const kube::PodDisruptionBudget& budget) {
  return budget.current_healthy < budget.desired_healthy;
}

template <class T, class Same>
bool sameItems(const kube::List<T>& a, const kube::List<T>& b, const Same& same_item) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_item);
}

bool same(const kube::List<kube::Str>& a, const kube::List<kube::Str>& b) {
  return sameItems(a, b, [](const auto& x, const auto& y) { return x == y; });
}

bool same(const kube::TargetReference& a, const kube::TargetReference& b) {
  return a.api_version == b.api_version && a.kind == b.kind && a.name == b.name;
}

// Whether two versions of an object say the same to policy. The rest of an object changes much more
// often: an HPA, for one, reports its status four times a minute, and whatever is touched for it is
// every pod of its namespace.

bool saysTheSame(const kube::LimitRange& a, const kube::LimitRange& b) {
  return sameItems(a.limits, b.limits, [](const auto& x, const auto& y) {
    return x.type == y.type && x.min == y.min && x.max == y.max &&
           x.max_limit_request_ratio == y.max_limit_request_ratio;
  });
}

// What is used changes with every pod; a pod that waits for room looks again by itself.
bool saysTheSame(const kube::ResourceQuota& a, const kube::ResourceQuota& b) {
  return same(a.hard, b.hard) && same(a.status_hard, b.status_hard);
}

bool saysTheSame(const kube::HorizontalPodAutoscaler& a, const kube::HorizontalPodAutoscaler& b) {
  return same(a.target, b.target) &&
         sameItems(a.metrics, b.metrics, [](const auto& x, const auto& y) {
           return x.type == y.type && x.resource == y.resource && x.target_type == y.target_type &&
                  x.average_utilization == y.average_utilization &&
                  x.average_value == y.average_value;
         });
}

bool saysTheSame(const kube::VerticalPodAutoscaler& a, const kube::VerticalPodAutoscaler& b) {
  return same(a.target, b.target) && a.update_mode == b.update_mode &&
         sameItems(a.policies, b.policies, [](const auto& x, const auto& y) {
           return x.container == y.container && x.mode == y.mode &&
                  same(x.controlled_resources, y.controlled_resources);
         });
}

bool saysTheSame(const kube::PodDisruptionBudget& a, const kube::PodDisruptionBudget& b) {
  return a.meta.generation == b.meta.generation && lacksPods(a) == lacksPods(b);
}

bool saysTheSame(const kube::Namespace& a, const kube::Namespace& b) {
  const auto mark = [](const kube::Namespace& object, std::string_view key) {
    return std::pair(kube::find(object.meta.labels, key), kube::find(object.meta.annotations, key));
  };
  return a.phase == b.phase && mark(a, policy::kMode) == mark(b, policy::kMode) &&
         mark(a, policy::kManaged) == mark(b, policy::kManaged);
}

// A node says that it is alive several times a minute.
bool saysTheSame(const kube::Node& a, const kube::Node& b) {
  return a.allocatable == b.allocatable && a.ready == b.ready;
}

bool saysTheSame(const kube::ConfigMap& a, const kube::ConfigMap& b) {
  return same(a.data, b.data);
}

template <class T>
bool matters(const kube::TypedChange<T>& change) {
  return !change.before || !change.after || !saysTheSame(*change.before, *change.after);
}

template <class T>
void indexByNamespace(Informer<T>& informer) {
  informer.addIndex(kByNamespace,
                    [](const T& object) { return one(object.meta.namespace_.string()); });
}

}  // namespace

struct Cluster::Informers {
  template <class T>
  static kube::WatchOptions watch(const Handlers& handlers, kube::WatchOptions options = {}) {
    if (handlers.on_error) {
      options.on_error = [&handlers](const kube::ApiError& error) {
        handlers.on_error(std::string(T::kind().name), error);
      };
    }
    return options;
  }

  // Kinds of which neither labels nor annotations count: users may write 256 KiB of these into
  // every object, and selectors and metrics of any length.
  template <class T>
  static kube::WatchOptions watchBare(const Handlers& handlers, std::string name_space = {}) {
    return watch<T>(handlers, {.name_space = std::move(name_space),
                               .annotations = std::vector<std::string>{},
                               .labels = std::vector<std::string>{},
                               .most_kept = 16 << 10});
  }

  Informers(kube::Client& client, const std::string& name_space, const Handlers& handlers)
      : pods(client, watch<kube::Pod>(
                         handlers,
                         {.annotations = std::vector<std::string>{"mbcas.io/",
                                                                  "kubernetes.io/config.mirror"}})),
        // With a hundred containers one is larger than other objects that matter.
        allocations(client,
                    watch<PodAllocation>(handlers, {.annotations = std::vector<std::string>{},
                                                    .labels = std::vector<std::string>{}})),
        nodes(client, watchBare<kube::Node>(handlers)),
        namespaces(client, watch<kube::Namespace>(
                               handlers, {.annotations = std::vector<std::string>{"mbcas.io/"},
                                          .labels = std::vector<std::string>{"mbcas.io/"}})),
        ranges(client, watchBare<kube::LimitRange>(handlers)),
        quotas(client, watchBare<kube::ResourceQuota>(handlers)),
        hpas(client, watchBare<kube::HorizontalPodAutoscaler>(handlers)),
        budgets(client, watchBare<kube::PodDisruptionBudget>(handlers)),
        leases(client, watchBare<kube::Lease>(handlers, name_space)),
        settings(client,
                 watch<kube::ConfigMap>(
                     handlers, {.name_space = name_space,
                                .field_selector = fmt::format("metadata.name={}", kSettingsName),
                                .annotations = std::vector<std::string>{},
                                .labels = std::vector<std::string>{}})) {}

  Informer<kube::Pod> pods;
  Informer<PodAllocation> allocations;
  Informer<kube::Node> nodes;
  Informer<kube::Namespace> namespaces;
  Informer<kube::LimitRange> ranges;
  Informer<kube::ResourceQuota> quotas;
  Informer<kube::HorizontalPodAutoscaler> hpas;
  Informer<kube::PodDisruptionBudget> budgets;
  Informer<kube::Lease> leases;
  Informer<kube::ConfigMap> settings;
  mutable Mutex mutex;
  std::shared_ptr<Informer<kube::VerticalPodAutoscaler>> vpas MBCAS_GUARDED_BY(mutex);
};

Cluster::Cluster(kube::Client& client, const std::string& name_space, Handlers handlers)
    : client_(client),
      name_space_(name_space),
      handlers_(std::move(handlers)),
      informers_(std::make_unique<Informers>(client, name_space, handlers_)) {
  Informers& in = *informers_;
  indexByNamespace(in.pods);
  in.pods.addIndex(kByNode, [](const kube::Pod& pod) { return one(pod.node.string()); });
  in.pods.addIndex(kByWorkload, [](const kube::Pod& pod) { return one(policy::workloadKey(pod)); });
  in.allocations.addIndex(kByPod, [](const PodAllocation& allocation) {
    return one(objectKey(allocation.meta.namespace_, allocation.pod_name));
  });
  indexByNamespace(in.ranges);
  indexByNamespace(in.quotas);
  indexByNamespace(in.hpas);
  indexByNamespace(in.budgets);

  in.pods.onChange([this](const auto& change) { handlers_.pod_changed(change.key()); });
  in.allocations.onChange([this](const auto& change) {
    const PodAllocation& allocation = change.latest();
    handlers_.pod_changed(objectKey(allocation.meta.namespace_, allocation.pod_name));
  });
  in.nodes.onChange([this](const auto& change) {
    if (!matters(change)) return;
    for (const PodPtr& pod : podsOfNode(change.latest().meta.name.string())) {
      handlers_.pod_changed(objectKey(pod->meta));
    }
  });
  const auto touch = [this](const auto& change) {
    if (matters(change)) touchNamespace(change.latest().meta.namespace_.string());
  };
  in.namespaces.onChange([this](const auto& change) {
    if (matters(change)) touchNamespace(change.latest().meta.name.string());
  });
  in.ranges.onChange(touch);
  in.quotas.onChange(touch);
  in.hpas.onChange(touch);
  in.budgets.onChange(touch);
  in.leases.onChange([this](const auto& change) {
    handlers_.lease_changed(change.latest(), change.after == nullptr);
  });
  in.settings.onChange([this](const auto& change) {
    if (!matters(change)) return;
    handlers_.settings_changed(change.after.get());
    touchAllocated();
  });
}

Cluster::~Cluster() {
  stop();
}

void Cluster::start() {
  Informers& in = *informers_;
  in.settings.start();
  in.namespaces.start();
  in.nodes.start();
  in.ranges.start();
  in.quotas.start();
  in.hpas.start();
  in.budgets.start();
  in.leases.start();
  in.pods.start();
  in.allocations.start();
}

bool Cluster::hasSynced() const {
  if (!knows_vpas_) return false;
  const auto synced = [](const auto& informer) { return informer.hasSynced(); };
  const Informers& in = *informers_;
  std::shared_ptr<Informer<kube::VerticalPodAutoscaler>> vpas;
  {
    const MutexLock lock(in.mutex);
    vpas = in.vpas;
  }
  return synced(in.settings) && synced(in.namespaces) && synced(in.nodes) && synced(in.ranges) &&
         synced(in.quotas) && synced(in.hpas) && synced(in.budgets) && synced(in.leases) &&
         synced(in.pods) && synced(in.allocations) && (!vpas || synced(*vpas));
}

std::vector<Cluster::Watch> Cluster::watches() const {
  std::vector<Watch> all;
  const auto look = [&]<class T>(const Informer<T>& informer) {
    all.push_back({std::string(T::kind().name), informer.health(), informer.passedOver()});
  };
  const Informers& in = *informers_;
  look(in.pods);
  look(in.allocations);
  look(in.nodes);
  look(in.namespaces);
  look(in.ranges);
  look(in.quotas);
  look(in.hpas);
  look(in.budgets);
  look(in.leases);
  look(in.settings);
  const MutexLock lock(in.mutex);
  if (in.vpas) look(*in.vpas);
  return all;
}

void Cluster::stop() {
  Informers& in = *informers_;
  in.allocations.stop();
  in.pods.stop();
  in.leases.stop();
  in.budgets.stop();
  in.hpas.stop();
  in.quotas.stop();
  in.ranges.stop();
  in.nodes.stop();
  in.namespaces.stop();
  in.settings.stop();
  const MutexLock lock(in.mutex);
  if (in.vpas) in.vpas->stop();
}

void Cluster::lookForVpas(const std::stop_token& stop) {
  Informers& in = *informers_;
  {
    const MutexLock lock(in.mutex);
    if (in.vpas) return;
  }
  const auto served = client_.resources("autoscaling.k8s.io/v1", stop);
  if (!served && !served.error().notFound()) {
    if (handlers_.on_error && !stop.stop_requested()) {
      handlers_.on_error("VerticalPodAutoscaler", served.error());
    }
    return;  // not known: to be asked again
  }
  if (!served ||
      std::find(served->begin(), served->end(), "verticalpodautoscalers") == served->end()) {
    knows_vpas_ = true;
    return;
  }
  auto vpas = std::make_shared<Informer<kube::VerticalPodAutoscaler>>(
      client_, Informers::watchBare<kube::VerticalPodAutoscaler>(handlers_));
  indexByNamespace(*vpas);
  vpas->onChange([this](const auto& change) {
    if (matters(change)) touchNamespace(change.latest().meta.namespace_.string());
  });
  vpas->start();
  {
    const MutexLock lock(in.mutex);
    in.vpas = std::move(vpas);
  }
  knows_vpas_ = true;
}

PodPtr Cluster::pod(const std::string& key) const {
  const auto [name_space, name] = kube::splitKey(key);
  return informers_->pods.find(name_space, name);
}

std::vector<PodPtr> Cluster::podsOfNamespace(const std::string& name_space) const {
  return informers_->pods.byIndex(kByNamespace, name_space);
}

std::vector<PodPtr> Cluster::podsOfNode(const std::string& node) const {
  return informers_->pods.byIndex(kByNode, node);
}

std::vector<PodPtr> Cluster::siblings(const kube::Pod& pod) const {
  const std::string key = policy::workloadKey(pod);
  if (key.empty()) return {};
  return informers_->pods.byIndex(kByWorkload, key);
}

std::vector<AllocationPtr> Cluster::allocationsFor(const std::string& pod_key) const {
  return informers_->allocations.byIndex(kByPod, pod_key);
}

AllocationPtr Cluster::allocationOf(const kube::Pod& pod) const {
  AllocationPtr found = informers_->allocations.find(pod.meta.namespace_, pod.meta.uid);
  if (found && (found->pod_name != pod.meta.name || ofAnotherNode(*found, pod))) return nullptr;
  return found;
}

bool ofAnotherNode(const PodAllocation& allocation, const kube::Pod& pod) {
  return !allocation.node.empty() && allocation.node != pod.node;
}

std::shared_ptr<const kube::Node> Cluster::node(std::string_view name) const {
  return informers_->nodes.find("", name);
}

std::vector<std::shared_ptr<const kube::Node>> Cluster::nodes() const {
  return informers_->nodes.list();
}

std::shared_ptr<const kube::Lease> Cluster::lease(const std::string& name) const {
  return informers_->leases.find(name_space_, name);
}

std::shared_ptr<const kube::ConfigMap> Cluster::settings() const {
  return informers_->settings.find(name_space_, kSettingsName);
}

policy::NamespaceObjects Cluster::objects(const std::string& name_space) const {
  const Informers& in = *informers_;
  policy::NamespaceObjects objects{.name_space = in.namespaces.find("", name_space),
                                   .ranges = in.ranges.byIndex(kByNamespace, name_space),
                                   .quotas = in.quotas.byIndex(kByNamespace, name_space),
                                   .hpas = in.hpas.byIndex(kByNamespace, name_space),
                                   .vpas = {},
                                   .budgets = in.budgets.byIndex(kByNamespace, name_space)};
  const MutexLock lock(in.mutex);
  if (in.vpas) objects.vpas = in.vpas->byIndex(kByNamespace, name_space);
  return objects;
}

void Cluster::touchNamespace(const std::string& name_space) const {
  for (const PodPtr& pod : podsOfNamespace(name_space)) handlers_.pod_changed(objectKey(pod->meta));
}

void Cluster::touchAll() const {
  for (const PodPtr& pod : informers_->pods.list()) handlers_.pod_changed(objectKey(pod->meta));
  touchAllocated();
}

void Cluster::touchAllocated() const {
  for (const AllocationPtr& allocation : informers_->allocations.list()) {
    handlers_.pod_changed(objectKey(allocation->meta.namespace_, allocation->pod_name));
  }
}

}  // namespace mbcas::controller
