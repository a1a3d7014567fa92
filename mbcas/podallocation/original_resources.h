// The way back: before its first resize the controller records the CPU requests and limits that a
// pod was declared with, in two places.
//
// PodAllocation.status.original is the authority, because tenants cannot write it. The pod carries
// the same in an annotation, which survives the loss of its PodAllocation and is never overwritten:
//
//   mbcas.io/original-resources: {"main":{"request":"100m","limit":"500m"},"proxy":{"limit":"1"}}
//
// Any account that may patch pods may have written the annotation, so policy::wayBack() believes it
// only where the status is missing, and only within what policy allows. Both hold CPU only: nothing
// else is ever changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kube/types.h"
#include "mbcas/podallocation/pod_allocation.h"

namespace mbcas::podallocation {

inline constexpr std::string_view kOriginalResources = "mbcas.io/original-resources";

// What the pod's spec says now, of every container that can be resized (not plain init containers),
// without amounts that are too large to be counted.
std::vector<OriginalCpu> currentCpu(const kube::Pod& pod);
// The annotation's text, and what it says. Any tenant may have written it.
std::string encodeOriginal(const std::vector<OriginalCpu>& containers);
Result<std::vector<OriginalCpu>> parseOriginal(std::string_view annotation);

// Merge patch that adds the annotation to this incarnation of the pod. It carries the UID and the
// resource version, so a pod that has changed since it was read is left as it is (409).
std::string annotateOriginal(const kube::Pod& pod, const std::vector<OriginalCpu>& original);

}  // namespace mbcas::podallocation
