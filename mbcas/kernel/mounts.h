// Where the cgroup hierarchies are, below one root directory (/sys/fs/cgroup, or a host's tree
// mounted elsewhere).
#pragma once

#include <set>
#include <string>

#include "mbcas/base/result.h"

namespace mbcas::kernel {

enum class Version { kV1, kV2 };

// Absolute directories of the hierarchies; empty where there is none. A cgroup has the same
// relative path in each. On v2 all of them are one directory.
struct Mounts {
  Version version = Version::kV2;
  std::string cpu;
  std::string cpuacct;
  std::string pids;
  std::string unified;  // where pressure files are; on v1 only a hybrid host has it
  std::string cpuset;
  std::string proc = "/proc";  // not namespaced where it matters: a container sees the machine's

  bool hybrid() const { return version == Version::kV1 && !unified.empty(); }
};

// Each hierarchy once: the places where a cgroup has to be made or removed. The hierarchy of
// cpusets is not among them, because on v1 a cgroup made there accepts no task before it is given
// CPUs.
std::set<std::string> hierarchies(const Mounts& mounts);

// "cgroup v2", "cgroup v1", "cgroup v1 (hybrid)".
std::string describe(const Mounts& mounts);

// Finds the hierarchies by the files that only they have, whatever their directories are called:
// "cpu", "cpu,cpuacct", "cpuacct,cpu". The error says which files were missing and what to do.
Result<Mounts> detectMounts(const std::string& root);

}  // namespace mbcas::kernel
