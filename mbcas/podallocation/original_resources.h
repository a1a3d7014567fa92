// The way back, carried by the pod itself: before its first resize the CPU requests and limits that
// it was declared with go into an annotation, which is never overwritten.
//
//   mbcas.io/original-resources: {"main":{"request":"100m","limit":"500m"},"proxy":{"limit":"1"}}
//
// CPU only: nothing else is ever changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kube/types.h"

namespace mbcas::podallocation {

inline constexpr std::string_view kOriginalResources = "mbcas.io/original-resources";

struct OriginalCpu {
  std::string container;
  std::optional<Millicores> request;
  std::optional<Millicores> limit;
  friend bool operator==(const OriginalCpu&, const OriginalCpu&) = default;
};

// What the pod's spec says now, of every container that can be resized (not plain init containers),
// without amounts that are too large to be counted.
std::vector<OriginalCpu> currentCpu(const kube::Pod& pod);
// The annotation's text, and what it says. Anybody may have written it.
std::string encodeOriginal(const std::vector<OriginalCpu>& containers);
Result<std::vector<OriginalCpu>> parseOriginal(std::string_view annotation);

// Merge patch that adds the annotation to this incarnation of the pod, if nobody has changed the
// pod since it was read: its UID and resource version go along (409 otherwise).
std::string annotateOriginal(const kube::Pod& pod);

}  // namespace mbcas::podallocation
