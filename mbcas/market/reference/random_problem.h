// Random problems for tests, benchmarks and long comparisons, from ordinary to extreme: the same
// seed gives the same problem everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>

#include "mbcas/market/solver.h"

namespace mbcas::market::reference {

class ProblemGenerator {
 public:
  explicit ProblemGenerator(std::uint64_t seed) : random_(seed) {}

  // A problem of any kind: whole or fractional bids, narrow or wide ranges, many ties or none,
  // free, congested or overloaded. Capacity and bounds are chosen in relation to each other, so
  // that all modes are common.
  Problem any(std::size_t most_pods) {
    Problem problem;
    problem.objective = below(2) == 0 ? Objective::kBargaining : Objective::kWelfare;
    const std::size_t count = below(most_pods) + 1;
    const std::int64_t scale = std::int64_t{1} << below(8) * below(6);  // up to 2^35
    const std::uint64_t bids = below(7);
    const std::uint64_t bounds = below(5);
    std::int64_t min_sum = 0;
    std::int64_t max_sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      Pod pod;
      pod.id = std::to_string(below(10)) + "-" + std::to_string(i);
      pod.weight = bid(below(4) == 0 ? bids : 0);
      pod.bid = bid(bids);
      const std::int64_t most = scale * 32 - 1;
      switch (bounds) {
        case 0:
          pod.max = Millicores(most);
          break;
        case 1:
          pod.min = amount(scale), pod.max = pod.min + amount(scale);
          break;
        case 2:
          pod.min = pod.max = amount(scale);
          break;
        case 3:
          // Breakpoints that coincide, or nearly.
          pod.max = Millicores(std::min(most, static_cast<std::int64_t>(pod.bid * 4)));
          pod.min = Millicores(pod.max.count() / static_cast<std::int64_t>(1 + below(4)));
          break;
        default:
          pod.min = amount(scale), pod.max = pod.min + amount(most);
          break;
      }
      if (below(3) == 0) pod.guarantee = Millicores(pod.min.count() / 2);
      if (below(8) == 0) pod.guarantee = pod.min;
      min_sum += pod.min.count();
      max_sum += pod.max.count();
      problem.pods.push_back(std::move(pod));
    }
    const std::int64_t range = max_sum - min_sum;
    switch (below(8)) {
      case 0:
        problem.capacity = Millicores(min_sum);
        break;
      case 1:
        problem.capacity = Millicores(max_sum);
        break;
      case 2:
        problem.capacity = Millicores(max_sum + 1);
        break;
      case 3:
        problem.capacity = Millicores(integer(min_sum));
        break;
      case 4:
        problem.capacity = Millicores(min_sum + std::min<std::int64_t>(range, integer(20)));
        break;
      default:
        problem.capacity = Millicores(min_sum + integer(range));
        break;
    }
    problem.capacity = std::min(problem.capacity, kLargestAmount);
    return problem;
  }

  // A typical node or quota: requests as weights, priorities, most pods wanting something between
  // their bounds, capacity for about half of that.
  Problem ordinary(std::size_t count) {
    Problem problem;
    std::int64_t max_sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      Pod pod;
      pod.id =
          "1b4e28ba-2fa1-11d2-883f-" + std::to_string(100'000'000'000 + below(899'999'999'999));
      pod.weight =
          static_cast<double>(10 + below(2000)) * (1.0 + static_cast<double>(below(5)) / 10);
      pod.bid = pod.weight;
      pod.min = Millicores(50 + integer(150));
      pod.max = pod.min + Millicores(1 + integer(2000));
      max_sum += pod.max.count();
      problem.pods.push_back(std::move(pod));
    }
    problem.capacity = Millicores(max_sum / 2);
    return problem;
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::int64_t integer(std::int64_t most) {
    return static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most) + 1));
  }

 private:
  Millicores amount(std::int64_t most) { return Millicores(integer(most)); }

  double bid(std::uint64_t kind) {
    const double unit = static_cast<double>(random_() >> 11) * 0x1p-53;  // [0, 1)
    switch (kind) {
      case 0:
        return static_cast<double>(below(4));
      case 1:
        return static_cast<double>(1 + below(1000));
      case 2:
        return unit;
      case 3:
        return 100;
      case 4:
        return below(2) == 0 ? 0 : unit * 1000;
      case 5:
        return std::pow(10.0, unit * 24 - 12);
      default:
        return 0;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace mbcas::market::reference
