// The managed pods of a cluster as their PodAllocations tell of them: what the page of `mbcas ui`
// shows of a node whose agent cannot be observed, and what it searches for pods.
//
//   PodAnswer answer = answerPods({.node = "node-1"}, allocations, kMostPodsOfNode);
//   answerJson(answer)
//
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/cli/snapshot.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::cli {

struct AllocatedPod {
  std::string name_space;
  std::string pod;
  std::string node;
  std::optional<Millicores> declared;  // nothing: not recorded, because MBCAS has not changed it
  Millicores have;                     // limit in force
  Millicores wanted;                   // without floor, ceiling and scarcity
  Millicores desired;
  bool bound = false;  // below what it declared, for pods that matter more
  std::string phase;   // "Applied"
  std::string reason;

  friend bool operator==(const AllocatedPod&, const AllocatedPod&) = default;
};

// Which pods. What is empty does not matter.
struct PodQuestion {
  std::string node{};
  std::string text{};  // somewhere in "NAMESPACE/POD", in small or capital letters

  std::size_t most() const;  // that are answered; those of all nodes are to be saved
  bool asksFor(std::string_view name_space, std::string_view pod, std::string_view node) const;
  friend bool operator==(const PodQuestion&, const PodQuestion&) = default;
};

struct PodAnswer {
  std::vector<AllocatedPod> pods;  // the first ones by namespace and name
  std::size_t all = 0;             // how many there are
};

inline constexpr std::size_t kMostPodsOfNode = 1000;
inline constexpr std::size_t kMostPodsFound = 50;
inline constexpr std::size_t kMostPodsSaved = 200'000;  // they fit into a recording

// Pods that are left alone are not in it.
PodAnswer answerPods(const PodQuestion& question, const std::vector<AllocationPtr>& allocations,
                     std::size_t most);
PodAnswer answerPods(const PodQuestion& question, const std::vector<AllocatedPod>& rows,
                     std::size_t most);

// {"node":"node-1"}, {"text":"web"}, {}
Result<PodQuestion> parsePodQuestion(std::string json);
std::string answerJson(const PodAnswer& answer);

void writeAllocatedPod(JsonWriter& json, const AllocatedPod& row);
AllocatedPod readAllocatedPod(kube::JsonCursor object);

}  // namespace mbcas::cli
