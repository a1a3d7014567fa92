#include "mbcas/agent/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "mbcas/agent/member.h"
#include "mbcas/agent/tripwire.h"
#include "mbcas/control/guards.h"
#include "mbcas/control/law.h"
#include "mbcas/kernel/names.h"
#include "mbcas/node/loop.h"
#include "mbcas/sense/machine.h"
#include "mbcas/sense/meter.h"
#include "mbcas/sense/sampler.h"

namespace mbcas::agent {
namespace {

using podallocation::Spec;

constexpr std::size_t kKeptNotes = 20;
// A write that the cluster does not show by then was lost, or another writer replaced it.
constexpr Nanos kAsGoodAsLost = std::chrono::minutes(1);
// A limit that differs so long from what Kubernetes says is no resize under way.
constexpr Nanos kLongestResize = std::chrono::seconds(30);
// A running container whose cgroup is not found for so long is not one that is just starting.
constexpr Nanos kLongestStart = std::chrono::seconds(30);
// At most so many missing cgroups are reported one by one at one sample. More have a common cause.
constexpr std::size_t kToldAtOnce = 5;
constexpr std::string_view kAwaitsBounds =
    "keeps its limit until the controller has published its bounds";

demand::Settings demandSettings(const policy::Settings& settings, unsigned cpus) {
  demand::Settings out;
  out.kind = demand::parseKind(settings.estimator).value_or(demand::Kind::kResponsive);
  out.cpus = cpus;
  out.warmup = static_cast<std::uint32_t>(std::max(settings.warmup, 0));
  out.burst_hold = settings.burst_hold;
  out.throttle_threshold = settings.throttle_threshold;
  out.ema_up = settings.ema_up;
  out.ema_down = settings.ema_down;
  return out;
}

// The kernel's limit; but where that is merely what Kubernetes says, rounded up to what the kernel
// can do, what Kubernetes says.
Millicores inForce(Millicores kernel, Millicores stated) {
  return control::roundUp(stated) == control::roundUp(kernel) ? stated : kernel;
}

// The same limits, whatever the reason. (The server may have sorted the containers.)
bool sameLimits(const Spec& a, const Spec& b) {
  return a.desired == b.desired && a.wanted == b.wanted &&
         std::ranges::is_permutation(a.containers, b.containers);
}

// Grows when a cgroup comes or goes.
std::uint64_t structureOf(const sense::SenseCounters& counters) {
  return counters.pods_started + counters.pods_ended + counters.containers_started +
         counters.containers_ended;
}

int pressureConditions(const kube::Node& node) {
  return static_cast<int>(node.memory_pressure) + static_cast<int>(node.disk_pressure) +
         static_cast<int>(node.pid_pressure);
}

}  // namespace

class Pipeline::Impl {
 public:
  Impl(std::unique_ptr<kernel::PodSource> source, const Clock& clock, PipelineOptions options)
      : options_(std::move(options)),
        clock_(clock),
        sampler_(std::move(source), clock, {.interval = settings_.sample_interval}),
        machine_(sampler_.source(), clock,
                 {.interval = settings_.sample_interval, .cpus = options_.cpus}),
        loop_(demandSettings(settings_, options_.cpus), settings_.law),
        tripwire_({}) {
    if (auto root = sampler_.source().open("/")) root_ = *std::move(root);
  }

  void update(World world) {
    news_ = news_ || bringsNews(world);
    world_ = std::move(world);
  }
  const Outcome& tick();
  const View& view();
  const sense::SenseCounters& counters() const { return sampler_.counters(); }
  const CgroupEvidence& cgroups() const { return cgroups_; }
  std::vector<std::string> layouts() const { return sampler_.source().layouts(); }

 private:
  struct Container {
    std::optional<std::size_t> signals{};    // where, among its pod's
    std::uint64_t cgroup = 0;                // that it was managed in last
    std::optional<Millicores> limit{};       // in force, as last seen
    bool measured = false;                   // its cgroup has had two samples
    bool throttled = false;                  // at the last sample
    std::optional<MonotonicTime> differs{};  // since when not what Kubernetes says
    Millicores told;                         // which difference was reported
  };
  // A pod of the cluster, and what is known of it from tick to tick.
  struct Pod {
    std::shared_ptr<const kube::Pod> object{};
    std::shared_ptr<const podallocation::PodAllocation> allocation{};
    Member member{};                      // made from these two
    std::vector<Container> containers{};  // parallel to the member's
    std::optional<std::size_t> signals{};
    std::optional<std::size_t> place{};  // among the participants
    std::optional<Spec> said{};  // what its PodAllocation says, once the last wish is written
    MonotonicTime said_at{};
    bool confirmed = false;                  // the cluster shows it
    std::optional<MonotonicTime> missing{};  // since when a cgroup of it is not found
    bool told_missing = false;
  };

  bool bringsNews(const World& world) const;
  bool take(World world);
  void configure(const policy::Settings& settings);
  bool replace(Pod& pod, Member member);
  bool due(MonotonicTime now);
  bool looks() const { return tripwire_.armed() || expects_start_; }
  void sample(MonotonicTime now);
  void join();
  std::optional<std::size_t> cgroupOf(const Pod& pod, std::size_t c) const;
  bool begun(const Pod& pod) const;
  void see(Pod& pod, MonotonicTime now);
  bool runs(const Pod& pod) const;
  std::string notFound(const Pod& pod) const;
  bool readable(const Pod& pod, MonotonicTime now) const;
  void gatherEvidence(MonotonicTime now);
  void tellMissing(MonotonicTime now);
  bool throttlingBegan();
  // The classic estimator smooths by samples, not by time.
  bool adaptive() const { return options_.adaptive && settings_.estimator != "classic"; }
  bool decidable(const Pod& pod) const;
  bool decided(const Pod& pod) const { return decision_ != nullptr && pod.place; }
  bool fresh(const Pod& pod, MonotonicTime now) const;
  void admit(bool changed);
  void resume(const Pod& pod);
  void measureMachine(MonotonicTime now);
  void decide();
  node::Container loopContainer(const Pod& pod, std::size_t c) const;
  demand::Need needOf(const Pod& pod, std::size_t c) const;
  void speak(MonotonicTime now);
  void wish(Pod& pod, Spec spec, bool urgent, MonotonicTime now);
  Spec specOf(const Pod& pod) const;
  Millicores desired(const Pod& pod, std::size_t c) const;
  Millicores wanted(const Pod& pod) const;
  bool told(const Pod& pod) const;
  void arm(MonotonicTime now);
  void note(std::string text) { outcome_.notes.push_back(std::move(text)); }
  PodView viewOf(const Pod& pod) const;
  std::string whyUndecided(const Pod& pod) const;
  const sense::PodSignals* signalsOf(const Pod& pod) const {
    return pod.signals ? &sampler_.signals()[*pod.signals] : nullptr;
  }

  PipelineOptions options_;
  const Clock& clock_;
  std::optional<World> world_{};  // taken over at the next sample, so that a view is of one moment
  bool news_ = false;             // and that should not wait for its turn
  policy::Settings settings_{};
  std::shared_ptr<const kube::Node> node_{};
  sense::Sampler sampler_;
  sense::MachineSampler machine_;
  node::Loop loop_;

  std::map<std::string, Pod, std::less<>> pods_;  // by UID
  std::uint64_t joined_ = 0;                      // structure of the signals when last joined
  Millicores unmanaged_requests_{};
  std::vector<node::Participant> participants_{};
  std::vector<Pod*> places_{};                       // parallel to participants_
  const control::NodeDecision* decision_ = nullptr;  // of the last sample; null: none

  std::unique_ptr<kernel::CgroupReader> root_{};
  sense::UsageMeter root_use_{};
  std::optional<Nanos> machine_total_{};
  std::optional<Millicores> machine_use_{};

  Tripwire tripwire_;
  bool expects_start_ = false;  // of a pod that was prepared
  bool awaits_more_ = false;    // the last sample decided nothing: another one follows soon
  std::optional<MonotonicTime> due_{};
  MonotonicTime next_look_{};
  bool out_of_turn_ = false;

  CgroupEvidence cgroups_{};
  Outcome outcome_{};
  std::vector<std::string> kept_notes_{};
  MonotonicTime sampled_at_{};
  WallTime sampled_wall_{};
  View view_{};
  bool view_stale_ = true;
};

Pipeline::Pipeline(std::unique_ptr<kernel::PodSource> source, const Clock& clock,
                   PipelineOptions options)
    : impl_(std::make_unique<Impl>(std::move(source), clock, std::move(options))) {}
Pipeline::~Pipeline() = default;
void Pipeline::update(World world) {
  impl_->update(std::move(world));
}
const Outcome& Pipeline::tick() {
  return impl_->tick();
}
const View& Pipeline::view() {
  return impl_->view();
}
const sense::SenseCounters& Pipeline::counters() const {
  return impl_->counters();
}
const CgroupEvidence& Pipeline::cgroups() const {
  return impl_->cgroups();
}
std::vector<std::string> Pipeline::layouts() const {
  return impl_->layouts();
}

void Pipeline::Impl::configure(const policy::Settings& settings) {
  const policy::Settings before = std::exchange(settings_, settings);
  if (settings.sample_interval != before.sample_interval) {
    sampler_.setInterval(settings.sample_interval);
    machine_.setInterval(settings.sample_interval);
  }
  loop_.configure(demandSettings(settings, options_.cpus), settings.law);
}

// Whether a pod that was prepared runs now, or one that runs has got its bounds: it may have been
// throttled from its first moment.
bool Pipeline::Impl::bringsNews(const World& world) const {
  for (const std::shared_ptr<const kube::Pod>& object : world.pods) {
    if (object->phase != kube::PodPhase::kRunning) continue;
    const auto known = pods_.find(object->meta.uid.view());
    if (known != pods_.end() && !begun(known->second)) return true;
  }
  for (const auto& allocation : world.allocations) {
    if (allocation->bounds() == nullptr) continue;
    const auto known = pods_.find(allocation->meta.name.view());
    if (known != pods_.end() && begun(known->second) && !known->second.member.bounds) {
      return true;
    }
  }
  return false;
}

// Whether anything has changed that decisions are made from. The echo of what the agent itself
// wrote is nothing of that kind.
bool Pipeline::Impl::take(World world) {
  const bool configured = world.settings != settings_;
  bool changed = configured;
  if (configured) configure(world.settings);
  node_ = std::move(world.node);
  std::unordered_map<std::string_view, std::shared_ptr<const podallocation::PodAllocation>>
      allocations;
  for (auto& allocation : world.allocations) {
    allocations.emplace(allocation->meta.name.view(), std::move(allocation));
  }
  std::map<std::string, Pod, std::less<>> before = std::exchange(pods_, {});
  for (const std::shared_ptr<const kube::Pod>& object : world.pods) {
    const auto found = allocations.find(object->meta.uid.view());
    auto allocation = found == allocations.end() ? nullptr : found->second;
    const auto known = before.find(object->meta.uid.view());
    Pod& pod = known == before.end() ? pods_[object->meta.uid.string()]
                                     : pods_.insert(before.extract(known)).position->second;
    if (!configured && pod.object == object && pod.allocation == allocation) continue;
    pod.object = object;
    pod.allocation = std::move(allocation);
    changed |= replace(pod, memberOf(*pod.object, pod.allocation.get(), settings_));
  }
  for (const auto& [uid, pod] : before) outcome_.ended.push_back(uid);
  return changed || !before.empty();
}

// Another version of the pod or of its PodAllocation. Whether it differs in more than what the
// PodAllocation says is desired and applied.
bool Pipeline::Impl::replace(Pod& pod, Member member) {
  Member before = std::exchange(pod.member, std::move(member));
  const Member& now = pod.member;
  if (before.left_alone.empty() && !before.uid.empty() && !now.left_alone.empty()) {
    outcome_.ended.push_back(now.uid);
    pod.said.reset();  // it may not have been written
  }
  if (before.managed() && now.managed() && before.declared() != now.declared()) {
    note(fmt::format(
        "{}/{}: another writer set the limit: the pod declares {}m from now on, not {}m",
        now.name_space, now.name, now.declared().count(), before.declared().count()));
  }
  std::vector<Container> containers(now.containers.size());
  bool limits_changed = false;
  for (std::size_t c = 0; c < containers.size(); ++c) {
    const auto same =
        std::ranges::find(before.containers, now.containers[c].name, &MemberContainer::name);
    if (same == before.containers.end()) continue;
    limits_changed |= same->limit != now.containers[c].limit;
    containers[c] = pod.containers[static_cast<std::size_t>(same - before.containers.begin())];
  }
  pod.containers = std::move(containers);
  if (limits_changed) sampler_.limitChanged(now.cgroup);

  if (!now.spec) {
    if (before.spec) pod.said.reset();  // it was deleted: start from the beginning
    pod.confirmed = false;
  } else if (!pod.said) {
    pod.said = now.spec;
    pod.confirmed = true;
  } else {
    pod.confirmed = sameLimits(*pod.said, *now.spec);
  }
  before.spec = now.spec;
  before.applied = now.applied;
  return before != now;
}

const Outcome& Pipeline::Impl::tick() {
  const MonotonicTime now = clock_.monotonic();
  outcome_.wishes.clear();
  outcome_.ended.clear();
  outcome_.notes.clear();
  outcome_.sampled = due(now);
  if (outcome_.sampled) sample(now);
  kept_notes_.insert(kept_notes_.end(), outcome_.notes.begin(), outcome_.notes.end());
  if (kept_notes_.size() > kKeptNotes) {
    kept_notes_.erase(kept_notes_.begin(),
                      kept_notes_.end() - static_cast<std::ptrdiff_t>(kKeptNotes));
  }
  const bool look = looks() && next_look_ < *due_;
  outcome_.next = std::max<Nanos>((look ? next_look_ : *due_) - now, Nanos(0));
  return outcome_;
}

bool Pipeline::Impl::due(MonotonicTime now) {
  out_of_turn_ = false;
  if (!due_) return true;
  // A tenth early is in time, but for a sample out of turn, which must not be shorter.
  const Nanos whole = settings_.sample_interval;
  const Nanos slack = *due_ - sampled_at_ >= whole / 2 ? whole / 10 : Nanos(0);
  if (now >= *due_ - slack) return true;
  if (world_ && world_->settings.sample_interval != settings_.sample_interval) return true;
  if (news_ && adaptive() && now - sampled_at_ >= whole / 4) return out_of_turn_ = true;
  if (!looks() || now < next_look_) return false;
  const Nanos interval = Tripwire::interval(settings_.sample_interval);
  next_look_ = now + interval;
  if (next_look_ + interval > *due_) next_look_ = *due_;
  if (expects_start_ && sampler_.structureChanged() && tripwire_.another(now)) {
    return out_of_turn_ = true;
  }
  if (!tripwire_.armed()) return false;
  const auto total = root_->usage();
  out_of_turn_ = total && tripwire_.trips(now, *total);
  return out_of_turn_;
}

void Pipeline::Impl::sample(MonotonicTime now) {
  const bool changed = world_ && take(*std::exchange(world_, std::nullopt));
  news_ = false;
  const Nanos interval = settings_.sample_interval;
  due_ = due_ && !out_of_turn_ && *due_ + interval / 2 > now ? *due_ + interval : now + interval;
  next_look_ = now + Tripwire::interval(interval);
  sampled_at_ = now;
  sampled_wall_ = clock_.wall();
  view_stale_ = true;
  const std::span<const sense::PodSignals> signals = sampler_.tick();
  const sense::MachineSignals& machine = machine_.tick(signals);
  measureMachine(now);
  loop_.observe({.now = now, .pods = signals, .machine_use = machine_use_, .machine = &machine});
  if (changed || joined_ != structureOf(sampler_.counters())) join();
  for (auto& [uid, pod] : pods_) see(pod, now);
  gatherEvidence(now);
  tellMissing(now);
  const bool began = throttlingBegan();
  // The next sample decides, whatever begins meanwhile.
  awaits_more_ = began && !awaits_more_ && !changed && adaptive() && tripwire_.another(now);
  if (awaits_more_) {
    due_ = next_look_;
    tripwire_.disarm();
    outcome_.sampled = false;
    return;
  }
  admit(changed);
  decide();
  speak(now);
  arm(now);
}

// Finds each pod's cgroups among the signals.
void Pipeline::Impl::join() {
  joined_ = structureOf(sampler_.counters());
  const std::span<const sense::PodSignals> signals = sampler_.signals();
  std::unordered_map<std::string_view, std::size_t> by_uid;
  for (std::size_t i = 0; i < signals.size(); ++i) by_uid.emplace(signals[i].uid, i);
  for (auto& [uid, pod] : pods_) {
    const auto found = by_uid.find(pod.member.cgroup);
    pod.signals.reset();
    if (found != by_uid.end()) pod.signals = found->second;
    for (std::size_t c = 0; c < pod.containers.size(); ++c) {
      pod.containers[c].signals = cgroupOf(pod, c);
    }
  }
}

// Where the container's cgroup is among those of its pod. The kubelet reports the id up to a second
// after the container began to run. Until then the container is the only cgroup with its limit, if
// no other container of the pod has that limit; the pause container has none.
std::optional<std::size_t> Pipeline::Impl::cgroupOf(const Pod& pod, std::size_t c) const {
  if (!pod.signals) return std::nullopt;
  const MemberContainer& member = pod.member.containers[c];
  const auto& cgroups = signalsOf(pod)->containers;
  const auto is = [&](const sense::ContainerSignals& cgroup) {
    if (!member.id.empty()) return cgroup.id == member.id;
    if (pod.member.started || !member.distinct) return false;
    if (cgroup.cgroup == pod.containers[c].cgroup) return true;  // with another limit by now
    const auto limit = cgroup.cpu.limit ? cgroup.cpu.limit->millicores() : std::nullopt;
    return limit && control::roundUp(*limit) == control::roundUp(member.spec_limit);
  };
  const auto found = std::ranges::find_if(cgroups, is);
  if (found == cgroups.end()) return std::nullopt;
  return static_cast<std::size_t>(found - cgroups.begin());
}

// Whether the pod runs, as the kubelet says or as its cgroups show before that.
bool Pipeline::Impl::begun(const Pod& pod) const {
  return pod.member.started || std::ranges::all_of(pod.containers, [](const Container& container) {
           return container.signals.has_value();
         });
}

// Which limits are in force.
void Pipeline::Impl::see(Pod& pod, MonotonicTime now) {
  for (std::size_t c = 0; c < pod.containers.size(); ++c) {
    Container& container = pod.containers[c];
    const MemberContainer& member = pod.member.containers[c];
    if (!container.signals) {
      // What it will start with.
      if (member.reported && !member.running) container.limit = member.limit;
      continue;
    }
    const sense::ContainerSignals& signals = signalsOf(pod)->containers[*container.signals];
    if (!signals.cpu.limit) continue;
    const std::optional<Millicores> kernel = signals.cpu.limit->millicores();
    container.limit.reset();
    if (!kernel) continue;
    container.limit = inForce(*kernel, member.limit);
    if (*container.limit == member.limit) {
      container.differs.reset();
    } else if (!container.differs) {
      container.differs = now;
    } else if (now - *container.differs >= kLongestResize && container.told != *kernel) {
      container.told = *kernel;
      note(
          fmt::format("{}/{}: container {} has a limit of {}m in the kernel, where Kubernetes "
                      "says {}m: decisions use the limit in the kernel",
                      pod.member.name_space, pod.member.name, member.name, kernel->count(),
                      member.limit.count()));
    }
    if (!pod.member.managed() || container.cgroup == signals.cgroup) continue;
    container.cgroup = signals.cgroup;
    // Whatever it was raised for, by a predecessor of the agent or of the container, is forgotten.
    if (*container.limit > member.declared) {
      loop_.resumeNeed(signals.cgroup, *container.limit);
    }
  }
}

// Whether it must have cgroups that can be read: the agent decides about it, and the kubelet says
// that a container of it runs.
bool Pipeline::Impl::runs(const Pod& pod) const {
  return pod.member.left_alone.empty() &&
         std::ranges::any_of(pod.member.containers, &MemberContainer::running);
}

// The cgroup of a running pod that is not found, and the names that were looked for; empty: all are
// found.
std::string Pipeline::Impl::notFound(const Pod& pod) const {
  if (!pod.signals) {
    return fmt::format("the cgroup of the pod is not found: looked for {}",
                       kernel::podNamesOf(pod.member.cgroup));
  }
  for (std::size_t c = 0; c < pod.containers.size(); ++c) {
    const MemberContainer& member = pod.member.containers[c];
    if (!member.running || pod.containers[c].signals) continue;
    return fmt::format("the cgroup of container {} is not found: looked for {} in {}", member.name,
                       kernel::containerNamesOf(member.id), signalsOf(pod)->path);
  }
  return {};
}

// Whether the counters and limits of its running containers have been read lately. No limit at all
// is a reading too.
bool Pipeline::Impl::readable(const Pod& pod, MonotonicTime now) const {
  const sense::PodSignals* const signals = signalsOf(pod);
  if (signals == nullptr) return false;
  for (std::size_t c = 0; c < pod.containers.size(); ++c) {
    if (!pod.member.containers[c].running) continue;
    if (!pod.containers[c].signals) return false;
    const sense::CpuSignals& cpu = signals->containers[*pod.containers[c].signals].cpu;
    if (cpu.good_until < now || !cpu.limit) return false;
  }
  return true;
}

void Pipeline::Impl::gatherEvidence(MonotonicTime now) {
  cgroups_.managed = 0;
  const Pod* unreadable = nullptr;
  bool any = false;
  for (const auto& [uid, pod] : pods_) {
    if (!runs(pod)) continue;
    ++cgroups_.managed;
    if (readable(pod, now)) {
      any = true;
    } else if (unreadable == nullptr) {
      unreadable = &pod;
    }
  }
  cgroups_.error.clear();
  if (cgroups_.managed == 0) {
    const Result<void> root = sampler_.source().readable();
    if (!root) cgroups_.error = root.error().message();
    any = root.has_value();
  } else if (!any) {
    cgroups_.error = notFound(*unreadable);
    if (cgroups_.error.empty()) cgroups_.error = sampler_.counters().last_failure;
  }
  if (any) cgroups_.read = now;
}

// Once for each pod.
void Pipeline::Impl::tellMissing(MonotonicTime now) {
  std::size_t told = 0;
  std::size_t more = 0;
  for (auto& [uid, pod] : pods_) {
    if (pod.told_missing) continue;
    std::string what = runs(pod) ? notFound(pod) : "";
    if (what.empty()) {
      pod.missing.reset();
      continue;
    }
    if (!pod.missing) pod.missing = now;
    if (now - *pod.missing < kLongestStart) continue;
    pod.told_missing = true;
    if (told == kToldAtOnce) {
      ++more;
      continue;
    }
    ++told;
    note(fmt::format("{}/{}: {}, among the cgroups of {} pods. The pod keeps its limit",
                     pod.member.name_space, pod.member.name, what, sampler_.signals().size()));
  }
  if (more > 0) note(fmt::format("the cgroups of {} more pods are not found", more));
}

bool Pipeline::Impl::decidable(const Pod& pod) const {
  return pod.member.managed() && begun(pod) &&
         std::ranges::all_of(pod.containers,
                             [](const Container& c) { return c.limit.has_value(); });
}

// Whether its limits and counters are those of now.
bool Pipeline::Impl::fresh(const Pod& pod, MonotonicTime now) const {
  const sense::PodSignals* const signals = signalsOf(pod);
  if (signals == nullptr) return false;
  for (std::size_t c = 0; c < pod.containers.size(); ++c) {
    const Container& container = pod.containers[c];
    const MemberContainer& member = pod.member.containers[c];
    if (!container.limit) return false;
    if (!container.signals && member.reported && !member.running) continue;
    if (!container.signals) return false;
    if (signals->containers[*container.signals].cpu.good_until < now) return false;
  }
  return true;
}

// Whether some container is throttled that was not before: by a load that began within the
// interval, which shows a part of itself only. Another sample soon shows the whole, and one wish
// for that is better than one for the part now and another one when that is in force.
bool Pipeline::Impl::throttlingBegan() {
  bool began = false;
  for (auto& [uid, pod] : pods_) {
    for (Container& container : pod.containers) {
      if (!pod.place || !container.signals) continue;
      const demand::Need& need = loop_.needs()[*pod.signals].containers[*container.signals].need;
      const bool throttled = need.blocked > Millicores(1);
      // The first interval of a new container has no part without the load.
      began |= throttled && !container.throttled && container.measured;
      container.throttled = throttled;
      container.measured = signalsOf(pod)->containers[*container.signals].cpu.known();
    }
  }
  return began;
}

// Lets those pods take part that can be decided about. What does not change from tick to tick is
// filled in here.
void Pipeline::Impl::admit(bool changed) {
  for (const auto& [uid, pod] : pods_) changed |= decidable(pod) != pod.place.has_value();
  if (!changed) return;
  places_.clear();
  participants_.clear();
  unmanaged_requests_ = Millicores(0);
  for (auto& [uid, pod] : pods_) {
    pod.place.reset();
    const Member& member = pod.member;
    if (!decidable(pod)) {
      unmanaged_requests_ += member.all_requests;
      continue;
    }
    pod.place = places_.size();
    places_.push_back(&pod);
    participants_.push_back({.id = uid,
                             .weight = member.weight,
                             .factor = member.factor,
                             .may_lower = member.ready,
                             .floor = member.bounds->floor,
                             .ceiling = member.bounds->ceiling,
                             .start = member.bounds->start});
    for (std::size_t c = 0; c < pod.containers.size(); ++c) {
      participants_.back().containers.push_back(loopContainer(pod, c));
    }
    if (!loop_.knows(uid)) resume(pod);
  }
}

// The law goes on from what the PodAllocation says: this agent wrote it, or its predecessor.
void Pipeline::Impl::resume(const Pod& pod) {
  const Member& member = pod.member;
  control::PodState state{.declared = member.declared(),
                          .wanted = member.spec->wanted.value_or(Millicores(0))};
  for (std::size_t c = 0; c < member.containers.size(); ++c) {
    const auto& said = member.spec->containers;
    const auto same =
        std::ranges::find(said, member.containers[c].name, &podallocation::ContainerLimit::name);
    state.containers.push_back(same == said.end() ? *pod.containers[c].limit : same->desired);
    state.desired += state.containers.back();
  }
  state.constrained = settings_.law.reclaim == control::Reclaim::kScarce &&
                      !settings_.law.strict_capacity && state.desired < state.declared;
  loop_.resume(member.uid, state);
}

// Also between two samples of the whole tree: a tripwire needs the use of this very moment.
void Pipeline::Impl::measureMachine(MonotonicTime now) {
  machine_total_.reset();
  machine_use_.reset();
  if (!root_) return;
  const auto total = root_->usage();
  if (!total) return;
  machine_total_ = *total;
  machine_use_ = root_use_.advance(now, *total);
}

void Pipeline::Impl::decide() {
  decision_ = nullptr;
  if (!node_) return;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Pod& pod = *places_[i];
    participants_[i].signals = pod.signals;
    for (std::size_t c = 0; c < pod.containers.size(); ++c) {
      node::Container& container = participants_[i].containers[c];
      container.signals = pod.containers[c].signals;
      container.limit = *pod.containers[c].limit;
    }
  }
  decision_ = &loop_.decide({.capacity = node_->capacity.cpu().value_or(
                                 Millicores(1000) * static_cast<std::int64_t>(options_.cpus)),
                             .unmanaged_requests = unmanaged_requests_,
                             .pressure_conditions = pressureConditions(*node_)},
                            participants_);
}

node::Container Pipeline::Impl::loopContainer(const Pod& pod, std::size_t c) const {
  const Container& container = pod.containers[c];
  const MemberContainer& member = pod.member.containers[c];
  return {.name = member.name,
          .signals = container.signals,
          .stopped = member.reported && !member.running && !container.signals,
          .limit = container.limit.value_or(Millicores(0)),
          .declared = member.declared,
          .request = member.request};
}

demand::Need Pipeline::Impl::needOf(const Pod& pod, std::size_t c) const {
  return loop_.needOf(pod.signals, loopContainer(pod, c));
}

// Publishes what is due. The content is compared with what was published last, whenever that was,
// so that nothing is lost and nothing said twice.
void Pipeline::Impl::speak(MonotonicTime now) {
  if (!node_) return;
  for (auto& [uid, pod] : pods_) {
    const bool judged = pod.member.bounds.has_value();
    if (!pod.member.left_alone.empty() || (judged && !pod.place)) continue;
    if (!begun(pod)) {
      // Its object is made now, so that its bounds are there when it starts.
      if (!pod.said) wish(pod, specOf(pod), false, now);
      continue;
    }
    const bool lost = pod.said && !pod.confirmed && now - pod.said_at >= kAsGoodAsLost;
    if ((told(pod) && !lost) || !fresh(pod, now)) continue;
    wish(pod, specOf(pod), judged && decision_->pods[*pod.place].urgent, now);
  }
}

// Of one container. Before the cluster has judged the pod: what is so anyway. Of the spec, so that
// nothing has to be done for it.
Millicores Pipeline::Impl::desired(const Pod& pod, std::size_t c) const {
  if (decided(pod)) return decision_->pods[*pod.place].containers[c];
  return pod.member.containers[c].spec_limit;
}

Millicores Pipeline::Impl::wanted(const Pod& pod) const {
  return decided(pod) ? decision_->pods[*pod.place].wanted : Millicores(0);
}

bool Pipeline::Impl::told(const Pod& pod) const {
  if (!pod.said || pod.said->containers.size() != pod.containers.size()) return false;
  if (pod.said->wanted.value_or(Millicores(0)) != wanted(pod)) return false;
  Millicores sum;
  for (std::size_t c = 0; c < pod.containers.size(); ++c) {
    const Millicores limit = desired(pod, c);
    const auto same = std::ranges::find(pod.said->containers, pod.member.containers[c].name,
                                        &podallocation::ContainerLimit::name);
    if (same == pod.said->containers.end() || same->desired != limit) return false;
    sum += limit;
  }
  return pod.said->desired == sum;
}

void Pipeline::Impl::wish(Pod& pod, Spec spec, bool urgent, MonotonicTime now) {
  Millicores limit;
  for (const Container& container : pod.containers) {
    limit += container.limit.value_or(spec.desired);
  }
  const Millicores shortfall = std::max(spec.desired - limit, Millicores(0));
  pod.said = spec;
  pod.said_at = now;
  pod.confirmed = false;
  outcome_.wishes.push_back(
      {.uid = pod.member.uid,
       .spec = std::move(spec),
       .urgent = urgent,
       .urgency = pod.member.weight * static_cast<double>(shortfall.count())});
}

Spec Pipeline::Impl::specOf(const Pod& pod) const {
  Spec spec{.name_space = pod.member.name_space,
            .pod_name = pod.member.name,
            .node = options_.node_name,
            .reason = std::string(kAwaitsBounds)};
  for (std::size_t c = 0; c < pod.containers.size(); ++c) {
    spec.containers.push_back({pod.member.containers[c].name, desired(pod, c)});
    spec.desired += spec.containers.back().desired;
  }
  if (wanted(pod) > Millicores(0)) spec.wanted = wanted(pod);
  if (decided(pod)) spec.reason = control::sentence(decision_->pods[*pod.place].reason);
  return spec;
}

// What could run into its limit and be helped, and by how little more use.
void Pipeline::Impl::arm(MonotonicTime now) {
  std::optional<Millicores> room;
  bool at_limit = false;
  bool just_begun = false;  // a container that nothing can be said of before another sample
  expects_start_ = false;
  const Nanos look = Tripwire::interval(settings_.sample_interval);
  if (adaptive() && decision_ != nullptr && look * 2 <= *due_ - now) {
    for (const auto& [uid, pod] : pods_) {
      expects_start_ |= pod.member.left_alone.empty() && !begun(pod);
      for (const Container& container : pod.containers) {
        just_begun |= pod.place && container.signals && !container.measured;
      }
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const control::PodDecision& decision = decision_->pods[i];
      const control::Pod& pod = loop_.input().pods[i];
      // Who is throttled has been decided about.
      if (decision.throttled || decision.constrained) continue;
      if (pod.ceiling && decision.limit >= *pod.ceiling) continue;
      for (const control::Container& container : pod.containers) {
        const Millicores left =
            std::max(container.limit - container.need.last.usage, Millicores(0));
        room = std::min(room.value_or(left), left);
        at_limit |= container.need.last.at_limit;
      }
    }
  }
  // The kernel reports throttling when it ends, and a container at its limit uses no more: there
  // would be nothing to look for.
  if ((at_limit || just_begun) && tripwire_.another(now)) {
    due_ = next_look_;
    tripwire_.disarm();
    return;
  }
  if (!machine_total_ || !machine_use_) room.reset();
  tripwire_.arm(now, machine_total_.value_or(Nanos(0)), machine_use_.value_or(Millicores(0)), room);
}

const View& Pipeline::Impl::view() {
  if (!std::exchange(view_stale_, false)) return view_;
  view_ = {};
  view_.at = sampled_at_;
  view_.wall = sampled_wall_;
  view_.node_name = options_.node_name;
  view_.notes = kept_notes_;
  view_.sense = sampler_.counters();
  if (decision_ != nullptr) {
    view_.capacity = loop_.input().capacity;
    view_.unmanaged_use = loop_.input().unmanaged_use;
    view_.node = *decision_;
    view_.node.pods.clear();
  }
  for (const auto& [uid, pod] : pods_) view_.pods.push_back(viewOf(pod));
  std::ranges::sort(view_.pods, {},
                    [](const PodView& pod) { return std::tie(pod.name_space, pod.name, pod.uid); });
  return view_;
}

std::string Pipeline::Impl::whyUndecided(const Pod& pod) const {
  if (!pod.member.left_alone.empty()) return pod.member.left_alone;
  if (!node_) return "the node is not known yet";
  if (!begun(pod)) return "the pod does not run yet";
  if (!pod.signals) return "the cgroup of the pod is not found";
  if (!std::ranges::all_of(pod.containers, [](const Container& c) { return c.limit.has_value(); }))
    return "its limits are not in force yet, or cannot be read";
  return std::string(kAwaitsBounds);
}

PodView Pipeline::Impl::viewOf(const Pod& pod) const {
  const Member& member = pod.member;
  PodView view{.name_space = member.name_space, .name = member.name, .uid = member.uid};
  view.weight = member.weight;
  view.priority = member.priority;
  view.ready = member.ready;
  view.applied = member.applied;
  view.bounds = member.bounds;
  const sense::PodSignals* const signals = signalsOf(pod);
  if (signals != nullptr) {
    view.usage = signals->cpu.usageRate();
    view.blocked = signals->cpu.blockedRate();
    if (signals->cpu_pressure) view.cpu_pressure = signals->cpu_pressure->some;
    view.contention = signals->contention;
    if (signals->cpu.limit) view.limit = signals->cpu.limit->millicores().value_or(Millicores(0));
  }
  if (decided(pod)) {
    view.decision = decision_->pods[*pod.place];
  } else {
    view.left_alone = whyUndecided(pod);
  }
  if (member.containers.empty()) return view;
  view.limit = Millicores(0);
  for (std::size_t c = 0; c < member.containers.size(); ++c) {
    const MemberContainer& container = member.containers[c];
    ContainerView& out = view.containers.emplace_back();
    out.name = container.name;
    out.limit = pod.containers[c].limit.value_or(Millicores(0));
    out.declared = container.declared;
    out.request = container.request;
    out.desired = desired(pod, c);
    if (!decided(pod)) view.decision.desired += out.desired;
    out.need = needOf(pod, c);
    view.limit += out.limit;
    view.declared += out.declared;
  }
  if (!decided(pod)) view.decision.answer = view.decision.desired;
  return view;
}

}  // namespace mbcas::agent
