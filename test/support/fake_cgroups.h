// The cgroups of one node's pods as files (cgroup v2, cgroupfs driver), moved by a thread of its
// own as the kernel would: what a pod wants to use beyond its limit is throttled.
//
//   FakeCgroups cgroups;
//   cgroups.add(uid, {"main"}, 200_m);
//   cgroups.load(uid, 1000_m);             // all of it in the first container
//   ... an agent reads cgroups.root() ...
//
// Containers have the ids that the FakeKubelet reports. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/units.h"

namespace mbcas::test {

class FakeCgroups {
 public:
  FakeCgroups();
  ~FakeCgroups();

  const std::string& root() const;
  // One container after the other has the limit.
  void add(std::string_view uid, const std::vector<std::string>& containers, Millicores limit);
  void remove(std::string_view uid);
  void load(std::string_view uid, Millicores cpu);
  void limit(std::string_view uid, Millicores limit);
  // The files of pods, not of the root, hold nothing that makes sense until they may be read again.
  void readable(bool readable);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::test
