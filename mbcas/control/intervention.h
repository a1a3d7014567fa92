// Least intervention: where the market's division of a node's CPU differs from the kernel's own,
// and which limits bring it about without harm to any consumer.
//
// The kernel already divides CPU by its weights (market/kernel_division.h). The market multiplies
// the weight of each managed pod by its factor, which says how important the pod is. Where all
// factors are equal the two divisions are the same, and no limit below a declared one can help any
// pod. Where they differ, some pods have less than their award and others have more. Limits can
// move CPU from the latter to the former, but only if the kernel hands what they free to the right
// pods, and that is computed here before anything is written.
//
//   Intervener intervener;
//   const Intervention& answer = intervener.decide(capacity, consumers, bound_before);
//   answer.consumers[i].bound, answer.consumers[i].limit ...
//
// The promise: no consumer is left with less than the smaller of what plain Kubernetes with the
// declared limits gives it and its award. It holds by construction, for the demands that are given.
//
// Amounts are in cores. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "mbcas/market/kernel_division.h"

namespace mbcas::control {

// One cgroup of the machine: a managed pod, another consumer, or an inner cgroup.
struct Consumer {
  // Its place in the tree and its demand. The cap of a managed pod is ignored.
  market::CgroupNode cgroup{};
  bool managed = false;

  // The rest is of managed pods.
  double declared = market::kUncapped;
  double free = market::kUncapped;  // its limit while no pod is bound, within its ceiling
  double request = 0;
  double floor = 0;  // by policy; a bound pod keeps it, up to its declared limit
  double factor = 1;
  double peak = 0;        // the most that its demand might be if its limit is raised
  bool may_lower = true;  // its limit may go below the declared one now
  // Of a pod that is to be helped: the demand that it should be able to meet.
  std::optional<double> claim{};
};

struct Outcome {
  double plain = 0;      // what plain Kubernetes with declared limits gives it
  double by_kernel = 0;  // what the kernel gives it with free limits
  double award = 0;      // what the market gives it
  // The most that it may use on average. A managed pod's limit has to allow that much.
  double limit = market::kUncapped;
  bool bound = false;        // held at its award for a beneficiary
  bool beneficiary = false;  // it has a claim, and the kernel alone gives it less than its award
};

struct Intervention {
  std::vector<Outcome> consumers{};  // in the order of the input
  bool binds = false;
  double arrives = 0;  // the part of what is taken from bound pods that reaches beneficiaries
  double raises = 1;   // the part of each raise above a declared limit that keeps the promise
};

class Intervener {
 public:
  // Binding begins where at least this part of what is taken arrives, and ends below the other.
  static constexpr double kBindsFrom = 0.8;
  static constexpr double kBindsUntil = 0.6;

  // Valid until the next call. `bound_before`: the last answer did bind.
  const Intervention& decide(double capacity, std::span<const Consumer> consumers,
                             bool bound_before);

 private:
  enum class Demand { kPresent, kClaimed, kRaised };
  template <class Limit, class Weight>
  std::vector<double> divide(Demand demand, Limit limit, Weight weight);
  template <class Limit>
  std::vector<double> divide(Demand demand, Limit limit);
  void bind(bool bound_before);
  void keepPromise();

  double capacity_ = 0;
  std::span<const Consumer> consumers_{};
  Intervention answer_{};
  market::KernelDivision division_;
  std::vector<market::CgroupNode> nodes_;
};

// Which consumers the kernel alone keeps from using more, as far as their use explains it. A
// consumer is hungry if it uses (nearly) all that the kernel would give it if it took whatever it
// gets. `nodes` have the demand that was seen and the limits in force as caps; `idle` is the CPU
// that no consumer used, and where enough of it is left no consumer is hungry.
std::vector<bool> hungry(double capacity, double idle, std::span<const market::CgroupNode> nodes,
                         std::span<const double> use);

}  // namespace mbcas::control
