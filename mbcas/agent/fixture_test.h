// A node with everything around the agent, on simulated time: the model kernel, a kubelet that
// actuates after a delay, a controller that publishes bounds and guards what is desired, and an API
// between them, which may be out of reach.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mbcas/agent/outbox.h"
#include "mbcas/agent/pipeline.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/control/actuation.h"
#include "mbcas/control/guards.h"
#include "mbcas/control/split.h"
#include "mbcas/podallocation/original_resources.h"
#include "mbcas/sim/files.h"
#include "mbcas/sim/node.h"

namespace mbcas::agent {

using namespace std::chrono_literals;
using namespace literals;

template <class T>
std::shared_ptr<const T> object(const std::string& json) {
  Result<std::shared_ptr<const T>> decoded = kube::decodeObject<T>(json);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message()) << "\n" << json;
  return decoded ? *decoded : nullptr;
}

inline sim::WorkloadSpec spin(int threads = 1, Nanos from = Nanos(0)) {
  return {.kind = sim::WorkloadSpec::Kind::kSpin, .threads = threads, .phase = from};
}
// `on` of CPU time on each thread, each `period`.
inline sim::WorkloadSpec periodic(Nanos on, Nanos period, int threads = 1, Nanos from = Nanos(0)) {
  return {.kind = sim::WorkloadSpec::Kind::kPeriodic,
          .threads = threads,
          .on = on,
          .period = period,
          .phase = from};
}

struct ModelContainer {
  std::string name = "main";
  Millicores request{100};
  Millicores limit{500};  // declared
  sim::WorkloadSpec work{};
};

struct ModelPod {
  std::string uid{};
  std::vector<ModelContainer> containers{};
  std::string name_space = "shop";
  std::string annotations{};  // further ones, each with a comma before it
  int priority = 0;
  bool ready = true;
  std::string phase = "Running";
  bool begun = true;     // its containers run
  bool reported = true;  // and the kubelet says so
  std::string qos = "Burstable";
  // What the controller makes of it.
  bool managed = true;
  std::optional<Millicores> floor{};    // default: 100m; and the request at least
  std::optional<Millicores> ceiling{};  // default: 90 % of the machine
  std::optional<Millicores> start{};
  double weight = 1;

  // From here on as it comes.
  int index = -1;                    // in the model kernel
  std::vector<Millicores> limits{};  // of the containers, in the pod's spec
  std::vector<Millicores> actual{};  // in force
  bool original_kept = false;
  control::ActuationMemory actuation{};
  std::optional<MonotonicTime> actuated{};    // when what the spec says will be in force
  std::optional<podallocation::Spec> spec{};  // of its PodAllocation
  bool judged = false;                        // its bounds are published
  std::int64_t generation = 1;
  // Of its PodAllocation, where a controller of its own writes it (ModelCluster::controller).
  std::optional<podallocation::Status> status{};
  int changes = 0;  // of the limits in force
  int writes = 0;   // of the PodAllocation
  std::shared_ptr<const kube::Pod> object{};
  std::shared_ptr<const podallocation::PodAllocation> allocation{};

  static Millicores sum(const std::vector<Millicores>& limits) {
    Millicores total;
    for (const Millicores limit : limits) total += limit;
    return total;
  }
  Millicores limit() const { return sum(limits); }
  Millicores inForce() const { return sum(actual); }
  Millicores declared() const {
    Millicores total;
    for (const ModelContainer& container : containers) total += container.limit;
    return total;
  }
  Millicores request() const {
    Millicores total;
    for (const ModelContainer& container : containers) total += container.request;
    return total;
  }
};

class ModelCluster {
 public:
  explicit ModelCluster(unsigned cpus = 4, std::uint64_t seed = 1)
      : kernel({.cpus = cpus, .seed = seed}) {
    settings.excluded_namespaces = {"kube-system"};
    setNode(fmt::format(R"("capacity":{{"cpu":"{}"}})", cpus));
  }

  ModelPod& add(ModelPod pod) {
    for (const ModelContainer& container : pod.containers) pod.limits.push_back(container.limit);
    pod.actual = pod.limits;
    ModelPod& added = pods[pod.uid] = std::move(pod);
    if (added.begun) begin(added);
    touch(added);
    return added;
  }
  // The kubelet makes its cgroups and starts its containers.
  void begin(ModelPod& pod) {
    pod.begun = true;
    pod.index = kernel.addPod(pod.uid, static_cast<double>(pod.request().count()) + 2);
    for (const ModelContainer& container : pod.containers) {
      sim::WorkloadSpec work = container.work;
      work.phase += kernel.now();
      kernel.addContainer(
          pod.index,
          {.name = container.name, .weight = static_cast<double>(container.request.count()) + 2},
          sim::makeWorkload(work, sim::Random(7).fork(static_cast<std::uint64_t>(pod.index))));
    }
    setInKernel(pod);
  }
  void remove(const std::string& uid) {
    kernel.removePod(pods.at(uid).index);
    pods.erase(uid);
    changed = true;
  }

  void setNode(const std::string& status) {
    node = object<kube::Node>(
        fmt::format(R"({{"metadata":{{"name":"n1"}},"status":{{{}}}}})", status));
    changed = true;
  }

  // To be called after any change of a pod.
  void touch(ModelPod& pod) {
    pod.object.reset();
    pod.allocation.reset();
    changed = true;
  }

  // Its objects as the API server has them now.
  void show(ModelPod& pod) const {
    if (!pod.object) pod.object = object<kube::Pod>(podJson(pod));
    if (pod.spec && !pod.allocation) {
      pod.allocation = object<podallocation::PodAllocation>(allocationJson(pod));
    }
  }

  World world() {
    World out;
    out.node = node;
    out.settings = settings;
    for (auto& [uid, pod] : pods) {
      show(pod);
      out.pods.push_back(pod.object);
      if (pod.allocation) out.allocations.push_back(pod.allocation);
    }
    return out;
  }

  // As the API server takes it.
  WriteResult write(const Wish& wish) {
    if (!reachable) return WriteResult::kFailed;
    const auto found = pods.find(wish.uid);
    if (found == pods.end()) return WriteResult::kGone;
    ModelPod& pod = found->second;
    const podallocation::Spec& spec = wish.spec;
    std::set<std::string> names;
    Millicores total;
    for (const podallocation::ContainerLimit& container : spec.containers) {
      names.insert(container.name);
      total += container.desired;
    }
    EXPECT_EQ(spec.name_space, pod.name_space);
    EXPECT_EQ(spec.pod_name, pod.uid);
    EXPECT_EQ(spec.node, "n1");
    EXPECT_GT(spec.desired, 0_m);
    EXPECT_EQ(spec.desired, total);
    EXPECT_EQ(names.size(), pod.containers.size());
    EXPECT_LE(spec.reason.size(), podallocation::kLongestReason);
    EXPECT_FALSE(spec.reason.empty());
    EXPECT_TRUE(!spec.wanted || *spec.wanted > 0_m);
    pod.spec = spec;
    ++pod.writes;
    touch(pod);
    return WriteResult::kDone;
  }

  Millicores floorOf(const ModelPod& pod) const {
    return std::min(control::roundUp(std::max(pod.floor.value_or(100_m), pod.request())),
                    ceilingOf(pod));
  }
  Millicores ceilingOf(const ModelPod& pod) const {
    const Millicores machine(static_cast<std::int64_t>(kernel.cpus()) * 900);
    return std::max(control::roundDown(pod.ceiling.value_or(std::max(machine, pod.declared()))),
                    control::roundUp(std::max(pod.request(), 10_m)));
  }

  // What the kubelet last did.
  void setInKernel(const ModelPod& pod) {
    const std::vector<std::optional<Millicores>> limits(pod.actual.begin(), pod.actual.end());
    kernel.setLimit(pod.index, limits, pod.inForce());
  }

  // Lets time pass: the kernel works, the kubelet actuates, the controller looks every 100 ms.
  void advanceTo(MonotonicTime time) {
    while (clock.monotonic() < time) {
      const Nanos step = std::min<Nanos>(time - clock.monotonic(), 100ms);
      clock.advance(step);
      kernel.advanceTo(clock.monotonic().time_since_epoch());
      for (auto& [uid, pod] : pods) {
        actuate(pod);
        if (!reachable || !controls) continue;
        controller ? controller(pod) : control(pod);
      }
    }
  }

  sim::Node kernel;
  SimulatedClock clock{WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 31))};
  std::map<std::string, ModelPod> pods;
  policy::Settings settings;
  std::shared_ptr<const kube::Node> node;
  bool reachable = true;                      // the API
  bool controls = true;                       // the controller works
  bool actuates = true;                       // the kubelet does what it is told
  std::function<void(ModelPod&)> controller;  // instead of the fixture's own
  Nanos actuation = 700ms;
  bool changed = true;  // the world, since somebody last cleared this

 private:
  void actuate(ModelPod& pod) {
    if (!actuates || !pod.actuated || clock.monotonic() < *pod.actuated) return;
    pod.actuated.reset();
    if (pod.actual == pod.limits) return;
    pod.actual = pod.limits;
    ++pod.changes;
    if (pod.begun) setInKernel(pod);
    touch(pod);
  }

  void control(ModelPod& pod) {
    if (!pod.spec) return;
    if (!pod.judged) {
      pod.judged = true;
      touch(pod);
    }
    if (!pod.managed || pod.actuated || settings.mode == policy::Mode::kRecommend) return;
    const Millicores desired =
        pod.spec->desired == pod.limit()
            ? pod.limit()
            : std::clamp(control::roundUp(pod.spec->desired), floorOf(pod), ceilingOf(pod));
    control::Transition transition{.now = clock.monotonic(),
                                   .in_force = pod.limits,
                                   .declared = pod.declared(),
                                   .ready = pod.ready};
    std::vector<control::BoundedPart> parts;
    for (std::size_t c = 0; c < pod.containers.size(); ++c) {
      parts.emplace_back(pod.spec->containers[c].desired, pod.containers[c].request,
                         ceilingOf(pod));
    }
    transition.target = desired == pod.limit() ? pod.limits : control::splitWithin(parts, desired);
    const control::Move move = control::nextMove(transition, settings.law, pod.actuation);
    if (!move.moves) return;
    pod.limits = move.containers;
    pod.original_kept = true;
    pod.actuation.last_change = clock.monotonic();
    pod.actuated = clock.monotonic() + actuation;
    touch(pod);
  }

  static std::string podJson(const ModelPod& pod) {
    std::string containers;
    std::string statuses;
    for (std::size_t c = 0; c < pod.containers.size(); ++c) {
      const ModelContainer& container = pod.containers[c];
      const char* const comma = c == 0 ? "" : ",";
      containers += fmt::format(
          R"({}{{"name":"{}","resources":{{"requests":{{"cpu":"{}m"}},"limits":{{"cpu":"{}m"}}}}}})",
          comma, container.name, container.request.count(), pod.limits[c].count());
      if (!pod.begun || !pod.reported) continue;
      statuses += fmt::format(
          R"({}{{"name":"{}","containerID":"model://{}","restartCount":0,"state":{{"running":{{}}}},
             "resources":{{"limits":{{"cpu":"{}m"}}}}}})",
          comma, container.name, container.name, pod.actual[c].count());
    }
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"{1}","uid":"{0}","generation":{9},
            "annotations":{{"a":"b"{2}}}}},
            "spec":{{"nodeName":"n1","priority":{3},"containers":[{4}]}},
            "status":{{"phase":"{5}","qosClass":"{6}","observedGeneration":{9},
            "containerStatuses":[{7}],
            "conditions":[{{"type":"Ready","status":"{8}"}}]}}}})",
        pod.uid, pod.name_space, pod.annotations, pod.priority, containers, pod.phase, pod.qos,
        statuses, pod.ready ? "True" : "False", pod.generation);
  }

  std::string allocationJson(const ModelPod& pod) const {
    std::string json = podallocation::applySpec({pod.uid, pod.uid}, *pod.spec);
    if (!pod.judged && !pod.status) return json;
    json.pop_back();
    if (pod.status) {
      kube::ObjectMeta meta;
      const std::string status = podallocation::applyStatus(meta, *pod.status);
      return json + "," + status.substr(status.find(R"("status":)"));
    }
    std::string original;
    if (pod.original_kept) {
      for (const ModelContainer& container : pod.containers) {
        original += fmt::format(R"({}{{"name":"{}","request":"{}m","limit":"{}m"}})",
                                original.empty() ? R"("original":[)" : ",", container.name,
                                container.request.count(), container.limit.count());
      }
      original += "],";
    }
    json += fmt::format(
        R"(,"status":{{{}"appliedCPULimit":"{}m","bounds":{{"managed":{},"weight":{},"reason":"{}")",
        original, pod.inForce().count(), pod.managed, pod.weight,
        pod.managed ? "bounds" : "left out");
    if (pod.managed) {
      json += fmt::format(R"(,"floor":"{}m","ceiling":"{}m")", floorOf(pod).count(),
                          ceilingOf(pod).count());
      if (pod.start) json += fmt::format(R"(,"start":"{}m")", pod.start->count());
    }
    return json + "}}}";
  }
};

// The agent: the loop around pipeline and outbox that the process has, on simulated time.
class ModelAgent {
 public:
  explicit ModelAgent(ModelCluster& around, bool adaptive = true,
                      std::unique_ptr<kernel::PodSource> source = nullptr)
      : cluster(around),
        pipeline(
            source ? std::move(source)
                   : std::make_unique<sim::ModelFiles>(around.kernel, sim::ModelFiles::Options{}),
            around.clock, {.node_name = "n1", .cpus = around.kernel.cpus(), .adaptive = adaptive}),
        outbox(Outbox::Options{}),
        next_tick(around.clock.monotonic()) {
    around.changed = true;
  }

  MonotonicTime now() const { return cluster.clock.monotonic(); }

  // One call of the pipeline, when it is time, and what follows.
  const Outcome& step() {
    while (true) {
      MonotonicTime wake = next_tick;
      if (const auto write = outbox.next(now())) wake = std::min(wake, *write);
      cluster.advanceTo(wake);
      if (now() >= next_tick) break;
      send();
    }
    if (cluster.reachable && std::exchange(cluster.changed, false)) {
      world = cluster.world();
      pipeline.update(world);
      if (std::exchange(was_out_of_reach, false)) outbox.answers(now());
    }
    if (!cluster.reachable) was_out_of_reach = true;
    const Outcome& outcome = pipeline.tick();
    next_tick = now() + outcome.next;
    for (const std::string& uid : outcome.ended) {
      outbox.forget(uid);
      newest.erase(uid);
    }
    for (const Wish& wish : outcome.wishes) {
      if (on_wish) on_wish(wish);
      outbox.put(wish, now());
      newest[wish.uid] = wish;
    }
    for (const std::string& note : outcome.notes) notes.push_back(note);
    send();
    return outcome;
  }

  void run(Nanos duration) {
    const MonotonicTime end = now() + duration;
    while (next_tick <= end) step();
    cluster.advanceTo(end);
  }

  void send() {
    while (const std::optional<Wish> wish = outbox.take(now())) {
      EXPECT_TRUE(newest.contains(wish->uid) && newest.at(wish->uid) == *wish) << "stale";
      outbox.done(wish->uid, cluster.write(*wish), now());
      ++attempts;
      if (on_attempt) on_attempt();
    }
  }

  const PodView& pod(const std::string& uid) {
    const View& view = pipeline.view();
    const auto found = std::ranges::find(view.pods, uid, &PodView::uid);
    EXPECT_NE(found, view.pods.end()) << uid;
    return *found;
  }

  ModelCluster& cluster;
  Pipeline pipeline;
  Outbox outbox;
  MonotonicTime next_tick;
  bool was_out_of_reach = false;
  int attempts = 0;  // to write
  World world;       // as the pipeline was last told
  std::map<std::string, Wish> newest;
  std::vector<std::string> notes;
  std::function<void(const Wish&)> on_wish;
  std::function<void()> on_attempt;
};

}  // namespace mbcas::agent
