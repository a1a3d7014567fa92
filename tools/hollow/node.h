// A node that is hollow: a real agent and its real traffic, on a kernel in memory and with a
// kubelet on paper.
//
//   HollowNode node({.name = "hollow-1", .agent = as_agent, .kubelet = as_admin, ...}, clock);
//   node.startAgent();
//   node.kernel().load(uid, 1000_m);
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "mbcas/agent/agent.h"
#include "mbcas/base/clock.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/http_loop.h"
#include "mbcas/kube/metrics.h"
#include "test/support/fake_kubelet.h"
#include "tools/hollow/kernel.h"
#include "tools/hollow/ledger.h"

namespace mbcas::hollow {

class HollowNode {
 public:
  struct Options {
    std::string name{};
    kube::ClientConfig agent{};    // the agent's account
    kube::ClientConfig kubelet{};  // an administrator
    int cpus = 256;
    Millicores load{100};                                // of every pod at its start
    kube::Metrics* metrics = nullptr;                    // counts the agent's requests
    Ledger* ledger = nullptr;                            // may be shared by many nodes
    std::function<void(const std::string&)> complain{};  // what the agent complains of
  };
  // `clock` and what is pointed to must outlive it. Registers the Node.
  HollowNode(Options options, const Clock& clock);
  ~HollowNode();

  const std::string& name() const { return options_.name; }
  HollowKernel& kernel() { return kernel_; }
  int running() const { return running_; }  // pods

  void startAgent();
  // Returns when it has ended.
  void stopAgent();
  bool settled() const { return settled_; }  // the agent knows the cluster

 private:
  void follow(const kube::TypedChange<kube::Pod>& change);

  const Options options_;
  const Clock& clock_;
  HollowKernel kernel_;
  std::atomic<int> running_ = 0;
  std::atomic<bool> settled_ = false;
  kube::HttpLoop loop_;
  kube::Client kubelet_client_;
  std::optional<test::FakeKubelet> kubelet_;
  std::unique_ptr<kube::Client> agent_client_;
  std::unique_ptr<agent::Agent> agent_;
  std::thread agent_thread_;
};

}  // namespace mbcas::hollow
