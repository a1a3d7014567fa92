// The Horizontal Pod Autoscaler's arithmetic, as Kubernetes 1.35 has it
// (pkg/controller/podautoscaler: replica_calculator.go, horizontal.go), for CPU utilization and the
// default behaviour. Pure; the policy that feeds it is in peers.cc.
#pragma once

#include <deque>
#include <optional>
#include <span>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"

namespace mbcas::sim {

struct HpaSettings {
  int target = 60;  // percent of the request
  double tolerance = 0.1;
  int least = 1;
  int most = 10;
  Nanos downscale_window = std::chrono::minutes(5);  // stabilisation; upwards there is none
};

struct HpaPod {
  Millicores request;
  std::optional<Millicores> usage{};  // nothing: metrics have none yet
  bool ready = true;                  // and its metrics are of a time when it was
};

// What the metrics ask for. Nothing: no ready pod has metrics, so nothing is done.
std::optional<int> hpaWants(std::span<const HpaPod> pods, int current, const HpaSettings& settings);

// One autoscaler: what it wants over time, stabilised and limited.
class Hpa {
 public:
  explicit Hpa(const HpaSettings& settings) : settings_(settings) {}

  // Once per sync. The number of replicas that there should be.
  int sync(MonotonicTime now, std::span<const HpaPod> pods, int current);

 private:
  struct Wanted {
    MonotonicTime at;
    int replicas;
  };
  HpaSettings settings_;
  std::deque<Wanted> wanted_;  // within the window
};

}  // namespace mbcas::sim
