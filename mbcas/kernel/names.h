// What the names of directories in a kubepods tree say. Pure text; the shapes are those that the
// kubelet's two cgroup drivers and the container runtimes make:
//
//   pod        kubepods-burstable-pod<uid with _ for ->.slice    systemd driver
//              pod<uid>                                          cgroupfs driver
//   container  cri-containerd-<id>.scope, crio-<id>.scope, docker-<id>.scope     systemd driver
//              <id>, crio-<id>                                                   cgroupfs driver
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mbcas::kernel {

enum class Driver { kSystemd, kCgroupfs };
enum class Qos { kGuaranteed, kBurstable, kBestEffort };
enum class Runtime { kUnknown, kContainerd, kCrio, kDocker };

std::string_view name(Driver driver);
std::string_view name(Qos qos);
std::string_view name(Runtime runtime);

struct PodName {
  std::string uid;  // as in the API: with dashes; a static pod's is 32 hexadecimal digits, the
                    // hash of its manifest (annotation kubernetes.io/config.hash)
  Driver driver = Driver::kSystemd;
};
std::optional<PodName> parsePodName(std::string_view directory);

// The directories that a pod of this UID may have, for a person.
std::string podNamesOf(std::string_view uid);

struct ContainerName {
  std::string id;                       // what follows "://" in the pod's status
  Runtime runtime = Runtime::kUnknown;  // a bare id does not say which
};
// CRI-O's crio-conmon-<id>, which is not a container, is no match.
std::optional<ContainerName> parseContainerName(std::string_view directory);

// The directories that a container of this id may have, for a person.
std::string containerNamesOf(std::string_view id);

// A directory in which pods are made: kubepods, kubepods.slice, kubelet-kubepods-burstable.slice,
// and burstable or besteffort below one of them.
bool isPodParent(std::string_view directory, std::string_view parent);

// From the pod's own name (systemd driver) or from the directory above it (cgroupfs driver).
Qos qosOf(std::string_view pod_directory, std::string_view parent);

}  // namespace mbcas::kernel
