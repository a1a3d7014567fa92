#include "tools/hollow/ledger.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "mbcas/base/time.h"

namespace mbcas::hollow {

void Ledger::decided(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (json.is_discarded()) return;
  const Result<WallTime> time = parseRfc3339(json.value("time", ""));
  const Millicores desired(json.value("desired", std::int64_t{0}));
  const Millicores limit(json.value("limit", std::int64_t{0}));
  if (!time) return;
  const std::scoped_lock lock(mutex_);
  const auto found = pods_.find(json.value("uid", ""));
  if (found == pods_.end()) return;  // it ended while its agent decided
  Pod& pod = found->second;
  // The limit is as it should be: said so that the controller sees the pod, or instead of an
  // earlier wish.
  if (desired == limit) {
    summary_.replaced += pod.open ? 1 : 0;
    pod.open.reset();
    return;
  }
  ++summary_.decisions;
  if (pod.open) ++summary_.replaced;
  pod.desired = desired;
  pod.open =
      Change{.decided = *time,
             .raise = desired > limit,
             .urgency = json.value("weight", 0.0) * static_cast<double>((desired - limit).count())};
  if (pod.limit == desired && pod.since >= *time) close(pod);
}

void Ledger::inForce(const std::string& uid, Millicores limit, WallTime at) {
  const std::scoped_lock lock(mutex_);
  Pod& pod = pods_[uid];
  if (std::exchange(pod.limit, limit) == limit) return;
  pod.since = at;
  if (pod.open && pod.desired == limit) close(pod);
}

void Ledger::ended(const std::string& uid) {
  const std::scoped_lock lock(mutex_);
  pods_.erase(uid);
}

void Ledger::close(Pod& pod) {
  pod.open->in_force = pod.since;
  summary_.changes.push_back(*std::exchange(pod.open, std::nullopt));
}

Ledger::Summary Ledger::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(summary_, {});
}

std::size_t Ledger::open() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      pods_, [](const auto& pod) { return pod.second.open && pod.second.open->raise; }));
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto rank = static_cast<std::size_t>(
      std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace mbcas::hollow
