// What the controller sees of the cluster: one watch for each kind, and what it means for one pod.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "mbcas/kube/informer.h"
#include "mbcas/kube/types.h"
#include "mbcas/podallocation/pod_allocation.h"
#include "mbcas/policy/bounds.h"

namespace mbcas::controller {

using podallocation::PodAllocation;
using PodPtr = std::shared_ptr<const kube::Pod>;
using AllocationPtr = std::shared_ptr<const PodAllocation>;

class Cluster {
 public:
  struct Handlers {  // called on the client's loop: they must not wait
    std::function<void(const std::string& pod_key)> pod_changed;
    std::function<void(const kube::Lease& lease, bool gone)> lease_changed;
    std::function<void(const kube::ConfigMap* settings)> settings_changed;  // null: gone
    std::function<void(const std::string& kind, const kube::ApiError&)> on_error;
  };

  // `name_space` is where agents' Leases and the settings are.
  Cluster(kube::Client& client, const std::string& name_space, Handlers handlers);
  ~Cluster();

  // Starts the watches; does not wait for them.
  void start();
  // Every first list is in, and lookForVpas() has had an answer.
  bool hasSynced() const;
  void stop();
  // How each watch is doing, and what it passes over.
  struct Watch {
    std::string kind;
    kube::WatchHealth health;
    std::vector<kube::PassedOver> passed_over;
  };
  std::vector<Watch> watches() const;
  // VerticalPodAutoscalers are watched once their definition is there: asks the server whether it
  // is. To be called now and then, by one thread.
  void lookForVpas(const std::stop_token& stop);
  bool knowsVpas() const { return knows_vpas_; }

  PodPtr pod(const std::string& key) const;
  std::vector<PodPtr> podsOfNamespace(const std::string& name_space) const;
  std::vector<PodPtr> podsOfNode(const std::string& node) const;
  std::vector<PodPtr> siblings(const kube::Pod& pod) const;  // same workload, the pod included
  // Allocations that name the pod; at most one is named by its UID.
  std::vector<AllocationPtr> allocationsFor(const std::string& pod_key) const;
  // The allocation of the pod, if it counts: written for the pod's own node.
  AllocationPtr allocationOf(const kube::Pod& pod) const;
  std::shared_ptr<const kube::Node> node(std::string_view name) const;
  std::vector<std::shared_ptr<const kube::Node>> nodes() const;
  std::shared_ptr<const kube::Lease> lease(const std::string& name) const;
  std::shared_ptr<const kube::ConfigMap> settings() const;
  policy::NamespaceObjects objects(const std::string& name_space) const;

  void touchAll() const;  // every pod there is, and every pod that an allocation names

 private:
  struct Informers;
  void touchAllocated() const;  // every pod that an allocation names
  void touchNamespace(const std::string& name_space) const;

  kube::Client& client_;
  const std::string name_space_;
  const Handlers handlers_;
  std::unique_ptr<Informers> informers_;
  std::atomic<bool> knows_vpas_ = false;
};

// Whether the allocation, which is named by the pod's UID, was written for another node than the
// pod's. No honest agent writes that: the admission policy cannot know where a pod runs, so an
// agent that was taken over can, and would keep the agent of the pod's node from writing its own.
bool ofAnotherNode(const PodAllocation& allocation, const kube::Pod& pod);

// Name of the ConfigMap with the settings.
inline constexpr const char* kSettingsName = "mbcas";
// The Lease of which one replica works.
inline constexpr const char* kLeaderLease = "mbcas-controller";

}  // namespace mbcas::controller
