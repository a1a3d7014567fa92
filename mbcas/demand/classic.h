// The classic estimator: the share of periods that were throttled, over a threshold (a tenth of
// them throttled is full demand), smoothed faster upwards than downwards. Use is the plain usage;
// nothing is learned about bursts.
#pragma once

#include "mbcas/demand/estimator.h"
#include "mbcas/demand/window.h"

namespace mbcas::demand {

class Classic final : public Estimator {
 public:
  explicit Classic(const Settings& settings)
      : settings_(settings), window_(settings.window, settings.mean) {}

  Need update(const Sample& sample) override;
  void configure(const Settings& settings) override { settings_ = settings; }
  void resume(Millicores, MonotonicTime) override {}

 private:
  Settings settings_;
  Window window_;
  std::uint64_t seen_ = 0;
  double smoothed_ = 0;
};

}  // namespace mbcas::demand
