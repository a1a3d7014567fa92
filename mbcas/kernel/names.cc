#include "mbcas/kernel/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace mbcas::kernel {
namespace {

bool isHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool allHex(std::string_view text) {
  return std::ranges::all_of(text, isHex);
}

// 8-4-4-4-12 hexadecimal digits.
bool isUuid(std::string_view text, char dash) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool at_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (at_dash ? text[i] != dash : !isHex(text[i])) return false;
  }
  return true;
}

bool isManifestHash(std::string_view text) {
  return text.size() == 32 && allHex(text);
}

bool consumePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool consumeSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::string_view name(Driver driver) {
  return driver == Driver::kSystemd ? "systemd" : "cgroupfs";
}

std::string_view name(Qos qos) {
  switch (qos) {
    case Qos::kGuaranteed:
      return "Guaranteed";
    case Qos::kBurstable:
      return "Burstable";
    case Qos::kBestEffort:
      break;
  }
  return "BestEffort";
}

std::string_view name(Runtime runtime) {
  switch (runtime) {
    case Runtime::kContainerd:
      return "containerd";
    case Runtime::kCrio:
      return "cri-o";
    case Runtime::kDocker:
      return "docker";
    case Runtime::kUnknown:
      break;
  }
  return "unknown";
}

std::optional<PodName> parsePodName(std::string_view directory) {
  std::string_view rest = directory;
  if (consumeSuffix(rest, ".slice")) {
    const std::size_t pod = rest.rfind("-pod");
    if (pod == std::string_view::npos) return std::nullopt;
    const std::string_view uid = rest.substr(pod + 4);
    if (!isUuid(uid, '_') && !isManifestHash(uid)) return std::nullopt;
    PodName name{std::string(uid), Driver::kSystemd};
    std::ranges::replace(name.uid, '_', '-');
    return name;
  }
  if (!consumePrefix(rest, "pod") || (!isUuid(rest, '-') && !isManifestHash(rest))) {
    return std::nullopt;
  }
  return PodName{std::string(rest), Driver::kCgroupfs};
}

std::string podNamesOf(std::string_view uid) {
  std::string underscored(uid);
  std::ranges::replace(underscored, '-', '_');
  return fmt::format("pod{}, *-pod{}.slice", uid, underscored);
}

std::string containerNamesOf(std::string_view id) {
  return fmt::format("{0}, crio-{0}, cri-containerd-{0}.scope, crio-{0}.scope, docker-{0}.scope",
                     id);
}

std::optional<ContainerName> parseContainerName(std::string_view directory) {
  std::string_view rest = directory;
  consumeSuffix(rest, ".scope");
  Runtime runtime = Runtime::kUnknown;
  if (consumePrefix(rest, "cri-containerd-")) {
    runtime = Runtime::kContainerd;
  } else if (consumePrefix(rest, "crio-")) {
    runtime = Runtime::kCrio;
  } else if (consumePrefix(rest, "docker-")) {
    runtime = Runtime::kDocker;
  }
  if (rest.size() != 64 || !allHex(rest)) return std::nullopt;
  return ContainerName{std::string(rest), runtime};
}

bool isPodParent(std::string_view directory, std::string_view parent) {
  if (parsePodName(directory)) return false;
  if (directory == "burstable" || directory == "besteffort") return isPodParent(parent, {});
  consumeSuffix(directory, ".slice");
  for (const std::string_view qos : {"-burstable", "-besteffort"}) {
    if (consumeSuffix(directory, qos)) break;
  }
  return directory == "kubepods" || directory.ends_with("-kubepods");
}

Qos qosOf(std::string_view pod_directory, std::string_view parent) {
  const auto is = [&](std::string_view word, std::string_view in_name) {
    return parent == word || pod_directory.find(in_name) != std::string_view::npos;
  };
  if (is("burstable", "-burstable-pod")) return Qos::kBurstable;
  if (is("besteffort", "-besteffort-pod")) return Qos::kBestEffort;
  return Qos::kGuaranteed;
}

}  // namespace mbcas::kernel
