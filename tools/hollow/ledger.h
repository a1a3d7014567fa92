// What becomes of decisions: from when an agent made one until its limit is in force. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"

namespace mbcas::hollow {

class Ledger {
 public:
  // A line of an agent's decision log; it may come after the limit is in force.
  void decided(const std::string& line);
  void inForce(const std::string& uid, Millicores limit, WallTime at);
  void ended(const std::string& uid);

  struct Change {
    WallTime decided{};
    WallTime in_force{};
    bool raise = false;
    double urgency = 0;  // weight times what is missing, as the outbox ranks wishes
  };
  struct Summary {
    std::uint64_t decisions = 0;  // that change a limit
    std::uint64_t replaced = 0;   // of those: by a newer one before they were in force
    std::vector<Change> changes{};
  };
  // Since the last call.
  Summary take();
  std::size_t open() const;  // raises that are not in force yet; decreases take their time

 private:
  struct Pod {
    std::optional<Change> open{};
    Millicores desired;  // of the open one
    Millicores limit;    // in force, since
    WallTime since{};
  };
  void close(Pod& pod);

  mutable std::mutex mutex_;
  std::map<std::string, Pod> pods_;  // by UID; guarded by mutex_, as all below
  Summary summary_;
};

// Of values in any order, by nearest rank; 0 if there are none. `share` in [0, 1].
double quantile(std::vector<double> values, double share);

}  // namespace mbcas::hollow
