#include "test/kernel/scratch.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

namespace mbcas::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRoot = "/sys/fs/cgroup";

bool writeFile(const std::string& path, const std::string& content) {
  std::ofstream file(path);
  return static_cast<bool>(file << content << std::flush);
}

// Removes a cgroup and those below; a kernel is a moment late to let go of an ended process.
void removeTree(const fs::path& directory) {
  std::error_code error;
  for (const auto& child : fs::directory_iterator(directory, error)) {
    if (child.is_directory()) removeTree(child.path());
  }
  for (int attempt = 0; attempt < 200 && ::rmdir(directory.c_str()) != 0 && errno == EBUSY;
       ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// What a run that was killed left behind: its process is gone.
void removeLeftovers(const std::string& hierarchy) {
  std::error_code error;
  for (const auto& child : fs::directory_iterator(hierarchy, error)) {
    const std::string name = child.path().filename();
    if (!name.starts_with("mbcas-test-")) continue;
    const int pid = std::atoi(name.c_str() + 11);
    if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH) removeTree(child.path());
  }
}

}  // namespace

Result<std::unique_ptr<Scratch>> Scratch::make() {
  if (::geteuid() != 0) return failure("needs root to make cgroups");
  Result<kernel::Mounts> host = kernel::detectMounts(kRoot);
  if (!host) return failure(std::move(host).error().within("needs a cgroup cpu controller"));
  kernel::Mounts mounts = *host;
  const std::string own = fmt::format("/mbcas-test-{}", ::getpid());
  for (const std::string& hierarchy : kernel::hierarchies(*host)) {
    removeLeftovers(hierarchy);
    const bool v2 = host->version == kernel::Version::kV2;
    if (v2) {
      writeFile(hierarchy + "/cgroup.subtree_control", "+cpu");
      writeFile(hierarchy + "/cgroup.subtree_control", "+pids");
    }
    if (::mkdir((hierarchy + own).c_str(), 0755) != 0) {
      return failure(fmt::format("cannot make {}{}: errno {}", hierarchy, own, errno));
    }
  }
  for (std::string* hierarchy :
       {&mounts.cpu, &mounts.cpuacct, &mounts.pids, &mounts.unified, &mounts.cpuset}) {
    if (!hierarchy->empty()) *hierarchy += own;
  }
  std::unique_ptr<Scratch> scratch(new Scratch(mounts));
  if (mounts.version == kernel::Version::kV1) {
    writeFile(mounts.cpu + "/cpu.shares", "262144");
  } else {
    writeFile(mounts.cpu + "/cpu.weight", "10000");
    writeFile(mounts.cpu + "/cgroup.subtree_control", "+cpu");
    writeFile(mounts.cpu + "/cgroup.subtree_control", "+pids");
  }
  for (const std::string& directory : scratch->add("/self")) {
    writeFile(directory + "/cgroup.procs", std::to_string(::getpid()));
  }
  return scratch;
}

Scratch::~Scratch() {
  for (const std::string& hierarchy : kernel::hierarchies(mounts_)) {
    writeFile(fs::path(hierarchy).parent_path() / "cgroup.procs", std::to_string(::getpid()));
    removeTree(hierarchy);
  }
}

std::vector<std::string> Scratch::directories(const std::string& path) const {
  std::vector<std::string> all;
  for (const std::string& hierarchy : kernel::hierarchies(mounts_)) all.push_back(hierarchy + path);
  return all;
}

std::vector<std::string> Scratch::add(const std::string& path) {
  for (const std::string& hierarchy : kernel::hierarchies(mounts_)) {
    std::string directory = hierarchy;
    for (const auto& part : fs::path(path).relative_path()) {
      if (mounts_.version == kernel::Version::kV2) {
        writeFile(directory + "/cgroup.subtree_control", "+cpu");
        writeFile(directory + "/cgroup.subtree_control", "+pids");
      }
      directory += "/" + part.string();
      ::mkdir(directory.c_str(), 0755);
    }
  }
  return directories(path);
}

void Scratch::remove(const std::string& path) {
  for (const std::string& directory : directories(path)) removeTree(directory);
}

void Scratch::setLimit(const std::string& path, std::optional<Millicores> limit) {
  constexpr std::int64_t kPeriod = 100'000;
  const std::string directory = mounts_.cpu + path;
  const std::int64_t quota = limit ? limit->count() * kPeriod / 1000 : -1;
  if (mounts_.version == kernel::Version::kV1) {
    writeFile(directory + "/cpu.cfs_quota_us", std::to_string(quota));
  } else {
    writeFile(directory + "/cpu.max",
              fmt::format("{} {}", limit ? std::to_string(quota) : "max", kPeriod));
  }
}

double Scratch::setWeight(const std::string& path, double weight) {
  const bool v1 = mounts_.version == kernel::Version::kV1;
  const long value = v1 ? std::clamp(std::lround(weight), 2L, 262'144L)
                        : std::clamp(std::lround(weight * 100 / 1024), 1L, 10'000L);
  writeFile(mounts_.cpu + path + (v1 ? "/cpu.shares" : "/cpu.weight"), std::to_string(value));
  return v1 ? static_cast<double>(value) : std::round(static_cast<double>(value) * 1024 / 100);
}

std::string podPath(int n) {
  return fmt::format("/kubepods/burstable/pod00000000-0000-4000-8000-{:012x}", n);
}

std::string containerPath(int n, int m) {
  return fmt::format("{}/{:060x}{:04x}", podPath(n), n, m);
}

}  // namespace mbcas::test
