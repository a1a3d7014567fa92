// How much the limits of a node's pods may still be raised in this second, together: a node where
// everything is throttled at once gets its raises in turns.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"

namespace mbcas::controller {

// Pure; not thread-safe.
class RaiseBudget {
 public:
  // `rate`: of a node's capacity, in a second.
  Millicores room(std::string_view node, Millicores capacity, double rate, MonotonicTime now) {
    const double most = static_cast<double>(capacity.count()) * rate;
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return Millicores(static_cast<std::int64_t>(most));
    const double seconds = std::chrono::duration<double>(now - found->second.at).count();
    found->second.left = std::min(most, found->second.left + std::max(0.0, seconds) * most);
    found->second.at = now;
    // Untouched for so long that nothing needs to be remembered.
    const double left = found->second.left;
    if (left >= most) nodes_.erase(found);
    return Millicores(static_cast<std::int64_t>(std::max(0.0, left)));
  }

  // After room() at the same time. Whoever looked before another spent may overdraw it; the node
  // then waits longer.
  void spend(const std::string& node, Millicores raise, Millicores room, MonotonicTime now) {
    auto [entry, added] =
        nodes_.try_emplace(node, Entry{.left = static_cast<double>(room.count()), .at = now});
    entry->second.left -= static_cast<double>(raise.count());
  }

 private:
  struct Entry {
    double left = 0;  // millicores
    MonotonicTime at{};
  };
  std::map<std::string, Entry, std::less<>> nodes_;
};

}  // namespace mbcas::controller
