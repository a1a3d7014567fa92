// What a pod can learn from the other pods of its workload, and the fair weights among them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"

namespace mbcas::policy {

// Where a new pod begins: the median of its siblings' limits in force. Nothing without siblings.
std::optional<Millicores> startLevel(std::vector<Millicores> siblings);

// The last known level of workloads that have no pod left, for a while: a rollout that removes all
// old pods first has no siblings to ask.
class WorkloadMemory {
 public:
  static constexpr std::size_t kMost = 10'000;
  static constexpr Nanos kKept = std::chrono::hours(1);

  void remember(const std::string& workload, Millicores level, MonotonicTime now);
  std::optional<Millicores> recall(const std::string& workload, MonotonicTime now) const;
  std::size_t size() const { return levels_.size(); }

 private:
  struct Level {
    Millicores level;
    MonotonicTime at;
  };
  std::map<std::string, Level, std::less<>> levels_;
};

// One pod of a group whose pods should get equal treatment on all nodes.
struct GroupMember {
  Millicores in_force;
  Millicores wanted;
};
// Factors on the weights of the group's pods: above 1 for those that get less of what they want
// than the group does on average, below 1 for the others. Between 1/2 and 2, in steps of a quarter,
// so that they change rarely; 1 for all while every pod has at least 90 % of what it wants.
std::vector<double> fairWeights(const std::vector<GroupMember>& group);

}  // namespace mbcas::policy
