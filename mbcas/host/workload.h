// A process that MBCAS itself starts in a cgroup of its own, and ends with it.
//
//   Result<Workload> web = Workload::start(mounts, ledger, "/mbcas-4711/web", {"./server"});
//
// It ends with this process, however that ends; everything that it started ends with stop().
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/kernel/mounts.h"

namespace mbcas::host {

class Ledger;

// Makes the cgroup and those above it that do not exist, in every hierarchy, with a cpu controller;
// the ledger knows each before it is made.
Result<void> makeCgroup(const kernel::Mounts& mounts, Ledger& ledger, const std::string& path);

class Workload {
 public:
  static Result<Workload> start(const kernel::Mounts& mounts, const std::string& cgroup,
                                const std::vector<std::string>& command);
  // Runs `body` in a copy of this process; only what is safe after fork() may be used in it.
  static Result<Workload> start(const kernel::Mounts& mounts, const std::string& cgroup,
                                const std::function<void()>& body);
  ~Workload();
  Workload(Workload&& other) noexcept;
  Workload& operator=(Workload&&) = delete;

  pid_t pid() const { return pid_; }
  bool running();  // also takes note of its end
  // Ends the process and all others in its cgroup: those it started.
  void stop();

 private:
  Workload(std::vector<std::string> directories, pid_t pid)
      : directories_(std::move(directories)), pid_(pid) {}

  std::vector<std::string> directories_;  // of its cgroup, one per hierarchy
  pid_t pid_ = -1;
};

}  // namespace mbcas::host
