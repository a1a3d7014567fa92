// What people would use instead of MBCAS, as policies of the simulation. docs/sim.md says what of
// each is modelled and what is not.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <string>

#include "mbcas/sim/hpa.h"
#include "mbcas/sim/policy.h"
#include "mbcas/sim/vpa.h"

namespace mbcas::sim {
namespace {

using std::chrono::seconds;

class Unlimited final : public Policy {
 public:
  std::string_view name() const override { return "unlimited"; }
  std::optional<Millicores> firstLimit(Millicores, unsigned) const override { return {}; }
};

class Static final : public Policy {
 public:
  std::string_view name() const override { return "static"; }
};

class Generous final : public Policy {
 public:
  std::string_view name() const override { return "generous"; }
  std::optional<Millicores> firstLimit(Millicores declared, unsigned cpus) const override {
    return std::max(declared,
                    std::min(declared * 4, Millicores(static_cast<std::int64_t>(cpus) * 1000)));
  }
};

class StaticBurst final : public Policy {
 public:
  std::string_view name() const override { return "burst"; }
  double burst() const override { return 1; }
};

class TwentyPercent final : public Policy {
 public:
  std::string_view name() const override { return "twenty-percent"; }
  bool writesCgroups() const override { return true; }

  std::vector<Move> decide(const NodeView& node) override {
    constexpr double kUp = 1.2;
    constexpr double kDown = 0.8;
    constexpr std::int64_t kMostTimes = 3;
    const double load = meanLoad(node);
    const bool overload = load >= 0.5;
    const bool cooling = load >= 0.45;
    std::vector<Move> moves;
    for (std::size_t i = 0; i < node.pods.size(); ++i) {
      const PodView& pod = node.pods[i];
      Move move{i, {pod.limits.begin(), pod.limits.end()}};
      for (std::size_t c = 0; c < pod.limits.size(); ++c) {
        const std::optional<Millicores> declared = pod.spec->containers[c].limit;
        if (!declared) continue;
        const bool throttled = pod.signals->containers[c].cpu.throttled();
        const double factor = overload ? kDown : throttled && !cooling ? kUp : 1;
        const Millicores wanted(std::llround(static_cast<double>(pod.limits[c]->count()) * factor));
        move.containers[c] = std::clamp(wanted, *declared, *declared * kMostTimes);
      }
      if (!std::ranges::equal(move.containers, pod.limits)) moves.push_back(std::move(move));
    }
    return moves;
  }

 private:
  // Share of the node's CPUs in use, over five samples.
  double meanLoad(const NodeView& node) {
    double used = 0;
    for (const sense::PodSignals& pod : node.signals) used += pod.cpu.usageRate().cores();
    loads_.push_back(used / node.cpus);
    if (loads_.size() > 5) loads_.pop_front();
    double sum = 0;
    for (const double load : loads_) sum += load;
    return sum / static_cast<double>(loads_.size());
  }

  std::deque<double> loads_;
};

// True once in every period, at its end.
class Every {
 public:
  Every(Nanos period, Nanos offset) : period_(period), offset_(offset) {}
  bool is(MonotonicTime now) {
    const std::int64_t turn = (now.time_since_epoch() - offset_) / period_;
    return std::exchange(last_, turn) != turn;
  }

 private:
  Nanos period_;
  Nanos offset_;
  std::int64_t last_ = 0;
};

// The metrics server: usage of containers, averaged between two of its rounds.
class Metrics {
 public:
  struct Usage {
    MonotonicTime from{};
    MonotonicTime until{};
    std::vector<double> cores{};  // of the containers
    double total() const {
      double sum = 0;
      for (const double each : cores) sum += each;
      return sum;
    }
  };

  void look(const NodeView& node) {
    for (const PodView& pod : node.pods) {
      Counted& counted = counts_[pod.signals->uid];
      counted.seen = node.now;
      const auto& containers = pod.signals->containers;
      counted.used.resize(containers.size());
      if (!counted.from) counted.from = node.now - pod.signals->cpu.interval;
      for (std::size_t c = 0; c < containers.size(); ++c)
        counted.used[c] += containers[c].cpu.usage;
    }
    std::erase_if(counts_, [&](const auto& entry) { return entry.second.seen != node.now; });
    if (!round_.is(node.now)) return;
    latest_.clear();
    for (auto& [uid, counted] : counts_) {
      const Nanos span = node.now - *counted.from;
      if (span < kLeastSpan) continue;  // appeared a moment ago: in the next round
      Usage usage{.from = *counted.from, .until = node.now};
      for (Nanos& used : counted.used) {
        usage.cores.push_back(std::chrono::duration<double>(std::exchange(used, Nanos(0))).count() /
                              std::chrono::duration<double>(span).count());
      }
      counted.from = node.now;
      latest_[uid] = std::move(usage);
    }
  }
  const Usage* find(const std::string& uid) const {
    const auto found = latest_.find(uid);
    return found == latest_.end() ? nullptr : &found->second;
  }

 private:
  static constexpr Nanos kLeastSpan = seconds(2);
  struct Counted {
    std::optional<MonotonicTime> from{};
    std::vector<Nanos> used{};
    MonotonicTime seen{};
  };
  Every round_{seconds(15), Nanos(0)};
  std::map<std::string, Counted, std::less<>> counts_;
  std::map<std::string, Usage, std::less<>> latest_;
};

class HpaPolicy final : public Policy {
 public:
  explicit HpaPolicy(const HpaSettings& settings) : settings_(settings) {}
  std::string_view name() const override { return "hpa"; }

  std::vector<Scale> scale(const NodeView& node) override {
    metrics_.look(node);
    for (const PodView& pod : node.pods) {
      if (pod.ready) ready_.try_emplace(pod.signals->uid, node.now);
    }
    if (!sync_.is(node.now)) return {};
    std::map<const PodSpec*, std::vector<HpaPod>> targets;
    for (const PodView& pod : node.pods) {
      if (servesOnly(*pod.spec)) targets[pod.spec].push_back(podOf(pod));
    }
    std::vector<Scale> scales;
    for (const auto& [spec, pods] : targets) {
      const int current = static_cast<int>(pods.size());
      Hpa& hpa = hpas_.try_emplace(spec, settings_).first->second;
      const int wanted = hpa.sync(node.now, pods, current);
      if (wanted != current) scales.push_back({spec, wanted});
    }
    return scales;
  }

 private:
  // Other work does not become less for one by there being two.
  static bool servesOnly(const PodSpec& spec) {
    return std::ranges::all_of(spec.containers, [](const ContainerSpec& container) {
      return container.workload.kind == WorkloadSpec::Kind::kService &&
             container.request > Millicores(0);
    });
  }
  HpaPod podOf(const PodView& pod) const {
    HpaPod out{.request = pod.spec->request(), .ready = false};
    const Metrics::Usage* usage = metrics_.find(pod.signals->uid);
    const auto since = ready_.find(pod.signals->uid);
    if (usage != nullptr) out.usage = Millicores(std::llround(usage->total() * 1000));
    // Its metrics count when all of their window is of a time when it was ready.
    out.ready =
        since != ready_.end() && (usage == nullptr || usage->from >= since->second - kSlack);
    return out;
  }

  static constexpr Nanos kSlack = seconds(1);
  HpaSettings settings_;
  Metrics metrics_;
  Every sync_{seconds(15), seconds(7)};
  std::map<const PodSpec*, Hpa> hpas_;
  std::map<std::string, MonotonicTime, std::less<>> ready_;  // since when
};

class VpaPolicy final : public Policy {
 public:
  std::string_view name() const override { return "vpa"; }

  std::vector<Move> decide(const NodeView& node) override {
    metrics_.look(node);
    const bool samples = recommend_.is(node.now);
    const bool updates = update_.is(node.now);
    std::vector<Move> moves;
    for (std::size_t i = 0; i < node.pods.size() && (samples || updates); ++i) {
      const PodView& view = node.pods[i];
      Pod& pod = pods_[view.signals->uid];
      if (pod.containers.empty()) {
        pod.since = node.now;
        pod.containers.resize(view.limits.size());
        for (const ContainerSpec& container : view.spec->containers) {
          pod.requests.push_back(container.request);
        }
      }
      if (samples) sample(view, pod);
      if (updates) update(i, view, pod, node.now, moves);
    }
    return moves;
  }

 private:
  struct Pod {
    MonotonicTime since{};
    std::vector<VpaRecommender> containers{};
    std::vector<Millicores> requests{};  // that were asked for last
  };

  void sample(const PodView& view, Pod& pod) const {
    const Metrics::Usage* usage = metrics_.find(view.signals->uid);
    if (usage == nullptr) return;
    for (std::size_t c = 0; c < pod.containers.size(); ++c) {
      pod.containers[c].add(usage->from, usage->cores[c], pod.requests[c]);
    }
  }

  // The request becomes the target, and the limit keeps its proportion to it.
  static void update(std::size_t i, const PodView& view, Pod& pod, MonotonicTime now,
                     std::vector<Move>& moves) {
    Move move{i, {view.limits.begin(), view.limits.end()}, pod.requests};
    bool worth_it = false;
    for (std::size_t c = 0; c < pod.containers.size(); ++c) {
      const ContainerSpec& declared = view.spec->containers[c];
      if (pod.containers[c].empty() || declared.request == Millicores(0)) continue;
      const VpaAdvice advice = pod.containers[c].advice();
      worth_it |= vpaUpdates(pod.requests[c], advice, now - pod.since);
      move.requests[c] = advice.target;
      if (declared.limit) {
        move.containers[c] =
            Millicores(declared.limit->count() * advice.target.count() / declared.request.count());
      }
    }
    if (!worth_it || std::ranges::equal(move.containers, view.limits)) return;
    pod.requests = move.requests;
    moves.push_back(std::move(move));
  }

  Metrics metrics_;
  Every recommend_{seconds(60), Nanos(0)};
  Every update_{seconds(60), seconds(30)};
  std::map<std::string, Pod, std::less<>> pods_;
};

}  // namespace

std::unique_ptr<Policy> makeUnlimited() {
  return std::make_unique<Unlimited>();
}
std::unique_ptr<Policy> makeStatic() {
  return std::make_unique<Static>();
}
std::unique_ptr<Policy> makeGenerous() {
  return std::make_unique<Generous>();
}
std::unique_ptr<Policy> makeStaticBurst() {
  return std::make_unique<StaticBurst>();
}
std::unique_ptr<Policy> makeTwentyPercent() {
  return std::make_unique<TwentyPercent>();
}
std::unique_ptr<Policy> makeHpa(const HpaSettings& settings) {
  return std::make_unique<HpaPolicy>(settings);
}
std::unique_ptr<Policy> makeVpa() {
  return std::make_unique<VpaPolicy>();
}

}  // namespace mbcas::sim
