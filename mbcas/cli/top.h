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
#include "mbcas/view/keys.h"

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

// The live screen: what it shows, and what keys do.
class TopScreen {
 public:
  explicit TopScreen(TopOptions options) : options_(options) {}

  void update(TopView view) { view_ = std::move(view); }
  // Instead of a newer view there is only this to say.
  void note(std::string text) { view_.notes = {std::move(text)}; }
  void press(view::Key key);
  // At most `height` lines of at most `width` columns.
  std::vector<std::string> render(const std::string& title, std::size_t width, std::size_t height,
                                  bool colours);

 private:
  TopOptions options_;
  TopView view_;
  std::size_t first_ = 0;  // row at the top
  std::size_t page_ = 1;   // rows that fit
};

}  // namespace mbcas::cli
