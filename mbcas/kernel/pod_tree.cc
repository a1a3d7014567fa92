#include "mbcas/kernel/pod_tree.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "mbcas/kernel/cgroup.h"
#include "mbcas/kernel/proc_stat.h"

namespace mbcas::kernel {
namespace {

using std::chrono::seconds;

constexpr int kMaxDepth = 24;       // a node in a container in a node in a container
constexpr int kLevelsBelowPod = 2;  // the container, and one unknown level above it
constexpr Nanos kWalkInterval = seconds(60);
constexpr Nanos kWalkIntervalWithoutPods = seconds(5);
constexpr Nanos kCountInterval = seconds(15);

std::string_view lastPart(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view parentPath(std::string_view path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

// The cgroups that lead to pods follow from the pods' own paths.
Result<void> PodSource::visitChildren(const std::string& path, const ChildVisitor& visit) const {
  const std::string below = path + "/";
  std::string_view last;
  for (auto pod = pods().lower_bound(below); pod != pods().end() && pod->first.starts_with(below);
       ++pod) {
    const std::string_view rest = std::string_view(pod->first).substr(below.size());
    const std::string_view name = rest.substr(0, rest.find('/'));
    if (name == last) continue;  // pods below the same cgroup follow each other
    last = name;
    visit(name, name == rest ? pod->second.inode : 0);
  }
  return {};
}

PodTree::PodTree(Mounts mounts, DirectoryWatch::Method watch)
    : mounts_(std::move(mounts)), watch_(watch) {}

std::vector<PodTree::Entry> PodTree::list(const std::string& path) const {
  std::vector<Entry> entries;
  const Result<void> listed = visitChildren(path, [&](std::string_view name, std::uint64_t inode) {
    entries.push_back({std::string(name), inode});
  });
  if (!listed) ++unreadable_;
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

void PodTree::scan() {
  unreadable_ = walked_ = 0;
  for (const auto& [path, inode] : parents_) watch_.remove(path);
  parents_.clear();
  seen_.clear();
  for (auto& [path, pod] : pods_) listContainers(pod);
  walk("", {}, "", 0);
  forgetPods("", [&](const std::string& path) { return !seen_.contains(path); });
}

void PodTree::walk(const std::string& path, const Entry& self, std::string_view parent, int depth) {
  if (depth > kMaxDepth) return;
  ++walked_;
  const auto watchParent = [&] {
    if (parents_.emplace(path, self.inode).second) watch_.add(path, mounts_.cpu + path);
  };
  if (isPodParent(self.name, parent)) watchParent();
  for (const Entry& entry : list(path)) {
    if (parsePodName(entry.name)) {
      watchParent();
      seePod(path + "/" + entry.name, entry, self.name);
    } else {
      walk(path + "/" + entry.name, entry, self.name, depth + 1);
    }
  }
}

void PodTree::seePod(const std::string& path, const Entry& entry, std::string_view parent) {
  seen_.insert(path);
  const auto known = pods_.find(path);
  if (known != pods_.end() && known->second.inode == entry.inode) return;
  std::optional<PodName> parsed = parsePodName(entry.name);
  PodCgroup pod{std::move(parsed->uid),    path,        parsed->driver,
                qosOf(entry.name, parent), entry.inode, {}};
  watch_.add(path, mounts_.cpu + path);
  listContainers(pod);
  pods_.insert_or_assign(path, std::move(pod));
  dirty_ = true;
}

template <class Lost>
void PodTree::forgetPods(const std::string& below, Lost lost) {
  for (auto pod = pods_.lower_bound(below + "/");
       pod != pods_.end() && pod->first.starts_with(below + "/");) {
    if (!lost(pod->first)) {
      ++pod;
      continue;
    }
    watch_.remove(pod->first);
    pod = pods_.erase(pod);
    dirty_ = true;
  }
}

void PodTree::listContainers(PodCgroup& pod) {
  std::vector<ContainerCgroup> found;
  collectContainers(pod.path, kLevelsBelowPod, found);
  std::ranges::sort(found, {}, &ContainerCgroup::id);
  if (found == pod.containers) return;
  pod.containers = std::move(found);
  dirty_ = true;
}

void PodTree::collectContainers(const std::string& path, int levels,
                                std::vector<ContainerCgroup>& found) const {
  for (const Entry& entry : list(path)) {
    std::string child = path + "/" + entry.name;
    if (std::optional<ContainerName> container = parseContainerName(entry.name)) {
      found.push_back(
          {std::move(container->id), std::move(child), container->runtime, entry.inode});
    } else if (levels > 1) {
      collectContainers(child, levels - 1, found);
    }
  }
}

void PodTree::listParent(const std::string& path) {
  const std::string_view name = lastPart(path);
  seen_.clear();
  for (const Entry& entry : list(path)) {
    const std::string child = path + "/" + entry.name;
    if (parsePodName(entry.name)) {
      seePod(child, entry, name);
      continue;
    }
    const auto known = parents_.find(child);
    if (known != parents_.end() && known->second == entry.inode) continue;
    if (known != parents_.end()) parents_.erase(known);  // made again under the same name
    walk(child, entry, name, 0);
  }
  forgetPods(path, [&](const std::string& pod) {
    return parentPath(pod) == path && !seen_.contains(pod);
  });
}

bool PodTree::refresh(MonotonicTime now) {
  const bool count = now >= next_count_;
  if (count) next_count_ = now + kCountInterval;
  const bool complete = watch_.poll(changed_, count);
  if (!complete || now >= next_walk_) {
    scan();
    next_walk_ = now + (pods_.empty() ? kWalkIntervalWithoutPods : kWalkInterval);
  } else {
    for (const std::string& path : changed_) {
      if (parents_.contains(path)) {
        listParent(path);
      } else if (const auto pod = pods_.find(path); pod != pods_.end()) {
        listContainers(pod->second);
      }
    }
  }
  return std::exchange(dirty_, false);
}

Result<std::unique_ptr<CgroupReader>> PodTree::open(const std::string& path) const {
  Result<Cgroup> cgroup = Cgroup::open(mounts_, path);
  if (!cgroup) return failure(std::move(cgroup).error());
  return std::make_unique<Cgroup>(*std::move(cgroup));
}

Result<void> PodTree::visitChildren(const std::string& path, const ChildVisitor& visit) const {
  return kernel::visitChildren(mounts_, path, visit);
}

std::unique_ptr<MachineReader> PodTree::machine() const {
  return std::make_unique<ProcStat>(mounts_.proc);
}

Result<void> PodTree::readable() const {
  for (const std::string& directory : {mounts_.cpu, mounts_.cpuacct}) {
    if (::access(directory.c_str(), R_OK | X_OK) == 0) continue;
    return failure(fmt::format("{}: {}", directory, std::generic_category().message(errno)));
  }
  return {};
}

std::vector<std::string> PodTree::layouts() const {
  std::map<std::pair<Driver, std::string_view>, std::set<std::string_view>> runtimes;
  for (const auto& [path, pod] : pods_) {
    // The base is what stands in front of the first directory that makes pods.
    std::string_view base = path;
    for (std::string_view above = parentPath(path); !above.empty(); above = parentPath(above)) {
      if (isPodParent(lastPart(above), lastPart(parentPath(above)))) base = parentPath(above);
    }
    if (base == path) base = parentPath(path);
    std::set<std::string_view>& here = runtimes[{pod.driver, base}];
    for (const ContainerCgroup& container : pod.containers) {
      const bool unknown = container.runtime == Runtime::kUnknown;
      here.insert(unknown ? "containerd or docker" : name(container.runtime));
    }
  }
  std::vector<std::string> layouts;
  for (auto& [where, found] : runtimes) {
    if (found.empty()) found.insert("no containers yet");
    for (const std::string_view runtime : found) {
      layouts.push_back(fmt::format("{}, {} driver, {}, below {}", describe(mounts_),
                                    name(where.first), runtime,
                                    where.second.empty() ? "/" : where.second));
    }
  }
  std::ranges::sort(layouts);
  return layouts;
}

}  // namespace mbcas::kernel
