// What the two forms of `mbcas inspect` share.
#pragma once

#include <functional>
#include <string>

#include "mbcas/base/result.h"

namespace mbcas::app {

struct InspectFlags {
  std::string root = "/sys/fs/cgroup";
  std::string output;
  double interval = 1;  // seconds
  bool watch = false;
};

// A descriptor for each file of each cgroup: more than the usual 1024 on a full node.
void raiseDescriptorLimit();

// Waits for one interval and shows; again and again, until interrupted, with --watch.
void showEveryInterval(const InspectFlags& flags, const std::function<void()>& show);

// mbcas inspect machine: every consumer of CPU on this host.
Result<void> inspectMachine(const InspectFlags& flags);

}  // namespace mbcas::app
