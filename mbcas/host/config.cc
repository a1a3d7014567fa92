#include "mbcas/host/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "mbcas/base/quantity.h"

namespace mbcas::host {
namespace {

constexpr std::size_t kMaxText = 1 << 20;
constexpr std::size_t kMaxPods = 10'000;
constexpr Millicores kMostCpu(1'000'000);
constexpr int kMostPriority = 1'000'000'000;  // as Kubernetes

// Thrown and caught in this file: it saves passing a Result through every step of the walk.
struct BadField {
  int line;
  std::string what;
};

[[noreturn]] void refuse(const YAML::Node& node, const std::string& field, std::string_view why) {
  throw BadField{node.Mark().line + 1, fmt::format("{}: {}", field, why)};
}

void expectKeys(const YAML::Node& map, const std::string& field,
                const std::set<std::string>& known) {
  if (!map.IsMap()) refuse(map, field, "a mapping is expected");
  for (const auto& entry : map) {
    const std::string key = entry.first.Scalar();
    if (known.contains(key)) continue;
    refuse(entry.first, field.empty() ? key : fmt::format("{}.{}", field, key),
           fmt::format("unknown; one of {} is expected", fmt::join(known, ", ")));
  }
}

std::string text(const YAML::Node& node, const std::string& field) {
  if (!node.IsScalar() || node.Scalar().empty()) refuse(node, field, "a text is expected");
  return node.Scalar();
}

Millicores cpu(const YAML::Node& node, const std::string& field) {
  const Result<Quantity> quantity = Quantity::parse(text(node, field));
  if (!quantity) refuse(node, field, quantity.error().message());
  const Millicores value = quantity->millicores();
  if (value <= Millicores(0) || value > kMostCpu) {
    refuse(node, field, fmt::format("{} is not between 1m and 1000", node.Scalar()));
  }
  return value;
}

std::string cgroupPath(const YAML::Node& node, const std::string& field) {
  std::string path = text(node, field);
  if (!path.starts_with('/') || path.ends_with('/') || path.find("//") != std::string::npos ||
      (path + "/").find("/../") != std::string::npos ||
      (path + "/").find("/./") != std::string::npos || path.find('\n') != std::string::npos) {
    refuse(node, field,
           "a path below the cgroup root is expected, such as /system.slice/a.service");
  }
  return path;
}

PodConfig pod(const YAML::Node& node, const std::string& field) {
  expectKeys(node, field,
             {"name", "cgroup", "command", "request", "limit", "min", "max", "priority"});
  PodConfig pod;
  if (const YAML::Node name = node["name"]) pod.name = text(name, field + ".name");
  if (const YAML::Node cgroup = node["cgroup"]) pod.cgroup = cgroupPath(cgroup, field + ".cgroup");
  if (const YAML::Node command = node["command"]) {
    if (!command.IsSequence() || command.size() == 0) {
      refuse(command, field + ".command", "a list of words is expected: [./server, --port, 80]");
    }
    for (const YAML::Node& word : command) {
      if (!word.IsScalar()) refuse(word, field + ".command", "a list of words is expected");
      pod.command.push_back(word.Scalar());
    }
  }
  if (pod.cgroup.empty() == pod.command.empty()) {
    refuse(node, field, "either cgroup or command is expected");
  }
  const bool pattern = pod.cgroup.find_first_of("*?[") != std::string::npos;
  if (pod.name.empty() && !pattern) refuse(node, field + ".name", "is missing");
  if (!pod.command.empty() &&
      (pod.name.find('/') != std::string::npos || pod.name.starts_with('.'))) {
    refuse(node, field + ".name", "names a cgroup, so it has no / and no leading .");
  }
  const auto read = [&](const char* key, auto& value) {
    if (const YAML::Node given = node[key]) value = cpu(given, field + "." + key);
  };
  read("request", pod.request);
  read("limit", pod.limit);
  read("min", pod.min);
  read("max", pod.max);
  if (const YAML::Node given = node["priority"]) {
    try {
      pod.priority = given.as<int>();
    } catch (const YAML::Exception&) {
      refuse(given, field + ".priority", "a whole number is expected");
    }
    if (pod.priority > kMostPriority || pod.priority < -kMostPriority) {
      refuse(given, field + ".priority", "is beyond a billion");
    }
  }
  if (pod.min && pod.max && *pod.min > *pod.max) {
    refuse(node["max"], field + ".max", "is below min");
  }
  if (pod.max && pod.request > *pod.max) {
    refuse(node["max"], field + ".max", "is below the request");
  }
  if (!pod.command.empty() && !pod.limit) {
    refuse(node, field + ".limit", "is missing: a command is started with one");
  }
  return pod;
}

}  // namespace

Result<HostConfig> parseConfig(std::string_view yaml) {
  if (yaml.size() > kMaxText) return failure("longer than 1 MiB");
  HostConfig config;
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    expectKeys(root, "", {"settings", "pods"});
    if (const YAML::Node settings = root["settings"]) {
      if (!settings.IsMap()) refuse(settings, "settings", "a mapping is expected");
      for (const auto& entry : settings) {
        const std::string key = text(entry.first, "settings");
        config.settings[key] = text(entry.second, "settings." + key);
      }
    }
    const YAML::Node pods = root["pods"];
    if (!pods || !pods.IsSequence() || pods.size() == 0 || pods.size() > kMaxPods) {
      refuse(pods ? pods : root, "pods", "a list of 1 to 10,000 pods is expected");
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      const std::string field = fmt::format("pods[{}]", i);
      config.pods.push_back(pod(pods[i], field));
      if (!names.insert(config.pods.back().name).second) {
        refuse(pods[i], field + ".name", "is repeated");
      }
    }
  } catch (const BadField& bad) {
    return failure(fmt::format("line {}: {}", std::max(bad.line, 1), bad.what));
  } catch (const YAML::Exception& error) {
    return failure(fmt::format("line {}: {}", std::max(error.mark.line + 1, 1), error.msg));
  }
  return config;
}

}  // namespace mbcas::host
