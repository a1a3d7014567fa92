#include "mbcas/cli/host_checkup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "mbcas/cli/words.h"
#include "mbcas/host/ledger.h"
#include "mbcas/kernel/file.h"
#include "mbcas/kernel/mounts.h"
#include "mbcas/kernel/pod_tree.h"

namespace mbcas::cli {
namespace {

namespace fs = std::filesystem;
using Level = Finding::Level;

std::string contentOf(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Whether the root or a child of it has that file: on v2 the root itself has no limits.
bool anyHas(const std::string& hierarchy, const char* file) {
  std::error_code error;
  if (fs::exists(hierarchy + "/" + file, error)) return true;
  for (const fs::directory_entry& entry : fs::directory_iterator(hierarchy, error)) {
    if (entry.is_directory(error) && fs::exists(entry.path() / file, error)) return true;
  }
  return false;
}

}  // namespace

HostFacts examineHost(const std::string& cgroup_root, const std::string& proc_root,
                      const std::string& state) {
  HostFacts facts{.cgroup_root = cgroup_root, .root = ::geteuid() == 0, .state = state};
  facts.kernel = contentOf(proc_root + "/sys/kernel/osrelease");
  while (facts.kernel.ends_with('\n')) facts.kernel.pop_back();
  facts.pressure = fs::exists(proc_root + "/pressure/cpu");
  if (const Result<kernel::Mounts> mounts = kernel::detectMounts(cgroup_root)) {
    const bool v2 = mounts->version == kernel::Version::kV2;
    facts.cgroups = kernel::describe(*mounts);
    facts.quota = anyHas(mounts->cpu, v2 ? "cpu.max" : "cpu.cfs_quota_us");
    facts.local_throttling = anyHas(mounts->cpu, "cpu.stat.local");
    facts.cgroup_pressure = !mounts->unified.empty() && anyHas(mounts->unified, "cpu.pressure");
    kernel::PodTree tree(*mounts, kernel::DirectoryWatch::Method::kInotify);
    tree.scan();
    facts.pods = tree.pods().size();
  } else {
    facts.cgroups_error = mounts.error().message();
  }
  const host::LedgerContent left = host::parseLedger(contentOf(state));
  facts.unrestored = left.limits.size() + left.made.size();
  if (const kernel::Fd file = kernel::openFile(AT_FDCWD, state.c_str())) {
    facts.running = ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
  }
  return facts;
}

Findings diagnose(const HostFacts& facts) {
  Findings findings;
  const auto say = [&](Level level, std::string area, std::string what, std::string remedy = "") {
    findings.push_back({level, std::move(area), std::move(what), std::move(remedy)});
  };
  if (facts.cgroups.empty()) {
    say(Level::kProblem, "cgroups", facts.cgroups_error,
        "mount the host's cgroup tree, and name it with --cgroup-root");
  } else {
    say(Level::kGood, "cgroups",
        fmt::format("{} at {}, Linux {}", facts.cgroups, facts.cgroup_root, facts.kernel));
    if (facts.quota) {
      say(Level::kGood, "limits", "cgroups can be given a CPU limit");
    } else {
      say(Level::kProblem, "limits", "no cgroup has a file for its CPU limit",
          "a kernel with CONFIG_CFS_BANDWIDTH; on cgroup v2, `echo +cpu` into "
          "cgroup.subtree_control of the root");
    }
    if (facts.local_throttling) {
      say(Level::kGood, "throttling",
          "cpu.stat.local tells exactly how long threads were held back");
    } else {
      say(Level::kNote, "throttling",
          "no cpu.stat.local: throttled time is estimated from cpu.stat of pod and container",
          "newer kernels have it: 6.12 does on cgroup v2, 6.1 does not");
    }
  }
  if (facts.pressure && facts.cgroup_pressure) {
    say(Level::kGood, "pressure", "PSI is available for each cgroup");
  } else if (facts.pressure) {
    say(Level::kNote, "pressure",
        "PSI is available, but not for each cgroup: contention cannot be measured",
        "mount a cgroup v2 hierarchy at unified, or use cgroup v2 throughout");
  } else {
    say(Level::kNote, "pressure", "no pressure information: contention cannot be measured",
        "boot with psi=1, on a kernel with CONFIG_PSI");
  }
  if (facts.root) {
    say(Level::kGood, "root", "limits of any cgroup can be written");
  } else {
    say(Level::kNote, "root",
        "not root: `mbcas run` cannot change limits, and `mbcas demo` runs on a model",
        "run it as root");
  }
  say(Level::kGood, "pods",
      facts.pods == 0
          ? "no Kubernetes pods on this machine"
          : fmt::format("{} of Kubernetes on this machine", countText(facts.pods, "pod")));
  if (facts.running) {
    say(Level::kGood, "host mode", fmt::format("an `mbcas run` is at work ({})", facts.state));
  } else if (facts.unrestored > 0) {
    say(Level::kProblem, "host mode",
        fmt::format("an `mbcas run` ended without putting back {} ({})",
                    countText(facts.unrestored, "change"), facts.state),
        "mbcas restore --host --state " + facts.state);
  } else {
    say(Level::kGood, "host mode", "nothing that an `mbcas run` changed is left");
  }
  return findings;
}

}  // namespace mbcas::cli
