#include "mbcas/agent/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "mbcas/agent/pipeline.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/kernel/fake_tree.h"
#include "mbcas/kernel/mounts.h"
#include "mbcas/kernel/pod_tree.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::agent {
namespace {

constexpr const char* kNode = "replay";
constexpr std::size_t kNameOfId = 12;  // as tools of container runtimes shorten ids
constexpr Nanos kShortest = std::chrono::milliseconds(100);

struct Step {
  Nanos at{0};
  // Files that changed since the step before; nothing: it is gone.
  std::vector<std::pair<std::string, std::optional<std::string>>> files{};
};

// A recording may come from anywhere and must not write anywhere.
bool staysWithin(std::string_view path) {
  if (path.empty() || path.starts_with('/')) return false;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    if (part == "..") return false;
  }
  return true;
}

void parseStep(kube::JsonCursor value, Step& step) {
  value.members([&](std::string_view key, kube::JsonCursor field) {
    if (key == "at") {
      const std::string_view text = field.scalar();
      double seconds = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
      constexpr double kMost = 1e9;  // thirty years
      if (error != std::errc{} || end != text.data() + text.size() ||
          !(seconds >= 0 && seconds <= kMost)) {
        field.fail("not a time");
        return;
      }
      step.at = std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(seconds));
    } else if (key == "files") {
      field.members([&](std::string_view path, kube::JsonCursor content) {
        if (!staysWithin(path)) return content.fail("not a path within the tree");
        auto& [name, text] = step.files.emplace_back();
        name = path;
        if (!content.isNull()) text = content.text();
      });
    }
  });
}

Result<std::vector<Step>> readSteps(const std::string& path) {
  std::ifstream file(path);
  if (!file) return failure("it cannot be read");
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<Step> steps;
  std::int64_t format = 0;
  kube::JsonParser parser;
  Result<void> parsed = parser.parse(text, [&](kube::JsonCursor root) {
    root.members([&](std::string_view key, kube::JsonCursor value) {
      if (key == "format") format = value.integer();
      if (key != "steps") return;
      value.elements([&](kube::JsonCursor element) { parseStep(element, steps.emplace_back()); });
    });
  });
  if (!parsed) return failure(std::move(parsed).error());
  if (format != 1) return failure("not a recording of tools/capture-cgroups in format 1");
  if (steps.empty()) return failure("it has no steps");
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].at <= steps[i - 1].at) return failure(fmt::format("steps[{}].at: not later", i));
  }
  return steps;
}

Nanos intervalOf(const std::vector<Step>& steps) {
  std::vector<Nanos> intervals;
  for (std::size_t i = 1; i < steps.size(); ++i) intervals.push_back(steps[i].at - steps[i - 1].at);
  if (intervals.empty()) return std::chrono::seconds(1);
  std::ranges::sort(intervals);
  // The shortest, so that no step comes too early.
  return std::max(intervals.front() / kShortest * kShortest, kShortest);
}

// What a cluster would say about the pods in the tree.
class Cluster {
 public:
  Cluster(const kernel::Mounts& mounts, const ReplayOptions& options, Nanos interval)
      : tree_(mounts) {
    world_.settings = options.settings;
    world_.settings.paused = false;
    world_.settings.sample_interval = interval;
    world_.node = *kube::decodeObject<kube::Node>(
        fmt::format(R"({{"metadata":{{"name":"{}"}},"status":{{"capacity":{{"cpu":"{}"}}}}}})",
                    kNode, std::max(options.cpus, 1U)));
  }

  World look() {
    tree_.scan();
    world_.pods.clear();
    world_.allocations.clear();
    for (const auto& [path, pod] : tree_.pods()) {
      const std::vector<Limited> containers = limited(pod);
      world_.pods.push_back(*kube::decodeObject<kube::Pod>(podJson(pod.uid, containers)));
      world_.allocations.push_back(
          *kube::decodeObject<podallocation::PodAllocation>(allocationJson(pod.uid, containers)));
    }
    return world_;
  }

  void write(const Wish& wish) { said_[wish.uid] = wish.spec; }

 private:
  struct Limited {
    std::string name;
    std::string id;
    Millicores declared;
  };

  // Its containers that have a limit, or had one when they were first seen.
  std::vector<Limited> limited(const kernel::PodCgroup& pod) {
    std::vector<Limited> containers;
    for (const kernel::ContainerCgroup& container : pod.containers) {
      auto known = declared_.find(container.inode);
      if (known == declared_.end()) {
        const auto cgroup = tree_.open(container.path);
        const auto limit = cgroup ? (*cgroup)->limit() : kernel::ReadResult<kernel::CpuLimit>();
        const std::optional<Millicores> cpu = limit ? limit->millicores() : std::nullopt;
        if (!cpu || *cpu <= Millicores(0)) continue;
        known = declared_.emplace(container.inode, *cpu).first;
      }
      containers.push_back({container.id.substr(0, kNameOfId), container.id, known->second});
    }
    return containers;
  }

  static std::string podJson(const std::string& uid, const std::vector<Limited>& containers) {
    std::string out;
    JsonWriter json(out);
    json.beginObject();
    json.key("metadata").beginObject();
    json.key("name").value(uid).key("uid").value(uid).endObject();
    json.key("spec").beginObject().key("nodeName").value(kNode).key("containers").beginArray();
    for (const Limited& container : containers) {
      json.beginObject().key("name").value(container.name).key("resources").beginObject();
      json.key("requests").beginObject().key("cpu").value("0").endObject();
      json.key("limits").beginObject().key("cpu").value(text(container.declared)).endObject();
      json.endObject().endObject();
    }
    json.endArray().endObject();
    json.key("status").beginObject().key("phase").value("Running");
    json.key("qosClass").value("Burstable").key("conditions").beginArray().beginObject();
    json.key("type").value("Ready").key("status").value("True").endObject().endArray();
    json.key("containerStatuses").beginArray();
    for (const Limited& container : containers) {
      json.beginObject().key("name").value(container.name);
      json.key("containerID").value("replay://" + container.id);
      json.key("resources").beginObject().endObject();
      json.key("state").beginObject().key("running").beginObject().endObject().endObject();
      json.endObject();
    }
    json.endArray().endObject().endObject();
    return out;
  }

  // It says what was last wished for, and that there are no bounds.
  std::string allocationJson(const std::string& uid, const std::vector<Limited>& containers) {
    const auto [said, first] = said_.try_emplace(uid);
    if (first) {
      said->second = {.pod_name = uid, .node = kNode};
      for (const Limited& container : containers) {
        said->second.containers.push_back({container.name, container.declared});
        said->second.desired += container.declared;
      }
    }
    std::string json = podallocation::applySpec({uid, uid}, said->second);
    json.pop_back();
    return json + R"(,"status":{"bounds":{"managed":true}}})";
  }

  static std::string text(Millicores cpu) { return fmt::format("{}m", cpu.count()); }

  kernel::PodTree tree_;
  std::map<std::uint64_t, Millicores> declared_;  // by the container's inode
  std::map<std::string, podallocation::Spec> said_;
  World world_;
};

class Recording {
 public:
  explicit Recording(const std::string& root) : root_(root) {}

  void apply(const Step& step, kernel::FakeTree& tree) const {
    for (const auto& [path, content] : step.files) {
      if (content) {
        tree.write(path, *content);
        continue;
      }
      tree.remove(path);
      const std::string cgroup = std::filesystem::path(path).parent_path().string();
      if (isEmpty(cgroup)) tree.remove(cgroup);
    }
  }

 private:
  // Of a removed cgroup nothing is left but what every directory of the tree has.
  bool isEmpty(const std::string& cgroup) const {
    std::error_code error;
    std::filesystem::directory_iterator entries(root_ + "/" + cgroup, error);
    if (error || cgroup.empty()) return false;
    return std::ranges::all_of(entries, [](const std::filesystem::directory_entry& entry) {
      return entry.path().filename() == "cgroup.procs";
    });
  }

  std::string root_;
};

Result<void> replayed(const std::string& path, const ReplayOptions& options,
                      const std::function<void(std::string line)>& print) {
  Result<std::vector<Step>> steps = readSteps(path);
  if (!steps) return failure(std::move(steps).error().within(path));
  kernel::FakeTree tree;
  if (tree.root().empty()) return failure("no place for temporary files");
  const Recording recording(tree.root());
  recording.apply(steps->front(), tree);
  Result<kernel::Mounts> mounts = kernel::detectMounts(tree.root());
  if (!mounts) return failure(std::move(mounts).error().within(path));
  mounts->proc = tree.root();  // a recording says nothing of the machine it is replayed on

  SimulatedClock clock;
  clock.advance(steps->front().at);
  Cluster cluster(*mounts, options, intervalOf(*steps));
  Pipeline pipeline(std::make_unique<kernel::PodTree>(*mounts), clock,
                    {.node_name = kNode, .cpus = std::max(options.cpus, 1U), .adaptive = false});
  for (const Step& step : *steps) {
    if (&step != &steps->front()) {
      recording.apply(step, tree);
      clock.advance(step.at - clock.monotonic().time_since_epoch());
    }
    pipeline.update(cluster.look());
    const Outcome& outcome = pipeline.tick();
    for (const Wish& wish : outcome.wishes) {
      cluster.write(wish);
      const View& view = pipeline.view();
      const auto pod = std::ranges::find(view.pods, wish.uid, &PodView::uid);
      if (pod != view.pods.end()) print(decisionJson(view, *pod));
    }
  }
  if (options.state) print(stateJson(pipeline.view()));
  return {};
}

}  // namespace

Result<void> replay(const std::string& path, const ReplayOptions& options,
                    const std::function<void(std::string line)>& print) {
  try {
    return replayed(path, options, print);
  } catch (const std::filesystem::filesystem_error& error) {
    return failure(Error(error.what()).within(path));
  }
}

}  // namespace mbcas::agent
