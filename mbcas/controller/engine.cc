#include "mbcas/controller/engine.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <random>
#include <thread>
#include <unordered_set>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/mutex.h"
#include "mbcas/control/weight.h"
#include "mbcas/controller/agents.h"
#include "mbcas/controller/audit.h"
#include "mbcas/controller/cluster.h"
#include "mbcas/controller/decide.h"
#include "mbcas/controller/limited_log.h"
#include "mbcas/controller/pod_events.h"
#include "mbcas/controller/quotas.h"
#include "mbcas/controller/restore.h"
#include "mbcas/controller/turns.h"
#include "mbcas/controller/writer.h"
#include "mbcas/kube/controller.h"
#include "mbcas/kube/events.h"
#include "mbcas/kube/metrics.h"
#include "mbcas/kube/token_bucket.h"
#include "mbcas/podallocation/marks.h"
#include "mbcas/policy/siblings.h"
#include "mbcas/policy/workload.h"

namespace mbcas::controller {
namespace {

using kube::objectKey;
using kube::Reconciled;
using podallocation::kControllerManager;
using podallocation::Phase;
using resize::Verdict;

constexpr Nanos kBeat = std::chrono::seconds(5);  // of the thread that listens for agents
constexpr Nanos kSoon = std::chrono::seconds(1);  // until what failed at the start is tried again
constexpr Nanos kVpaInterval = std::chrono::minutes(1);
constexpr Nanos kFairnessInterval = std::chrono::seconds(15);
// Marks of one node that come within this time are one write.
constexpr Nanos kMarksTogether = std::chrono::seconds(1);
// An agent looks for the first bounds of an object by itself while it is younger than this.
constexpr Nanos kAgentLooks = std::chrono::seconds(2);
constexpr Nanos kSettled =
    std::chrono::seconds(30);  // age of a sibling that has something to teach

// The cache may be behind what the server answered to our own write.
template <class T>
std::shared_ptr<const T> newest(std::shared_ptr<const T> cached, std::shared_ptr<const T>& held) {
  if (!held) return cached;
  if (!cached || cached->meta.uid != held->meta.uid ||
      !kube::isNewer(held->meta.resource_version, cached->meta.resource_version)) {
    held.reset();
    return cached;
  }
  return held;
}

// What is kept of a pod between two looks.
struct Entry {
  PodPtr of;  // a version of the pod, for its names and UID
  PodMemory memory;
  PodPtr pod;                // as answered to our last write, until the cache has it
  AllocationPtr allocation;  // likewise
  bool had_allocation = false;
};

// By namespace and name of the pod. There is one for each pod of the cluster, so no text is stored.
struct EntryName {
  static kube::ObjectName of(const Entry& entry) {
    return {entry.of->meta.namespace_, entry.of->meta.name};
  }
  static kube::ObjectName of(kube::ObjectName name) { return name; }
};
struct EntryHash {
  using is_transparent = void;
  template <class A>
  std::size_t operator()(const A& entry) const {
    return kube::ObjectNameHash()(EntryName::of(entry));
  }
};
struct EntryEqual {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return kube::ObjectNameEqual()(EntryName::of(a), EntryName::of(b));
  }
};

std::string text(Millicores cpu) {
  return fmt::format("{}m", cpu.count());
}

// Lines that people can read: so many a second, after so many at once.
constexpr double kLines = 10;
constexpr double kLinesAtOnce = 200;
// Allocations that were written for another node than their pod's, removed: likewise.
constexpr double kRemovals = 5;
constexpr double kRemovalsAtOnce = 50;
// Of the workers, those that may be busy with raises in namespaces with quotas.
constexpr double kShareForQuotas = 0.75;

}  // namespace

std::string_view name(Step step) {
  switch (step) {
    case Step::kDecided:
      return "decided";
    case Step::kOriginalRecorded:
      return "original-recorded";
    case Step::kResizeSent:
      return "resize-sent";
    case Step::kActuated:
      return "actuated";
    case Step::kOriginalKept:
      return "original-kept";
    case Step::kStatusWritten:
      return "status-written";
    case Step::kOriginalForgotten:
      break;
  }
  return "original-forgotten";
}

class Engine::Impl {
 public:
  Impl(kube::Client& client, EngineOptions options)
      : client_(client),
        clock_(client.clock()),
        options_(std::move(options)),
        events_(client, "mbcas-controller"),
        resize_log_("resizes", kLines, kLinesAtOnce, options_.log),
        error_log_("errors", kLines, kLinesAtOnce,
                   options_.log_error ? options_.log_error : options_.log),
        give_backs_(options_.give_backs_per_second, options_.give_backs_per_second),
        removals_(kRemovals, kRemovalsAtOnce),
        random_(std::random_device{}()),
        turns_(
            std::max<std::size_t>(1, static_cast<std::size_t>(options_.workers * kShareForQuotas))),
        cluster_(client, options_.name_space,
                 // A replica that stands by keeps no list of what it will look at: when it begins
                 // to lead it looks at everything.
                 {.pod_changed =
                      [this](const std::string& key) {
                        if (!leading_) return;
                        release(key);
                        queue().add(key);
                      },
                  .lease_changed = [this](const kube::Lease& lease,
                                          bool gone) { leaseChanged(lease, gone); },
                  .settings_changed = [this](const kube::ConfigMap* map) { readSettings(map); },
                  .on_error =
                      [this](const std::string& kind, const kube::ApiError& error) {
                        logError(fmt::format("watching {}: {}", kind, error.describe()));
                      }}),
        controller_(
            clock_,
            {.name = "podallocation",
             .workers = options_.workers,
             .queue = {.first_delay = std::chrono::seconds(1),
                       .max_delay = std::chrono::minutes(5),
                       .urgency = [this](const std::string& key) { return urgencyOf(key); }},
             .metrics = client.metrics(),
             .on_error =
                 [this](const std::string& key, const Error& error) {
                   logError(fmt::format("{}: {}", key, error.message()));
                 },
             .out_of_reach = [this] { return !client_.answers(); }},
            [this](const std::string& key) { return reconcile(key); }),
        marker_(clock_,
                {.name = "marks",
                 .workers = 2,
                 .queue = {.first_delay = std::chrono::seconds(1),
                           .max_delay = std::chrono::minutes(1)},
                 .metrics = client.metrics(),
                 .on_error =
                     [this](const std::string& node, const Error& error) {
                       logError(fmt::format("marking changes for the agent of node {}: {}", node,
                                            error.message()));
                     },
                 .out_of_reach = [this] { return !client_.answers(); }},
                [this](const std::string& node) { return writeMarks(node); }) {
    last_progress_ = clock_.monotonic();
    if (client.metrics() == nullptr) return;
    prometheus::Registry& registry = *client.metrics()->registry();
    resizes_ = &prometheus::BuildCounter()
                    .Name("mbcas_resizes_total")
                    .Help("Resizes sent, by purpose and verdict of the API server")
                    .Register(registry);
    silent_agents_ = &prometheus::BuildGauge()
                          .Name("mbcas_silent_agents")
                          .Help("Ready nodes whose agent is silent")
                          .Register(registry)
                          .Add({});
  }

  void start() {
    cluster_.start();
    attendant_ = std::jthread([this](const std::stop_token& stop) { attend(stop); });
  }
  bool hasSynced() const { return cluster_.hasSynced(); }
  bool waitForSync(Nanos timeout) const {
    const MonotonicTime deadline = clock_.monotonic() + timeout;
    while (!hasSynced()) {
      if (clock_.monotonic() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  Result<void> lead() {
    if (Result<policy::ParsedSettings> parsed = policy::parseSettings(wantedSettings()); !parsed) {
      return failure(std::move(parsed).error().within(
          fmt::format("settings (flags and ConfigMap {}/{})", options_.name_space, kSettingsName)));
    }
    {
      const MutexLock lock(agents_mutex_);
      agents_.serverServes(true, clock_.monotonic());
    }
    {
      const MutexLock lock(attendant_mutex_);
      leading_ = true;
    }
    woken_.notify_all();
    return {};
  }

  void stop() {
    attendant_ = {};
    cluster_.stop();
    controller_.abandon();
    marker_.abandon();
    events_.flush(std::chrono::seconds(2));
    resize_log_.flush(clock_.monotonic());
    error_log_.flush(clock_.monotonic());
  }

  Result<void> live() const {
    const auto seconds = [](Nanos time) {
      return std::chrono::duration_cast<std::chrono::seconds>(time).count();
    };
    const Nanos silence = clock_.monotonic() - last_progress_.load();
    if (silence >= options_.stuck_after) {
      return failure(
          fmt::format("the check of the agents has taken {} s so far", seconds(silence)));
    }
    const Nanos longest = controller_.queue().longestInWork();
    if (longest >= options_.stuck_after) {
      return failure(
          fmt::format("the reconciliation of a pod has taken {} s so far", seconds(longest)));
    }
    return {};
  }

  Result<void> ready() const {
    if (!cluster_.knowsVpas()) {
      return failure("it is not known yet whether there are VerticalPodAutoscalers");
    }
    const MonotonicTime now = clock_.monotonic();
    std::string behind;
    for (const Cluster::Watch& watch : cluster_.watches()) {
      if (watch.health.synced && watch.health.stuckFor(now) < options_.behind_after) continue;
      behind += fmt::format("{}{} {}{}{}", behind.empty() ? "" : ", ", watch.kind,
                            watch.health.synced ? "is not followed" : "is not listed yet",
                            watch.health.last_error.empty() ? "" : ": ", watch.health.last_error);
    }
    if (!behind.empty()) return failure(behind);
    return {};
  }

  policy::Settings settings() const {
    const MutexLock lock(settings_mutex_);
    return settings_;
  }

 private:
  kube::WorkQueue& queue() { return controller_.queue(); }
  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }
  void logError(const std::string& line) { error_log_.say(line, clock_.monotonic()); }
  void after(Step step) const {
    if (options_.after) options_.after(step);
  }
  double chance() {
    const MutexLock lock(rates_mutex_);
    return std::uniform_real_distribution<double>(0, 1)(random_);
  }

  // ---- Settings
  // ----------------------------------------------------------------------------------

  static policy::SettingsData dataOf(const kube::ConfigMap& map) {
    policy::SettingsData data;
    for (const kube::KeyValue& entry : map.data) {
      data.emplace(entry.key.view(), entry.value.view());
    }
    return data;
  }

  // Settings that make no sense change nothing: the last good ones stay.
  void readSettings(const kube::ConfigMap* map) {
    policy::SettingsData data = map != nullptr ? dataOf(*map) : options_.overrides;
    data.insert(options_.initial.begin(), options_.initial.end());
    const Result<policy::ParsedSettings> parsed = policy::parseSettings(data);
    if (!parsed) {
      logError(fmt::format("ConfigMap {}/{}, not applied: {}", options_.name_space, kSettingsName,
                           parsed.error().message()));
      return;
    }
    for (const std::string& key : parsed->unknown) {
      log(fmt::format("ConfigMap {}/{}: unknown setting \"{}\"", options_.name_space, kSettingsName,
                      key));
    }
    const MutexLock lock(settings_mutex_);
    settings_ = parsed->settings;
  }

  // What flags say, and the initial values of what the ConfigMap does not name. Without a ConfigMap
  // the mode and the profile, too, for people to find.
  policy::SettingsData newSettings(const kube::ConfigMap* map) const {
    policy::SettingsData news = options_.overrides;
    for (const auto& [key, value] : options_.initial) {
      if (map == nullptr || !kube::find(map->data, key)) news.try_emplace(key, value);
    }
    if (map == nullptr) {
      const policy::Settings defaults;
      news.try_emplace("mode", policy::name(defaults.mode));
      news.try_emplace("profile", control::name(defaults.profile));
    }
    return news;
  }
  // What is in the ConfigMap, and what flags say over it.
  policy::SettingsData wantedSettings() const {
    const std::shared_ptr<const kube::ConfigMap> map = cluster_.settings();
    policy::SettingsData data = map ? dataOf(*map) : policy::SettingsData{};
    for (const auto& [key, value] : newSettings(map.get())) data[key] = value;
    return data;
  }

  // What flags say goes into the ConfigMap, where agents see it too; without one, it is made.
  Result<void> publishSettings() {
    const std::shared_ptr<const kube::ConfigMap> map = cluster_.settings();
    const policy::SettingsData news = newSettings(map.get());
    const Result<policy::ParsedSettings> parsed = policy::parseSettings(wantedSettings());
    if (!parsed) return failure(parsed.error());
    {
      const MutexLock lock(settings_mutex_);
      settings_ = parsed->settings;
    }
    if (map && std::all_of(news.begin(), news.end(), [&](const auto& entry) {
          return kube::find(map->data, entry.first) == entry.second;
        })) {
      return {};
    }
    std::string body;
    JsonWriter json(body);
    json.beginObject().key("apiVersion").value("v1").key("kind").value("ConfigMap");
    json.key("metadata").beginObject().key("name").value(kSettingsName).endObject();
    json.key("data").beginObject();
    for (const auto& [key, value] : news) json.key(key).value(value);
    json.endObject().endObject();
    const auto written = map ? client_.patch<kube::ConfigMap>(options_.name_space, kSettingsName,
                                                              kube::PatchType::kMerge, body)
                             : client_.create<kube::ConfigMap>(options_.name_space, body);
    if (!written && !written.error().alreadyExists()) {
      return failure(written.error().toError().within("publishing the settings"));
    }
    return {};
  }

  // ---- Agents
  // ------------------------------------------------------------------------------------

  void leaseChanged(const kube::Lease& lease, bool gone) {
    const std::string node = nodeOfLease(lease);
    if (node.empty()) return;
    const MutexLock lock(agents_mutex_);
    if (gone) {
      agents_.leaseGone(node);
      const MutexLock marks_lock(marks_mutex_);
      marks_.forget(node);
    } else {
      agents_.heard(node, lease.renewed, clock_.monotonic());
    }
  }

  // The thread next to the workers: begins the work of a leader, and listens for agents.
  void attend(const std::stop_token& stop) {
    std::optional<MonotonicTime> looked_for_vpas;
    bool at_work = false;
    while (!stop.stop_requested()) {
      const MonotonicTime now = clock_.monotonic();
      if (!cluster_.knowsVpas() || now - *looked_for_vpas >= kVpaInterval) {
        looked_for_vpas = now;
        cluster_.lookForVpas(stop);
      }
      const bool leading = leading_;
      if (leading && !at_work) {
        at_work = beginWork();
      } else if (leading) {
        beat(stop);
      }
      resize_log_.flush(now);
      error_log_.flush(now);
      last_progress_ = clock_.monotonic();
      const bool soon = !cluster_.knowsVpas() || (leading && !at_work);
      MutexLock lock(attendant_mutex_);
      woken_.wait_for(lock.native(), stop, soon ? kSoon : kBeat,
                      [&] { return leading_ && !leading; });
    }
  }

  bool beginWork() {
    if (Result<void> published = publishSettings(); !published) {
      logError(published.error().message());
      return false;
    }
    cluster_.touchAll();
    controller_.start();
    marker_.start();
    return true;
  }

  // Whether the server can serve what is in etcd. It answers some requests, such as /version,
  // without etcd; while etcd does not answer no agent can renew its Lease. A get without a resource
  // version is answered by a quorum of etcd, and "there is no such Lease" is an answer. That writes
  // get through, too, is shown by the leader's own Lease: a leader that cannot renew it ends.
  bool serverServes(const std::stop_token& stop) {
    const std::string path = kube::Lease::kind().path(options_.name_space, kLeaderLease);
    // A single failure is no outage: each one gives every agent the whole time again.
    for (int tries = 0; tries < 2 && !stop.stop_requested(); ++tries) {
      const auto lease = client_.perform({.path = path, .timeout = kBeat, .retry = false}, stop);
      if (lease || lease.error().notFound()) return true;
    }
    return false;
  }

  void beat(const std::stop_token& stop) {
    const bool serves = serverServes(stop);
    const MonotonicTime now = clock_.monotonic();
    const Nanos silence = settings().silence;
    std::vector<AgentWatch::NodeState> nodes;
    for (const auto& node : cluster_.nodes()) {
      nodes.push_back({node->meta.name.string(), node->ready});
    }
    AgentWatch::Changes changes;
    {
      const MutexLock lock(agents_mutex_);
      agents_.serverServes(serves, now);
      changes = agents_.review(nodes, now, silence);
    }
    for (const std::string& node : changes.suspects) {
      const std::optional<bool> silent = reallySilent(node, stop);
      if (!silent) break;  // the server does not answer: nothing is known of the others, either
      if (!*silent) continue;
      {
        const MutexLock lock(agents_mutex_);
        agents_.confirm(node);
      }
      log(fmt::format("the agent of node {} is silent: its pods get their original limits", node));
      touchNode(node);
    }
    for (const std::string& node : changes.back) {
      log(fmt::format("the agent of node {} is back", node));
      touchNode(node);
    }
    for (const std::string& node : changes.gone) {
      log(
          fmt::format("the controller no longer waits for the agent of node {}: the node is "
                      "deleted or not Ready",
                      node));
      touchNode(node);
    }
    if (silent_agents_ != nullptr) {
      const MutexLock lock(agents_mutex_);
      silent_agents_->Set(static_cast<double>(agents_.silentAgents()));
    }
  }

  // Our watch may be the one that is late, so the server is asked. Nothing: it does not answer.
  std::optional<bool> reallySilent(const std::string& node, const std::stop_token& stop) {
    const std::string name = std::string(kAgentLease) + node;
    const auto body = client_.perform({.path = kube::Lease::kind().path(options_.name_space, name),
                                       .timeout = kBeat,
                                       .retry = false},
                                      stop);
    if (!body) return body.error().notFound() ? std::optional(true) : std::nullopt;
    const auto lease = kube::decodeObject<kube::Lease>(*body);
    if (!lease) return false;
    const std::shared_ptr<const kube::Lease> cached = cluster_.lease(name);
    if (cached && cached->renewed == (*lease)->renewed) return true;
    const MutexLock lock(agents_mutex_);
    agents_.heard(node, (*lease)->renewed, clock_.monotonic());
    return false;
  }

  void touchNode(const std::string& node) {
    for (const PodPtr& pod : cluster_.podsOfNode(node)) queue().add(objectKey(pod->meta));
  }

  // An agent does not watch its PodAllocations. A mark on its Lease says which of them have
  // changed.
  void mark(std::string_view node, std::string_view uid) {
    {
      const MutexLock lock(marks_mutex_);
      marks_.add(node, uid, clock_.monotonic());
    }
    marker_.queue().addAfter(std::string(node), kMarksTogether);
  }

  Reconciled writeMarks(const std::string& node) {
    std::string marks;
    {
      const MutexLock lock(marks_mutex_);
      marks = marks_.text(node, clock_.monotonic());
    }
    if (marks.empty()) return Reconciled::done();
    std::string body;
    JsonWriter json(body);
    json.beginObject().key("metadata").beginObject().key("annotations").beginObject();
    json.key(podallocation::kChangedAnnotation).value(marks);
    json.endObject().endObject().endObject();
    const auto written = client_.patch<kube::Lease>(
        options_.name_space, std::string(kAgentLease) + node, kube::PatchType::kMerge, body,
        {.field_manager = kControllerManager});
    // An agent without a Lease reads everything when it makes one.
    if (written || written.error().notFound()) return Reconciled::done();
    return Reconciled::failed(written.error().toError());
  }

  bool agentSilent(std::string_view node) const {
    const MutexLock lock(agents_mutex_);
    return agents_.isSilent(node);
  }

  // ---- One pod
  // -----------------------------------------------------------------------------------

  // What a pod lacks, weighted as in the node's market; 0: nothing is to be raised. So when all
  // are throttled at once the greatest need is met first, and what is only to be said of a pod
  // waits. By the spec: what was sent is the kubelet's business.
  double urgencyOf(const std::string& key) const {
    const PodPtr pod = cluster_.pod(key);
    const AllocationPtr allocation = pod ? cluster_.allocationOf(*pod) : nullptr;
    if (!allocation) return 0;
    Millicores request;
    Millicores limit;
    for (const kube::Container& container : pod->containers) {
      request += container.requests.cpu().value_or(Millicores(0));
      limit += container.limits.cpu().value_or(Millicores(0));
    }
    const auto* const bounds = allocation->bounds();
    if (bounds == nullptr || !bounds->managed || allocation->desired <= limit) return 0;
    return control::weightOf(request, pod->priority, bounds->weight) *
           static_cast<double>((allocation->desired - limit).count());
  }

  Reconciled reconcile(const std::string& key) {
    Reconciled result = lookAt(key);
    if (const std::optional<std::string> next = turns_.next()) queue().add(*next);
    return result;
  }

  Reconciled lookAt(const std::string& key) {
    const PodPtr cached = cluster_.pod(key);
    const std::vector<AllocationPtr> allocations = cluster_.allocationsFor(key);
    std::optional<Error> unsaid;
    for (const AllocationPtr& allocation : allocations) {
      if (cached && allocation->meta.name == cached->meta.uid) {
        if (!ofAnotherNode(*allocation, *cached) || cached->node.empty()) continue;
        if (!mayRemove()) return Reconciled::again(kSoon);
        if (Result<void> removed = remove(*allocation, *cached); !removed) unsaid = removed.error();
        continue;
      }
      if (Result<void> told = refuse(*allocation, cached.get()); !told) unsaid = told.error();
    }
    if (!cached) {
      forget(key);
      return unsaid ? Reconciled::failed(*unsaid) : Reconciled::done();
    }
    Entry entry = take(cached);
    // Somebody has deleted it. Its agent makes another one, once it knows.
    const bool has_allocation = cluster_.allocationOf(*cached) != nullptr;
    if (std::exchange(entry.had_allocation, has_allocation) && !has_allocation) {
      mark(cached->node, cached->meta.uid);
    }
    const Reconciled result = look(key, cached, entry);
    put(key, std::move(entry));
    return unsaid && !result.error() ? Reconciled::failed(*unsaid) : result;
  }

  // An allocation that another node's agent has written. It counts nowhere (allocationOf), and
  // while it is there the agent of the pod's node cannot write its own.
  Result<void> remove(const PodAllocation& allocation, const kube::Pod& pod) {
    const auto removed = client_.remove<PodAllocation>(
        allocation.meta.namespace_, allocation.meta.name, {.uid = allocation.meta.uid.string()});
    // Gone or replaced meanwhile: the watch will say.
    if (!removed && !removed.error().notFound() && !removed.error().conflict()) {
      return failure(removed.error().toError().within("removing an allocation of another node"));
    }
    if (!removed) return {};
    const std::string what = fmt::format(
        "removed a PodAllocation that was written for node {}, while the pod runs on {}: the agent "
        "of {} is not to be trusted",
        allocation.node.view(), pod.node.view(), allocation.node.view());
    logError(fmt::format("{}: {}", objectKey(pod.meta), what));
    note(pod, kForeignAllocation, what);
    return {};
  }

  bool mayRemove() {
    const MutexLock lock(rates_mutex_);
    return removals_.take(clock_.monotonic());
  }

  // An allocation that speaks of no pod there is.
  Result<void> refuse(const PodAllocation& allocation, const kube::Pod* pod) {
    podallocation::Status status = allocation.statusValue();
    status.phase = Phase::kFailed;
    status.observed_generation = allocation.meta.generation;
    status.reason = pod == nullptr
                        ? fmt::format("there is no pod {}", allocation.pod_name.view())
                        : fmt::format("pod {} has the UID {}, which is not the name of this object",
                                      allocation.pod_name.view(), pod->meta.uid.view());
    if (status == allocation.statusValue()) return {};
    const kube::ApiResult<AllocationPtr> written = applyStatus(allocation, status);
    // Gone or changed meanwhile: the watch will say.
    if (written || written.error().notFound() || written.error().conflict()) return {};
    return failure(written.error().toError().within("writing status"));
  }

  kube::ApiResult<AllocationPtr> applyStatus(const PodAllocation& allocation,
                                             const podallocation::Status& status) {
    kube::ApiResult<AllocationPtr> written = client_.apply<PodAllocation>(
        allocation.meta.namespace_, allocation.meta.name,
        podallocation::applyStatus(allocation.meta, status),
        {.subresource = "status", .field_manager = kControllerManager, .force = true});
    if (!written) return written;
    if (agentMissesIt(allocation, **written)) mark(allocation.node, allocation.meta.name);
    return written;
  }

  // Whether a status says something new that the agent does not look for by itself. It looks for
  // the first bounds of a new object, and for the original resources when those of the pod change.
  bool agentMissesIt(const PodAllocation& before, const PodAllocation& after) const {
    const podallocation::Status was = before.statusValue();
    const podallocation::Status is = after.statusValue();
    const bool looks = !was.bounds && clock_.wall() - before.meta.created <= kAgentLooks;
    return (was.bounds != is.bounds && !looks) ||
           (was.original != is.original && !was.original.empty());
  }

  Reconciled look(const std::string& key, const PodPtr& cached, Entry& entry) {
    Situation situation{.dry_run = options_.dry_run};
    const bool was_under_way = entry.memory.attempt.has_value();
    Turns::Turn turn;  // at the quotas of the namespace
    std::optional<Nanos> clearing_due;
    Decision decision;
    PodPtr pod;
    AllocationPtr allocation;
    // Each round does one thing; the longest way is: ask who, forget the original, keep the new
    // one, look for room, send.
    for (int round = 0; round < 6; ++round) {
      pod = newest(cached, entry.pod);
      allocation = newest(cluster_.allocationOf(*pod), entry.allocation);
      if (!allocation && !hasOriginal(*pod)) return Reconciled::done();
      clearing_due = describe(key, *pod, allocation.get(), situation);
      const bool attempted = entry.memory.attempt.has_value();
      decision = decide(situation, entry.memory);
      if (attempted && was_under_way && !entry.memory.attempt) after(Step::kActuated);
      if (decision.act == Act::kNothing) break;

      if (decision.act == Act::kAskWho) {
        if (auto asked = askWho(*pod, entry.memory); !asked)
          return Reconciled::failed(asked.error());
        continue;
      }
      if (decision.act == Act::kRecordOriginal) {
        after(Step::kDecided);
        auto recorded = applyStatus(*allocation, *decision.status);
        if (!recorded) return writeFailed(recorded.error(), "recording the original resources");
        entry.allocation = *std::move(recorded);
        after(Step::kOriginalRecorded);
        continue;
      }
      if (decision.act == Act::kKeepOriginal) {
        // First, so that a policy that refuses the annotation does not keep the status from users.
        if (auto written = writeStatus(*pod, *allocation, *std::move(decision.status),
                                       situation.policy.declared(), entry);
            !written) {
          return Reconciled::failed(written.error());
        }
        auto kept = client_.patch<kube::Pod>(
            pod->meta.namespace_, pod->meta.name, kube::PatchType::kMerge,
            podallocation::annotateOriginal(*pod, situation.policy.original),
            {.field_manager = kControllerManager});
        if (!kept) return writeFailed(kept.error(), "annotating the original resources");
        entry.pod = *std::move(kept);
        after(Step::kOriginalKept);
        continue;
      }
      if (decision.act == Act::kForgetOriginal) {
        if (hasOriginal(*pod)) {
          auto gone = client_.patch<kube::Pod>(pod->meta.namespace_, pod->meta.name,
                                               kube::PatchType::kMerge, forgetOriginal(*pod),
                                               {.field_manager = kControllerManager});
          if (!gone) return writeFailed(gone.error(), "forgetting the original resources");
          entry.pod = *std::move(gone);
        }
        if (allocation && decision.status) {
          if (auto written = writeStatus(*pod, *allocation, *std::move(decision.status),
                                         situation.policy.declared(), entry);
              !written) {
            return Reconciled::failed(written.error());
          }
        }
        entry.memory.ours.reset();
        if (decision.purpose == Purpose::kYield) {
          note(*pod, kDeclaredChanged,
               "another writer changed the CPU limits; they are taken as what the pod declares");
        } else {
          note(*pod, kRestored, "CPU requests and limits are as declared again");
        }
        after(Step::kOriginalForgotten);
        continue;
      }
      // A raise must fit the quota as the server counts it, and no other pod may be raised between
      // the reading and the raise.
      if (decision.to > decision.from && !turn &&
          limitedByQuota(*pod, cluster_.objects(pod->meta.namespace_.string()),
                         situation.policy.requests_follow)) {
        turn = turns_.take(pod->meta.namespace_.string(), key, urgencyOf(key));
        if (!turn) return Reconciled::done();  // its key comes back with its turn
        const auto room = roomNow(client_, *pod, situation.policy.requests_follow);
        if (!room) return Reconciled::failed(room.error().toError().within("reading quotas"));
        situation.room = *room;
        continue;
      }
      if (decision.purpose == Purpose::kGiveBack && !mayGiveBack()) {
        return Reconciled::again(std::chrono::milliseconds(100));
      }
      if (decision.purpose == Purpose::kManage && decision.to > decision.from) {
        const MutexLock lock(rates_mutex_);
        raises_.spend(pod->node.string(), decision.to - decision.from, situation.now);
      }
      const bool accepted = send(*pod, allocation.get(), decision, entry);
      turn.end();
      if (!accepted) {
        decision.again = entry.memory.retry_at - clock_.monotonic();
      } else if (decision.purpose != Purpose::kRevert) {
        decision.status.reset();  // the end of the resize writes it
      }
      break;
    }
    if (allocation && decision.status) {
      if (auto written = writeStatus(*pod, *allocation, *std::move(decision.status),
                                     situation.policy.declared(), entry);
          !written) {
        return Reconciled::failed(written.error());
      }
    }
    if (clearing_due && (!decision.again || *clearing_due < *decision.again)) {
      decision.again = clearing_due;
    }
    if (decision.again) return Reconciled::again(std::max(*decision.again, Nanos(0)));
    return Reconciled::done();
  }

  // The status first: it is what is believed later.
  static Reconciled writeFailed(const kube::ApiError& error, std::string_view what) {
    // The pod has changed or gone since: the watch will say so.
    if (error.notFound()) return Reconciled::done();
    if (error.conflict()) return Reconciled::again(std::chrono::milliseconds(200));
    return Reconciled::failed(error.toError().within(what));
  }

  // Everything that decide() wants to know, but for the room in quotas. Returns when to look again
  // because the quota's market is cleared again.
  std::optional<Nanos> describe(const std::string& key, const kube::Pod& pod,
                                const PodAllocation* allocation, Situation& situation) {
    const policy::Settings settings = this->settings();
    const std::string name_space = pod.meta.namespace_.string();
    const policy::NamespaceObjects objects = cluster_.objects(name_space);
    situation.now = clock_.monotonic();
    situation.wall = clock_.wall();
    const std::shared_ptr<const kube::Node> node = cluster_.node(pod.node);
    situation.pod = &pod;
    situation.allocation = allocation;
    situation.policy = policy::judgePod(pod, allocation, objects, node.get(), settings);
    situation.law = settings.law;
    situation.agent_silent = agentSilent(pod.node);
    if (node && node->capacity.cpu()) {
      const MutexLock lock(rates_mutex_);
      situation.may_raise = raises_.hasRoom(pod.node, *node->capacity.cpu(),
                                            settings.law.guards.raise_rate, situation.now);
    }
    if (!situation.policy.managed) return std::nullopt;
    Quotas::Answer answer = quotas_.shareOf(cluster_, pod, objects, settings, situation.now);
    if (answer.share) {
      policy::lowerCeiling(situation.policy, answer.share->share,
                           "ResourceQuota " + answer.share->quota);
    }
    for (const std::string& other : answer.touched) {
      if (other != key) queue().add(other);
    }
    situation.weight = fairWeight(key, pod, settings, situation.now);
    if (allocation != nullptr && allocation->bounds() == nullptr) {
      situation.start = startOf(pod, situation);
    }
    return answer.again;
  }

  // Where the siblings of a new pod stand.
  std::optional<Millicores> startOf(const kube::Pod& pod, const Situation& situation) {
    std::vector<Millicores> levels;
    for (const PodPtr& sibling : cluster_.siblings(pod)) {
      if (sibling->meta.uid == pod.meta.uid || sibling->terminal()) continue;
      if (pod.meta.created - sibling->meta.created < kSettled) continue;
      const AllocationPtr allocation = cluster_.allocationOf(*sibling);
      if (allocation && allocation->applied && allocation->bounds() != nullptr &&
          allocation->bounds()->managed) {
        levels.push_back(*allocation->applied);
      }
    }
    std::optional<Millicores> start = policy::startLevel(std::move(levels));
    if (!start) {
      const MutexLock lock(workloads_mutex_);
      start = workloads_.recall(policy::workloadKey(pod), situation.now);
    }
    if (!start) return std::nullopt;
    return std::clamp(*start, situation.policy.floor, situation.policy.ceiling);
  }

  // ---- Fairness between nodes
  // --------------------------------------------------------------------

  struct FairGroup {
    MonotonicTime at{};
    std::map<std::string, double, std::less<>> weights;  // by key of pod
  };

  double fairWeight(const std::string& key, const kube::Pod& pod, const policy::Settings& settings,
                    MonotonicTime now) {
    if (settings.fairness == policy::Fairness::kOff) return 1;
    const bool by_namespace = settings.fairness == policy::Fairness::kNamespace;
    const std::string group =
        by_namespace ? pod.meta.namespace_.string() : policy::workloadKey(pod);
    if (group.empty()) return 1;
    const MutexLock lock(fairness_mutex_);
    FairGroup& fair = fair_groups_[group];
    if (fair.weights.empty() || now - fair.at >= kFairnessInterval) {
      fair.at = now;
      weigh(by_namespace ? cluster_.podsOfNamespace(group) : cluster_.siblings(pod), key, fair);
    }
    const auto found = fair.weights.find(key);
    return found == fair.weights.end() ? 1 : found->second;
  }

  void weigh(const std::vector<PodPtr>& pods, const std::string& asking, FairGroup& fair) {
    std::vector<std::string> keys;
    std::vector<policy::GroupMember> members;
    for (const PodPtr& pod : pods) {
      const AllocationPtr allocation = cluster_.allocationOf(*pod);
      if (!allocation || !allocation->applied || pod->terminal()) continue;
      keys.push_back(objectKey(pod->meta));
      members.push_back({*allocation->applied, allocation->wanted.value_or(allocation->desired)});
    }
    const std::vector<double> weights = policy::fairWeights(members);
    std::map<std::string, double, std::less<>> next;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto before = fair.weights.find(keys[i]);
      const double known = before == fair.weights.end() ? 1 : before->second;
      if (known != weights[i] && keys[i] != asking) queue().add(keys[i]);
      next.emplace(keys[i], weights[i]);
    }
    fair.weights = std::move(next);
  }

  // ---- What is done
  // ------------------------------------------------------------------------------

  // Who wrote the limits in the spec? The containers that we wrote go into the memory.
  Result<void> askWho(const kube::Pod& pod, PodMemory& memory) {
    const auto json =
        client_.perform({.path = kube::Pod::kind().path(pod.meta.namespace_, pod.meta.name)});
    if (!json) return failure(json.error().toError().within("asking who wrote the limits"));
    const auto ours = limitsWrittenBy(kControllerManager, *json);
    if (!ours) return failure(ours.error());
    memory.ours = podallocation::currentCpu(pod);
    std::erase_if(*memory.ours, [&](const podallocation::OriginalCpu& cpu) {
      return std::find(ours->begin(), ours->end(), cpu.container) == ours->end();
    });
    memory.asked = pod.meta.generation;
    return {};
  }

  bool mayGiveBack() {
    const MutexLock lock(rates_mutex_);
    return give_backs_.take(clock_.monotonic());
  }

  // Sends a resize; whether it was accepted. On failure the status says why.
  bool send(const kube::Pod& pod, const PodAllocation* allocation, Decision& decision,
            Entry& entry) {
    after(Step::kDecided);
    const resize::Outcome outcome =
        resize::submit(client_, pod, decision.request,
                       {.field_manager = kControllerManager, .only_if_unchanged = true});
    remember(pod, decision, outcome, clock_.monotonic(), chance(), entry.memory);
    if (options_.audit) {
      options_.audit(auditLine(clock_.wall(), pod, allocation, decision, outcome));
    }
    const std::string line = logLine(pod, allocation, decision, outcome);
    if (outcome.verdict == Verdict::kAccepted || outcome.verdict == Verdict::kGone) {
      resize_log_.say(line, clock_.monotonic());
    } else {
      logError(line);
    }
    if (resizes_ != nullptr) {
      resizes_
          ->Add({{"purpose", std::string(name(decision.purpose))},
                 {"verdict", std::string(resize::name(outcome.verdict))}})
          .Increment();
    }
    if (outcome.verdict == Verdict::kAccepted) {
      after(Step::kResizeSent);
      return true;
    }
    // Gone, or changed by another writer in this very moment: the watch will say.
    if (outcome.verdict == Verdict::kGone || outcome.verdict == Verdict::kSuperseded) return true;
    if (decision.status) {
      decision.status->phase = Phase::kFailed;
      decision.status->observed_desired = decision.to;
      decision.status->reason = outcome.message;
      decision.status->last_attempt = std::chrono::floor<std::chrono::seconds>(clock_.wall());
    }
    note(pod, kResizeFailed,
         fmt::format("CPU limit {} to {}: {}", text(decision.from), text(decision.to),
                     outcome.message));
    return false;
  }

  Result<void> writeStatus(const kube::Pod& pod, const PodAllocation& allocation,
                           podallocation::Status status, Millicores declared, Entry& entry) {
    status = podallocation::trimmed(std::move(status));
    const podallocation::Status before = allocation.statusValue();
    if (before == status) return {};
    kube::ApiResult<AllocationPtr> written = applyStatus(allocation, status);
    if (!written) {
      if (written.error().notFound() || written.error().conflict())
        return {};  // the watch will say
      return failure(written.error().toError().within("writing status"));
    }
    entry.allocation = *std::move(written);
    after(Step::kStatusWritten);
    // An allocation that never had a status was preceded by what the pod declared.
    const bool resized = hasOriginal(pod) || !before.original.empty();
    const std::optional<Millicores> was =
        before.applied || !resized ? before.applied : std::optional(declared);
    if (status.applied && was && *status.applied != *was) {
      const bool raised = *status.applied > *was;
      note(pod, raised ? kLimitRaised : kLimitLowered,
           fmt::format("CPU limit {} from {} to {}: {}", raised ? "raised" : "lowered", text(*was),
                       text(*status.applied), status.reason));
    }
    if (status.phase == Phase::kFailed && before.phase != Phase::kFailed &&
        entry.memory.reverting) {
      note(pod, kResizeFailed, status.reason);
      logError(fmt::format("resize of {} failed on node {}: {}", objectKey(pod.meta),
                           pod.node.view(), status.reason));
    }
    if (status.applied && status.bounds && status.bounds->managed) {
      const std::string workload = policy::workloadKey(pod);
      const MutexLock lock(workloads_mutex_);
      if (!workload.empty()) workloads_.remember(workload, *status.applied, clock_.monotonic());
    }
    return {};
  }

  void note(const kube::Pod& pod, const PodEvent& event, std::string message) {
    events_.record({kube::ObjectReference::to(kube::Pod::kind(), pod.meta), event.type,
                    std::string(event.reason), std::move(message)});
  }

  // ---- Memory
  // ------------------------------------------------------------------------------------

  Entry take(const PodPtr& pod) {
    const MutexLock lock(entries_mutex_);
    Entry entry;
    const auto found =
        entries_.find(kube::ObjectName{pod->meta.namespace_.view(), pod->meta.name.view()});
    if (found != entries_.end()) {
      auto node = entries_.extract(found);
      entry = std::move(node.value());
    }
    // Another pod of the same name: nothing of the old one holds.
    if (entry.of && entry.of->meta.uid != pod->meta.uid) entry = Entry{};
    entry.of = pod;
    return entry;
  }
  void put(const std::string& key, Entry entry) {
    {
      const MutexLock lock(entries_mutex_);
      entries_.insert(std::move(entry));
    }
    release(key);  // what has reached the cache meanwhile
  }
  // What the cache has by now is not held any longer. In a storm it takes long until a pod is
  // looked at again, and all of them would be there twice.
  void release(const std::string& key) {
    const PodPtr cached = cluster_.pod(key);
    if (!cached) return;
    const AllocationPtr allocation = cluster_.allocationOf(*cached);
    const MutexLock lock(entries_mutex_);
    const auto found =
        entries_.find(kube::ObjectName{cached->meta.namespace_.view(), cached->meta.name.view()});
    if (found == entries_.end() || found->of->meta.uid != cached->meta.uid) return;
    auto node = entries_.extract(found);
    Entry& entry = node.value();
    entry.of = cached;
    (void)newest(cached, entry.pod);
    (void)newest(allocation, entry.allocation);
    entries_.insert(std::move(node));
  }
  void forget(const std::string& key) {
    const auto [name_space, name] = kube::splitKey(key);
    const MutexLock lock(entries_mutex_);
    const auto found = entries_.find(kube::ObjectName{name_space, name});
    if (found != entries_.end()) entries_.erase(found);
  }

  kube::Client& client_;
  const Clock& clock_;
  const EngineOptions options_;
  kube::EventRecorder events_;
  LimitedLog resize_log_;
  LimitedLog error_log_;
  prometheus::Family<prometheus::Counter>* resizes_ = nullptr;
  prometheus::Gauge* silent_agents_ = nullptr;

  mutable Mutex settings_mutex_;
  policy::Settings settings_ MBCAS_GUARDED_BY(settings_mutex_);

  Mutex marks_mutex_;
  // No two leaders begin with the same number.
  podallocation::Marks marks_ MBCAS_GUARDED_BY(marks_mutex_){
      static_cast<std::uint64_t>(clock_.wall().time_since_epoch().count())};

  mutable Mutex agents_mutex_;
  AgentWatch agents_ MBCAS_GUARDED_BY(agents_mutex_);

  Mutex entries_mutex_;
  // The entry of a pod that is being reconciled is with the worker.
  std::unordered_set<Entry, EntryHash, EntryEqual> entries_ MBCAS_GUARDED_BY(entries_mutex_);

  Mutex workloads_mutex_;
  policy::WorkloadMemory workloads_ MBCAS_GUARDED_BY(workloads_mutex_);

  Mutex fairness_mutex_;
  std::map<std::string, FairGroup, std::less<>> fair_groups_ MBCAS_GUARDED_BY(fairness_mutex_);

  Mutex rates_mutex_;
  kube::TokenBucket give_backs_ MBCAS_GUARDED_BY(rates_mutex_);
  kube::TokenBucket removals_ MBCAS_GUARDED_BY(rates_mutex_);
  control::RaiseBudget raises_ MBCAS_GUARDED_BY(rates_mutex_);
  std::mt19937_64 random_ MBCAS_GUARDED_BY(rates_mutex_);

  Quotas quotas_;
  Turns turns_;
  Cluster cluster_;
  kube::Controller controller_;
  kube::Controller marker_;  // its keys are names of nodes

  Mutex attendant_mutex_;
  std::condition_variable_any woken_;
  std::atomic<bool> leading_ = false;           // changed with attendant_mutex_ locked
  std::atomic<MonotonicTime> last_progress_{};  // of the attendant
  std::jthread attendant_;
};

Engine::Engine(kube::Client& client, EngineOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(options))) {}
Engine::~Engine() {
  impl_->stop();
}
void Engine::start() {
  impl_->start();
}
bool Engine::hasSynced() const {
  return impl_->hasSynced();
}
bool Engine::waitForSync(Nanos timeout) const {
  return impl_->waitForSync(timeout);
}
Result<void> Engine::lead() {
  return impl_->lead();
}
Result<void> Engine::live() const {
  return impl_->live();
}
Result<void> Engine::ready() const {
  return impl_->ready();
}
void Engine::stop() {
  impl_->stop();
}
policy::Settings Engine::settings() const {
  return impl_->settings();
}

}  // namespace mbcas::controller
