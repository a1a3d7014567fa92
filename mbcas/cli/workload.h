// Pods that are named by what made them: a Deployment, StatefulSet, DaemonSet or ReplicaSet.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"

namespace mbcas::cli {

// What a command was asked about: "web-1", "shop/web-1", "pod/web-1" or "deploy/web".
struct Target {
  std::string name_space;  // empty: the default one
  std::string plural;      // "deployments" of apps/v1; empty: a pod
  std::string name;

  bool isPod() const { return plural.empty(); }
  friend bool operator==(const Target&, const Target&) = default;
};
// Before the slash a kind counts for more than a namespace of that name, as kubectl has it.
std::optional<Target> parseTarget(std::string_view words);

// The label selector of a workload's pods, from the workload's JSON: "app=web,tier in (a,b)".
// Without a selector it would be all pods, which is an error.
Result<std::string> podSelectorOf(std::string workload);

}  // namespace mbcas::cli
