// The model kernel's cgroup files: what the sampler reads where a real node has /sys/fs/cgroup. So
// from the readings upwards the code is the one that runs on real nodes.
//
//   Sampler sampler(std::make_unique<ModelFiles>(node, ModelFiles::Options{}), clock, {});
#pragma once

#include <map>
#include <memory>
#include <string>

#include "mbcas/kernel/pod_tree.h"
#include "mbcas/sim/node.h"

namespace mbcas::sim {

class ModelFiles final : public kernel::PodSource {
 public:
  struct Options {
    bool stat_local = true;  // the kernel has cpu.stat.local: Linux 6.5 and later
    bool pressure = true;    // and cpu.pressure
  };

  // `node` outlives it. A pod's uid is its name, a container's id is its name.
  ModelFiles(const Node& node, const Options& options) : node_(node), options_(options) {}

  Result<std::unique_ptr<kernel::CgroupReader>> open(const std::string& path) const override;
  const std::map<std::string, kernel::PodCgroup>& pods() const override { return pods_; }
  bool refresh(MonotonicTime now) override;
  void distrust() override { seen_ = 0; }

 private:
  struct Place {
    int pod;
    int container;  // -1: the pod's own cgroup
  };

  const Node& node_;
  Options options_;
  std::map<std::string, kernel::PodCgroup> pods_;
  std::map<std::string, Place> places_;  // by path
  std::uint64_t seen_ = 0;               // Node::structure() that pods_ is of
};

}  // namespace mbcas::sim
