// The pods and containers of a host, found by walking its cgroup tree and kept up to date.
//
// A pod is found by the name of its directory wherever that is (names.h), so every distribution's
// base path, kind's and minikube's nesting and a tree mounted elsewhere need no configuration. A
// container is found by its id below its pod, one unknown level in between allowed; its own
// children (crun's "container", a nested runtime's) are its business.
//
//   PodTree tree(mounts);
//   tree.scan();
//   for (const PodCgroup& pod : tree.pods()) ...
//   if (tree.refresh(now)) ...      // something came or went; pods() is the new state
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/kernel/cgroup_reader.h"
#include "mbcas/kernel/mounts.h"
#include "mbcas/kernel/names.h"
#include "mbcas/kernel/watch.h"

namespace mbcas::kernel {

struct ContainerCgroup {
  std::string id;
  std::string path;  // below the hierarchies, with a leading slash
  Runtime runtime = Runtime::kUnknown;
  std::uint64_t inode = 0;  // a cgroup made again under the same name has another inode

  friend bool operator==(const ContainerCgroup&, const ContainerCgroup&) = default;
};

struct PodCgroup {
  std::string uid;
  std::string path;
  Driver driver = Driver::kSystemd;
  Qos qos = Qos::kGuaranteed;
  std::uint64_t inode = 0;
  std::vector<ContainerCgroup> containers;  // by id; the pause container is one of them

  friend bool operator==(const PodCgroup&, const PodCgroup&) = default;
};

// A source of pods. On Kubernetes it is PodTree; a host without Kubernetes names its own cgroups; a
// model has its cgroups in memory.
class PodSource {
 public:
  virtual ~PodSource() = default;
  // A cgroup by its path, "/" for the root: at least those of pods(), and those that
  // visitChildren() reports where the source knows them. Fails if the cgroup is gone, or is not in
  // every hierarchy yet.
  virtual Result<std::unique_ptr<CgroupReader>> open(const std::string& path) const = 0;
  // By path. Valid until the next scan or refresh.
  virtual const std::map<std::string, PodCgroup>& pods() const = 0;
  // Reads again what changed since the last call; true if pods() differs.
  virtual bool refresh(MonotonicTime now) = 0;
  // Makes the next refresh read everything.
  virtual void distrust() = 0;
  // The cgroups directly below one, pods or not, in any order; "" is the root. An inode of 0 is
  // unknown. A source without a tree of its own reports the cgroups that lead to its pods.
  virtual Result<void> visitChildren(const std::string& path, const ChildVisitor& visit) const;
  // What the CPUs of the machine do; null where the source cannot know it.
  virtual std::unique_ptr<MachineReader> machine() const { return nullptr; }
  // Whether the root of the search for pods can be read; the error says why not.
  virtual Result<void> readable() const { return {}; }
  // The layouts in use, for a person; nothing where there is only one way.
  virtual std::vector<std::string> layouts() const { return {}; }
};

class PodTree final : public PodSource {
 public:
  explicit PodTree(Mounts mounts, DirectoryWatch::Method watch = DirectoryWatch::Method::kInotify);

  // Walks the whole tree. Directories that cannot be read are counted and skipped.
  void scan();

  // Lists only directories that changed. Walks everything every minute (every five seconds while
  // there are no pods), for trees that come later: a kubelet that starts, a node in a container.
  bool refresh(MonotonicTime now) override;
  void distrust() override { next_walk_ = {}; }

  Result<std::unique_ptr<CgroupReader>> open(const std::string& path) const override;
  Result<void> visitChildren(const std::string& path, const ChildVisitor& visit) const override;
  std::unique_ptr<MachineReader> machine() const override;

  const Mounts& mounts() const { return mounts_; }
  const std::map<std::string, PodCgroup>& pods() const override { return pods_; }

  Result<void> readable() const override;
  // "cgroup v2, systemd driver, containerd, below /kubelet.slice". A pod without containers counts
  // only where no other pod has the same driver and place.
  std::vector<std::string> layouts() const override;

  std::uint64_t unreadable() const { return unreadable_; }  // directories, in the last walk
  std::uint64_t walked() const { return walked_; }          // directories, in the last walk
  std::uint64_t missedByEvents() const { return watch_.missedByEvents(); }

 private:
  struct Entry {
    std::string name;
    std::uint64_t inode;
  };
  std::vector<Entry> list(const std::string& path) const;
  void walk(const std::string& path, const Entry& self, std::string_view parent, int depth);
  void listParent(const std::string& path);
  void seePod(const std::string& path, const Entry& entry, std::string_view parent);
  void listContainers(PodCgroup& pod);
  void collectContainers(const std::string& path, int levels,
                         std::vector<ContainerCgroup>& found) const;
  template <class Lost>
  void forgetPods(const std::string& below, Lost lost);

  Mounts mounts_;
  DirectoryWatch watch_;
  std::map<std::string, PodCgroup> pods_;
  std::unordered_map<std::string, std::uint64_t> parents_;  // watched directories in which pods
                                                            // are made, with their inodes
  std::unordered_set<std::string> changed_;
  std::unordered_set<std::string> seen_;  // pods met in the listing under way
  mutable std::uint64_t unreadable_ = 0;
  std::uint64_t walked_ = 0;
  bool dirty_ = false;
  MonotonicTime next_walk_{};
  MonotonicTime next_count_{};
};

}  // namespace mbcas::kernel
