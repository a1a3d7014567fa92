// Whether a machine offers what MBCAS reads and writes: for `mbcas run`, and for the agent of a
// node.
#pragma once

#include <string>

#include "mbcas/cli/findings.h"

namespace mbcas::cli {

struct HostFacts {
  std::string kernel;  // release
  std::string cgroup_root;
  std::string cgroups;            // "cgroup v2"; empty: none, and
  std::string cgroups_error;      // why
  bool quota = false;             // cgroups can be given one
  bool pressure = false;          // the kernel has pressure information (PSI)
  bool cgroup_pressure = false;   // and for each cgroup
  bool local_throttling = false;  // cpu.stat.local
  bool root = false;
  std::size_t pods = 0;        // of Kubernetes
  std::string state;           // where `mbcas run` remembers what it changed
  std::size_t unrestored = 0;  // limits and cgroups in there
  bool running = false;        // by an `mbcas run` that is at work
};

// `proc_root` is /proc.
HostFacts examineHost(const std::string& cgroup_root, const std::string& proc_root,
                      const std::string& state);
Findings diagnose(const HostFacts& facts);

}  // namespace mbcas::cli
