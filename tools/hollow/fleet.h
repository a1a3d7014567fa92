// Hollow nodes around a real etcd, kube-apiserver and mbcas-controller, with everything of config/
// installed, and accounts as installed: agents and controller are subject to RBAC, the admission
// policies and the server's priority and fairness. (By impersonation: tokens would have to be
// issued and verified, and nothing else would differ.)
//
//   auto fleet = Fleet::start({.nodes = 10, .pods = 100, .controller = "build/bin/..."});
//   (*fleet)->makePods();
//   (*fleet)->startController();
//   (*fleet)->startAgents();
//
// One thread uses it; it works in parallel where that pays.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/kube/informer.h"
#include "mbcas/podallocation/pod_allocation.h"
#include "test/support/control_plane.h"
#include "test/support/process.h"
#include "test/support/tcp_tap.h"
#include "tools/hollow/ledger.h"
#include "tools/hollow/node.h"

namespace mbcas::hollow {

// Does it for every i below count, `threads` at a time.
void inParallel(int count, int threads, const std::function<void(int)>& work);

// Requests that the API server has answered, as its own metrics say: "PATCH pods/resize 200" and
// how many. A watch counts when it ends.
using RequestCounts = std::map<std::string, std::uint64_t>;
RequestCounts operator-(RequestCounts after, const RequestCounts& before);
std::uint64_t total(const RequestCounts& counts, const std::function<bool(const std::string&)>& of);

struct HollowPod {
  std::string name_space{};
  std::string name{};
  std::string uid{};
  int node = 0;
};

// How many of the simplest writes the server does in a second: patches that no controller reacts
// to.
struct Ceiling {
  double config_maps = 0;  // small ones
  double pods = 0;         // an annotation
};

class Fleet {
 public:
  struct Options {
    int nodes = 1;
    int pods = 100;  // of each node
    Millicores load{100};
    std::string controller{};  // the binary
    std::vector<std::string> controller_args{};
    std::vector<std::string> apiserver_args{};
    std::function<void(const std::string&)> say{};
  };
  // Control plane, installation, nodes.
  static Result<std::unique_ptr<Fleet>> start(Options options);
  ~Fleet();

  // Until all of them run.
  Result<void> makePods();
  // One pod less and another one instead.
  Result<void> replacePod(std::size_t pod);
  // PodAllocations of pods that ended so long ago, at least, as the garbage collector would.
  void collectGarbage(Nanos age);
  const std::vector<HollowPod>& pods() const { return pods_; }
  void load(std::size_t pod, Millicores load);
  // The first pod whose limit in force is less than that; empty: there is none.
  std::string lacking(const std::vector<Millicores>& loads) const;

  void startController();
  void startAgents();
  // All at once.
  void restartAgents();
  Result<void> restartApiserver(Nanos away);

  // Every pod runs and has its bounds, and no raise is open.
  bool settled() const;
  int judged() const { return judged_; }  // PodAllocations with bounds
  // Starts the controller again if it has ended by itself, as a kubelet would.
  void tendController();
  int controllerEnds() const { return controller_ends_; }

  Ledger& ledger() { return ledger_; }
  kube::Client& admin() { return *admin_; }
  const Options& options() const { return options_; }
  std::string complaints() const;  // of agents, each kind once
  std::string controllerLog() const { return controller_ ? controller_->err() : ""; }  // of all

  // Since the start, over restarts of the server; an error if it does not answer.
  Result<RequestCounts> requests();
  std::uint64_t agentRequests();  // of all agents, as they count; a watch counts when it ends
  // Bytes on the wire, TLS and all: of one agent, the first; of the controller.
  test::TcpTap::Counts agentBytes() const { return agent_tap_->counts(); }
  test::TcpTap::Counts controllerBytes() const { return controller_tap_->counts(); }
  struct Costs {
    test::Process::Cost controller, apiserver, etcd;
  };
  Costs costs() const;

  // So many at once, and nothing behind them; each for so long.
  Ceiling barePatches(Nanos duration, int at_once);

 private:
  explicit Fleet(Options options) : options_(std::move(options)) {}
  Result<void> install();
  Result<void> kubectl(const std::string& arguments) const;
  kube::ClientConfig configFor(const std::string& account, const std::string& node, int port) const;
  Result<HollowPod> makePod(int node, const std::string& name, int weight_class) const;
  int port() const;
  int running() const;  // pods
  pid_t pidOf(const std::string& program) const;
  void say(const std::string& line) const {
    if (options_.say) options_.say(line);
  }

  const Options options_;
  SystemClock clock_;
  Ledger ledger_;
  kube::Metrics agent_metrics_;
  mutable std::mutex mutex_;
  std::map<std::string, int> complaints_;  // guarded by mutex_
  std::unique_ptr<test::ControlPlane> plane_;
  std::unique_ptr<test::TcpTap> agent_tap_;
  std::unique_ptr<test::TcpTap> controller_tap_;
  kube::HttpLoop loop_;
  std::unique_ptr<kube::Client> admin_;
  std::atomic<int> judged_ = 0;
  std::unique_ptr<kube::Informer<podallocation::PodAllocation>> allocations_;
  std::vector<std::unique_ptr<HollowNode>> nodes_;
  std::vector<HollowPod> pods_;
  struct Garbage {
    std::string name_space, name;
    MonotonicTime since;
  };
  std::deque<Garbage> garbage_;
  int made_ = 0;
  RequestCounts before_restart_;
  RequestCounts last_;
  std::unique_ptr<test::Process> controller_;
  int controller_ends_ = 0;
};

}  // namespace mbcas::hollow
