// The labels and annotations by which users control how MBCAS treats their objects.
#pragma once

#include <string_view>

namespace mbcas::policy {

// "false" as label or annotation, on a pod or its namespace: left alone.
inline constexpr std::string_view kManaged = "mbcas.io/managed";
// Annotations of a pod.
inline constexpr std::string_view kMinCpu = "mbcas.io/min-cpu";
inline constexpr std::string_view kMaxCpu = "mbcas.io/max-cpu";
inline constexpr std::string_view kManageGuaranteed = "mbcas.io/manage-guaranteed";
// Label of a namespace: off, recommend, raise-only, full.
inline constexpr std::string_view kMode = "mbcas.io/mode";

}  // namespace mbcas::policy
