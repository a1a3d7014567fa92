#include "mbcas/sense/machine.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "mbcas/sense/reading.h"

namespace mbcas::sense {
namespace {

using std::chrono::seconds;

// The kubelet writes the weights of its slices every minute.
constexpr Nanos kDetailsInterval = seconds(10);
constexpr int kGoodForIntervals = 3;
// Idle time counts in clock ticks. A smaller part of the machine than this is their noise.
constexpr int kElsewhereFrom = 33;
constexpr int kGapIntervals =
    10;  // a difference over more intervals says nothing about the present

// One of the cgroups below a directory, as a part of a sum in which their order does not matter.
std::uint64_t mark(std::string_view path, std::string_view name, std::uint64_t inode) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t mixed = std::hash<std::string_view>{}(path);
  mixed = (mixed ^ std::hash<std::string_view>{}(name)) * kOdd;
  mixed = (mixed ^ (mixed >> 32) ^ inode) * kOdd;
  return mixed ^ (mixed >> 29);
}

Millicores rateOf(std::uint64_t before, std::uint64_t now, Nanos wall) {
  if (now <= before) return Millicores(0);  // idle time sometimes goes down by a tick
  return rate(kernel::kTick * static_cast<std::int64_t>(now - before), wall);
}

// Its usage can be read or is that of those below.
bool isCgroup(CgroupSignals::Kind kind) {
  return kind == CgroupSignals::Kind::kInner || kind == CgroupSignals::Kind::kOther;
}

}  // namespace

std::string_view name(CgroupSignals::Kind kind) {
  switch (kind) {
    case CgroupSignals::Kind::kInner:
      return "inner";
    case CgroupSignals::Kind::kPod:
      return "pod";
    case CgroupSignals::Kind::kTasks:
      return "tasks";
    case CgroupSignals::Kind::kOther:
      break;
  }
  return "other";
}

// What is known of the tree while it is built.
struct MachineSampler::Building {
  std::span<const PodSignals> pods;
  std::vector<std::size_t> by_path;  // indices of pods
  std::vector<CgroupSignals> old_tree;
  std::vector<Place> old_places;
  std::unordered_map<std::string_view, std::size_t> old;  // by path

  std::string_view path(std::size_t position) const { return pods[by_path[position]].path; }
  // The first pod whose path is not less.
  std::size_t position(std::string_view at_least) const {
    const auto found = std::ranges::lower_bound(
        by_path, at_least, {}, [&](std::size_t i) { return std::string_view(pods[i].path); });
    return static_cast<std::size_t>(found - by_path.begin());
  }
  bool anyBelow(const std::string& path) const {
    const std::size_t first = position(path + "/");
    return first < by_path.size() && this->path(first).starts_with(path + "/");
  }
  std::optional<std::size_t> podAt(std::string_view path) const {
    const std::size_t first = position(path);
    if (first == by_path.size() || this->path(first) != path) return std::nullopt;
    return by_path[first];
  }
};

MachineSampler::MachineSampler(const kernel::PodSource& source, const Clock& clock, Options options)
    : source_(source), clock_(clock), options_(options), machine_(source.machine()) {}

template <class T>
bool MachineSampler::worked(const kernel::ReadResult<T>& result) {
  return countReading(result, counters_, met_gone_);
}

const MachineSignals& MachineSampler::tick(std::span<const PodSignals> pods) {
  const MonotonicTime now = clock_.monotonic();
  const Nanos since = now - last_tick_;
  const bool same_pods = samePods(pods);
  if (started_ && same_pods && since < options_.interval / 5) return signals_;
  if (started_ && since > options_.interval * kGapIntervals) {
    for (Place& place : places_) place.meter = {};
    root_meter_ = {};
    time_.reset();
  }
  const bool details =
      !started_ || now - details_at_ >= kDetailsInterval || std::exchange(met_gone_, false);
  last_tick_ = now;
  started_ = true;
  if (details) {
    details_at_ = now;
    if (!root_) root_ = open("/", 0);
  }
  if (!same_pods || (details && look() != seen_)) build(pods);

  readMachine();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    CgroupSignals& signals = signals_.tree[i];
    const bool read_details = std::exchange(places_[i].fresh, false) || details;
    if (signals.kind == CgroupSignals::Kind::kPod) {
      copyPod(pods[*signals.pod], signals);
    } else if (signals.kind == CgroupSignals::Kind::kTasks) {
      if (read_details) countTasks(signals);
    } else {
      if (read_details) readDetails(places_[i], signals);
      readUsage(places_[i], signals);
    }
  }
  addUp();
  return signals_;
}

std::unique_ptr<kernel::CgroupReader> MachineSampler::open(const std::string& path,
                                                           std::uint64_t inode) {
  Result<std::unique_ptr<kernel::CgroupReader>> cgroup = source_.open(path);
  if (cgroup && (inode == 0 || (*cgroup)->id() == inode)) return *std::move(cgroup);
  ++counters_.unreadable;
  counters_.last_failure =
      cgroup ? path + ": was removed and made again" : cgroup.error().message();
  return nullptr;
}

bool MachineSampler::samePods(std::span<const PodSignals> pods) const {
  return std::ranges::equal(pods, pods_, {}, &PodSignals::cgroup);
}

// A number that differs whenever other cgroups are directly below the root or an inner cgroup.
std::uint64_t MachineSampler::look() {
  ++counters_.looks;
  std::uint64_t sum = lookAt("");
  for (const CgroupSignals& signals : signals_.tree) {
    if (signals.kind == CgroupSignals::Kind::kInner) sum += lookAt(signals.path);
  }
  return sum;
}

std::uint64_t MachineSampler::lookAt(const std::string& path) {
  struct {
    std::string_view path;
    std::uint64_t sum = 0;
  } looking{path};
  // One reference, so that the function object allocates nothing.
  list(path, [&looking](std::string_view name, std::uint64_t inode) {
    looking.sum += mark(looking.path, name, inode);
  });
  return looking.sum;
}

void MachineSampler::list(const std::string& path, const kernel::ChildVisitor& visit) {
  const Result<void> listed = source_.visitChildren(path, visit);
  if (listed) return;
  ++counters_.unreadable;
  counters_.last_failure = listed.error().message();
}

// Cgroups that are still the same keep their readings.
void MachineSampler::build(std::span<const PodSignals> pods) {
  ++counters_.changes;
  counters_.left_out = 0;
  Building building{.pods = pods,
                    .by_path = {},
                    .old_tree = std::move(signals_.tree),
                    .old_places = std::move(places_),
                    .old = {}};
  pods_.clear();
  for (std::size_t i = 0; i < pods.size(); ++i) {
    building.by_path.push_back(i);
    pods_.push_back(pods[i].cgroup);
  }
  std::ranges::sort(building.by_path, {},
                    [&](std::size_t i) -> const std::string& { return pods[i].path; });
  for (std::size_t i = 0; i < building.old_tree.size(); ++i) {
    if (isCgroup(building.old_tree[i].kind)) building.old.emplace(building.old_tree[i].path, i);
  }
  signals_.tree.clear();
  places_.clear();
  seen_ = 0;
  others_ = 0;
  buildBelow(building, "", std::nullopt);
}

void MachineSampler::buildBelow(Building& building, const std::string& path,
                                std::optional<std::size_t> parent) {
  // Cgroups that the pods' paths name exist even where the directory cannot be listed.
  std::map<std::string, std::uint64_t, std::less<>> children;
  list(path, [&](std::string_view name, std::uint64_t inode) {
    seen_ += mark(path, name, inode);
    children.emplace(name, inode);
  });
  const std::string below = path + "/";
  for (std::size_t i = building.position(below);
       i < building.by_path.size() && building.path(i).starts_with(below); ++i) {
    const std::string_view rest = building.path(i).substr(below.size());
    children.emplace(rest.substr(0, rest.find('/')), 0);
  }
  for (const auto& [child, inode] : children) {
    CgroupSignals signals{.path = below + child, .parent = parent};
    if (const auto pod = building.podAt(signals.path)) {
      signals.kind = CgroupSignals::Kind::kPod;
      signals.uid = building.pods[*pod].uid;
      signals.pod = pod;
      add(building, std::move(signals), inode);
    } else if (building.anyBelow(signals.path)) {
      signals.kind = CgroupSignals::Kind::kInner;
      add(building, std::move(signals), inode);
      const std::size_t self = places_.size() - 1;
      buildBelow(building, below + child, self);
    } else if (others_ < options_.most) {
      ++others_;
      add(building, std::move(signals), inode);
    } else {
      ++counters_.left_out;
    }
  }
  add(building,
      {.path = path.empty() ? "/" : path, .parent = parent, .kind = CgroupSignals::Kind::kTasks},
      0);
}

void MachineSampler::add(Building& building, CgroupSignals signals, std::uint64_t inode) {
  Place place{.inode = inode};
  if (isCgroup(signals.kind)) {
    const auto old = building.old.find(signals.path);
    if (old != building.old.end() && building.old_places[old->second].inode == inode) {
      place = std::move(building.old_places[old->second]);
      CgroupSignals& before = building.old_tree[old->second];
      signals.weight = before.weight;
      signals.cap = before.cap;
      signals.usage = before.usage;
      signals.good_until = before.good_until;
      signals.threads = before.threads;
      signals.cpus = before.cpus;
    }
  }
  signals_.tree.push_back(std::move(signals));
  places_.push_back(std::move(place));
}

void MachineSampler::readUsage(Place& place, CgroupSignals& signals) {
  if (!place.cgroup) return;
  const MonotonicTime at = clock_.monotonic();
  const auto usage = place.cgroup->usage();
  if (!worked(usage)) return;
  const std::optional<Millicores> advanced = place.meter.advance(at, *usage);
  signals.usage = advanced.value_or(Millicores(0));
  if (advanced) signals.good_until = at + options_.interval * kGoodForIntervals;
}

void MachineSampler::readDetails(Place& place, CgroupSignals& signals) {
  if (!place.cgroup) place.cgroup = open(signals.path, place.inode);
  if (!place.cgroup) return;
  const auto weight = place.cgroup->weight();
  if (worked(weight)) signals.weight = static_cast<double>(*weight);
  const auto limit = place.cgroup->limit();
  if (worked(limit)) signals.cap = limit->millicores();
  const auto threads = place.cgroup->threads();
  if (worked(threads)) signals.threads = *threads;
  const auto cpus = place.cgroup->cpus();
  if (worked(cpus)) signals.cpus = restriction(*cpus);
}

// Tasks directly in the parent, or in the root. The root always has tasks: where it seems to have
// none, they are hidden in another PID namespace.
void MachineSampler::countTasks(CgroupSignals& signals) {
  kernel::CgroupReader* const cgroup =
      signals.parent ? places_[*signals.parent].cgroup.get() : root_.get();
  if (cgroup == nullptr) return;
  const auto tasks = cgroup->tasks();
  if (!worked(tasks)) return;
  signals.threads = *tasks;
  if (!signals.parent && *tasks == 0) signals.threads.reset();
}

void MachineSampler::copyPod(const PodSignals& pod, CgroupSignals& signals) const {
  if (pod.weight) signals.weight = static_cast<double>(*pod.weight);
  signals.cap = pod.cpu.limit ? pod.cpu.limit->millicores() : std::nullopt;
  signals.usage = pod.cpu.usageRate();
  signals.good_until = pod.cpu.good_until;
  signals.threads = pod.threads;
  signals.cpus = pod.cpus ? restriction(*pod.cpus) : std::nullopt;
}

std::optional<kernel::CpuSet> MachineSampler::restriction(const kernel::CpuSet& cpus) const {
  if (cpus.empty() || cpus.count() >= signals_.cpus) return std::nullopt;
  return cpus;
}

// What tasks used is the root's counter where that is the sum of what the cgroups are charged with:
// on v1, and where the root of the tree is not that of the kernel. On v2 the kernel's root counts
// interrupts, and stolen time before Linux 6.14, from samples taken at clock ticks; so there it is
// what idle time, interrupts and stolen time leave of the CPUs, since idle time is measured. A root
// that is only a part of the machine, as in a container that plays a node, does not count what runs
// elsewhere. The rest competes for the same CPUs, so it belongs to the leaf of the tasks.
void MachineSampler::readMachine() {
  const MonotonicTime at = clock_.monotonic();
  std::optional<Millicores> used;
  if (root_) {
    const auto usage = root_->usage();
    if (worked(usage)) used = root_meter_.advance(at, *usage);
  }
  std::optional<kernel::MachineTime> time;
  if (machine_) {
    const auto read = machine_->time();
    if (worked(read)) time = *read;
  }
  signals_.cpus = time && time->cpus > 0 ? time->cpus : options_.cpus;
  const Millicores capacity = Millicores(1000) * static_cast<std::int64_t>(signals_.cpus);
  const Nanos interval = at - signals_.at;
  const std::optional<kernel::MachineTime> before = std::exchange(time_, time);
  signals_.interrupts = signals_.steal = Millicores(0);
  // A file in which nothing ever moves is not the kernel's.
  const bool compared = before && time && signals_.at != MonotonicTime{} &&
                        before->cpus == time->cpus && time->all() > before->all();
  if (compared) {
    signals_.idle = std::min(rateOf(before->idle, time->idle, interval), capacity);
    signals_.interrupts = rateOf(before->interrupts, time->interrupts, interval);
    signals_.steal = rateOf(before->steal, time->steal, interval);
    const Millicores busy =
        std::max(capacity - signals_.idle - signals_.interrupts - signals_.steal, Millicores(0));
    const bool is_the_kernels = root_ && root_->usageIsInStat() && rootIsTheKernels();
    if (is_the_kernels || (used && busy > *used + Millicores(capacity.count() / kElsewhereFrom)))
      used = busy;
  }
  signals_.at = at;
  signals_.interval = used ? interval : Nanos(0);
  if (used) signals_.good_until = at + options_.interval * kGoodForIntervals;
  signals_.usage = used.value_or(Millicores(0));
  if (!compared) signals_.idle = std::max(capacity - signals_.usage, Millicores(0));
}

// Every other cgroup of v2 has a cpu.max.
bool MachineSampler::rootIsTheKernels() {
  if (!kernels_root_) {
    const auto limit = root_->limit();
    kernels_root_ = !limit && limit.error().absent();
  }
  return *kernels_root_;
}

// The parent's use is at least that of its children (readings are a moment apart). What the
// children do not explain is the use of the tasks directly in the parent.
void MachineSampler::addUp() {
  const MonotonicTime now = last_tick_;
  std::vector<CgroupSignals>& tree = signals_.tree;
  for (Place& place : places_) place.below = Millicores(0);
  Millicores top;
  for (std::size_t i = tree.size(); i-- > 0;) {  // children before parents
    CgroupSignals& signals = tree[i];
    if (signals.kind == CgroupSignals::Kind::kTasks) continue;
    if (signals.good_until < now) signals.usage = Millicores(0);
    if (signals.kind == CgroupSignals::Kind::kInner) {
      signals.usage = std::max(signals.usage, places_[i].below);
      if (!places_[i].cgroup) {
        signals.good_until = now + options_.interval * kGoodForIntervals;
      }
    }
    (signals.parent ? places_[*signals.parent].below : top) += signals.usage;
  }
  signals_.usage = std::max(signals_.usage, top);
  for (CgroupSignals& signals : tree) {
    if (signals.kind != CgroupSignals::Kind::kTasks) continue;
    signals.usage = signals.parent ? tree[*signals.parent].usage - places_[*signals.parent].below
                                   : signals_.usage - top;
    signals.good_until = signals.parent ? tree[*signals.parent].good_until : signals_.good_until;
  }
}

}  // namespace mbcas::sense
