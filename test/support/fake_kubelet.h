// Plays the kubelet of one node towards a real API server: starts the pods that are bound to it (on
// paper), acknowledges resizes as KEP-1287 says, and removes pods that are being deleted.
//
//   FakeKubelet kubelet(*admin, {.node = "node-1"});
//   ... create pods with "nodeName":"node-1" ...
//   kubelet.behave(FakeKubelet::Behaviour::kDefer, "web-1");
//
// Registers its Node, a large one, if there is none: Kubernetes 1.36 refuses to resize pods of a
// node that it does not know or that is too small.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "mbcas/base/units.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/informer.h"
#include "mbcas/kube/types.h"

namespace mbcas::test {

// The id it reports for a container: 64 hexadecimal digits, always the same.
std::string fakeContainerId(std::string_view uid, std::string_view container);

class FakeKubelet {
 public:
  struct Options {
    std::string node = "node-1";
    // False: one of Kubernetes 1.33, which does not say which generation it has seen.
    bool observed_generation = true;
    int workers = 1;
    int cpus = 2000;  // of the Node that it registers
    // Told of each change of its pods as the server has it, on the client's loop: for what plays
    // the node's cgroups.
    std::function<void(const kube::TypedChange<kube::Pod>&)> watcher{};
  };
  // What it does about a pod whose spec differs from what runs.
  enum class Behaviour {
    kApply,   // actuates it
    kDefer,   // PodResizePending, Deferred
    kRefuse,  // PodResizePending, Infeasible
    kFail,    // PodResizeInProgress, Error
    kSilent,  // nothing at all, as when the node hangs
  };

  // `client` must outlive it.
  FakeKubelet(kube::Client& client, Options options);
  explicit FakeKubelet(kube::Client& client) : FakeKubelet(client, Options()) {}
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  // From now on, and for what is pending; for all pods, or for those of this name.
  void behave(Behaviour behaviour, const std::string& pod = {});
  // How long a resize takes, from when it is first seen; PodResizeInProgress meanwhile.
  void setDelay(Nanos delay);

  // Resizes actuated so far, by pod name or of all.
  int actuated(const std::string& pod = {}) const;
  // The last failure of a write, other than that the pod is gone. For a test's message.
  std::string trouble() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::test
