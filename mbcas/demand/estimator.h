// Estimators of what one container needs, behind one interface.
#pragma once

#include <memory>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/demand/need.h"
#include "mbcas/demand/window.h"

namespace mbcas::demand {

enum class Kind { kResponsive, kClassic };
Result<Kind> parseKind(std::string_view text);  // "responsive", "classic"

struct Settings {
  Kind kind = Kind::kResponsive;
  unsigned cpus = 1;  // of the machine: no container can use more
  std::uint32_t warmup = 5;
  // Of the median, and in which the highest mean is looked for; of those that an estimator is made
  // with.
  Nanos window = Window::kSpan;
  Nanos mean = Window::kMean;

  Nanos burst_hold = std::chrono::seconds(300);  // responsive

  double throttle_threshold = 0.1;  // classic
  double ema_up = 0.3;
  double ema_down = 0.1;

  friend bool operator==(const Settings&, const Settings&) = default;
};

class Estimator {
 public:
  virtual ~Estimator() = default;

  // Concludes from one more sample. Pure: time is the sample's. Allocates nothing.
  virtual Need update(const Sample& sample) = 0;

  // Other settings of the same kind from now on, but for window and mean. What was learned stays.
  virtual void configure(const Settings& settings) = 0;

  // The reason for the container's limit is not known any more. The limit stands for what was
  // learned about its bursts, until a lower one has been tried.
  virtual void resume(Millicores limit, MonotonicTime now) = 0;
};

std::unique_ptr<Estimator> makeEstimator(const Settings& settings);

}  // namespace mbcas::demand
