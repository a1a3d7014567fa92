#include "mbcas/sim/vpa.h"

#include <algorithm>
#include <cmath>

namespace mbcas::sim {
namespace {

constexpr double kFirstBucket = 0.01;  // cores
constexpr double kGrowth = 1.05;
constexpr double kMostCores = 1000;
constexpr double kLeastWeight = 0.1;
constexpr double kMargin = 0.15;
constexpr std::int64_t kLeastRequest = 25;  // millicores
constexpr double kMostMillicores = 1e9;
constexpr int kLargestExponent = 100;

double bucketStart(std::size_t bucket) {
  return kFirstBucket * (std::pow(kGrowth, static_cast<double>(bucket)) - 1) / (kGrowth - 1);
}
std::size_t bucketOf(double cores) {
  if (cores < kFirstBucket) return 0;
  return static_cast<std::size_t>(std::log(cores * (kGrowth - 1) / kFirstBucket + 1) /
                                  std::log(kGrowth));
}
std::size_t buckets() {
  return bucketOf(kMostCores) + 1;
}

// Amounts are cut off to whole millicores at each step.
std::int64_t scaled(std::int64_t amount, double factor) {
  return static_cast<std::int64_t>(std::min(static_cast<double>(amount) * factor, kMostMillicores));
}

double days(Nanos time) {
  return std::chrono::duration<double, std::ratio<86'400>>(time).count();
}

}  // namespace

void DecayingHistogram::shiftReference(MonotonicTime to) {
  const double factor = std::exp2(days(reference_ - to) / days(half_life_));
  for (double& weight : weights_) weight *= factor;
  total_ *= factor;
  reference_ = to;
}

void DecayingHistogram::add(double cores, double weight, MonotonicTime at) {
  if (weights_.empty()) {
    weights_.resize(buckets());
    reference_ = at;
  }
  if (at - reference_ > half_life_ * kLargestExponent) shiftReference(at);
  const double counts = weight * std::exp2(days(at - reference_) / days(half_life_));
  weights_[std::min(bucketOf(cores), weights_.size() - 1)] += counts;
  total_ += counts;
}

double DecayingHistogram::percentile(double share) const {
  if (total_ <= 0) return 0;
  double sum = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < weights_.size(); ++bucket) {
    sum += weights_[bucket];
    if (sum >= share * total_) break;
  }
  return bucketStart(bucket + 1 < weights_.size() ? bucket + 1 : bucket);
}

void VpaRecommender::add(MonotonicTime at, double cores, Millicores request) {
  histogram_.add(cores, std::max(request.cores(), kLeastWeight), at);
  if (samples_ == 0) first_ = at;
  last_ = at;
  ++samples_;
}

VpaAdvice VpaRecommender::advice() const {
  // In days; what is known for a short time has wide bounds.
  const double confidence =
      std::min(days(last_ - first_), static_cast<double>(samples_) / (60 * 24));
  const auto estimate = [&](double share, double multiplier) {
    const auto cpu = static_cast<std::int64_t>(histogram_.percentile(share) * 1000);
    return Millicores(std::max(scaled(scaled(cpu, 1 + kMargin), multiplier), kLeastRequest));
  };
  return {.lower = estimate(0.5, std::pow(1 + 0.001 / confidence, -2)),
          .target = estimate(0.9, 1),
          .upper = estimate(0.95, 1 + 1 / confidence)};
}

bool vpaUpdates(Millicores request, const VpaAdvice& advice, Nanos age) {
  if (request < advice.lower || request > advice.upper) return true;
  constexpr double kWorthIt = 0.1;
  const double difference = std::abs((advice.target - request).cores()) /
                            std::max(request.cores(), Millicores(1).cores());
  return age >= std::chrono::hours(12) && difference >= kWorthIt;
}

}  // namespace mbcas::sim
