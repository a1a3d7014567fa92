#include "mbcas/sim/ideal.h"

#include <algorithm>
#include <cmath>

namespace mbcas::sim {
namespace {

// The market knows whole millicores; a thousandth of one is fine enough for idle pods too.
constexpr double kUnit = 1e6;        // to a core
constexpr double kLongestWait = 10;  // seconds of work at full speed; who is later gives up

Millicores units(double cores) {
  return Millicores(std::llround(std::max(cores, 0.0) * kUnit));
}

}  // namespace

Ideal::Ideal(std::vector<Pod> pods)
    : pods_(std::move(pods)), waiting_(pods_.size()), gets_(pods_.size()) {
  for (const Pod& pod : pods_) {
    problem_.pods.push_back({.id = pod.name, .bid = pod.weight, .weight = pod.weight});
  }
}

std::span<const double> Ideal::divide(std::span<const Want> wants, double seconds, double cores) {
  problem_.capacity = units(cores);
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    waiting_[i] += wants[i].lasting;
    const double wanted = (waiting_[i] + wants[i].passing) / seconds;
    problem_.pods[i].max = units(std::min(wanted, pods_[i].most));
    problem_.pods[i].min = std::min(units(pods_[i].floor), problem_.pods[i].max);
  }
  const bool solved = solver_.solve(problem_, clearing_).has_value();
  scarce_ = solved && clearing_.mode != market::Mode::kUncongested;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    const Millicores got = solved ? clearing_.pods[i].cpu : problem_.pods[i].max;
    gets_[i] = static_cast<double>(got.count()) / kUnit * seconds;
    waiting_[i] =
        std::clamp(waiting_[i] - gets_[i], 0.0, std::max(pods_[i].most, 0.0) * kLongestWait);
  }
  return gets_;
}

bool Ideal::satisfied(std::size_t pod) const {
  constexpr double kNearlyAll = 0.98;
  return static_cast<double>(clearing_.pods[pod].cpu.count()) >=
         kNearlyAll * static_cast<double>(problem_.pods[pod].max.count());
}

}  // namespace mbcas::sim
