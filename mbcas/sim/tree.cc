#include "mbcas/sim/tree.h"

#include <utility>

namespace mbcas::sim {
namespace {

std::string slicePath(const Node& node, int slice) {
  const std::optional<int> parent = node.sliceParent(slice);
  return (parent ? slicePath(node, *parent) : std::string()) + "/" + node.sliceName(slice);
}

}  // namespace

bool inKubepods(const Node& node, int pod) {
  if (node.slices() == 0) return true;
  std::optional<int> slice = node.podSlice(pod);
  while (slice && node.sliceParent(*slice)) slice = node.sliceParent(*slice);
  return slice && node.sliceName(*slice) == "kubepods";
}

std::string pathOf(const Node& node, int pod) {
  if (node.slices() == 0) return "/kubepods/burstable/pod" + node.podName(pod);
  const std::optional<int> slice = node.podSlice(pod);
  return (slice ? slicePath(node, *slice) : std::string()) +
         (inKubepods(node, pod) ? "/pod" : "/") + node.podName(pod);
}

void Tree::build(const Node& node) {
  structure_ = node.structure();
  entries_.clear();
  pods_.clear();
  const auto place = [](std::optional<int> slice) {
    return slice ? std::optional(static_cast<std::size_t>(*slice)) : std::nullopt;
  };
  for (int slice = 0; slice < node.slices(); ++slice) {
    entries_.push_back({.path = slicePath(node, slice), .parent = place(node.sliceParent(slice))});
  }
  places_.resize(static_cast<std::size_t>(node.pods()));
  for (int pod = 0; pod < node.pods(); ++pod) {
    if (!node.present(pod)) continue;
    places_[static_cast<std::size_t>(pod)] = entries_.size();
    const bool inside = inKubepods(node, pod);
    entries_.push_back({.path = pathOf(node, pod),
                        .kind = inside ? TreeEntry::Kind::kPod : TreeEntry::Kind::kOutside,
                        .parent = place(node.podSlice(pod))});
    pods_.push_back(pod);
    int threads = 0;
    for (int c = 0; c < node.containers(pod); ++c) threads += node.threads(pod, c);
    entries_.back().threads = threads;
    for (std::optional<int> above = node.podSlice(pod); above; above = node.sliceParent(*above)) {
      entries_[static_cast<std::size_t>(*above)].threads += threads;
    }
  }
  last_.resize(static_cast<std::size_t>(node.pods()));
  last_slice_.resize(static_cast<std::size_t>(node.slices()));
}

std::span<TreeEntry> Tree::sense(const Node& node) {
  if (structure_ != node.structure()) build(node);
  const Nanos passed = node.now() - std::exchange(at_, node.now());
  const auto count = [&](TreeEntry& entry, std::optional<Nanos>& last, Nanos now) {
    entry.interval = last ? passed : Nanos(0);
    entry.usage = last ? now - *last : Nanos(0);
    last = now;
  };
  const auto slices = static_cast<std::size_t>(node.slices());
  for (std::size_t i = 0; i < slices; ++i) {
    const int slice = static_cast<int>(i);
    entries_[i].weight = node.sliceWeight(slice);
    count(entries_[i], last_slice_[i], node.sliceUsage(slice));
  }
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    TreeEntry& entry = entries_[slices + i];
    const Counters counters = node.podCounters(pods_[i]);
    entry.weight = node.podWeight(pods_[i]);
    entry.cap.reset();
    if (counters.limit.quota) entry.cap = rate(*counters.limit.quota, counters.limit.period);
    entry.pod.reset();
    count(entry, last_[static_cast<std::size_t>(pods_[i])], counters.usage);
  }
  return entries_;
}

}  // namespace mbcas::sim
