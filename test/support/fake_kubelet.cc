#include "test/support/fake_kubelet.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/kube/controller.h"

namespace mbcas::test {
namespace {

using kube::Amounts;
using kube::Container;
using kube::ContainerRole;
using kube::Pod;

constexpr std::string_view kPending = "PodResizePending";
constexpr std::string_view kInProgress = "PodResizeInProgress";

void writeAmounts(JsonWriter& json, std::string_view key, const Amounts& amounts) {
  json.key(key).beginObject();
  if (amounts.cpu()) json.key("cpu").value(fmt::format("{}m", amounts.cpu()->count()));
  if (amounts.memoryBytes()) json.key("memory").value(fmt::format("{}", *amounts.memoryBytes()));
  json.endObject();
}

// What is to become of the pod's status.
struct NewStatus {
  bool apply = false;               // resources as in the spec; else as they are
  std::string_view condition = {};  // the resize condition that holds, if one does
  std::string_view reason = {};
};

class StatusPatch {
 public:
  StatusPatch(const Pod& pod, const NewStatus& status, bool observed_generation, WallTime now)
      : pod_(pod), status_(status), observed_(observed_generation), now_(formatRfc3339(now)) {}

  std::string text() {
    json_.beginObject();
    json_.key("metadata").beginObject().key("uid").value(pod_.meta.uid).endObject();
    json_.key("status").beginObject();
    json_.key("phase").value("Running");
    if (observed_) json_.key("observedGeneration").value(pod_.meta.generation);
    writeConditions();
    writeContainers("initContainerStatuses", true);
    writeContainers("containerStatuses", false);
    json_.endObject().endObject();
    return std::move(out_);
  }

 private:
  void writeConditions() {
    json_.key("conditions").beginArray();
    json_.beginObject().key("type").value("Ready").key("status").value("True").endObject();
    for (const std::string_view type : {kPending, kInProgress}) {
      json_.beginObject().key("type").value(type);
      if (type == status_.condition) {
        json_.key("status").value("True");
        if (!status_.reason.empty()) {
          json_.key("reason").value(status_.reason).key("message").value("as the test wants it");
        }
        if (observed_) json_.key("observedGeneration").value(pod_.meta.generation);
      } else {
        json_.key("$patch").value("delete");
      }
      json_.endObject();
    }
    json_.endArray();
  }

  void writeContainers(std::string_view list, bool init) {
    json_.key(list).beginArray();
    for (const Container& container : pod_.containers) {
      if ((container.role != ContainerRole::kMain) == init) writeContainer(container);
    }
    json_.endArray();
  }

  void writeContainer(const Container& container) {
    const kube::ContainerStatus* before = pod_.status(container.name);
    const bool as_before = before != nullptr && !status_.apply;
    const bool over = container.role == ContainerRole::kInit;
    json_.beginObject();
    json_.key("name").value(container.name);
    json_.key("image").value("x").key("imageID").value("x");
    json_.key("ready").value(true).key("restartCount").value(0);
    json_.key("containerID")
        .value("containerd://" + fakeContainerId(pod_.meta.uid, container.name));
    json_.key("state").beginObject();
    if (over) {
      json_.key("terminated").beginObject().key("exitCode").value(0).endObject();
    } else {
      json_.key("running").beginObject().key("startedAt").value(now_).endObject();
    }
    json_.endObject();
    writeAmounts(json_, "allocatedResources", as_before ? before->allocated : container.requests);
    json_.key("resources").beginObject();
    writeAmounts(json_, "requests", as_before ? before->requests : container.requests);
    writeAmounts(json_, "limits", as_before ? before->limits : container.limits);
    json_.endObject().endObject();
  }

  const Pod& pod_;
  const NewStatus& status_;
  const bool observed_;
  const std::string now_;
  std::string out_;
  JsonWriter json_{out_};
};

bool actual(const Pod& pod) {
  return std::ranges::all_of(pod.containers, [&](const Container& container) {
    const kube::ContainerStatus* status = pod.status(container.name);
    return status != nullptr && status->requests == container.requests &&
           status->limits == container.limits;
  });
}

}  // namespace

std::string fakeContainerId(std::string_view uid, std::string_view container) {
  std::string id;
  for (const char c : uid) {
    if (c != '-') id += c;
  }
  for (const char c : container) id += fmt::format("{:02x}", static_cast<unsigned char>(c));
  id.resize(64, '0');
  return id;
}

class FakeKubelet::Impl {
 public:
  Impl(kube::Client& client, Options options)
      : client_(client),
        options_(std::move(options)),
        pods_(client, {.field_selector = "spec.nodeName=" + options_.node}),
        workers_(client.clock(), {.name = "kubelet", .workers = options_.workers},
                 [this](const std::string& key) { return sync(key); }) {
    registerNode();
    pods_.onChange([this](const auto& change) {
      if (options_.watcher) options_.watcher(change);
      workers_.queue().add(change.key());
    });
    workers_.start();
    pods_.start();
  }
  ~Impl() {
    pods_.stop();
    workers_.stop();
  }

  void registerNode() {
    const auto made =
        client_.create<kube::Node>("", fmt::format(R"({{"metadata":{{"name":"{0}"}},"status":{{
            "capacity":{{"cpu":"{1}","memory":"64Gi"}},"allocatable":{{"cpu":"{1}","memory":"64Gi"}},
            "conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                                                   options_.node, options_.cpus));
    if (!made && !made.error().alreadyExists()) trouble = made.error().describe();
  }

  void change(const std::function<void()>& what) {
    {
      const std::lock_guard lock(mutex_);
      what();
    }
    for (const auto& pod : pods_.list()) workers_.queue().add(kube::objectKey(pod->meta));
  }

  kube::Reconciled sync(const std::string& key) {
    const auto [name_space, name] = kube::splitKey(key);
    const std::shared_ptr<const Pod> pod = pods_.find(name_space, name);
    if (!pod || pod->terminal()) return kube::Reconciled::done();
    const Behaviour behaviour = behaviourOf(pod->meta.name);
    if (behaviour == Behaviour::kSilent) return kube::Reconciled::done();
    if (pod->meta.beingDeleted()) {
      return ended(client_.remove<Pod>(name_space, name,
                                       {.uid = pod->meta.uid.string(), .grace_seconds = 0}));
    }
    if (pod->statuses.empty()) return write(*pod, {.apply = true});
    if (actual(*pod)) {
      const bool stale =
          options_.observed_generation && pod->observed_generation < pod->meta.generation;
      return stale || !pod->resize.empty() ? write(*pod, {}) : kube::Reconciled::done();
    }
    switch (behaviour) {
      case Behaviour::kApply:
        return apply(*pod);
      case Behaviour::kDefer:
        return hold(*pod, kPending, "Deferred");
      case Behaviour::kRefuse:
        return hold(*pod, kPending, "Infeasible");
      case Behaviour::kFail:
        return hold(*pod, kInProgress, "Error");
      case Behaviour::kSilent:
        break;
    }
    return kube::Reconciled::done();
  }

  Behaviour behaviourOf(kube::Str pod) {
    const std::lock_guard lock(mutex_);
    const auto special = by_pod.find(pod.string());
    return special == by_pod.end() ? for_all : special->second;
  }

  template <class Work>
  auto locked(const Work& work) const {
    const std::lock_guard lock(mutex_);
    return work();
  }

  kube::Reconciled apply(const Pod& pod) {
    if (const Nanos left = timeLeft(pod); left > Nanos(0)) {
      kube::Reconciled held = hold(pod, kInProgress, "");
      return held.error() ? held : kube::Reconciled::again(left);
    }
    // Counted before it is written, because whoever sees the status may ask for the count at once;
    // and once, because the cache may not show yet what was written, and then it is written again.
    const bool counts = locked([&] {
      const bool is_new = !std::exchange(seen_[pod.meta.uid.string()].counted, true);
      if (is_new) ++actuated[pod.meta.name.string()];
      return is_new;
    });
    kube::Reconciled done = write(pod, {.apply = true});
    if (done.error() && counts) {
      locked([&] {
        seen_[pod.meta.uid.string()].counted = false;
        return --actuated[pod.meta.name.string()];
      });
    }
    return done;
  }

  // Until the resize of this generation is due.
  Nanos timeLeft(const Pod& pod) {
    const std::lock_guard lock(mutex_);
    const MonotonicTime now = client_.clock().monotonic();
    Seen& seen = seen_[pod.meta.uid.string()];
    if (seen.generation != pod.meta.generation) seen = {pod.meta.generation, now};
    return seen.at + delay - now;
  }

  kube::Reconciled hold(const Pod& pod, std::string_view condition, std::string_view reason) {
    const kube::ResizeCondition present =
        condition == kPending ? pod.resizePending() : pod.resizeInProgress();
    if (present.present && present.reason == reason &&
        (!options_.observed_generation || pod.observed_generation == pod.meta.generation)) {
      return kube::Reconciled::done();
    }
    return write(pod, {.condition = condition, .reason = reason});
  }

  kube::Reconciled write(const Pod& pod, const NewStatus& status) {
    return ended(client_.patch<Pod>(
        pod.meta.namespace_, pod.meta.name, kube::PatchType::kStrategic,
        StatusPatch(pod, status, options_.observed_generation, client_.clock().wall()).text(),
        {.subresource = "status"}));
  }

  template <class T>
  kube::Reconciled ended(const kube::ApiResult<T>& answer) {
    if (answer || answer.error().notFound() || answer.error().conflict()) {
      return kube::Reconciled::done();
    }
    const std::lock_guard lock(mutex_);
    trouble = answer.error().describe();
    return kube::Reconciled::failed(answer.error().toError());
  }

  Behaviour for_all = Behaviour::kApply;
  std::map<std::string, Behaviour> by_pod;
  Nanos delay{0};
  std::map<std::string, int> actuated;
  std::string trouble;

 private:
  struct Seen {
    std::int64_t generation = 0;
    MonotonicTime at;
    bool counted = false;
  };

  kube::Client& client_;
  const Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, Seen> seen_;  // by UID
  kube::Informer<Pod> pods_;
  kube::Controller workers_;
};

FakeKubelet::FakeKubelet(kube::Client& client, Options options)
    : impl_(std::make_unique<Impl>(client, std::move(options))) {}
FakeKubelet::~FakeKubelet() = default;

void FakeKubelet::behave(Behaviour behaviour, const std::string& pod) {
  impl_->change([&] {
    if (pod.empty()) {
      impl_->for_all = behaviour;
    } else {
      impl_->by_pod[pod] = behaviour;
    }
  });
}

void FakeKubelet::setDelay(Nanos delay) {
  impl_->change([&] { impl_->delay = delay; });
}

int FakeKubelet::actuated(const std::string& pod) const {
  return impl_->locked([&] {
    int sum = 0;
    for (const auto& [name, count] : impl_->actuated) {
      if (pod.empty() || pod == name) sum += count;
    }
    return sum;
  });
}

std::string FakeKubelet::trouble() const {
  return impl_->locked([&] { return impl_->trouble; });
}

}  // namespace mbcas::test
