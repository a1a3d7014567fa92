// What a pod costs the controller in memory: `controller_memory [--pods N] [--most BYTES]`.
//
// The controller's engine, with its real caches, client and work queue, follows a replayed API
// server: a process of its own, which lists N pods and their PodAllocations, watches, and does what
// the server, an agent and the kubelet would do with what the controller writes. Each pod is
// listed, decided (its bounds are written), raised, and listed again after the watches broke. After
// each step it prints by how much the process has grown and what the allocator has handed out, for
// each pod, and at the end the bytes of what is known of one. With --most it fails where the
// process has grown by more than that.
#include <fmt/format.h>
#include <httplib.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "apps/common/memory.h"
#include "bench/memory.h"
#include "mbcas/controller/engine.h"
#include "mbcas/kube/client.h"

namespace {

using namespace mbcas;
using nlohmann::json;

constexpr std::size_t kPodsOfNode = 100;
constexpr std::size_t kPodsOfWorkload = 10;
constexpr std::size_t kPodsOfNamespace = 500;
constexpr int kDeclared = 200;
constexpr int kRaised = 600;
constexpr const char* kVersion = "allocation.mbcas.io/v1alpha1";

// ---- What is there, the same for both processes

std::string uidOf(std::size_t pod) {
  const std::uint64_t mixed = (pod + 1) * 0x9e3779b97f4a7c15;
  return fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", mixed >> 32, mixed >> 16 & 0xffff,
                     mixed & 0xfff, mixed >> 4 & 0xfff, mixed & 0xffffffffffff);
}
std::string nameSpaceOf(std::size_t pod) {
  return fmt::format("team-{}", pod / kPodsOfNamespace);
}
std::string replicaSetOf(std::size_t pod) {
  return fmt::format("checkout-service-{}-5d9c7b8f6", pod / kPodsOfWorkload);
}
std::string nameOf(std::size_t pod) {
  std::string suffix;
  for (std::size_t rest = pod, i = 0; i < 5; ++i, rest /= 27) {
    suffix += "bcdfghjklmnpqrstvwxz2456789"[rest % 27];
  }
  return fmt::format("{}-{}", replicaSetOf(pod), suffix);
}
std::string nodeOf(std::size_t pod) {
  return fmt::format("ip-10-2-{}-{}.internal", pod / kPodsOfNode / 250, pod / kPodsOfNode % 250);
}
bool hasSidecar(std::size_t pod) {
  return pod % 3 == 0;
}

// ---- The replayed server

class Server {
 public:
  explicit Server(std::size_t pods) : pods_(pods) {}

  // Writes its port to `pipe`, and serves until its parent ends.
  [[noreturn]] void serve(int pipe) {
    httplib::Server server;
    server.new_task_queue = [] { return new httplib::ThreadPool(64); };
    server.set_keep_alive_max_count(1'000'000'000);
    server.set_keep_alive_timeout(600);
    server.set_tcp_nodelay(true);
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    };
    server.Get(".*", handle);
    server.Post(".*", handle);
    server.Patch(".*", handle);
    const int port = server.bind_to_any_port("127.0.0.1");
    if (::write(pipe, &port, sizeof port) != sizeof port) ::_exit(1);
    server.listen_after_bind();
    ::_exit(0);
  }

  std::string podText(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return pod(i);
  }
  std::string allocationText(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return allocation(i);
  }

 private:
  struct State {
    int limit = kDeclared;
    int desired = kDeclared;
    std::int64_t generation = 1;             // of the pod
    std::int64_t allocation_generation = 1;  // of its PodAllocation
    std::uint64_t version = 1;
    std::uint64_t allocation_version = 1;
    std::string annotation{};  // of the original resources
    std::string status{};      // of the PodAllocation
  };

  static std::string container(std::string_view name, int limit) {
    std::string env;
    for (int i = 0; i < 12; ++i) {
      env +=
          fmt::format(R"({}{{"name":"SETTING_NUMBER_{}","value":"https://service-{}.internal"}})",
                      i == 0 ? "" : ",", i, i);
    }
    return fmt::format(
        R"({{"name":"{}","image":"registry.internal/team/checkout:1.27.{}","env":[{}],"ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"resources":{},"volumeMounts":[{{"name":"kube-api-access-x2x8k","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"livenessProbe":{{"httpGet":{{"path":"/healthz","port":8080,"scheme":"HTTP"}},"periodSeconds":10}},"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent","resizePolicy":[{{"resourceName":"cpu","restartPolicy":"NotRequired"}},{{"resourceName":"memory","restartPolicy":"NotRequired"}}]}})",
        name, limit % 7, env, resources(limit));
  }
  static std::string resources(int limit) {
    return fmt::format(
        R"({{"limits":{{"cpu":"{}m","memory":"256Mi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}})",
        limit);
  }
  std::string containerStatus(std::size_t i, std::string_view name, int limit) const {
    return fmt::format(
        R"({{"name":"{0}","state":{{"running":{{"startedAt":"2026-02-01T10:00:04Z"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"registry.internal/team/checkout:1.27.3","imageID":"registry.internal/team/checkout@sha256:{1:064x}","containerID":"containerd://{2:016x}{2:016x}{3:016x}{2:016x}","started":true,"allocatedResources":{{"cpu":"100m","memory":"128Mi"}},"resources":{4}}})",
        name, 77, (i + 1) * 0x9e3779b97f4a7c15 + name.size(), i, resources(limit));
  }

  std::string pod(std::size_t i) const {
    const State& state = pods_[i];
    const std::string fields(2500, 'f');
    std::string containers = container("main", state.limit);
    std::string statuses = containerStatus(i, "main", state.limit);
    if (hasSidecar(i)) {
      containers += "," + container("proxy", kDeclared);
      statuses += "," + containerStatus(i, "proxy", kDeclared);
    }
    return fmt::format(
        R"({{"metadata":{{"name":"{name}","generateName":"{set}-","namespace":"{ns}","uid":"{uid}","resourceVersion":"{version}","generation":{generation},"creationTimestamp":"2026-02-01T10:00:00Z","labels":{{"app.kubernetes.io/name":"checkout-service-{workload}","app.kubernetes.io/part-of":"shop","pod-template-hash":"5d9c7b8f6"}},"annotations":{{{annotation}"kubernetes.io/config.seen":"2026-02-01T10:00:00.000000000Z","prometheus.io/scrape":"true"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{set}","uid":"{owner}","controller":true,"blockOwnerDeletion":true}}],"managedFields":[{{"manager":"kubelet","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:status":"{fields}"}}}}]}},"spec":{{"volumes":[{{"name":"kube-api-access-x2x8k","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}}]}}}}],"containers":[{containers}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"checkout","nodeName":"{node}","schedulerName":"default-scheduler","priority":0,"enableServiceLinks":true,"tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}},"status":{{"observedGeneration":{generation},"phase":"Running","conditions":[{{"type":"PodReadyToStartContainers","status":"True","lastTransitionTime":"2026-02-01T10:00:04Z"}},{{"type":"Initialized","status":"True","lastTransitionTime":"2026-02-01T10:00:04Z"}},{{"type":"Ready","status":"True","lastTransitionTime":"2026-02-01T10:00:04Z"}},{{"type":"ContainersReady","status":"True","lastTransitionTime":"2026-02-01T10:00:04Z"}},{{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-02-01T10:00:00Z"}}],"hostIP":"10.2.0.7","podIP":"10.244.0.9","startTime":"2026-02-01T10:00:00Z","containerStatuses":[{statuses}],"qosClass":"Burstable"}}}})",
        fmt::arg("name", nameOf(i)), fmt::arg("set", replicaSetOf(i)),
        fmt::arg("ns", nameSpaceOf(i)), fmt::arg("uid", uidOf(i)),
        fmt::arg("version", state.version), fmt::arg("generation", state.generation),
        fmt::arg("workload", i / kPodsOfWorkload),
        fmt::arg("annotation", state.annotation.empty()
                                   ? ""
                                   : "\"mbcas.io/original-resources\":" + state.annotation + ","),
        fmt::arg("owner", uidOf(1'000'000'000 + i / kPodsOfWorkload)), fmt::arg("fields", fields),
        fmt::arg("containers", containers), fmt::arg("node", nodeOf(i)),
        fmt::arg("statuses", statuses));
  }

  std::string allocation(std::size_t i) const {
    const State& state = pods_[i];
    const std::string proxy =
        hasSidecar(i) ? fmt::format(R"(,{{"name":"proxy","desiredCPULimit":"{}m"}})", kDeclared)
                      : std::string();
    const int others = hasSidecar(i) ? kDeclared : 0;
    const std::string reason = state.desired == kDeclared
                                   ? fmt::format("declared, uses {}m", 20 + i % 150)
                                   : fmt::format("uses {}m in bursts that are throttled below {}m",
                                                 100 + i % 97, state.desired + others);
    return fmt::format(
        R"({{"apiVersion":"{api}","kind":"PodAllocation","metadata":{{"name":"{uid}","namespace":"{ns}","uid":"{own}","resourceVersion":"{version}","generation":{generation},"creationTimestamp":"2026-02-01T10:00:05Z","labels":{{"mbcas.io/node":"{node}"}},"ownerReferences":[{{"apiVersion":"v1","kind":"Pod","name":"{name}","uid":"{uid}"}}],"managedFields":[{{"manager":"mbcas-agent","operation":"Apply","apiVersion":"{api}","fieldsType":"FieldsV1","fieldsV1":{{"f:spec":"{fields}"}}}}]}},"spec":{{"namespace":"{ns}","podName":"{name}","nodeName":"{node}","desiredCPULimit":"{sum}m","wantedCPULimit":"{sum}m","containers":[{{"name":"main","desiredCPULimit":"{desired}m"}}{proxy}],"reason":"{reason}"}}{status}}})",
        fmt::arg("api", kVersion), fmt::arg("uid", uidOf(i)), fmt::arg("ns", nameSpaceOf(i)),
        fmt::arg("own", uidOf(2'000'000'000 + i)), fmt::arg("version", state.allocation_version),
        fmt::arg("generation", state.allocation_generation), fmt::arg("node", nodeOf(i)),
        fmt::arg("name", nameOf(i)), fmt::arg("fields", std::string(500, 'f')),
        fmt::arg("sum", state.desired + others), fmt::arg("desired", state.desired),
        fmt::arg("proxy", proxy), fmt::arg("reason", reason),
        fmt::arg("status", state.status.empty() ? "" : ",\"status\":" + state.status));
  }

  std::string node(std::size_t i) const {
    return fmt::format(
        R"({{"metadata":{{"name":"{}","uid":"{}","resourceVersion":"1"}},"status":{{"capacity":{{"cpu":"96","memory":"512Gi"}},"allocatable":{{"cpu":"96","memory":"512Gi"}},"conditions":[{{"type":"Ready","status":"True"}}]}}}})",
        nodeOf(i * kPodsOfNode), uidOf(3'000'000'000 + i));
  }
  std::string nameSpace(std::size_t i) const {
    return fmt::format(
        R"({{"metadata":{{"name":"{}","uid":"{}","resourceVersion":"1"}},"status":{{"phase":"Active"}}}})",
        nameSpaceOf(i * kPodsOfNamespace), uidOf(4'000'000'000 + i));
  }

  static void refuse(httplib::Response& response, int code, std::string_view reason) {
    response.status = code;
    response.set_content(
        fmt::format(
            R"({{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"{}","code":{}}})",
            reason, code),
        "application/json");
  }

  static std::size_t pages(std::size_t items, std::size_t each) {
    return (items + each - 1) / each;
  }

  void list(const httplib::Request& request, httplib::Response& response) {
    const std::string& path = request.path;
    const std::size_t first =
        request.has_param("continue") ? std::stoul(request.get_param_value("continue")) : 0;
    std::size_t last = 0;
    std::string items;
    const std::lock_guard lock(mutex_);
    const auto each = [&](std::size_t count, const auto& text) {
      last = std::min(count, first + 500);
      for (std::size_t i = first; i < last; ++i) items += (i == first ? "" : ",") + text(i);
      if (last < count) return;
      last = 0;
      ++lists_;
    };
    if (path.ends_with("/pods")) {
      each(pods_.size(), [&](std::size_t i) { return pod(i); });
    } else if (path.ends_with("/podallocations")) {
      each(pods_.size(), [&](std::size_t i) { return allocation(i); });
    } else if (path.ends_with("/nodes")) {
      each(pages(pods_.size(), kPodsOfNode), [&](std::size_t i) { return node(i); });
    } else if (path.ends_with("/namespaces")) {
      each(pages(pods_.size(), kPodsOfNamespace), [&](std::size_t i) { return nameSpace(i); });
    } else if (path.ends_with("/configmaps")) {
      items =
          R"({"metadata":{"name":"mbcas","namespace":"mbcas-system","uid":"s","resourceVersion":"1"},"data":{"mode":"full","profile":"responsive","silence":"24h"}})";
    }
    response.set_content(
        fmt::format(
            R"({{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"{}"{}}},"items":[{}]}})",
            version_, last == 0 ? "" : fmt::format(R"(,"continue":"{}")", last), items),
        "application/json");
  }

  void watch(const httplib::Request& request, httplib::Response& response) {
    if (request.has_param("sendInitialEvents")) return refuse(response, 422, "Invalid");
    const bool pods = request.path.ends_with("/pods");
    const bool follows = pods || request.path.ends_with("/podallocations");
    std::vector<std::size_t>& log = pods ? changed_pods_ : changed_allocations_;
    std::size_t told = 0;
    const int breaks = breaks_;
    {
      const std::lock_guard lock(mutex_);
      told = log.size();
    }
    response.set_chunked_content_provider("application/json", [this, pods, follows, &log, told,
                                                               breaks](
                                                                  std::size_t,
                                                                  httplib::DataSink& sink) mutable {
      std::string events;
      if (breaks != breaks_) {
        if (follows) {  // the server's history is gone
          events =
              R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}})"
              "\n";
          sink.write(events.data(), events.size());
        }
        sink.done();
        return true;
      }
      if (follows) {
        const std::lock_guard lock(mutex_);
        for (int i = 0; told < log.size() && i < 200; ++told, ++i) {
          events += fmt::format("{{\"type\":\"MODIFIED\",\"object\":{}}}\n",
                                pods ? pod(log[told]) : allocation(log[told]));
        }
      }
      if (events.empty()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return sink.is_writable();
      }
      return sink.write(events.data(), events.size());
    });
  }

  // The pod whose name or UID is in a path.
  std::size_t podOf(const std::string& path) {
    if (numbers_.empty()) {
      for (std::size_t i = 0; i < pods_.size(); ++i) {
        numbers_.emplace(nameOf(i), i);
        numbers_.emplace(uidOf(i), i);
      }
    }
    for (std::size_t at = 1; at < path.size();) {
      const std::size_t end = std::min(path.find('/', at), path.size());
      const auto found = numbers_.find(path.substr(at, end - at));
      if (found != numbers_.end()) return found->second;
      at = end + 1;
    }
    ::_exit(1);
  }

  void change(const httplib::Request& request, httplib::Response& response) {
    const json body = json::parse(request.body);
    const std::lock_guard lock(mutex_);
    const std::size_t i = podOf(request.path);
    State& state = pods_[i];
    if (request.path.ends_with("/status")) {
      state.status = body["status"].dump();
      state.allocation_version = ++version_;
      changed_allocations_.push_back(i);
      const json& applied = body["status"];
      if (applied.contains("bounds") && state.desired == kDeclared) decided_.insert(i);
      if (applied.value("phase", "") == "Applied" && state.desired != kDeclared) raised_.insert(i);
      response.set_content(allocation(i), "application/json");
      return;
    }
    state.version = ++version_;
    if (request.path.ends_with("/resize")) {
      for (const json& container : body["spec"]["containers"]) {
        if (container["name"] != "main") continue;
        state.limit = std::stoi(container["resources"]["limits"]["cpu"].get<std::string>());
      }
      ++state.generation;
    } else {
      state.annotation = json(body["metadata"]["annotations"].begin().value()).dump();
      annotated_.insert(i);
    }
    changed_pods_.push_back(i);
    response.set_content(pod(i), "application/json");
  }

  void answer(const httplib::Request& request, httplib::Response& response) {
    const std::string& path = request.path;
    if (path.find("/leases/") != std::string::npos) return refuse(response, 404, "NotFound");
    if (request.method == "PATCH" && path.find("/events/") == std::string::npos) {
      return change(request, response);
    }
    if (request.method != "GET") {
      response.status = 201;
      return response.set_content(request.body, "application/json");
    }
    if (path == "/raise") {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < pods_.size(); ++i) {
        pods_[i].desired = kRaised;
        ++pods_[i].allocation_generation;
        pods_[i].allocation_version = ++version_;
        changed_allocations_.push_back(i);
      }
    } else if (path == "/break") {
      ++breaks_;
    }
    if (path == "/raise" || path == "/break" || path == "/done") {
      const std::lock_guard lock(mutex_);
      return response.set_content(
          fmt::format("{} {} {} {}", decided_.size(), raised_.size(), annotated_.size(), lists_),
          "text/plain");
    }
    if (path == "/version") {
      return response.set_content(R"({"major":"1","minor":"35","gitVersion":"v1.35.4"})",
                                  "application/json");
    }
    if (path.starts_with("/apis/autoscaling.k8s.io")) return refuse(response, 404, "NotFound");
    if (request.has_param("watch")) return watch(request, response);
    list(request, response);
  }

  std::mutex mutex_;
  std::vector<State> pods_;
  std::uint64_t version_ = 1;
  std::vector<std::size_t> changed_pods_;
  std::vector<std::size_t> changed_allocations_;
  std::set<std::size_t> decided_;
  std::set<std::size_t> raised_;
  std::set<std::size_t> annotated_;
  std::size_t lists_ = 0;  // complete ones, of pods, PodAllocations, nodes and namespaces
  std::unordered_map<std::string, std::size_t> numbers_;
  std::atomic<int> breaks_ = 0;
};

// ---- The measurement

long heapBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<long>(info.uordblks + info.hblkhd);
}

// What is known of a pod, in as few bytes as it could be written down: a UID is 16 bytes, a number
// or a time 8, a word that many pods have in common 4.
double bareBytes(std::size_t pods) {
  double sum = 0;
  for (std::size_t i = 0; i < pods; ++i) {
    const double containers = hasSidecar(i) ? 2 : 1;
    // Name, UID, version, generation, time of creation; namespace, node, owner, three labels with
    // key and value; phase and the like; and of each container its name, request and limit, CPU and
    // memory, as wanted, as granted and as they are.
    sum +=
        static_cast<double>(nameOf(i).size()) + 16 + 4 * 8 + 9 * 4 + 8 + containers * (4 + 10 * 8);
    // UID, version, generation; desired, wanted, observed, applied, three bounds, weight, a time;
    // a sentence of some fifty letters; and of each container what is desired, and what it was.
    sum += 16 + 2 * 8 + 9 * 8 + 50 + containers * 3 * 8;
    // What the controller did last: its time, and the limits.
    sum += 2 * 8 + containers * 2 * 8;
  }
  return sum / static_cast<double>(pods);
}

class Measurement {
 public:
  explicit Measurement(std::size_t pods)
      : pods_(static_cast<double>(pods)), resident_(bench::residentBytes()), heap_(heapBytes()) {
    fmt::print("{:34}{:>12}{:>20}{:>16}\n", "bytes for each pod", "resident", "after malloc_trim",
               "allocator");
  }
  void print(std::string_view step) {
    const double resident = growth(bench::residentBytes(), resident_);
    const double heap = growth(heapBytes(), heap_);
    most_ = std::max(most_, resident);
    ::malloc_trim(0);
    fmt::print("{:34}{:12.0f}{:20.0f}{:16.0f}\n", step, resident,
               growth(bench::residentBytes(), resident_), heap);
    std::fflush(stdout);
  }
  double most() const { return most_; }

 private:
  double growth(long now, long before) const { return static_cast<double>(now - before) / pods_; }
  double pods_;
  long resident_;
  long heap_;
  double most_ = 0;
};

struct Done {
  std::size_t decided = 0;
  std::size_t raised = 0;
  std::size_t annotated = 0;
  std::size_t lists = 0;
};

Done ask(kube::Client& client, const std::string& path) {
  const auto answer = client.perform({.path = path});
  if (!answer) {
    fmt::print(stderr, "{}\n", answer.error().describe());
    ::_exit(1);
  }
  Done done;
  char* end = nullptr;
  done.decided = std::strtoul(answer->c_str(), &end, 10);
  done.raised = std::strtoul(end, &end, 10);
  done.annotated = std::strtoul(end, &end, 10);
  done.lists = std::strtoul(end, &end, 10);
  return done;
}

int run(std::size_t pods, double most) {
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Server(pods).serve(ends[1]);
  }
  int port = 0;
  if (::read(ends[0], &port, sizeof port) != sizeof port) return 1;
  {
    Server sample(1);
    fmt::print("{} pods of {} bytes as JSON, and a PodAllocation of {} bytes for each\n", pods,
               sample.podText(0).size(), sample.allocationText(0).size());
  }

  tuneMemory();  // as the controller does
  const SystemClock clock;
  kube::HttpLoop loop;
  kube::ClientConfig config;
  config.server = fmt::format("http://127.0.0.1:{}", port);
  kube::Client client(loop, config, clock);
  if (!client.version()) return 1;
  Measurement measurement(pods);

  std::atomic<int> lines = 0;
  controller::Engine engine(client, {.log_error = [&](const std::string& line) {
                              if (++lines < 10) fmt::print(stderr, "{}\n", line);
                            }});
  const auto waitFor = [&](std::string_view what, const auto& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) {
        fmt::print(stderr, "not {} in 30 minutes\n", what);
        ::_exit(1);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    // What the last writes lead to.
    std::this_thread::sleep_for(std::chrono::seconds(2));
  };
  engine.start();
  waitFor("listed", [&] { return engine.hasSynced(); });
  measurement.print("listed");
  if (!engine.lead()) return 1;
  waitFor("decided", [&] { return ask(client, "/done").decided == pods; });
  measurement.print("decided");
  ask(client, "/raise");
  waitFor("raised", [&] {
    const Done done = ask(client, "/done");
    return done.raised == pods && done.annotated == pods;
  });
  measurement.print("raised");
  const std::size_t lists = ask(client, "/break").lists;
  waitFor("listed again", [&] { return ask(client, "/done").lists >= lists + 2; });
  measurement.print("listed again");
  fmt::print("{:34}{:>48.0f}\n", "bare bytes", bareBytes(pods));
  engine.stop();
  if (most > 0 && measurement.most() > most) {
    fmt::print(stderr, "more than {:.0f} bytes for each pod\n", most);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t pods = 100'000;
  double most = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--pods") pods = std::strtoul(argv[i + 1], nullptr, 10);
    if (flag == "--most") most = std::strtod(argv[i + 1], nullptr);
  }
  return run(pods, most);
}
