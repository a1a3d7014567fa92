// The events of pods. docs/reference/events.md is made from this file: of each reason, the lines
// above it say what it means.
#pragma once

#include <string_view>

#include "mbcas/kube/events.h"

namespace mbcas::controller {

struct PodEvent {
  kube::EventType type;
  std::string_view reason;
};

// The kubelet has put a higher CPU limit in force than the pod had. The message has both limits and
// the reason.
inline constexpr PodEvent kLimitRaised{kube::EventType::kNormal, "CPULimitRaised"};

// The kubelet has put a lower CPU limit in force than the pod had. The message has both limits and
// the reason.
inline constexpr PodEvent kLimitLowered{kube::EventType::kNormal, "CPULimitLowered"};

// The pod has the CPU requests and limits again that it declared, because of `mbcas restore`, a
// pause, a mode, an opt-out, or a silent agent.
inline constexpr PodEvent kRestored{kube::EventType::kNormal, "Restored"};

// Another writer changed the CPU limits of the pod. MBCAS takes them as what the pod declares.
inline constexpr PodEvent kDeclaredChanged{kube::EventType::kNormal, "DeclaredChanged"};

// The API server refused a resize, or the kubelet cannot apply it. The message says why. The
// controller tries again, later each time.
inline constexpr PodEvent kResizeFailed{kube::EventType::kWarning, "ResizeFailed"};

// A PodAllocation of this pod was written for another node than the pod's. The controller deletes
// it. The token of that node's agent may be in the wrong hands.
inline constexpr PodEvent kForeignAllocation{kube::EventType::kWarning, "ForeignAllocation"};

}  // namespace mbcas::controller
