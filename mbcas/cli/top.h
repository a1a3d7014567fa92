// `mbcas top`: pods as a table, most troubled first; live, or once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/cli/record.h"
#include "mbcas/cli/snapshot.h"

namespace mbcas::cli {

struct TopRow {
  std::string name_space;
  std::string pod;
  std::string node;
  std::optional<Millicores> need;  // limit at which it would have all it can use
  std::optional<Millicores> limit;
  std::optional<Millicores> applied;
  std::optional<Millicores> throttled;  // thread time held back per wall time: 1m is 1 ms/s
  std::optional<double> pressure;
  std::optional<double> price;  // of its node
  bool overloaded = false;      // its node has no price
  std::string phase;
  std::optional<Nanos> age;
  // For -o wide.
  std::optional<Millicores> used;
  std::optional<Millicores> declared;
  std::optional<Millicores> desired;
  std::optional<Millicores> award;
  bool managed = false;
  bool constrained = false;
  std::string help;                    // as in PodRecord
  std::vector<std::string> bound_for;  // likewise
  std::string why;
};

struct TopNode {
  std::string node;
  MarketRecord market;
  Millicores used;  // by its managed pods
};

struct TopView {
  WallTime at{};
  std::vector<TopNode> nodes;  // those of which the market is known
  std::vector<TopRow> rows;
  std::vector<std::string> notes;
};

using NodeRecords = std::map<std::string, std::shared_ptr<const NodeRecord>, std::less<>>;

// A cluster: `agents` has the nodes whose agents answer.
TopView topOf(const std::vector<PodPtr>& pods, const std::vector<AllocationPtr>& allocations,
              const NodeRecords& agents, WallTime now);
// One machine.
TopView topOf(const NodeRecord& node);

enum class TopKey : std::uint8_t {
  kPod,
  kNode,
  kNeed,
  kLimit,
  kApplied,
  kThrottled,
  kPressure,
  kPrice,
  kPhase,
  kAge,
};
std::string_view name(TopKey key);  // "throttled"
Result<TopKey> parseTopKey(std::string_view text);
std::vector<std::string> topKeyNames();

struct TopOptions {
  bool namespaces = false;  // show them
  bool wide = false;
  TopKey sort = TopKey::kThrottled;
  bool reverse = false;
};

// Numbers: the largest first; texts by alphabet. What is not known comes last.
void sortRows(std::vector<TopRow>& rows, TopKey key, bool reverse);
// At most `max_width` columns; 0: any.
std::string topTable(const std::vector<TopRow>& rows, const TopOptions& options, bool colours,
                     std::size_t max_width = 0);
std::string topJson(const TopView& view);

// "1.53 of 3.90 CPU used, scarce: price 0.25"; empty: no market is known.
std::string marketLine(const TopView& view);
// Pods that are held back by their limits to an extent worth a word.
std::size_t throttledPods(const std::vector<TopRow>& rows);

// The column that a letter sorts by on the live screen; nothing: it is no such letter.
std::optional<TopKey> topKeyOf(char letter);
// "p pod, o node, ..."
std::string topLetters();

}  // namespace mbcas::cli
