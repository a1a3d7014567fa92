#include "tools/hollow/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <tuple>

namespace mbcas::hollow {
namespace {

using podallocation::PodAllocation;
using std::chrono::seconds;

constexpr const char* kSystem = "mbcas-system";
constexpr int kNamespaces = 10;
constexpr int kHands = 16;  // requests of the administrator at once
constexpr Nanos kPatience = std::chrono::minutes(30);

bool await(const std::function<bool()>& condition, Nanos patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

// The value of a label in name{a="x",b="y"} 1; empty if it is not there.
std::string label(std::string_view line, std::string_view name) {
  const std::string key = fmt::format("{}=\"", name);
  std::size_t begin = line.find("{" + key);
  if (begin == std::string_view::npos) begin = line.find("," + key);
  if (begin == std::string_view::npos) return {};
  begin += key.size() + 1;
  return std::string(line.substr(begin, line.find('"', begin) - begin));
}

std::uint64_t valueOf(std::string_view line) {
  const std::string text(line.substr(line.rfind(' ') + 1));
  return static_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr));  // it may be 1.2e+06
}

template <class Each>
void eachLine(const std::string& text, std::string_view prefix, const Each& each) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(prefix)) each(line);
  }
}

RequestCounts parseRequests(const std::string& metrics) {
  RequestCounts counts;
  eachLine(metrics, "apiserver_request_total{", [&](const std::string& line) {
    std::string what = label(line, "resource");
    if (const std::string sub = label(line, "subresource"); !sub.empty()) what += "/" + sub;
    counts[fmt::format("{} {} {}", label(line, "verb"), what, label(line, "code"))] +=
        valueOf(line);
  });
  // Turned away by priority and fairness, before they were anything else.
  eachLine(metrics, "apiserver_flowcontrol_rejected_requests_total{", [&](const std::string& line) {
    counts["rejected " + label(line, "flow_schema")] += valueOf(line);
  });
  return counts;
}

}  // namespace

void inParallel(int count, int threads, const std::function<void(int)>& work) {
  std::atomic<int> next = 0;
  const int needed = std::min(threads, count);
  std::vector<std::jthread> workers;
  workers.reserve(static_cast<std::size_t>(needed));
  for (int t = 0; t < needed; ++t) {
    workers.emplace_back([&] {
      for (int i = next++; i < count; i = next++) work(i);
    });
  }
}

RequestCounts operator-(RequestCounts after, const RequestCounts& before) {
  for (const auto& [what, count] : before) {
    std::uint64_t& left = after[what];
    left -= std::min(left, count);
  }
  std::erase_if(after, [](const auto& entry) { return entry.second == 0; });
  return after;
}

std::uint64_t total(const RequestCounts& counts,
                    const std::function<bool(const std::string&)>& of) {
  std::uint64_t sum = 0;
  for (const auto& [what, count] : counts) sum += of(what) ? count : 0;
  return sum;
}

Result<std::unique_ptr<Fleet>> Fleet::start(Options options) {
  std::unique_ptr<Fleet> fleet(new Fleet(std::move(options)));
  auto plane = test::ControlPlane::start({.apiserverArgs = fleet->options_.apiserver_args});
  if (!plane) return failure("starting the control plane: " + plane.error());
  fleet->plane_ = *std::move(plane);
  if (Result<void> installed = fleet->install(); !installed) return failure(installed.error());
  return fleet;
}

Fleet::~Fleet() {
  inParallel(static_cast<int>(nodes_.size()), kHands,
             [&](int i) { nodes_[static_cast<std::size_t>(i)]->stopAgent(); });
  controller_.reset();
  if (allocations_) allocations_->stop();
}

int Fleet::port() const {
  return std::stoi(plane_->server().substr(plane_->server().rfind(':') + 1));
}

Result<void> Fleet::kubectl(const std::string& arguments) const {
  const std::string log = plane_->dir() + "/kubectl.log";
  const std::string command = fmt::format("{} --kubeconfig {} {} >{} 2>&1", plane_->kubectl(),
                                          plane_->kubeconfig(), arguments, log);
  if (std::system(command.c_str()) == 0) return {};  // NOLINT(concurrency-mt-unsafe)
  std::ifstream file(log);
  std::ostringstream text;
  text << file.rdbuf();
  return failure(fmt::format("kubectl {}: {}", arguments, text.str()));
}

// As whom, and as a token bound to that node would say.
kube::ClientConfig Fleet::configFor(const std::string& account, const std::string& node,
                                    int port) const {
  kube::ClientConfig config = admin_->config();
  config.server = fmt::format("https://127.0.0.1:{}", port);
  config.impersonate.user = fmt::format("system:serviceaccount:{}:{}", kSystem, account);
  config.impersonate.groups = {"system:authenticated", "system:serviceaccounts",
                               fmt::format("system:serviceaccounts:{}", kSystem)};
  if (!node.empty()) config.impersonate.extra["authentication.kubernetes.io/node-name"] = {node};
  return config;
}

Result<void> Fleet::install() {
  const Result<kube::ClientConfig> config =
      kube::loadKubeconfig({.explicit_path = plane_->kubeconfig()});
  if (!config) return failure(config.error());
  admin_ = std::make_unique<kube::Client>(loop_, *config, clock_,
                                          kube::ClientOptions{.user_agent = "hollow"});
  agent_tap_ = std::make_unique<test::TcpTap>(port());
  controller_tap_ = std::make_unique<test::TcpTap>(port());

  for (const char* what :
       {"create namespace mbcas-system", "apply -k config/crd", "apply -k config/policy",
        "apply -k config/rbac", "apply -f config/agent/rbac.yaml"}) {
    if (Result<void> done = kubectl(what); !done) return done;
  }
  if (!await([&] { return admin_->list<PodAllocation>().has_value(); }, kPatience)) {
    return failure("PodAllocations are not served");
  }
  for (int i = 0; i < kNamespaces; ++i) {
    const auto made = admin_->create<kube::Namespace>(
        "", fmt::format(R"({{"metadata":{{"name":"hollow-{}"}}}})", i));
    if (!made) return failure(made.error().toError());
  }
  allocations_ = std::make_unique<kube::Informer<PodAllocation>>(*admin_);
  allocations_->onChange([this](const kube::TypedChange<PodAllocation>& change) {
    const auto judged = [](const auto& each) { return each && each->bounds() != nullptr; };
    judged_ += static_cast<int>(judged(change.after)) - static_cast<int>(judged(change.before));
  });
  allocations_->start();

  nodes_.resize(static_cast<std::size_t>(options_.nodes));
  inParallel(options_.nodes, kHands, [&](int i) {
    const std::string name = fmt::format("hollow-{}", i);
    nodes_[static_cast<std::size_t>(i)] = std::make_unique<HollowNode>(
        HollowNode::Options{
            .name = name,
            .agent = configFor("mbcas-agent", name, i == 0 ? agent_tap_->port() : port()),
            .kubelet = admin_->config(),
            .load = options_.load,
            .metrics = &agent_metrics_,
            .ledger = &ledger_,
            .complain =
                [this](const std::string& line) {
                  const std::scoped_lock lock(mutex_);
                  ++complaints_[line];
                }},
        clock_);
  });
  return {};
}

Result<HollowPod> Fleet::makePod(int node, const std::string& name, int weight_class) const {
  HollowPod pod{
      .name_space = fmt::format("hollow-{}", node % kNamespaces), .name = name, .node = node};
  // Half of them with a request of 50m, the others of 100m and 200m: some are more urgent.
  const int request = weight_class % 4 < 2 ? 50 : weight_class % 4 == 2 ? 100 : 190;
  const auto made = admin_->create<kube::Pod>(
      pod.name_space,
      fmt::format(
          R"({{"metadata":{{"name":"{}","labels":{{"app":"hollow-{}"}}}},"spec":{{"nodeName":"hollow-{}",
              "containers":[{{"name":"main","image":"x","resources":{{
              "requests":{{"cpu":"{}m","memory":"32Mi"}},"limits":{{"cpu":"200m","memory":"64Mi"}}
              }}}}]}}}})",
          name, weight_class % 4, node, request));
  if (!made) return failure(made.error().toError().within("creating " + name));
  pod.uid = (*made)->meta.uid.string();
  return pod;
}

Result<void> Fleet::makePods() {
  const int count = options_.nodes * options_.pods;
  pods_.resize(static_cast<std::size_t>(count));
  std::optional<Error> wrong;
  inParallel(count, kHands, [&](int i) {
    Result<HollowPod> made = makePod(i % options_.nodes, fmt::format("p{}", i), i / options_.nodes);
    const std::scoped_lock lock(mutex_);
    if (made) {
      pods_[static_cast<std::size_t>(i)] = *std::move(made);
    } else {
      wrong = made.error();
    }
  });
  if (wrong) return failure(*wrong);
  made_ = count;
  if (!await([&] { return running() == count; }, kPatience))
    return failure("the pods do not start");
  return {};
}

int Fleet::running() const {
  int sum = 0;
  for (const auto& node : nodes_) sum += node->running();
  return sum;
}

Result<void> Fleet::replacePod(std::size_t pod) {
  const HollowPod old = pods_[pod];
  const auto gone =
      admin_->remove<kube::Pod>(old.name_space, old.name, {.uid = old.uid, .grace_seconds = 0});
  if (!gone) return failure(gone.error().toError());
  garbage_.push_back({old.name_space, old.uid, clock_.monotonic()});
  Result<HollowPod> made =
      makePod(old.node, fmt::format("p{}", made_), static_cast<int>(pod) / options_.nodes);
  if (!made) return failure(made.error());
  ++made_;
  pods_[pod] = *std::move(made);
  return {};
}

void Fleet::collectGarbage(Nanos age) {
  const MonotonicTime now = clock_.monotonic();
  while (!garbage_.empty() && now - garbage_.front().since >= age) {
    std::ignore = admin_->remove<PodAllocation>(garbage_.front().name_space, garbage_.front().name);
    garbage_.pop_front();
  }
}

void Fleet::load(std::size_t pod, Millicores load) {
  nodes_[static_cast<std::size_t>(pods_[pod].node)]->kernel().load(pods_[pod].uid, load);
}

std::string Fleet::lacking(const std::vector<Millicores>& loads) const {
  for (std::size_t i = 0; i < pods_.size() && i < loads.size(); ++i) {
    const HollowPod& pod = pods_[i];
    const Millicores limit = nodes_[static_cast<std::size_t>(pod.node)]->kernel().limit(pod.uid);
    if (limit >= loads[i]) continue;
    return fmt::format("{}/{} of node hollow-{} has {}m and needs {}m", pod.name_space, pod.name,
                       pod.node, limit.count(), loads[i].count());
  }
  return {};
}

void Fleet::startController() {
  const kube::ClientConfig config = configFor("mbcas-controller", "", controller_tap_->port());
  const std::string path = plane_->dir() + "/controller.kubeconfig";
  const nlohmann::json kubeconfig = {
      {"clusters",
       {{{"name", "c"},
         {"cluster", {{"server", config.server}, {"certificate-authority", plane_->caFile()}}}}}},
      {"users",
       {{{"name", "u"},
         {"user",
          {{"token", plane_->token()},
           {"as", config.impersonate.user},
           {"as-groups", config.impersonate.groups}}}}}},
      {"contexts", {{{"name", "x"}, {"context", {{"cluster", "c"}, {"user", "u"}}}}}},
      {"current-context", "x"}};
  std::ofstream(path) << kubeconfig.dump();
  std::vector<std::string> words{options_.controller,
                                 "--kubeconfig",
                                 path,
                                 "--metrics-bind-address",
                                 "0",
                                 "--health-probe-bind-address",
                                 "0"};
  words.insert(words.end(), options_.controller_args.begin(), options_.controller_args.end());
  controller_ = std::make_unique<test::Process>(words, plane_->dir(), "controller");
}

void Fleet::tendController() {
  if (!controller_ || !controller_->ended()) return;
  ++controller_ends_;
  startController();
}

void Fleet::startAgents() {
  for (const auto& node : nodes_) node->startAgent();
}

void Fleet::restartAgents() {
  inParallel(options_.nodes, options_.nodes,
             [&](int i) { nodes_[static_cast<std::size_t>(i)]->stopAgent(); });
  startAgents();
}

Result<void> Fleet::restartApiserver(Nanos away) {
  if (Result<RequestCounts> counted = requests(); !counted) return failure(counted.error());
  before_restart_ = last_;
  last_.clear();
  if (const auto killed = plane_->killApiserver(); !killed) return failure(killed.error());
  std::this_thread::sleep_for(away);
  if (const auto started = plane_->startApiserver(); !started) return failure(started.error());
  return {};
}

bool Fleet::settled() const {
  const int count = static_cast<int>(pods_.size());
  return judged_ == count && ledger_.open() == 0 && running() == count &&
         std::ranges::all_of(nodes_, [](const auto& node) { return node->settled(); });
}

std::string Fleet::complaints() const {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (const auto& [line, count] : complaints_) text += fmt::format("{} x {}\n", count, line);
  return text;
}

Result<RequestCounts> Fleet::requests() {
  const auto metrics =
      admin_->perform({.path = "/metrics", .accept = "text/plain", .timeout = seconds(60)});
  if (!metrics) return failure(metrics.error().toError().within("the server's metrics"));
  last_ = before_restart_;
  for (const auto& [what, count] : parseRequests(*metrics)) last_[what] += count;
  return last_;
}

std::uint64_t Fleet::agentRequests() {
  std::uint64_t sum = 0;
  eachLine(agent_metrics_.text(), "rest_client_requests_total{",
           [&](const std::string& line) { sum += valueOf(line); });
  return sum;
}

// A child of the control plane's supervisor: the server has another number after a restart.
pid_t Fleet::pidOf(const std::string& program) const {
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    std::ifstream file(entry.path() / "stat");
    pid_t pid = 0;
    pid_t parent = 0;
    std::string name;
    char state = 0;
    if (file >> pid >> name >> state >> parent && parent == plane_->supervisor() &&
        name == "(" + program + ")") {
      return pid;
    }
  }
  return -1;
}

Fleet::Costs Fleet::costs() const {
  Costs costs;
  if (controller_) costs.controller = controller_->cost();
  costs.apiserver = test::Process::costOf(pidOf("kube-apiserver"));
  costs.etcd = test::Process::costOf(pidOf("etcd"));
  return costs;
}

Ceiling Fleet::barePatches(Nanos duration, int at_once) {
  const auto rate = [&](const std::function<bool(int, int)>& patch) {
    std::atomic<std::uint64_t> done = 0;
    const auto begin = std::chrono::steady_clock::now();
    inParallel(at_once, at_once, [&](int i) {
      for (int n = 0; std::chrono::steady_clock::now() - begin < duration; ++n) {
        if (patch(i, n)) ++done;
      }
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(done) / took.count();
  };
  Ceiling ceiling;
  const auto name = [](int i) { return fmt::format("bare-{}", i); };
  for (int i = 0; i < at_once; ++i) {
    std::ignore = admin_->create<kube::ConfigMap>(
        "default", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name(i)));
  }
  ceiling.config_maps = rate([&](int i, int n) {
    return admin_
        ->patch<kube::ConfigMap>("default", name(i), kube::PatchType::kMerge,
                                 fmt::format(R"({{"data":{{"n":"{}"}}}})", n))
        .has_value();
  });
  for (int i = 0; i < at_once; ++i)
    std::ignore = admin_->remove<kube::ConfigMap>("default", name(i));

  const auto annotate = [&](int i, const std::string& value) {
    const HollowPod& pod = pods_[static_cast<std::size_t>(i) % pods_.size()];
    return admin_
        ->patch<kube::Pod>(pod.name_space, pod.name, kube::PatchType::kMerge,
                           fmt::format(R"({{"metadata":{{"annotations":{{"n":{}}}}}}})", value))
        .has_value();
  };
  ceiling.pods = rate([&](int i, int n) { return annotate(i, fmt::format("\"{}\"", n)); });
  for (int i = 0; i < at_once; ++i) annotate(i, "null");
  return ceiling;
}

}  // namespace mbcas::hollow
