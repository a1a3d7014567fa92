// What came of a simulation: plain numbers, and the same as JSON and CSV.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/sim/latencies.h"

namespace mbcas::sim {

// Measured from the end of the settling time on, unless it says otherwise. Rates are in cores, so
// throttling of 1 is 1000 ms of thread time a second.
struct PodReport {
  std::string name{};
  bool managed = true;
  double offered = 0;  // what it wanted to use, bounded by its threads and the node's CPUs
  double used = 0;
  double throttled = 0;
  double reserved = 0;     // its limits, of all replicas; mean over time
  double relief = 0;       // seconds, from the start on: the longest time in which it was throttled
                           // (20 ms/s or more) although there was enough CPU for it
  double first_limit = 0;  // cores; 0: none
  double last_limit = 0;
  double lowest_limit = 0;
  double highest_limit = 0;
  double changes = 0;           // of its limits, in 5 minutes
  std::optional<double> p50{};  // milliseconds, of requests and periods of work
  std::optional<double> p99{};
  std::uint64_t jobs = 0;
  std::uint64_t refused = 0;

  friend bool operator==(const PodReport&, const PodReport&) = default;
};

struct Report {
  std::string scenario{};
  std::string policy{};
  std::uint64_t seed = 0;
  double seconds = 0;  // simulated

  double used = 0;                   // by managed pods
  double reserved = 0;               // by their limits; 0: they have none
  double throttled_free = 0;         // mean of a pod for which there was enough CPU
  double throttled_constrained = 0;  // and of one for which there was not
  double changes = 0;                // of a pod's limits in 5 minutes, mean
  double most_changes = 0;           // and the highest
  double relief = 0;                 // the highest of the pods'
  // Weighted geometric mean of the shares of their demand that pods got, over that of the best
  // division for the true demands (ideal.h); mean over windows of 30 s. Above 1 where the reserve,
  // which the best division leaves, was used.
  double fairness = 1;
  double jain = 1;    // Jain's index of what pods got, of what the best division gives them
  double scarce = 0;  // share of the time in which the true demands exceeded the capacity
  std::optional<double> p50{};  // milliseconds, of all requests of managed pods
  std::optional<double> p99{};
  std::optional<double> p999{};
  std::vector<PodReport> pods{};

  // Episodes from the start on in which a pod was throttled (20 ms/s or more) although there was
  // enough CPU: seconds until its limit was raised (or a replica came), and until it was over, with
  // 30 s of calm. Infinite: never. Episodes without a reaction that passed within 10 s do not
  // count.
  std::vector<double> reactions{};
  std::vector<double> convergences{};

  Latencies requests{};               // of managed services
  Latencies held_back{};              // thread time in a second, of each pod in each window
  std::vector<double> window_use{};   // cores used by managed pods in each window of 30 s
  std::vector<double> window_most{};  // and what they may use together

  friend bool operator==(const Report&, const Report&) = default;
};

// Fills in the percentiles of its requests.
void summariseRequests(Report& report);

// The share of what limits reserve that was not used; nothing without limits.
std::optional<double> slackOf(const Report& report);

// Nothing of none.
std::optional<double> median(std::vector<double> values);

// Several nodes as one: sums of CPU, means of rates and indices, the highest of the highest.
Report merged(std::span<const Report> nodes);

// What was used, in each window at most what may be, next to the same without limits: 1 wastes
// nothing.
double usedBeside(const Report& report, const Report& unlimited);

std::string toJson(std::span<const Report> reports);
// A line for each pod under each policy, with a title.
std::string toCsv(std::span<const Report> reports);

}  // namespace mbcas::sim
