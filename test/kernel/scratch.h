// Cgroups of a test's own on the real kernel, of either version, removed at its end.
//
// Everything lives below one cgroup with so much weight that what else runs on the machine hardly
// matters; the test itself too, so that it is on time. Needs root and a cpu controller:
//
//   Result<std::unique_ptr<Scratch>> scratch = Scratch::make();
//   if (!scratch) GTEST_SKIP() << scratch.error().message();
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kernel/mounts.h"

namespace mbcas::test {

class Scratch {
 public:
  static Result<std::unique_ptr<Scratch>> make();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // The hierarchies as seen from the test's own root.
  const kernel::Mounts& mounts() const { return mounts_; }

  // The same path in every hierarchy, parents included; the directories of it.
  std::vector<std::string> add(const std::string& path);
  std::vector<std::string> directories(const std::string& path) const;
  // With everything below.
  void remove(const std::string& path);

  void setLimit(const std::string& path, std::optional<Millicores> limit);
  // In the kernel's own unit, which is that of cpu.shares. Returns the weight in force: cpu.weight
  // is coarser.
  double setWeight(const std::string& path, double weight);

 private:
  explicit Scratch(kernel::Mounts mounts) : mounts_(std::move(mounts)) {}

  kernel::Mounts mounts_;
};

// /kubepods/burstable/pod<uid> for the n-th pod, and its m-th container.
std::string podPath(int n);
std::string containerPath(int n, int m = 0);

}  // namespace mbcas::test
