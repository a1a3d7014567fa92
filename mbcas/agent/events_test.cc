// Anything may happen, in any order: pods come, go and restart, are throttled, cannot be read;
// bounds, settings and the node change; limits come late or never; the API is out of reach; clocks
// jump; the agent stalls and restarts; others write what it wrote. At every step the invariants
// hold, and after a quiet time everything is as it should be.
//
// MBCAS_SOAK=1 tries more. A failure names its seed; MBCAS_SEED=N repeats that run alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>

#include "mbcas/agent/fixture_test.h"
#include "test/support/trials.h"

namespace mbcas::agent {
namespace {

// The model's files, some of which cannot be read for a while.
class FaultySource final : public kernel::PodSource {
 public:
  using Unreadable = std::map<std::string, MonotonicTime>;  // pods, and since when

  FaultySource(const sim::Node& node, const Unreadable& unreadable)
      : files_(node, {}), unreadable_(unreadable) {}

  Result<std::unique_ptr<kernel::CgroupReader>> open(const std::string& path) const override {
    auto opened = files_.open(path);
    if (!opened) return opened;
    return std::make_unique<Reader>(*std::move(opened), uidOf(path), unreadable_);
  }
  const std::map<std::string, kernel::PodCgroup>& pods() const override { return files_.pods(); }
  bool refresh(MonotonicTime now) override { return files_.refresh(now); }
  void distrust() override { files_.distrust(); }

 private:
  class Reader final : public kernel::CgroupReader {
   public:
    Reader(std::unique_ptr<kernel::CgroupReader> real, std::string uid,
           const Unreadable& unreadable)
        : real_(std::move(real)), uid_(std::move(uid)), unreadable_(unreadable) {}
    std::uint64_t id() const override { return real_->id(); }
    bool usageIsInStat() const override { return real_->usageIsInStat(); }
    kernel::ReadResult<Nanos> usage() override {
      return tried([&] { return real_->usage(); });
    }
    kernel::ReadResult<kernel::CpuStat> stat() override {
      return tried([&] { return real_->stat(); });
    }
    kernel::ReadResult<Nanos> throttledLocal() override {
      return tried([&] { return real_->throttledLocal(); });
    }
    kernel::ReadResult<kernel::CpuLimit> limit() override {
      return tried([&] { return real_->limit(); });
    }
    kernel::ReadResult<kernel::Pressure> pressure(kernel::Resource resource) override {
      return tried([&] { return real_->pressure(resource); });
    }
    kernel::ReadResult<std::uint64_t> threads() override {
      return tried([&] { return real_->threads(); });
    }
    void logReads(std::vector<int>*) override {}

   private:
    template <class Read>
    std::invoke_result_t<Read> tried(Read read) const {
      if (!unreadable_.contains(uid_)) return read();
      return std::unexpected(kernel::ReadError{kernel::ReadError::Kind::kFailed, "a fault"});
    }
    std::unique_ptr<kernel::CgroupReader> real_;
    std::string uid_;
    const Unreadable& unreadable_;
  };

  // "/kubepods/burstable/pod<uid>/<container>"; the root is "".
  static std::string uidOf(const std::string& path) {
    const std::size_t pod = path.find("/pod");
    if (pod == std::string::npos) return "";
    const std::size_t second = path.find("/pod", pod + 1);
    const std::size_t begin = (second == std::string::npos ? pod : second) + 4;
    return path.substr(begin, path.find('/', begin) - begin);
  }

  sim::ModelFiles files_;
  const Unreadable& unreadable_;
};

struct Totals {
  int pods = 0;
  int changes = 0;  // of limits in force, in the last quiet minutes
  int most = 0;     // of one pod
};

class Course {
 public:
  explicit Course(std::uint64_t seed)
      : random_(seed), cluster_(static_cast<unsigned>(1 + random_.next() % 8), seed) {
    restartAgent();
    const int pods = number(1, 6);
    for (int i = 0; i < pods; ++i) addPod();
  }

  void eventfulTime(Nanos duration) {
    const MonotonicTime end = now() + duration;
    while (now() < end && !::testing::Test::HasFailure()) {
      if (chance(0.25)) event();
      step();
    }
  }

  // Everything works again, and nothing happens any more.
  void quietTime(Nanos duration) {
    unreadable_.clear();
    cluster_.reachable = cluster_.controls = cluster_.actuates = true;
    cluster_.settings = usual_;
    nodeAs("");
    for (auto& [uid, pod] : cluster_.pods) {
      pod.ready = true;
      pod.phase = "Running";
      pod.actuated = now();
      cluster_.setInKernel(pod);
      cluster_.touch(pod);
    }
    const MonotonicTime end = now() + duration;
    while (now() < end && !::testing::Test::HasFailure()) step();
  }

  void checkSettled() {
    EXPECT_EQ(agent_->outbox.waiting(), 0u);
    for (const auto& [uid, pod] : cluster_.pods) {
      ASSERT_TRUE(pod.spec && pod.judged) << uid;
      const PodView& view = agent_->pod(uid);
      if (!pod.managed) {
        EXPECT_EQ(view.left_alone, "left out") << uid;
        continue;
      }
      EXPECT_EQ(view.left_alone, "") << uid;
      EXPECT_EQ(pod.spec->desired, view.decision.desired) << uid;
      // A change may be on its way just now.
      if (!pod.actuation.last_change || now() - *pod.actuation.last_change > 15s) {
        EXPECT_EQ(view.limit, pod.inForce()) << uid;
      }
      EXPECT_TRUE(fresh(view)) << uid;
      EXPECT_GE(pod.inForce(), std::max(pod.request(), 10_m)) << uid;
    }
  }

  void countFrom() {
    for (auto& [uid, pod] : cluster_.pods) pod.changes = 0;
  }
  void addTo(Totals& totals) const {
    for (const auto& [uid, pod] : cluster_.pods) {
      ++totals.pods;
      totals.changes += pod.changes;
      totals.most = std::max(totals.most, pod.changes);
    }
  }

 private:
  MonotonicTime now() const { return cluster_.clock.monotonic(); }
  bool chance(double share) { return random_.uniform() < share; }
  int number(int least, int most) {
    return least + static_cast<int>(random_.next() % static_cast<std::uint64_t>(most - least + 1));
  }
  Nanos duration(double least, double most) {
    return Nanos(static_cast<std::int64_t>(random_.uniform(least, most) * 1e9));
  }
  ModelPod* anyPod() {
    if (cluster_.pods.empty()) return nullptr;
    auto pod = cluster_.pods.begin();
    std::advance(pod, number(0, static_cast<int>(cluster_.pods.size()) - 1));
    return &pod->second;
  }

  void restartAgent() {
    agent_ = std::make_unique<ModelAgent>(
        cluster_, chance(0.8), std::make_unique<FaultySource>(cluster_.kernel, unreadable_));
    agent_->on_wish = [this](const Wish& wish) { check(wish); };
    agent_->on_attempt = [this] {
      attempts_.push_back(now());
      while (attempts_.front() <= now() - 1s) attempts_.pop_front();
      EXPECT_LE(attempts_.size(), 61u) << "a write storm";
    };
    attempts_.clear();
    wishes_.clear();
    knows_nothing_ = !cluster_.reachable;  // it waits for its watches
  }

  void step() {
    if (knows_nothing_ && !cluster_.reachable) {
      cluster_.advanceTo(now() + 1s);
      agent_->next_tick = now();
      return;
    }
    knows_nothing_ = false;
    if (agent_->step().sampled) checkAll();
  }

  sim::WorkloadSpec someWork() {
    using Kind = sim::WorkloadSpec::Kind;
    sim::WorkloadSpec work;
    work.kind = std::array{Kind::kIdle, Kind::kSpin, Kind::kPeriodic, Kind::kBursty,
                           Kind::kService}[static_cast<std::size_t>(number(0, 4))];
    work.threads = number(1, 4);
    work.period = duration(0.05, 3);
    work.on = Nanos(static_cast<std::int64_t>(static_cast<double>(work.period.count()) *
                                              random_.uniform(0.01, 0.9)));
    work.rate = random_.uniform(1, 40);
    work.work = duration(0.0005, 0.02);
    work.phase = duration(0, 2);
    if (work.kind == Kind::kSpin) work.on = work.period = Nanos(0);
    if (chance(0.5)) {
      work.profile.shape = sim::Profile::Shape::kSteps;
      Nanos at = kernelTime();
      for (int i = 0; i < 4; ++i) {
        work.profile.points.push_back({at, random_.uniform(0, 1.5)});
        at += duration(5, 60);
      }
    }
    return work;
  }
  Nanos kernelTime() const { return cluster_.kernel.now(); }

  void addPod() {
    ModelPod pod{.uid = fmt::format("p{}", ++pods_made_)};
    const int containers = chance(0.3) ? 2 : 1;
    for (int c = 0; c < containers; ++c) {
      const Millicores request(number(1, 40) * 10);
      pod.containers.push_back({.name = fmt::format("c{}", c),
                                .request = request,
                                .limit = request + Millicores(number(0, 800)),
                                .work = someWork()});
    }
    pod.priority = chance(0.2) ? number(-2000, 5000) : 0;
    pod.managed = !chance(0.1);
    if (chance(0.2)) pod.ceiling = Millicores(number(10, 300) * 10);
    if (chance(0.2)) pod.floor = Millicores(number(1, 60) * 10);
    if (chance(0.2)) pod.start = Millicores(number(10, 150) * 10);
    cluster_.add(std::move(pod));
  }

  void nodeAs(const std::string& conditions) {
    cluster_.setNode(fmt::format(R"("capacity":{{"cpu":"{}"}},"conditions":[{}])",
                                 cluster_.kernel.cpus(), conditions));
  }

  void event() {
    ModelPod* const pod = anyPod();
    switch (number(0, 21)) {
      case 0:
      case 1:
        if (cluster_.pods.size() < 10) addPod();
        break;
      case 2:
        if (pod != nullptr) cluster_.remove(pod->uid);
        break;
      case 3:
        if (pod != nullptr) {
          cluster_.kernel.restartContainer(pod->index,
                                           number(0, static_cast<int>(pod->containers.size()) - 1));
        }
        break;
      case 4:
        if (pod != nullptr) {
          pod->ceiling.reset();
          pod->floor.reset();
          if (chance(0.5)) pod->ceiling = Millicores(number(10, 300) * 10);
          if (chance(0.5)) pod->floor = Millicores(number(1, 60) * 10);
          pod->weight = random_.uniform(0.5, 2);
          cluster_.touch(*pod);
        }
        break;
      case 5:
        if (pod != nullptr) {
          pod->managed = !pod->managed;
          cluster_.touch(*pod);
        }
        break;
      case 6:
      case 7:
        cluster_.reachable = chance(0.6);
        break;
      case 8:
        cluster_.controls = chance(0.6);
        break;
      case 9:
        cluster_.actuates = chance(0.6);
        cluster_.actuation = duration(0.05, 5);
        break;
      case 10:
      case 11:
        if (pod != nullptr) unreadable_.emplace(pod->uid, now());
        break;
      case 12:
      case 13:
        if (!unreadable_.empty()) unreadable_.erase(unreadable_.begin());
        break;
      case 14:
        cluster_.clock.setWall(cluster_.clock.wall() + duration(-7200, 7200));
        break;
      case 15:  // the agent stalls
        cluster_.advanceTo(now() + duration(0.5, 40));
        break;
      case 16:
        restartAgent();
        break;
      case 17:
        if (pod != nullptr) {
          pod->ready = !pod->ready;
          cluster_.touch(*pod);
        }
        break;
      case 18:
        nodeAs(chance(0.5) ? "" : R"({"type":"MemoryPressure","status":"True"})");
        if (chance(0.2)) cluster_.node.reset();
        break;
      case 19: {
        cluster_.settings = usual_;
        cluster_.settings.paused = chance(0.2);
        cluster_.settings.law.strict_capacity = chance(0.1);
        cluster_.settings.law.reserve = chance(0.5) ? 0.1 : 0.3;
        cluster_.settings.sample_interval = chance(0.8) ? Nanos(1s) : Nanos(2s);
        if (chance(0.1)) cluster_.settings.estimator = "classic";
        if (chance(0.1)) cluster_.settings.law.reclaim = control::Reclaim::kAlways;
        cluster_.changed = true;
        break;
      }
      case 20:  // somebody writes to the cgroup
        if (pod != nullptr) {
          std::vector<std::optional<Millicores>> limits;
          for (std::size_t c = 0; c < pod->containers.size(); ++c) {
            limits.emplace_back(Millicores(number(1, 100) * 10));
          }
          cluster_.kernel.setLimit(pod->index, limits, std::nullopt);
        }
        break;
      default:  // or deletes the PodAllocation, or writes over it
        if (pod == nullptr || !pod->spec) break;
        if (chance(0.5)) {
          pod->spec.reset();
          pod->judged = false;
        } else {
          pod->spec->desired = 0_m;
          for (auto& container : pod->spec->containers) {
            container.desired = Millicores(number(1, 100) * 10);
            pod->spec->desired += container.desired;
          }
        }
        cluster_.touch(*pod);
    }
  }

  // Whether what the agent knows of the pod may be decided by.
  bool fresh(const PodView& view) const {
    return std::ranges::all_of(view.containers, [&](const ContainerView& container) {
      return container.need.samples > 0 && container.need.good_until >= now() &&
             (container.need.ready || view.decision.throttled);
    });
  }

  void check(const Wish& wish) {
    ASSERT_TRUE(agent_->world.node);
    ASSERT_FALSE(agent_->world.settings.paused);
    const auto known = std::ranges::find_if(
        agent_->world.pods, [&](const auto& pod) { return pod->meta.uid == wish.uid; });
    ASSERT_NE(known, agent_->world.pods.end()) << "nobody knows " << wish.uid;
    // Three samples, and what a stall of the agent adds.
    if (const auto fault = unreadable_.find(wish.uid); fault != unreadable_.end()) {
      EXPECT_LE(now() - fault->second, Nanos(7s)) << "a wish without data for " << wish.uid;
    }
    EXPECT_GE(wish.urgency, 0);
    std::deque<MonotonicTime>& wishes = wishes_[wish.uid];
    wishes.push_back(now());
    while (wishes.front() <= now() - 10s) wishes.pop_front();
    EXPECT_LE(wishes.size(), 16u) << wish.uid << " changes its mind too often";
    const PodView& view = agent_->pod(wish.uid);
    EXPECT_EQ(view.decision.desired, wish.spec.desired);
  }

  void checkAll() {
    const View& view = agent_->pipeline.view();
    const control::Settings& law = agent_->world.settings.law;
    for (const PodView& pod : view.pods) {
      if (!pod.left_alone.empty() || !pod.bounds || !fresh(pod)) continue;
      Millicores request;
      for (const ContainerView& container : pod.containers) request += container.request;
      const Millicores desired = pod.decision.desired;
      SCOPED_TRACE(fmt::format("{} at {}: desired {}, answer {}, limit {}, declared {}: {}",
                               pod.uid, now().time_since_epoch().count() / 1'000'000,
                               desired.count(), pod.decision.answer.count(), pod.limit.count(),
                               pod.declared.count(), control::sentence(pod.decision.reason)));
      EXPECT_GE(desired, std::max(request, 10_m)) << "below its request";
      EXPECT_LE(desired, std::max(*pod.bounds->ceiling, control::roundUp(request)));
      if (!law.strict_capacity) {
        EXPECT_GE(desired, std::min(*pod.bounds->floor, pod.declared))
            << "below its floor, as far as it counts";
      }
      if (!law.strict_capacity && law.reclaim == control::Reclaim::kScarce &&
          !pod.decision.constrained) {
        EXPECT_GE(desired, std::min(pod.declared, *pod.bounds->ceiling)) << "harmed";
      }
      Millicores sum;
      for (const ContainerView& container : pod.containers) sum += container.desired;
      EXPECT_EQ(sum, desired);
    }
  }

  sim::Random random_;
  ModelCluster cluster_;
  const policy::Settings usual_ = cluster_.settings;
  FaultySource::Unreadable unreadable_;
  std::unique_ptr<ModelAgent> agent_;
  bool knows_nothing_ = false;
  int pods_made_ = 0;
  std::map<std::string, std::deque<MonotonicTime>> wishes_;
  std::deque<MonotonicTime> attempts_;
};

TEST(Events, InvariantsHoldWhateverHappens) {
  const char* const one = std::getenv("MBCAS_SEED");
  const std::uint64_t runs = one != nullptr ? 1 : test::trials<std::uint64_t>(200, 3000);
  Totals totals;
  for (std::uint64_t i = 1; i <= runs; ++i) {
    const std::uint64_t seed = one != nullptr ? std::strtoull(one, nullptr, 10) : i;
    SCOPED_TRACE(fmt::format("MBCAS_SEED={}", seed));
    Course run(seed);
    run.eventfulTime(2min);
    run.quietTime(3min);
    run.checkSettled();
    run.countFrom();
    run.quietTime(3min);
    run.checkSettled();
    run.addTo(totals);
    if (HasFailure()) break;
  }
  fmt::print("{} runs: {} changes of {} pods in the last three minutes, at most {} of one\n", runs,
             totals.changes, totals.pods, totals.most);
  EXPECT_LE(totals.changes * 5, totals.pods * 3) << "more than one in five minutes";
}

}  // namespace
}  // namespace mbcas::agent
