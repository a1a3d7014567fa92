#include "mbcas/sim/scenario.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "mbcas/base/quantity.h"

namespace mbcas::sim {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMostContainers = 64;
constexpr std::size_t kMostPoints = 100'000;
constexpr double kHighestRate = 100'000;  // requests a second
constexpr Nanos kLongest = hours(24 * 7);
constexpr Nanos kShortestPeriod = microseconds(100);

std::optional<double> number(std::string_view text) {
  double value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// "250ms", "1.5s", "10m".
std::optional<Nanos> duration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}}};
  for (const auto& [unit, nanos] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const std::optional<double> count = number(text.substr(0, text.size() - unit.size()));
    if (count && *count >= 0 && *count * nanos < 1e18) {
      return Nanos(static_cast<std::int64_t>(std::llround(*count * nanos)));
    }
  }
  return std::nullopt;
}

// The first mistake; what comes after it is not read.
struct Problem {
  std::string text;
  bool any() const { return !text.empty(); }
};

// Keys are anybody's text, and an error is one line.
std::string oneLine(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return text;
}

std::string at(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? std::string() : fmt::format("line {}: ", mark.line + 1);
}

// One mapping: reads its fields into places, then complains about the fields that were not read.
class Fields {
 public:
  Fields(const YAML::Node& node, std::string path, Problem& problem)
      : node_(node), path_(std::move(path)), problem_(problem) {
    if (!problem_.any() && !node_.IsMap()) complain(node_, path_, "must be a mapping");
  }

  bool good() const { return !problem_.any() && node_.IsMap(); }
  std::string pathOf(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  void complain(std::string_view key, std::string_view what) {
    complain(child(key), pathOf(key), what);
  }

  // An undefined node if there is none.
  YAML::Node child(std::string_view key) {
    if (!good()) return YAML::Node(YAML::NodeType::Undefined);
    known_.insert(std::string(key));
    return std::as_const(node_)[std::string(key)];
  }
  bool has(std::string_view key) { return child(key).IsDefined(); }

  // Text, where the field is there.
  std::optional<std::string> text(std::string_view key) {
    const YAML::Node node = child(key);
    if (problem_.any() || !node.IsDefined()) return std::nullopt;
    if (!node.IsScalar()) {
      complain(key, "must be a single value");
      return std::nullopt;
    }
    return node.Scalar();
  }

  void read(std::string_view key, std::string& into) {
    if (auto value = text(key)) into = *std::move(value);
  }
  void read(std::string_view key, bool& into) {
    const auto value = text(key);
    if (!value) return;
    if (*value != "true" && *value != "false") return complain(key, "must be true or false");
    into = *value == "true";
  }
  void read(std::string_view key, double& into, double least, double most) {
    const auto value = text(key);
    if (!value) return;
    const auto parsed = number(*value);
    if (!parsed || *parsed < least || *parsed > most) {
      return complain(key, fmt::format("must be a number from {} to {}", least, most));
    }
    into = *parsed;
  }
  template <std::integral T>
  void read(std::string_view key, T& into, T least, T most) {
    const auto value = text(key);
    if (!value) return;
    T parsed{};
    const char* const end = value->data() + value->size();
    const auto [rest, error] = std::from_chars(value->data(), end, parsed);
    if (error != std::errc() || rest != end || parsed < least || parsed > most) {
      return complain(key, fmt::format("must be a whole number from {} to {}", least, most));
    }
    into = parsed;
  }
  void read(std::string_view key, Nanos& into, Nanos least = Nanos(0), Nanos most = kLongest) {
    const auto value = text(key);
    if (!value) return;
    const auto parsed = duration(*value);
    if (!parsed) return complain(key, "must be a time such as 250ms, 30s or 10m");
    if (*parsed < least || *parsed > most) return complain(key, "is too short or too long");
    into = *parsed;
  }
  void read(std::string_view key, Millicores& into) {
    const auto value = text(key);
    if (!value) return;
    const Result<Quantity> quantity = Quantity::parse(*value);
    constexpr Millicores kMost(1'000'000);
    if (!quantity || quantity->millicores() < Millicores(0) || quantity->millicores() > kMost) {
      return complain(key, "must be an amount of CPU such as 250m or 1.5");
    }
    into = quantity->millicores();
  }
  template <class T>
  void read(std::string_view key, std::optional<T>& into) {
    if (!has(key)) return;
    T value{};
    read(key, value);
    into = value;
  }
  template <class T, std::size_t N>
  void read(std::string_view key, T& into,
            const std::array<std::pair<std::string_view, T>, N>& words) {
    const auto value = text(key);
    if (!value) return;
    std::string all;
    for (const auto& [word, meaning] : words) {
      if (word == *value) {
        into = meaning;
        return;
      }
      all += fmt::format("{}{}", all.empty() ? "" : ", ", word);
    }
    complain(key, fmt::format("must be one of {}", all));
  }

  // The items of a list, where there is one.
  template <class Each>
  void list(std::string_view key, std::size_t most, Each each) {
    const YAML::Node node = child(key);
    if (problem_.any() || !node.IsDefined()) return;
    if (!node.IsSequence()) return complain(key, "must be a list");
    if (node.size() > most) return complain(key, fmt::format("has more than {} items", most));
    for (std::size_t i = 0; i < node.size() && !problem_.any(); ++i) {
      each(node[i], fmt::format("{}[{}]", pathOf(key), i));
    }
  }

  // Nothing is there that was not asked for.
  void finish() {
    if (!good()) return;
    for (const auto& entry : node_) {
      if (!entry.first.IsScalar() || !known_.contains(entry.first.Scalar())) {
        const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
        return complain(entry.first, pathOf(name.substr(0, 80)), "is not a known field");
      }
    }
  }

 private:
  void complain(const YAML::Node& node, const std::string& path, std::string_view what) {
    if (problem_.any()) return;
    const YAML::Node& place = node.IsDefined() ? node : node_;
    problem_.text = fmt::format("{}{}{}{}", at(place), path, path.empty() ? "" : ": ", what);
    problem_.text = oneLine(problem_.text);
  }

  YAML::Node node_;
  std::string path_;
  Problem& problem_;
  std::set<std::string> known_;
};

class Parser {
 public:
  explicit Parser(const std::string& directory) : directory_(directory) {}

  Result<Scenario> parse(const YAML::Node& root) {
    Scenario scenario;
    Fields fields(root, "", problem_);
    fields.read("name", scenario.name);
    fields.read("description", scenario.description);
    fields.read("cpus", scenario.cpus, 1U, 1024U);
    fields.read("duration", scenario.duration, seconds(1));
    fields.read("settle", scenario.settle);
    fields.read("seed", scenario.seed, std::uint64_t{0}, ~std::uint64_t{0});
    fields.read("nodes", scenario.nodes, 1U, 1000U);
    fields.read("interval", scenario.interval, milliseconds(100), seconds(60));
    fields.read("cpuStatLocal", scenario.stat_local);
    if (fields.has("actuation")) {
      Fields actuation(fields.child("actuation"), "actuation", problem_);
      actuation.read("min", scenario.delay_min, Nanos(0), seconds(60));
      actuation.read("max", scenario.delay_max, Nanos(0), seconds(60));
      if (scenario.delay_max < scenario.delay_min) actuation.complain("max", "is below min");
      actuation.finish();
    }
    if (!fields.has("pods")) fields.complain("pods", "is missing");
    fields.list("pods", kMostPods, [&](const YAML::Node& node, const std::string& path) {
      pod(node, path, scenario.pods);
    });
    fields.finish();
    if (problem_.any()) return failure(problem_.text);
    std::set<std::string_view> names;
    for (const PodSpec& pod : scenario.pods) {
      if (!names.insert(pod.name).second) return failure("pods: two are called " + pod.name);
    }
    return scenario;
  }

 private:
  void pod(const YAML::Node& node, const std::string& path, std::vector<PodSpec>& pods) {
    PodSpec spec;
    Fields fields(node, path, problem_);
    name(fields, spec.name);
    fields.read("priority", spec.priority, std::int64_t{-2'000'000'000},
                std::int64_t{2'000'000'000});
    std::optional<bool> managed;
    fields.read("managed", managed);
    fields.read("outside", spec.outside);
    fields.read("start", spec.start);
    fields.read("end", spec.end);
    if (spec.end && *spec.end <= spec.start) fields.complain("end", "is not after start");
    fields.read("min", spec.floor);
    fields.read("max", spec.ceiling);
    if (fields.text("ready") == "never") {
      spec.ready_after.reset();
    } else {
      fields.read("ready", spec.ready_after);
    }
    fields.list("restarts", 1000, [&](const YAML::Node& item, const std::string& where) {
      const auto time = item.IsScalar() ? duration(item.Scalar()) : std::nullopt;
      if (!time || *time < spec.start ||
          (!spec.restarts.empty() && *time <= spec.restarts.back())) {
        problem_.text = fmt::format("{}{}: must be a time after the last", at(item), where);
        return;
      }
      spec.restarts.push_back(*time);
    });
    if (fields.has("containers")) {
      fields.list("containers", kMostContainers,
                  [&](const YAML::Node& item, const std::string& where) {
                    Fields container(item, where, problem_);
                    ContainerSpec& out = spec.containers.emplace_back();
                    name(container, out.name);
                    resources(container, out);
                    container.finish();
                  });
      if (spec.containers.empty()) fields.complain("containers", "is empty");
      std::set<std::string_view> names;
      for (const ContainerSpec& container : spec.containers) {
        if (!names.insert(container.name).second) fields.complain("containers", "share a name");
      }
    } else {
      resources(fields, spec.containers.emplace_back());
    }
    manage(fields, managed, spec);
    std::size_t count = 1;
    const bool many = fields.has("count");
    fields.read("count", count, std::size_t{1}, kMostPods);
    fields.finish();
    if (problem_.any()) return;
    if (pods.size() + count > kMostPods) {
      return fields.complain("count", fmt::format("makes more than {} pods", kMostPods));
    }
    for (std::size_t i = 0; i < count; ++i) {
      pods.push_back(spec);
      if (many) pods.back().name += fmt::format("-{}", i);
    }
  }

  // Whether MBCAS may change its limit: as the controller judges real pods.
  void manage(Fields& fields, std::optional<bool> managed, PodSpec& spec) {
    if (spec.outside) {
      for (const std::string_view key :
           {"request", "limit", "priority", "min", "max", "ready", "restarts", "containers"}) {
        if (fields.has(key)) fields.complain(key, "belongs to pods, and this process is outside");
      }
      if (managed == true) fields.complain("managed", "a process outside cannot be managed");
    } else if (managed == true && !spec.limited()) {
      fields.complain("managed", "a pod without a limit cannot be managed");
    } else if (managed == true && spec.qos() == kernel::Qos::kGuaranteed) {
      fields.complain("managed",
                      "a Guaranteed pod, whose limits equal its requests, cannot be managed");
    }
    const bool manageable =
        !spec.outside && spec.limited() && spec.qos() != kernel::Qos::kGuaranteed;
    spec.managed = managed.value_or(manageable);
  }

  void name(Fields& fields, std::string& into) {
    if (!fields.has("name")) return fields.complain("name", "is missing");
    fields.read("name", into);
    const auto allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    };
    if (into.empty() || into.size() > 63 || !std::ranges::all_of(into, allowed)) {
      fields.complain("name", "must be lower-case letters, digits and dashes, at most 63");
    }
  }

  void resources(Fields& fields, ContainerSpec& container) {
    fields.read("request", container.request);
    fields.read("limit", container.limit);
    if (container.limit && *container.limit < std::max(container.request, Millicores(10))) {
      fields.complain("limit", "is below the request, or below 10m");
    }
    if (fields.has("workload")) {
      workload(fields.child("workload"), fields.pathOf("workload"), container.workload);
    }
  }

  void workload(const YAML::Node& node, const std::string& path, WorkloadSpec& spec) {
    using Kind = WorkloadSpec::Kind;
    Fields fields(node, path, problem_);
    if (!fields.has("kind")) return fields.complain("kind", "is missing");
    fields.read("threads", spec.threads, 1, kMostThreads);
    if (fields.text("kind") == "trace") {
      trace(fields, spec);
      return fields.finish();
    }
    constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds = {
        {{"idle", Kind::kIdle},
         {"spin", Kind::kSpin},
         {"periodic", Kind::kPeriodic},
         {"bursty", Kind::kBursty},
         {"service", Kind::kService}}};
    fields.read("kind", spec.kind, kKinds);
    fields.read("phase", spec.phase);
    const bool takes_turns = spec.kind == Kind::kPeriodic || spec.kind == Kind::kBursty;
    if (takes_turns || spec.kind == Kind::kSpin) {
      fields.read("on", spec.on, microseconds(1));
      fields.read("period", spec.period, kShortestPeriod);
      if (takes_turns || fields.has("on") || fields.has("period")) {
        if (spec.on == Nanos(0)) fields.complain("on", "is missing");
        if (spec.period == Nanos(0)) fields.complain("period", "is missing");
      }
    }
    if (spec.kind == Kind::kService) {
      constexpr std::array<std::pair<std::string_view, WorkloadSpec::Sizes>, 2> kSizes = {
          {{"exponential", WorkloadSpec::Sizes::kExponential},
           {"fixed", WorkloadSpec::Sizes::kFixed}}};
      fields.read("rate", spec.rate, 0.0, kHighestRate);
      fields.read("work", spec.work, microseconds(1));
      fields.read("sizes", spec.sizes, kSizes);
      if (spec.work == Nanos(0)) fields.complain("work", "is missing");
    }
    if (spec.kind == Kind::kService || spec.kind == Kind::kBursty) {
      fields.read("queue", spec.queue, 1, 1'000'000);
    }
    if (fields.has("load")) load(fields.child("load"), fields.pathOf("load"), spec.profile);
    if (spec.rate * spec.profile.highest() > kHighestRate) {
      fields.complain("rate", fmt::format("is more than {} with its load", kHighestRate));
    }
    fields.finish();
  }

  void load(const YAML::Node& node, const std::string& path, Profile& profile) {
    Fields fields(node, path, problem_);
    const int shapes =
        int{fields.has("steps")} + int{fields.has("linear")} + int{fields.has("diurnal")};
    if (fields.good() && shapes != 1) {
      problem_.text = fmt::format("{}{}: must have one of steps, linear, diurnal", at(node), path);
      return;
    }
    if (fields.has("diurnal")) {
      Fields diurnal(fields.child("diurnal"), fields.pathOf("diurnal"), problem_);
      profile.shape = Profile::Shape::kDiurnal;
      diurnal.read("low", profile.low, 0.0, 1000.0);
      diurnal.read("high", profile.high, 0.0, 1000.0);
      diurnal.read("period", profile.period, seconds(1));
      if (profile.period == Nanos(0)) diurnal.complain("period", "is missing");
      diurnal.finish();
    }
    const std::string_view key = fields.has("steps") ? "steps" : "linear";
    if (fields.has(key)) {
      profile.shape = key == "steps" ? Profile::Shape::kSteps : Profile::Shape::kLinear;
    }
    fields.list(key, kMostPoints, [&](const YAML::Node& item, const std::string& where) {
      const bool pair =
          item.IsSequence() && item.size() == 2 && item[0].IsScalar() && item[1].IsScalar();
      const auto time = pair ? duration(item[0].Scalar()) : std::nullopt;
      const auto factor = pair ? number(item[1].Scalar()) : std::nullopt;
      if (!time || !factor || *factor < 0 || *factor > 1000) {
        problem_.text = fmt::format("{}{}: must be [time, factor], as [30s, 1.5]", at(item), where);
        return;
      }
      if (!profile.points.empty() && *time <= profile.points.back().at) {
        problem_.text = fmt::format("{}{}: is not after the one before", at(item), where);
        return;
      }
      profile.points.push_back({*time, *factor});
    });
    if (fields.has(key) && profile.points.empty()) fields.complain(key, "is empty");
    fields.finish();
  }

  // So many cores at each time, in slices of 10 ms on every thread.
  void trace(Fields& fields, WorkloadSpec& spec) {
    std::string file;
    fields.read("file", file);
    if (problem_.any()) return;
    if (file.empty() || file.find('/') != std::string::npos || directory_.empty()) {
      return fields.complain("file", "must be a file next to the scenario");
    }
    std::ifstream stream(directory_ + "/" + file);
    std::ostringstream text;
    if (!stream || !(text << stream.rdbuf())) {
      return fields.complain("file", "cannot be read");
    }
    Result<std::vector<Profile::Point>> points = parseTrace(text.str());
    if (!points) return fields.complain("file", points.error().message());
    spec.kind = WorkloadSpec::Kind::kPeriodic;
    spec.profile.shape = Profile::Shape::kSteps;
    spec.profile.points = *std::move(points);
    if (!fields.has("threads")) {
      spec.threads = static_cast<int>(
          std::clamp(std::ceil(spec.profile.highest()), 1.0, static_cast<double>(kMostThreads)));
    }
    spec.period = milliseconds(10);
    spec.on = spec.period / spec.threads;
  }

  std::string directory_;
  Problem problem_;
};

}  // namespace

Millicores PodSpec::request() const {
  Millicores total;
  for (const ContainerSpec& container : containers) total += container.request;
  return total;
}

bool PodSpec::limited() const {
  return std::ranges::any_of(containers,
                             [](const ContainerSpec& each) { return each.limit.has_value(); });
}

kernel::Qos PodSpec::qos() const {
  const bool equal = std::ranges::all_of(
      containers, [](const ContainerSpec& each) { return each.limit == each.request; });
  if (equal && !containers.empty()) return kernel::Qos::kGuaranteed;
  const bool any = limited() || request() > Millicores(0);
  return any ? kernel::Qos::kBurstable : kernel::Qos::kBestEffort;
}

Scenario nodeOf(const Scenario& scenario, unsigned n) {
  Scenario node = scenario;
  node.nodes = 1;
  node.seed += n;
  return node;
}

Result<Scenario> parseScenario(std::string_view yaml, const std::string& directory) {
  if (yaml.size() > kLongestScenario) {
    return failure(fmt::format("longer than {} bytes", kLongestScenario));
  }
  try {
    return Parser(directory).parse(YAML::Load(std::string(yaml)));
  } catch (const YAML::Exception& error) {
    return failure(oneLine(fmt::format("line {}: {}", error.mark.line + 1, error.msg)));
  }
}

Result<std::vector<Profile::Point>> parseTrace(std::string_view csv) {
  std::vector<Profile::Point> points;
  std::size_t line = 0;
  while (!csv.empty()) {
    std::string_view row = csv.substr(0, csv.find('\n'));
    csv.remove_prefix(std::min(row.size() + 1, csv.size()));
    ++line;
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty()) continue;
    const std::size_t comma = row.find(',');
    const auto time = number(row.substr(0, comma));
    const auto cores =
        comma == std::string_view::npos ? std::nullopt : number(row.substr(comma + 1));
    if (!time && !cores && line == 1) continue;
    if (!time || !cores || *time < 0 || *time > 1e9 || *cores < 0 || *cores > 1000) {
      return failure(fmt::format("line {}: must be seconds,cores", line));
    }
    const Nanos at(static_cast<std::int64_t>(std::llround(*time * 1e9)));
    if (!points.empty() && at <= points.back().at) {
      return failure(fmt::format("line {}: is not after the one before", line));
    }
    if (points.size() == kMostPoints) {
      return failure(fmt::format("more than {} lines", kMostPoints));
    }
    points.push_back({at, *cores});
  }
  if (points.empty()) return failure("no lines of seconds,cores");
  return points;
}

}  // namespace mbcas::sim
