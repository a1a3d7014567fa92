#include "mbcas/market/explain.h"

#include <fmt/format.h>

#include <cmath>

namespace mbcas::market {
namespace {

std::string millicores(double amount) {
  return fmt::format("{}m", std::round(amount));
}
std::string millicores(Millicores amount) {
  return fmt::format("{}m", amount.count());
}

// What a bid or weight bought at the price.
std::string purchase(const Problem& problem, const Pod& pod, double bid, double price) {
  const bool above_min = problem.objective == Objective::kBargaining && pod.min > Millicores(0);
  return fmt::format("{}{}", millicores(bid / price),
                     above_min ? fmt::format(" above its min of {}", millicores(pod.min)) : "");
}

}  // namespace

std::string explain(const Problem& problem, const Clearing& clearing, std::size_t index) {
  const Pod& pod = problem.pods[index];
  const Award& award = clearing.pods[index];
  switch (award.basis) {
    case Basis::kFloors:
      return fmt::format("overloaded: its guarantee of {} and {:.1f} % of the way to its min of {}",
                         millicores(pod.guarantee), clearing.overload_share * 100,
                         millicores(pod.min));
    case Basis::kGuarantees:
      return fmt::format("overloaded: {:.1f} % of its guarantee of {}",
                         clearing.overload_share * 100, millicores(pod.guarantee));
    case Basis::kBid:
    case Basis::kWeight:
    case Basis::kEqual:
      break;
  }
  const bool bids = award.basis == Basis::kBid;
  const double price = bids ? clearing.price.value_or(0) : clearing.spare_price;
  const double bid = bids ? pod.bid : award.basis == Basis::kWeight ? pod.weight : 1;
  const std::string budget = bids ? fmt::format("bid {:.4g}", pod.bid)
                             : award.basis == Basis::kWeight
                                 ? fmt::format("bids nothing; weight {:.4g}", pod.weight)
                                 : "bids nothing and has no weight; an equal part";
  switch (award.bound) {
    case Bound::kMax:
      if (price == 0)
        return fmt::format("at its max of {}: enough for all who bid", millicores(pod.max));
      return fmt::format("at its max of {}: {} at price {:.4g} would buy {}", millicores(pod.max),
                         budget, price, purchase(problem, pod, bid, price));
    case Bound::kMin:
      if (!bids && (price == 0 || award.basis == Basis::kEqual)) {
        return fmt::format("at its min of {}: bids nothing, and the others leave no more",
                           millicores(pod.min));
      }
      if (std::isinf(price) || problem.objective == Objective::kBargaining) {
        return fmt::format("at its min of {}: the mins take all there is", millicores(pod.min));
      }
      return fmt::format("at its min of {}: {} at price {:.4g} buys only {}", millicores(pod.min),
                         budget, price, purchase(problem, pod, bid, price));
    case Bound::kNone:
      break;
  }
  return fmt::format("{} at price {:.4g} buys {}", budget, price,
                     purchase(problem, pod, bid, price));
}

}  // namespace mbcas::market
