#include "test/support/fake_cgroups.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "mbcas/kernel/fake_tree.h"
#include "test/support/fake_kubelet.h"

namespace mbcas::test {
namespace {

using std::chrono::microseconds;

constexpr auto kStep = std::chrono::milliseconds(50);

struct Counters {
  microseconds usage{0};
  microseconds throttled{0};
  std::int64_t periods = 0;
  std::int64_t throttled_periods = 0;
};

struct FakePod {
  std::string path;
  std::vector<std::string> containers;  // paths
  Millicores limit;                     // of each container
  Millicores load;
  Counters counters;  // of the first container, and so of the pod
};

}  // namespace

class FakeCgroups::Impl {
 public:
  Impl() {
    tree_.write("cgroup.controllers", "cpu pids\n");
    put("", {});
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  const std::string& root() const { return tree_.root(); }

  void add(std::string_view uid, const std::vector<std::string>& containers, Millicores limit) {
    const std::scoped_lock lock(mutex_);
    FakePod pod{.path = fmt::format("kubepods/burstable/pod{}", uid), .limit = limit};
    for (const std::string& name : containers) {
      pod.containers.push_back(pod.path + "/" + fakeContainerId(uid, name));
    }
    // Containers first: a pod is found when its directory is, and then it has to be whole.
    for (const std::string& path : pod.containers) make(path, limit);
    make(pod.path, Millicores(limit.count() * static_cast<std::int64_t>(containers.size())));
    pods_.insert_or_assign(std::string(uid), std::move(pod));
  }
  void remove(std::string_view uid) {
    const std::scoped_lock lock(mutex_);
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return;
    tree_.remove(found->second.path);
    pods_.erase(found);
  }
  void load(std::string_view uid, Millicores cpu) {
    const std::scoped_lock lock(mutex_);
    pods_.find(uid)->second.load = cpu;
  }
  void limit(std::string_view uid, Millicores limit) {
    const std::scoped_lock lock(mutex_);
    FakePod& pod = pods_.find(uid)->second;
    pod.limit = limit;
    for (const std::string& path : pod.containers) putLimit(path, limit);
    putLimit(pod.path,
             Millicores(limit.count() * static_cast<std::int64_t>(pod.containers.size())));
  }
  void readable(bool readable) {
    const std::scoped_lock lock(mutex_);
    readable_ = readable;
    for (const auto& [uid, pod] : pods_) {
      for (const std::string& path : pod.containers) put(path, pod.counters);
      put(pod.path, pod.counters);
    }
  }

 private:
  // In one write of always the same length, over what was there: who reads meanwhile sees the old
  // or the new.
  void overwrite(const std::string& path, const std::string& text) {
    const int fd =
        ::open((tree_.root() + "/" + path).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return;
    [[maybe_unused]] const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
    ::close(fd);
  }
  void put(const std::string& path, const Counters& counters) {
    const std::string directory = path.empty() ? path : path + "/";
    if (!readable_ && !path.empty()) return overwrite(directory + "cpu.stat", "usage_usec ???");
    overwrite(directory + "cpu.stat",
              fmt::format("usage_usec {:015}\nuser_usec {:015}\nsystem_usec 0\nnr_periods {:012}\n"
                          "nr_throttled {:012}\nthrottled_usec {:015}\n",
                          counters.usage.count(), counters.usage.count(), counters.periods,
                          counters.throttled_periods, counters.throttled.count()));
    overwrite(directory + "cpu.stat.local",
              fmt::format("throttled_usec {:015}\n", counters.throttled.count()));
  }
  void putLimit(const std::string& path, Millicores limit) {
    overwrite(path + "/cpu.max", fmt::format("{:09} 100000\n", limit.count() * 100));
  }
  void make(const std::string& path, Millicores limit) {
    tree_.makeCgroup(path);
    put(path, {});
    putLimit(path, limit);
    overwrite(path + "/pids.current", "4\n");
  }

  void run(const std::stop_token& stop) {
    auto last = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    Counters machine;
    while (!stop.stop_requested()) {
      woken_.wait_for(lock, stop, kStep, [] { return false; });
      const auto now = std::chrono::steady_clock::now();
      const auto passed = std::chrono::duration_cast<microseconds>(now - last);
      last = now;
      for (auto& [uid, pod] : pods_) {
        move(pod, passed);
        machine.usage += share(passed, std::min(pod.load, pod.limit));
      }
      put("", machine);
    }
  }

  static microseconds share(microseconds time, Millicores cpu) { return time * cpu.count() / 1000; }

  void move(FakePod& pod, microseconds passed) {
    if (pod.load.count() == 0) return;
    Counters& counters = pod.counters;
    const std::int64_t periods = (counters.periods * 100'000 + passed.count()) / 100'000;
    counters.usage += share(passed, std::min(pod.load, pod.limit));
    counters.periods = std::max(counters.periods + 1, periods);
    if (pod.load > pod.limit) {
      counters.throttled += share(passed, pod.load - pod.limit);
      counters.throttled_periods += 1;
    }
    put(pod.containers.front(), counters);
    put(pod.path, counters);
  }

  kernel::FakeTree tree_;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::map<std::string, FakePod, std::less<>> pods_;  // guarded by mutex_
  bool readable_ = true;                              // guarded by mutex_
  std::jthread thread_;
};

FakeCgroups::FakeCgroups() : impl_(std::make_unique<Impl>()) {}
FakeCgroups::~FakeCgroups() = default;

const std::string& FakeCgroups::root() const {
  return impl_->root();
}
void FakeCgroups::add(std::string_view uid, const std::vector<std::string>& containers,
                      Millicores limit) {
  impl_->add(uid, containers, limit);
}
void FakeCgroups::remove(std::string_view uid) {
  impl_->remove(uid);
}
void FakeCgroups::load(std::string_view uid, Millicores cpu) {
  impl_->load(uid, cpu);
}
void FakeCgroups::limit(std::string_view uid, Millicores limit) {
  impl_->limit(uid, limit);
}
void FakeCgroups::readable(bool readable) {
  impl_->readable(readable);
}

}  // namespace mbcas::test
