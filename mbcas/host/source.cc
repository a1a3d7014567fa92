#include "mbcas/host/source.h"

#include <glob.h>
#include <sys/stat.h>

#include <memory>

#include "mbcas/kernel/cgroup.h"
#include "mbcas/kernel/proc_stat.h"

namespace mbcas::host {
namespace {

// A few dozen stat calls; a new container waits no longer than this for its first reading.
constexpr Nanos kLookInterval = std::chrono::seconds(2);

// Paths below `root` that match, without it.
std::vector<std::string> matches(const std::string& root, const Selection& selection) {
  if (!selection.isPattern()) return {selection.pattern};
  glob_t found{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> free(&found, ::globfree);
  std::vector<std::string> paths;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the locale or the environment.
  if (::glob((root + selection.pattern).c_str(), GLOB_ONLYDIR, nullptr, &found) != 0) return paths;
  for (std::size_t i = 0; i < found.gl_pathc; ++i) {
    paths.emplace_back(std::string_view(found.gl_pathv[i]).substr(root.size()));
  }
  return paths;
}

std::string podName(const Selection& selection, const std::string& path) {
  if (!selection.isPattern()) return selection.name;
  const std::string last = path.substr(path.rfind('/') + 1);
  return selection.name.empty() ? last : selection.name + "/" + last;
}

}  // namespace

HostSource::HostSource(kernel::Mounts mounts, std::vector<Selection> selections)
    : mounts_(std::move(mounts)), selections_(std::move(selections)) {}

Result<std::unique_ptr<kernel::CgroupReader>> HostSource::open(const std::string& path) const {
  Result<kernel::Cgroup> cgroup = kernel::Cgroup::open(mounts_, path);
  if (!cgroup) return failure(std::move(cgroup).error());
  return std::make_unique<kernel::Cgroup>(*std::move(cgroup));
}

Result<void> HostSource::visitChildren(const std::string& path,
                                       const kernel::ChildVisitor& visit) const {
  return kernel::visitChildren(mounts_, path, visit);
}

std::unique_ptr<kernel::MachineReader> HostSource::machine() const {
  return std::make_unique<kernel::ProcStat>(mounts_.proc);
}

bool HostSource::refresh(MonotonicTime now) {
  if (now < next_look_) return false;
  next_look_ = now + kLookInterval;
  std::map<std::string, kernel::PodCgroup> pods;
  found_by_.clear();
  for (std::size_t i = 0; i < selections_.size(); ++i) {
    for (const std::string& path : matches(mounts_.cpu, selections_[i])) {
      struct stat status{};
      if (::stat((mounts_.cpu + path).c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
      if (!found_by_.emplace(path, i).second) continue;  // the first selection wins
      const std::string name = podName(selections_[i], path);
      pods[path] = {.uid = name,
                    .path = path,
                    .inode = status.st_ino,
                    .containers = {{.id = name, .path = path, .inode = status.st_ino}}};
    }
  }
  nested_.clear();
  for (auto pod = pods.begin(); pod != pods.end();) {
    bool inside = false;
    for (std::string above = pod->first; !above.empty() && !inside;) {
      above.resize(above.rfind('/'));
      inside = !above.empty() && pods.contains(above);
    }
    if (inside) {
      nested_.push_back(pod->first);
      pod = pods.erase(pod);  // its outer one stays: sorted by path, that was seen before
    } else {
      ++pod;
    }
  }
  if (pods == pods_) return false;
  pods_ = std::move(pods);
  return true;
}

}  // namespace mbcas::host
