// How an agent learns that a PodAllocation of its node has changed, without a watch. An API server
// has no index for "the allocations of this node", so it would compare every write of any of them
// with the watch of every agent. The controller marks the change on the agent's Lease instead, and
// the agent sees the mark in the answer to its next renewal.
//
//   Marks marks;                                       // the controller
//   marks.add(node, uid, now);
//   annotate the Lease with {kChangedAnnotation: marks.text(node, now)}
//
//   MarkReader reader;                                 // the agent
//   const News news = reader.read(annotation);         // each mark is news once
//
// A mark says only which objects to read again. A forged mark would only cause reads.
//
// Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"

namespace mbcas::podallocation {

inline constexpr std::string_view kChangedAnnotation = "mbcas.io/changed";
// A mark stays for several renewals. An agent that could not renew its Lease for longer than that
// must read everything again.
inline constexpr Nanos kMarkStays = std::chrono::seconds(60);
// Marks of one node. More of them are a single one that says "everything".
inline constexpr std::size_t kMostMarks = 50;
// A reader takes no longer text.
inline constexpr std::size_t kLongestMarks = std::size_t{16} << 10;

class Marks {
 public:
  // `first`: the number of the first mark. It has to differ from the numbers of earlier writers, so
  // that an agent does not take a new mark for one that it has seen. The time of day will do.
  explicit Marks(std::uint64_t first) : next_(first) {}

  void add(std::string_view node, std::string_view uid, MonotonicTime now);
  // What the Lease of the node should say. The first text for a node says "everything", because an
  // earlier writer may have left marks that no agent has read, or may have ended before it left
  // one.
  std::string text(std::string_view node, MonotonicTime now);
  void forget(const std::string& node) { nodes_.erase(node); }

 private:
  struct Mark {
    std::uint64_t number = 0;
    std::string uid;  // empty: everything
    MonotonicTime at{};
  };
  static bool isOld(const Mark& mark, MonotonicTime now) { return now - mark.at > kMarkStays; }

  std::uint64_t next_;
  std::map<std::string, std::deque<Mark>, std::less<>> nodes_;
};

struct News {
  bool everything = false;
  std::vector<std::string> uids{};  // empty if `everything`
  friend bool operator==(const News&, const News&) = default;
};

class MarkReader {
 public:
  // What is new since the last call. Text that is no list of marks brings no news.
  News read(std::string_view text);

 private:
  std::set<std::string, std::less<>> seen_;  // the marks of the last text
};

}  // namespace mbcas::podallocation
