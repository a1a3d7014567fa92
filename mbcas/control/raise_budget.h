// Whether a limit on a node may be raised now. A node where every pod is throttled at once gets its
// raises in turns.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"

namespace mbcas::control {

// A raise is allowed in full as long as there is room, and the next raises wait until its excess
// has been paid for. Half a raise would only cost one more resize.
//
// Pure; not thread-safe.
class RaiseBudget {
 public:
  // `rate`: of a node's capacity, in a second. False: not now.
  bool hasRoom(std::string_view node, Millicores capacity, double rate, MonotonicTime now) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return true;
    const double most = static_cast<double>(capacity.count()) * rate;
    Entry& entry = found->second;
    const double seconds = std::chrono::duration<double>(now - entry.at).count();
    entry.spent = std::max(0.0, entry.spent - std::max(0.0, seconds) * most);
    entry.at = now;
    const bool room = entry.spent < most;
    if (entry.spent <= 0) nodes_.erase(found);  // nothing is left to remember
    return room;
  }

  void spend(const std::string& node, Millicores raise, MonotonicTime now) {
    nodes_.try_emplace(node, Entry{.at = now}).first->second.spent +=
        static_cast<double>(raise.count());
  }

 private:
  struct Entry {
    double spent = 0;  // millicores that have not been paid for
    MonotonicTime at{};
  };
  std::map<std::string, Entry, std::less<>> nodes_;
};

}  // namespace mbcas::control
