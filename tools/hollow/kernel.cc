#include "tools/hollow/kernel.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace mbcas::hollow {
namespace {

using kernel::ReadError;
using kernel::ReadResult;

constexpr std::int64_t kPeriod = 100'000'000;  // of bandwidth control, ns
constexpr std::uint64_t kThreads = 4;

std::unexpected<ReadError> absent() {
  return std::unexpected(ReadError{ReadError::Kind::kAbsent, {}});
}

Nanos flow(Nanos time, Millicores cpu) {
  return time * cpu.count() / 1000;
}

// The counters of a pod and of its only container: they are alike.
struct Pod {
  std::string container_id;
  std::uint64_t cgroup = 0;  // the container's is the next
  Millicores limit;
  Millicores load;
  MonotonicTime at{};  // until when the counters have been computed
  Nanos usage{0};
  Nanos throttled{0};
  Nanos busy{0};           // time in which there was something to run
  Nanos busy_at_limit{0};  // and the quota ran out

  void advance(MonotonicTime now) {
    const Nanos passed = now - std::exchange(at, now);
    if (load.count() == 0) return;
    usage += flow(passed, std::min(load, limit));
    busy += passed;
    if (load <= limit) return;
    throttled += flow(passed, load - limit);
    busy_at_limit += passed;
  }
  kernel::CpuStat stat() const {
    return {usage, kernel::Throttling{.periods = static_cast<std::uint64_t>(busy.count() / kPeriod),
                                      .throttled_periods = static_cast<std::uint64_t>(
                                          busy_at_limit.count() / kPeriod),
                                      .time = throttled}};
  }
};

}  // namespace

struct HollowKernel::State {
  explicit State(const Clock& system) : clock(system), machine_at(system.monotonic()) {}

  const Clock& clock;
  std::mutex mutex;
  std::map<std::string, Pod> pods;  // by UID; all of this is guarded by mutex
  std::uint64_t structure = 1;      // grows when pods come and go
  std::uint64_t last_cgroup = 0;
  // Of all pods together, those that have ended too.
  Nanos machine{0};
  Millicores machine_rate;
  MonotonicTime machine_at;

  // Changes a pod that runs; what has passed until now is as it was.
  template <class Change>
  void change(const std::string& uid, const Change& change) {
    const std::scoped_lock lock(mutex);
    const auto found = pods.find(uid);
    if (found == pods.end()) return;
    const MonotonicTime now = clock.monotonic();
    found->second.advance(now);
    const Millicores before = std::min(found->second.load, found->second.limit);
    change(found->second);
    flowsDifferently(std::min(found->second.load, found->second.limit) - before, now);
  }
  void flowsDifferently(Millicores by, MonotonicTime now) {
    machine = machineUsage(now);
    machine_at = now;
    machine_rate += by;
  }
  Nanos machineUsage(MonotonicTime now) const {
    return machine + flow(now - machine_at, machine_rate);
  }
};

namespace {

class Cgroup final : public kernel::CgroupReader {
 public:
  // `read` gives the pod's counters as of now, or why there are none.
  Cgroup(std::uint64_t id, std::function<ReadResult<Pod>()> read)
      : id_(id), read_(std::move(read)) {}

  std::uint64_t id() const override { return id_; }
  bool usageIsInStat() const override { return true; }
  ReadResult<Nanos> usage() override {
    return reading<Nanos>([](const Pod& pod) { return pod.usage; });
  }
  ReadResult<kernel::CpuStat> stat() override {
    return reading<kernel::CpuStat>([](const Pod& pod) { return pod.stat(); });
  }
  ReadResult<Nanos> throttledLocal() override {
    return reading<Nanos>([](const Pod& pod) { return pod.throttled; });
  }
  ReadResult<kernel::CpuLimit> limit() override {
    return reading<kernel::CpuLimit>([](const Pod& pod) {
      return kernel::CpuLimit{.quota = flow(Nanos(kPeriod), pod.limit), .period = Nanos(kPeriod)};
    });
  }
  ReadResult<kernel::Pressure> pressure(kernel::Resource) override { return absent(); }
  ReadResult<std::uint64_t> threads() override {
    return reading<std::uint64_t>([](const Pod&) { return kThreads; });
  }
  void logReads(std::vector<int>*) override {}

 private:
  template <class T, class Get>
  ReadResult<T> reading(const Get& get) const {
    const ReadResult<Pod> pod = read_();
    if (!pod) return std::unexpected(pod.error());
    return get(*pod);
  }

  std::uint64_t id_;
  std::function<ReadResult<Pod>()> read_;
};

// The machine's own counter.
class Machine final : public kernel::CgroupReader {
 public:
  explicit Machine(std::function<Nanos()> usage) : usage_(std::move(usage)) {}

  std::uint64_t id() const override { return 0; }
  bool usageIsInStat() const override { return true; }
  ReadResult<Nanos> usage() override { return usage_(); }
  ReadResult<kernel::CpuStat> stat() override { return kernel::CpuStat{usage_(), std::nullopt}; }
  ReadResult<Nanos> throttledLocal() override { return absent(); }
  ReadResult<kernel::CpuLimit> limit() override { return absent(); }
  ReadResult<kernel::Pressure> pressure(kernel::Resource) override { return absent(); }
  ReadResult<std::uint64_t> threads() override { return absent(); }
  void logReads(std::vector<int>*) override {}

 private:
  std::function<Nanos()> usage_;
};

}  // namespace

HollowKernel::HollowKernel(const Clock& clock) : state_(std::make_shared<State>(clock)) {}

void HollowKernel::start(const std::string& uid, const std::string& container_id,
                         Millicores limit) {
  const std::scoped_lock lock(state_->mutex);
  const auto [pod, fresh] = state_->pods.try_emplace(uid);
  if (!fresh) return;
  pod->second.container_id = container_id;
  pod->second.cgroup = state_->last_cgroup + 1;
  pod->second.limit = limit;
  pod->second.at = state_->clock.monotonic();
  state_->last_cgroup += 2;
  ++state_->structure;
}

void HollowKernel::end(const std::string& uid) {
  state_->change(uid, [](Pod& pod) { pod.load = Millicores(0); });
  const std::scoped_lock lock(state_->mutex);
  if (state_->pods.erase(uid) > 0) ++state_->structure;
}

void HollowKernel::setLimit(const std::string& uid, Millicores limit) {
  state_->change(uid, [&](Pod& pod) { pod.limit = limit; });
}

Millicores HollowKernel::limit(const std::string& uid) const {
  const std::scoped_lock lock(state_->mutex);
  const auto pod = state_->pods.find(uid);
  return pod == state_->pods.end() ? Millicores(0) : pod->second.limit;
}

void HollowKernel::load(const std::string& uid, Millicores load) {
  state_->change(uid, [&](Pod& pod) { pod.load = load; });
}

std::unique_ptr<kernel::PodSource> HollowKernel::source() const {
  class Source final : public kernel::PodSource {
   public:
    explicit Source(std::shared_ptr<State> state) : state_(std::move(state)) {}

    Result<std::unique_ptr<kernel::CgroupReader>> open(const std::string& path) const override {
      if (path == "/") {
        return std::make_unique<Machine>([state = state_] {
          const std::scoped_lock lock(state->mutex);
          return state->machineUsage(state->clock.monotonic());
        });
      }
      const auto place = places_.find(path);
      if (place == places_.end()) return failure("no cgroup " + path);
      const auto [uid, id] = place->second;
      // The number of a pod is odd, that of its container the next.
      const std::uint64_t pod_id = id % 2 == 1 ? id : id - 1;
      return std::make_unique<Cgroup>(id, [state = state_, uid, pod_id] -> ReadResult<Pod> {
        const std::scoped_lock lock(state->mutex);
        const auto pod = state->pods.find(uid);
        if (pod == state->pods.end() || pod->second.cgroup != pod_id) {
          return std::unexpected(ReadError{ReadError::Kind::kGone, {}});
        }
        pod->second.advance(state->clock.monotonic());
        return pod->second;
      });
    }

    const std::map<std::string, kernel::PodCgroup>& pods() const override { return pods_; }

    bool refresh(MonotonicTime) override {
      const std::scoped_lock lock(state_->mutex);
      if (seen_ == state_->structure) return false;
      seen_ = state_->structure;
      pods_.clear();
      places_.clear();
      for (const auto& [uid, pod] : state_->pods) {
        kernel::PodCgroup found;
        found.uid = uid;
        found.path = "/kubepods/burstable/pod" + uid;
        found.driver = kernel::Driver::kCgroupfs;
        found.qos = kernel::Qos::kBurstable;
        found.inode = pod.cgroup;
        const std::string container = found.path + "/" + pod.container_id;
        found.containers.push_back(
            {.id = pod.container_id, .path = container, .inode = pod.cgroup + 1});
        places_[found.path] = {uid, pod.cgroup};
        places_[container] = {uid, pod.cgroup + 1};
        pods_[found.path] = std::move(found);
      }
      return true;
    }
    void distrust() override { seen_ = 0; }

   private:
    std::shared_ptr<State> state_;
    std::map<std::string, kernel::PodCgroup> pods_;
    std::map<std::string, std::pair<std::string, std::uint64_t>> places_;  // by path
    std::uint64_t seen_ = 0;
  };
  return std::make_unique<Source>(state_);
}

}  // namespace mbcas::hollow
