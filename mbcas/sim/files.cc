#include "mbcas/sim/files.h"

#include "mbcas/kernel/names.h"
#include "mbcas/sim/tree.h"

namespace mbcas::sim {
namespace {

using kernel::ReadError;
using kernel::ReadResult;

class ModelCgroup final : public kernel::CgroupReader {
 public:
  ModelCgroup(const Node& node, int pod, int container, const ModelFiles::Options& options)
      : node_(node), pod_(pod), container_(container), options_(options), id_(current()) {}

  std::uint64_t id() const override { return id_; }
  bool usageIsInStat() const override { return true; }
  ReadResult<Nanos> usage() override {
    return reading<Nanos>([](const Counters& c) { return c.usage; });
  }
  ReadResult<kernel::CpuStat> stat() override {
    return reading<kernel::CpuStat>(
        [](const Counters& c) { return kernel::CpuStat{c.usage, c.throttling}; });
  }
  ReadResult<Nanos> throttledLocal() override {
    if (!options_.stat_local) return missing();
    return reading<Nanos>([](const Counters& c) { return c.local; });
  }
  ReadResult<kernel::CpuLimit> limit() override {
    return reading<kernel::CpuLimit>([](const Counters& c) { return c.limit; });
  }
  ReadResult<kernel::Pressure> pressure(kernel::Resource resource) override {
    if (!options_.pressure || resource != kernel::Resource::kCpu) return missing();
    return reading<kernel::Pressure>([](const Counters& c) { return c.pressure; });
  }
  ReadResult<std::uint64_t> threads() override {
    int threads = 0;
    for (int c = 0; c < node_.containers(pod_); ++c) {
      if (container_ < 0 || container_ == c) threads += node_.threads(pod_, c);
    }
    return reading<std::uint64_t>(
        [&](const Counters&) { return static_cast<std::uint64_t>(threads); });
  }
  void logReads(std::vector<int>*) override {}

 private:
  std::uint64_t current() const {
    return container_ < 0 ? node_.podCgroup(pod_) : node_.containerCgroup(pod_, container_);
  }
  template <class T, class Get>
  ReadResult<T> reading(Get get) const {
    if (!node_.present(pod_) || current() != id_) {
      return std::unexpected(ReadError{ReadError::Kind::kGone, {}});
    }
    return get(container_ < 0 ? node_.podCounters(pod_) : node_.counters(pod_, container_));
  }

  const Node& node_;
  int pod_;
  int container_;
  ModelFiles::Options options_;
  std::uint64_t id_;
};

// The machine's own counter: everything that ever ran on it.
class ModelRoot final : public kernel::CgroupReader {
 public:
  explicit ModelRoot(const Node& node) : node_(node) {}

  std::uint64_t id() const override { return 0; }
  bool usageIsInStat() const override { return true; }
  ReadResult<Nanos> usage() override {
    Nanos total{0};
    for (int pod = 0; pod < node_.pods(); ++pod) total += node_.podCounters(pod).usage;
    return total;
  }
  ReadResult<kernel::CpuStat> stat() override { return kernel::CpuStat{*usage(), std::nullopt}; }
  ReadResult<Nanos> throttledLocal() override { return missing(); }
  ReadResult<kernel::CpuLimit> limit() override { return missing(); }
  ReadResult<kernel::Pressure> pressure(kernel::Resource) override { return missing(); }
  ReadResult<std::uint64_t> threads() override { return missing(); }
  void logReads(std::vector<int>*) override {}

 private:
  const Node& node_;
};

}  // namespace

bool ModelFiles::refresh(MonotonicTime) {
  if (seen_ == node_.structure()) return false;
  seen_ = node_.structure();
  pods_.clear();
  places_.clear();
  for (int pod = 0; pod < node_.pods(); ++pod) {
    if (!node_.present(pod) || !inKubepods(node_, pod)) continue;
    kernel::PodCgroup found;
    found.uid = node_.podName(pod);
    found.path = pathOf(node_, pod);
    found.driver = kernel::Driver::kCgroupfs;
    const std::optional<int> slice = node_.podSlice(pod);
    found.qos = kernel::qosOf("pod" + found.uid, slice ? node_.sliceName(*slice) : "burstable");
    found.inode = node_.podCgroup(pod);
    places_[found.path] = {pod, -1};
    for (int c = 0; c < node_.containers(pod); ++c) {
      const std::string& name = node_.containerName(pod, c);
      const std::string path = found.path + "/" + name;
      found.containers.push_back(
          {.id = name, .path = path, .inode = node_.containerCgroup(pod, c)});
      places_[path] = {pod, c};
    }
    pods_[found.path] = std::move(found);
  }
  return true;
}

Result<std::unique_ptr<kernel::CgroupReader>> ModelFiles::open(const std::string& path) const {
  if (path == "/") return std::make_unique<ModelRoot>(node_);
  const auto place = places_.find(path);
  if (place == places_.end()) return failure("no cgroup " + path);
  return std::make_unique<ModelCgroup>(node_, place->second.pod, place->second.container, options_);
}

}  // namespace mbcas::sim
