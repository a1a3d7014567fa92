#include "mbcas/policy/siblings.h"

#include <algorithm>
#include <cmath>

namespace mbcas::policy {

std::optional<Millicores> startLevel(std::vector<Millicores> siblings) {
  if (siblings.empty()) return std::nullopt;
  const auto middle = siblings.begin() + static_cast<std::ptrdiff_t>(siblings.size() / 2);
  std::nth_element(siblings.begin(), middle, siblings.end());
  return *middle;
}

void WorkloadMemory::remember(const std::string& workload, Millicores level, MonotonicTime now) {
  if (levels_.size() >= kMost && !levels_.contains(workload)) {
    std::erase_if(levels_, [&](const auto& entry) { return now - entry.second.at > kKept; });
    if (levels_.size() >= kMost) {
      levels_.erase(std::min_element(levels_.begin(), levels_.end(),
                                     [](auto& a, auto& b) { return a.second.at < b.second.at; }));
    }
  }
  levels_[workload] = {level, now};
}

std::optional<Millicores> WorkloadMemory::recall(const std::string& workload,
                                                 MonotonicTime now) const {
  const auto found = levels_.find(workload);
  if (found == levels_.end() || now - found->second.at > kKept) return std::nullopt;
  return found->second.level;
}

std::vector<double> fairWeights(const std::vector<GroupMember>& group) {
  constexpr double kSatisfied = 0.9;
  constexpr double kStep = 0.25;
  std::vector<double> satisfaction;
  double sum = 0;
  bool all_satisfied = true;
  for (const GroupMember& member : group) {
    const double wanted = static_cast<double>(std::max<std::int64_t>(1, member.wanted.count()));
    const double share =
        std::clamp(static_cast<double>(member.in_force.count()) / wanted, 0.01, 1.0);
    satisfaction.push_back(share);
    sum += share;
    all_satisfied = all_satisfied && share >= kSatisfied;
  }
  std::vector<double> weights(group.size(), 1.0);
  if (group.size() < 2 || all_satisfied) return weights;
  const double mean = sum / static_cast<double>(group.size());
  for (std::size_t i = 0; i < group.size(); ++i) {
    weights[i] = std::clamp(std::round(mean / satisfaction[i] / kStep) * kStep, 0.5, 2.0);
  }
  return weights;
}

}  // namespace mbcas::policy
