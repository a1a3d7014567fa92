#include "mbcas/cli/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/cli/findings.h"
#include "mbcas/cli/words.h"
#include "mbcas/view/text.h"

namespace mbcas::cli {
namespace {

using podallocation::PodAllocation;
using view::Colour;
using view::Table;

constexpr auto kLeft = Table::Align::kLeft;
constexpr Millicores kSlight(20);  // throttling below this is none to speak of

struct Column {
  TopKey key;
  const char* name;  // for --sort
  const char* title;
  char letter;  // that sorts by it
  bool text;
};
constexpr std::array<Column, 10> kColumns = {{
    {TopKey::kPod, "pod", "POD", 'p', true},
    {TopKey::kNode, "node", "NODE", 'o', true},
    {TopKey::kNeed, "need", "NEED", 'n', false},
    {TopKey::kLimit, "limit", "LIMIT", 'l', false},
    {TopKey::kApplied, "applied", "APPLIED", 'a', false},
    {TopKey::kThrottled, "throttled", "MS/S", 't', false},
    {TopKey::kPressure, "pressure", "PRESS", 'r', false},
    {TopKey::kPrice, "price", "PRICE", 'c', false},
    {TopKey::kPhase, "phase", "PHASE", 's', true},
    {TopKey::kAge, "age", "AGE", 'g', false},
}};

const Column& columnOf(TopKey key) {
  return kColumns[static_cast<std::size_t>(key)];
}

std::string priceOf(const TopRow& row) {
  // In the words of `mbcas explain`.
  return row.price || row.overloaded ? priceText(row.price) : "-";
}

std::string cellOf(const TopRow& row, TopKey key) {
  switch (key) {
    case TopKey::kPod:
      return row.pod;
    case TopKey::kNode:
      return row.node.empty() ? "-" : row.node;
    case TopKey::kNeed:
      return cpuText(row.need);
    case TopKey::kLimit:
      return cpuText(row.limit);
    case TopKey::kApplied:
      return cpuText(row.applied);
    case TopKey::kThrottled:
      return row.throttled ? fmt::format("{}", row.throttled->count()) : "-";
    case TopKey::kPressure:
      return percentText(row.pressure);
    case TopKey::kPrice:
      return priceOf(row);
    case TopKey::kPhase:
      return row.phase.empty() ? "-" : row.phase;
    case TopKey::kAge:
      break;
  }
  return row.age ? ageText(*row.age) : "-";
}

// As a number; the larger, the more.
std::optional<double> numberOf(const TopRow& row, TopKey key) {
  const auto of = [](const std::optional<Millicores>& cpu) -> std::optional<double> {
    if (!cpu) return std::nullopt;
    return static_cast<double>(cpu->count());
  };
  switch (key) {
    case TopKey::kNeed:
      return of(row.need);
    case TopKey::kLimit:
      return of(row.limit);
    case TopKey::kApplied:
      return of(row.applied);
    case TopKey::kThrottled:
      return of(row.throttled);
    case TopKey::kPressure:
      return row.pressure;
    case TopKey::kPrice:
      if (row.overloaded) return std::numeric_limits<double>::infinity();
      return row.price;
    case TopKey::kAge:
      if (!row.age) return std::nullopt;
      return static_cast<double>(row.age->count());
    case TopKey::kPod:
    case TopKey::kNode:
    case TopKey::kPhase:
      break;
  }
  return std::nullopt;
}

Colour colourOf(const TopRow& row) {
  if (row.phase == "Failed" || row.throttled.value_or(Millicores(0)) >= kSlight)
    return Colour::kRed;
  if (row.constrained) return Colour::kYellow;
  return row.managed ? Colour::kNone : Colour::kDim;
}

// What the node's agent knows of the pod.
void addRecord(TopRow& row, const PodRecord& record, const MarketRecord& market) {
  row.throttled = record.blocked;
  row.pressure = record.pressure;
  row.used = record.usage;
  if (record.limit) row.limit = record.limit;
  if (!record.left_alone.empty()) {
    row.why = "left alone: " + record.left_alone;
    return;
  }
  row.managed = true;
  row.need = neededOf(record);
  row.declared = record.declared;
  row.desired = record.desired;
  row.constrained = record.constrained;
  row.award = record.award;
  row.help = record.help;
  row.bound_for = record.bound_for;
  row.why = record.reason;
  row.price = market.price;
  row.overloaded = !market.price;
}

void addAllocation(TopRow& row, const PodAllocation& allocation) {
  const PodAllocation::BoundsView* const bounds = allocation.bounds();
  row.phase = std::string(podallocation::name(allocation.phase));
  row.applied = allocation.applied;
  if (bounds != nullptr && !bounds->managed) {
    row.managed = false;
    row.why = "left alone: " + bounds->reason.string();
    return;
  }
  row.managed = true;
  row.desired = allocation.desired;
  if (!row.need) row.need = allocation.wanted ? allocation.wanted : allocation.desired;
  if (row.why.empty()) row.why = allocation.reason.string();
  if (allocation.phase != podallocation::Phase::kApplied && !allocation.status_reason.empty()) {
    row.why = allocation.status_reason.string();
  }
}

TopNode nodeOf(const NodeRecord& record) {
  TopNode node{.node = record.node, .market = record.market};
  for (const PodRecord& pod : record.pods) {
    if (pod.left_alone.empty()) node.used += pod.usage;
  }
  return node;
}

}  // namespace

TopView topOf(const std::vector<PodPtr>& pods, const std::vector<AllocationPtr>& allocations,
              const NodeRecords& agents, WallTime now) {
  std::map<std::string_view, const PodAllocation*> by_uid;
  for (const AllocationPtr& allocation : allocations) {
    by_uid[allocation->meta.name.view()] = allocation.get();
  }
  TopView view{.at = now};
  std::set<std::string_view> shown;
  for (const PodPtr& pod : pods) {
    if (pod->terminal()) continue;
    TopRow row{.name_space = pod->meta.namespace_.string(),
               .pod = pod->meta.name.string(),
               .node = pod->node.string()};
    const PodCpu cpu = podCpu(*pod);
    if (cpu.without_limit < cpu.containers) row.limit = cpu.limit;
    if (pod->meta.created != WallTime{}) row.age = now - pod->meta.created;
    if (const auto agent = agents.find(pod->node.view()); agent != agents.end()) {
      shown.insert(pod->node.view());
      const PodRecord* const record = agent->second->find(row.name_space, row.pod);
      if (record != nullptr && record->uid == pod->meta.uid.view()) {
        addRecord(row, *record, agent->second->market);
      }
    }
    if (const auto found = by_uid.find(pod->meta.uid.view()); found != by_uid.end()) {
      addAllocation(row, *found->second);
    }
    view.rows.push_back(std::move(row));
  }
  for (const auto& [node, record] : agents) {
    if (shown.contains(node)) view.nodes.push_back(nodeOf(*record));
  }
  return view;
}

TopView topOf(const NodeRecord& node) {
  TopView view{.at = node.time, .nodes = {nodeOf(node)}, .rows = {}, .notes = node.notes};
  for (const PodRecord& record : node.pods) {
    TopRow row{.name_space = record.name_space, .pod = record.pod, .node = node.node};
    addRecord(row, record, node.market);
    row.applied = record.applied ? record.applied : record.limit;
    if (row.managed) row.phase = hostPhase(record);
    view.rows.push_back(std::move(row));
  }
  return view;
}

std::string_view name(TopKey key) {
  return columnOf(key).name;
}

Result<TopKey> parseTopKey(std::string_view text) {
  for (const Column& column : kColumns) {
    if (column.name == text) return column.key;
  }
  return failure(fmt::format("{}: not a column", text));
}

std::vector<std::string> topKeyNames() {
  std::vector<std::string> names;
  names.reserve(kColumns.size());
  for (const Column& column : kColumns) names.emplace_back(column.name);
  return names;
}

void sortRows(std::vector<TopRow>& rows, TopKey key, bool reverse) {
  const auto by_name = [](const TopRow& a, const TopRow& b) {
    return std::tie(a.name_space, a.pod) < std::tie(b.name_space, b.pod);
  };
  std::ranges::sort(rows, [&](const TopRow& a, const TopRow& b) {
    if (columnOf(key).text) {
      const std::string text_a = key == TopKey::kPod ? a.name_space + "/" + a.pod : cellOf(a, key);
      const std::string text_b = key == TopKey::kPod ? b.name_space + "/" + b.pod : cellOf(b, key);
      if (text_a != text_b) return reverse ? text_b < text_a : text_a < text_b;
      return by_name(a, b);
    }
    const std::optional<double> number_a = numberOf(a, key);
    const std::optional<double> number_b = numberOf(b, key);
    if (number_a.has_value() != number_b.has_value()) return number_a.has_value();
    if (number_a != number_b) return reverse ? number_a < number_b : number_a > number_b;
    return by_name(a, b);
  });
}

std::string topTable(const std::vector<TopRow>& rows, const TopOptions& options, bool colours,
                     std::size_t max_width) {
  std::vector<Table::Column> columns;
  const bool live = max_width > 0;  // where the order can be changed, it is shown
  const auto title = [&](const Column& column) {
    if (!live || column.key != options.sort) return std::string(column.title);
    return fmt::format("{}{}", column.title, column.text != options.reverse ? "▲" : "▼");
  };
  if (options.namespaces) columns.push_back({"NAMESPACE", kLeft, 9});
  for (const Column& column : kColumns) {
    columns.push_back({title(column), column.text ? kLeft : Table::Align::kRight,
                       column.key == TopKey::kPod    ? std::size_t{12}
                       : column.key == TopKey::kNode ? std::size_t{6}
                                                     : 0});
  }
  if (options.wide) {
    columns.insert(
        columns.end(),
        {{"USED"}, {"DECLARED"}, {"DESIRED"}, {"AWARD"}, {"WHY", kLeft, live ? 10U : 0U}});
  }
  Table table(std::move(columns));
  for (const TopRow& row : rows) {
    std::vector<std::string> cells;
    if (options.namespaces) cells.push_back(row.name_space);
    for (const Column& column : kColumns) cells.push_back(cellOf(row, column.key));
    if (options.wide) {
      for (std::string cell : {cpuText(row.used), cpuText(row.declared), cpuText(row.desired),
                               cpuText(row.award), row.why}) {
        cells.push_back(std::move(cell));
      }
    }
    table.row(std::move(cells), colourOf(row));
  }
  return table.toString(colours, max_width);
}

std::string topJson(const TopView& view) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("time").value(formatRfc3339(view.at));
  json.key("nodes").beginArray();
  for (const TopNode& node : view.nodes) {
    json.beginObject().key("node").value(node.node);
    writeCpu(json, "used", node.used);
    json.key("market");
    writeRecord(json, node.market);
    json.endObject();
  }
  json.endArray().key("pods").beginArray();
  for (const TopRow& row : view.rows) {
    json.beginObject();
    json.key("namespace").value(row.name_space);
    json.key("pod").value(row.pod);
    json.key("node").value(row.node);
    writeCpu(json, "need", row.need);
    writeCpu(json, "limit", row.limit);
    writeCpu(json, "applied", row.applied);
    writeCpu(json, "throttledMillisecondsPerSecond", row.throttled);
    writeNumber(json, "pressure", row.pressure);
    writeNumber(json, "price", row.price);
    json.key("overloaded").value(row.overloaded);
    json.key("phase").value(row.phase);
    writeNumber(
        json, "ageSeconds",
        row.age ? std::optional(std::chrono::duration<double>(*row.age).count()) : std::nullopt);
    writeCpu(json, "used", row.used);
    writeCpu(json, "declared", row.declared);
    writeCpu(json, "desired", row.desired);
    json.key("managed").value(row.managed);
    writeCpu(json, "award", row.award);
    json.key("constrained").value(row.constrained);
    json.key("help").value(row.help);
    json.key("boundFor").beginArray();
    for (const std::string& name : row.bound_for) json.value(name);
    json.endArray();
    json.key("why").value(row.why);
    json.endObject();
  }
  json.endArray().key("notes").beginArray();
  for (const std::string& note : view.notes) json.value(note);
  json.endArray().endObject();
  return out;
}

std::string marketLine(const TopView& view) {
  if (view.nodes.empty()) return "";
  std::vector<std::string> scarce;
  Millicores used;
  Millicores capacity;
  for (const TopNode& node : view.nodes) {
    used += node.used;
    if (node.market.whole_machine) used += node.market.unmanaged_use;
    capacity += node.market.capacity;
    if (node.market.scarce) {
      const std::string price =
          node.market.price ? "price " + priceText(node.market.price) : priceText(std::nullopt);
      scarce.push_back(view.nodes.size() == 1 ? price : fmt::format("{} {}", node.node, price));
    }
  }
  return fmt::format("{:.2f} of {:.2f} CPU used, {}", used.cores(), capacity.cores(),
                     scarce.empty() ? "not scarce" : "scarce: " + namesText(scarce));
}

std::size_t throttledPods(const std::vector<TopRow>& rows) {
  return static_cast<std::size_t>(std::ranges::count_if(
      rows, [](const TopRow& row) { return row.throttled.value_or(Millicores(0)) >= kSlight; }));
}

std::optional<TopKey> topKeyOf(char letter) {
  for (const Column& column : kColumns) {
    if (column.letter == letter) return column.key;
  }
  return std::nullopt;
}

std::string topLetters() {
  std::string text;
  for (const Column& column : kColumns) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", column.letter, column.name);
  }
  return text;
}

}  // namespace mbcas::cli
