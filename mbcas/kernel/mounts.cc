#include "mbcas/kernel/mounts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <initializer_list>

#include "mbcas/kernel/file.h"

namespace mbcas::kernel {
namespace {

bool has(const std::string& directory, const char* file) {
  return ::access((directory + "/" + file).c_str(), F_OK) == 0;
}

std::string firstWith(const char* file, const std::string& root,
                      std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::string directory = root + "/" + name;
    if (has(directory, file)) return directory;
  }
  return {};
}

// A v2 hierarchy whose root offers the cpu controller.
bool controlsCpu(const std::string& directory) {
  const Fd file = openFile(AT_FDCWD, (directory + "/cgroup.controllers").c_str());
  if (!file) return false;
  char buffer[1024];
  int error = 0;
  std::string_view controllers = readWhole(file.get(), buffer, error);
  while (!controllers.empty()) {
    const std::size_t end = controllers.find_first_of(" \n");
    if (controllers.substr(0, end) == "cpu") return true;
    controllers.remove_prefix(end == std::string_view::npos ? controllers.size() : end + 1);
  }
  return false;
}

}  // namespace

std::set<std::string> hierarchies(const Mounts& mounts) {
  std::set<std::string> all{mounts.cpu, mounts.cpuacct, mounts.pids, mounts.unified};
  all.erase("");
  return all;
}

std::string describe(const Mounts& mounts) {
  if (mounts.version == Version::kV2) return "cgroup v2";
  return mounts.hybrid() ? "cgroup v1 (hybrid)" : "cgroup v1";
}

Result<Mounts> detectMounts(const std::string& root) {
  if (::access(root.c_str(), R_OK | X_OK) != 0) {
    return failure(fmt::format(
        "{}: cannot be read; is the host's cgroup tree mounted there (--cgroup-root)?", root));
  }
  for (const std::string& v2 : {root, root + "/unified"}) {
    if (controlsCpu(v2)) return Mounts{Version::kV2, v2, v2, v2, v2, v2};
  }
  Mounts mounts{Version::kV1,
                firstWith("cpu.shares", root, {"cpu,cpuacct", "cpuacct,cpu", "cpu"}),
                firstWith("cpuacct.usage", root, {"cpu,cpuacct", "cpuacct,cpu", "cpuacct"}),
                firstWith("cgroup.procs", root, {"pids"}),
                firstWith("cgroup.controllers", root, {"unified"}),
                firstWith("cpuset.cpus", root, {"cpuset"})};
  if (!mounts.cpu.empty() && !mounts.cpuacct.empty()) return mounts;
  if (has(root, "cgroup.controllers")) {
    return failure(fmt::format("{}: a cgroup v2 tree without the cpu controller", root));
  }
  if (has(root, "cpu.shares")) {
    return failure(
        fmt::format("{}: one cgroup v1 hierarchy; give the directory that holds them all", root));
  }
  return failure(
      fmt::format("{}: no cgroup tree with a cpu controller (neither cgroup.controllers nor "
                  "cpu/cpu.shares); is "
                  "the host's mounted there (--cgroup-root)?",
                  root));
}

}  // namespace mbcas::kernel
