// The cgroups of this host that are to be managed: named one by one, or found by a pattern.
//
// Each is a pod of one container, itself. A name stays with a path; the cgroup behind it may come
// and go.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mbcas/kernel/pod_tree.h"

namespace mbcas::host {

struct Selection {
  std::string name;     // of the pod; with a pattern the last part of the path is appended
  std::string pattern;  // path below the hierarchies, with * and ? within a part: "/system.slice/*"
  bool isPattern() const { return pattern.find_first_of("*?[") != std::string::npos; }
};

class HostSource final : public kernel::PodSource {
 public:
  HostSource(kernel::Mounts mounts, std::vector<Selection> selections);

  Result<std::unique_ptr<kernel::CgroupReader>> open(const std::string& path) const override;
  const std::map<std::string, kernel::PodCgroup>& pods() const override { return pods_; }
  bool refresh(MonotonicTime now) override;
  void distrust() override { next_look_ = {}; }
  Result<void> visitChildren(const std::string& path,
                             const kernel::ChildVisitor& visit) const override;
  std::unique_ptr<kernel::MachineReader> machine() const override;

  // Of the selection that found it, by path.
  std::size_t selectionOf(const std::string& path) const { return found_by_.at(path); }
  // Cgroups that match but lie within another one that does: two limits on one process would be
  // one too many. Each is named once.
  const std::vector<std::string>& nested() const { return nested_; }

 private:
  kernel::Mounts mounts_;
  std::vector<Selection> selections_;
  std::map<std::string, kernel::PodCgroup> pods_;  // by path
  std::map<std::string, std::size_t> found_by_;
  std::vector<std::string> nested_;
  MonotonicTime next_look_{};
};

}  // namespace mbcas::host
