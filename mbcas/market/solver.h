// The market: who gets CPU when there is not enough of it.
//
//   mbcas::market::Problem problem{.capacity = Millicores(1000)};
//   problem.pods.push_back({.id = "a", .bid = 60, .min = Millicores(100)});
//   problem.pods.push_back({.id = "b", .bid = 40, .min = Millicores(100)});
//
//   Result<Clearing> clearing = mbcas::market::clear(problem);
//   clearing->pods[0].cpu;    // 580m: its 100m, and 60 / 0.125 of the surplus
//   clearing->pods[1].cpu;    // 420m
//   clearing->mode;           // kCongested
//   clearing->price;          // 0.125: what one millicore costs, in units of bid
//
// The answer is the one that maximises
//
//   sum of bid_i * log(x_i - f_i)    subject to    min_i <= x_i <= max_i,  sum of x_i <= capacity
//
// with f_i = min_i (kBargaining) or f_i = 0 (kWelfare). It is x_i = clamp(f_i + bid_i / price,
// min_i, max_i) at the one price where the sum meets the capacity; docs/market.md has the proof.
//
// - Every millicore that some pod can use is given out: the sum is min(capacity, sum of max) unless
//   the mins alone exceed the capacity.
// - Pods that bid 0 get their min, and share by weight (the same formula with the weight for the
//   bid) what is left when every bidder has its max. Pods with neither come last and share equally.
// - When the mins exceed the capacity, the market is overloaded: x_i = guarantee_i + s * (min_i -
//   guarantee_i) with one s for all; when even the guarantees exceed it, x_i is in proportion to
//   them. Bids do not count then.
//
// Rounding. The bids are taken as the exact binary fractions that doubles are, and the answer above
// is computed without error, in integers. A pod at its min or max is whole already. The others,
// which share one price, are rounded down, and what that leaves goes, one millicore each, to the
// largest fractional parts; equal fractions go to the smaller id, compared as bytes. So the sum is
// exact, and the answer depends neither on the order of the pods nor on compiler or machine.
//
// Pure: no I/O, clock, log, randomness or global state. Time is linear in the number of pods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"

namespace mbcas::market {

// What a problem may hold. A bid or weight below the smallest counts as 0: a demand that decays
// exponentially gets there without being meant to.
inline constexpr Millicores kLargestAmount{std::int64_t{1} << 40};  // of capacity, min, guarantee
inline constexpr double kLargestBid = 0x1p64;                       // exclusive; of weights too
inline constexpr double kSmallestBid = 0x1p-64;
inline constexpr std::size_t kMostPods = std::size_t{1} << 20;

// A max above kLargestAmount never binds.
inline constexpr Millicores kNoCeiling{std::int64_t{1} << 62};

enum class Objective : std::uint8_t {
  kBargaining,  // Nash bargaining: bids divide what is left after the mins
  kWelfare,     // Nash social welfare: bids divide the whole, the mins only bound it
};

struct Pod {
  std::string id;     // unique in its problem; used for nothing but ties
  double bid = 1;     // budget for the contested CPU; 0 takes only what bidders leave
  double weight = 1;  // divides spare CPU among the pods that bid 0
  Millicores min{0};
  Millicores max = kNoCeiling;
  Millicores guarantee{0};  // at most min; what an overloaded market honours first

  friend bool operator==(const Pod&, const Pod&) = default;
};

struct Problem {
  Millicores capacity{0};
  Objective objective = Objective::kBargaining;
  std::vector<Pod> pods = {};

  friend bool operator==(const Problem&, const Problem&) = default;
};

enum class Mode : std::uint8_t {
  kUncongested,  // every pod that bids has its max; price 0
  kCongested,    // bidders want more than there is; price above 0
  kOverloaded,   // the mins exceed the capacity; no price
};

// Which bound the exact answer, before rounding, stands at. Max where min and max coincide.
enum class Bound : std::uint8_t { kNone, kMin, kMax };

// By what a pod's CPU was decided, within its bounds.
enum class Basis : std::uint8_t {
  kBid,         // bid / price
  kWeight,      // it bids 0: weight / spare_price of what the bidders left
  kEqual,       // neither bid nor weight: 1 / spare_price of what the others left
  kFloors,      // overloaded: guarantee + overload_share * (min - guarantee)
  kGuarantees,  // overloaded beyond the guarantees: overload_share * guarantee
};

struct Award {
  Millicores cpu{0};
  Bound bound = Bound::kNone;
  Basis basis = Basis::kBid;

  friend bool operator==(const Award&, const Award&) = default;
};

struct Clearing {
  Mode mode = Mode::kUncongested;

  // The marginal value of one more millicore: by how much the objective would rise. None when
  // overloaded; infinite when the mins take all of the capacity and a bidder has no other CPU.
  std::optional<double> price = 0.0;
  // The same among the pods that bid 0, in units of weight. 0 when they have their max, or nothing
  // beyond their min.
  double spare_price = 0;
  // The factor of an overloaded market, in [0, 1); 1 otherwise. See Basis.
  double overload_share = 1;

  Millicores allocated{0};
  Millicores unallocated{0};
  std::vector<Award> pods = {};  // in the order of the problem

  friend bool operator==(const Clearing&, const Clearing&) = default;
};

// Whether the problem is well formed. An error names the field: "pods[3].max: 100 is below min
// 200".
Result<void> validate(const Problem& problem);

// Validates and solves. For a loop, keep a Solver instead.
Result<Clearing> clear(const Problem& problem);

// Solves without allocating once it has seen a problem as large. Not for use by two threads at
// once. It keeps no state but its buffers, so any sequence of problems gives the same answers.
class Solver {
 public:
  Solver();
  ~Solver();
  Solver(Solver&&) noexcept;
  Solver& operator=(Solver&&) noexcept;

  // Fails exactly when validate() does, except that repeated ids are not detected (that would cost
  // more than the solution); pods that share an id are distinguished by their place in the input.
  // On failure `clearing` is unspecified.
  [[nodiscard]] Result<void> solve(const Problem& problem, Clearing& clearing);

 private:
  struct Workspace;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace mbcas::market
