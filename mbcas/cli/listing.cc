#include "mbcas/cli/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "mbcas/cli/words.h"
#include "mbcas/kube/json_cursor.h"
#include "mbcas/view/text.h"

namespace mbcas::cli {
namespace {

using kube::JsonCursor;
using view::Table;

constexpr auto kLeft = Table::Align::kLeft;

std::string managedText(const PodRow& row) {
  return row.why.empty() || row.managed == "yes" ? row.managed
                                                 : fmt::format("{}: {}", row.managed, row.why);
}

std::string orDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::optional<double> ofLimit(const PodRow& row) {
  if (!row.usage || !row.limit || row.limit->count() <= 0) return std::nullopt;
  return row.usage->cores() / row.limit->cores();
}

PodUsage readPodUsage(JsonCursor pod) {
  PodUsage usage;
  pod.members([&](std::string_view key, JsonCursor value) {
    if (key == "podRef") {
      value.members([&](std::string_view name, JsonCursor field) {
        if (name == "name") usage.pod = field.text();
        if (name == "namespace") usage.name_space = field.text();
        if (name == "uid") usage.uid = field.text();
      });
    } else if (key == "cpu") {
      value.members([&](std::string_view name, JsonCursor field) {
        if (name == "usageNanoCores")
          usage.usage = Millicores((field.integer() + 500'000) / 1'000'000);
        if (name != "psi") return;
        field.members([&](std::string_view kind, JsonCursor some) {
          if (kind != "some") return;
          some.members([&](std::string_view window, JsonCursor percent) {
            if (window != "avg10") return;
            usage.pressure = std::strtod(std::string(percent.scalar()).c_str(), nullptr) / 100;
          });
        });
      });
    }
  });
  return usage;
}

PodRow rowOf(const kube::Pod& pod, WallTime now) {
  const PodCpu cpu = podCpu(pod);
  PodRow row{.name_space = pod.meta.namespace_.string(),
             .pod = pod.meta.name.string(),
             .uid = pod.meta.uid.string(),
             .node = pod.node.string(),
             .qos = std::string(name(pod.qos)),
             .request = cpu.request};
  if (cpu.without_limit < cpu.containers) row.limit = cpu.limit;
  row.limit_text = limitText(cpu);
  if (pod.meta.created != WallTime{}) row.age = now - pod.meta.created;
  return row;
}

PodRow rowOf(const PodRecord& record, const std::string& node) {
  PodRow row{.name_space = record.name_space, .pod = record.pod, .uid = record.uid, .node = node};
  row.limit = record.limit;
  row.limit_text = record.limit ? cpuText(*record.limit) : "none";
  row.declared = record.declared;
  row.managed = record.left_alone.empty() ? "yes" : "no";
  row.why = record.left_alone;
  row.usage = record.usage;
  row.throttled = record.blocked;
  row.pressure = record.pressure;
  if (record.bounds) {
    row.floor = record.bounds->floor;
    row.ceiling = record.bounds->ceiling;
  }
  return row;
}

}  // namespace

std::vector<PodRow> listRows(const Snapshot& snapshot, WallTime now) {
  std::vector<PodRow> rows;
  rows.reserve(snapshot.pods.size());
  for (const PodPtr& pod : snapshot.pods) {
    const Verdict verdict = judge(snapshot, *pod);
    PodRow row = rowOf(*pod, now);
    row.managed = verdict.managed ? "yes" : verdict.expected ? "not yet" : "no";
    row.why = verdict.managed ? "" : verdict.reason;
    row.remedy = verdict.remedy;
    row.mode = std::string(policy::name(verdict.policy.mode));
    if (verdict.policy.managed) {
      row.declared = verdict.policy.declared();
      row.floor = verdict.policy.floor;
      row.ceiling = verdict.policy.ceiling;
    }
    const podallocation::PodAllocation* const allocation = snapshot.allocationOf(*pod);
    if (allocation != nullptr && allocation->bounds() != nullptr) {
      row.floor = allocation->bounds()->floor;
      row.ceiling = allocation->bounds()->ceiling;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<PodRow> usageRows(const std::vector<PodPtr>& pods, WallTime now) {
  std::vector<PodRow> rows;
  for (const PodPtr& pod : pods) {
    if (!pod->terminal()) rows.push_back(rowOf(*pod, now));
  }
  return rows;
}

std::string listTable(const std::vector<PodRow>& rows, bool namespaces, bool wide, bool colours) {
  std::vector<Table::Column> columns;
  if (namespaces) columns.push_back({"NAMESPACE", kLeft});
  columns.insert(columns.end(),
                 {{"POD", kLeft}, {"NODE", kLeft}, {"QOS", kLeft}, {"REQUEST"}, {"LIMIT"}});
  if (wide)
    columns.insert(columns.end(), {{"DECLARED"}, {"FLOOR"}, {"CEILING"}, {"MODE", kLeft}, {"AGE"}});
  columns.push_back({"MANAGED", kLeft});
  Table table(std::move(columns));
  for (const PodRow& row : rows) {
    std::vector<std::string> cells;
    if (namespaces) cells.push_back(row.name_space);
    for (const std::string& cell :
         {row.pod, orDash(row.node), orDash(row.qos), cpuText(row.request), row.limit_text}) {
      cells.push_back(cell);
    }
    if (wide) {
      for (const std::string& cell :
           {cpuText(row.declared), cpuText(row.floor), cpuText(row.ceiling), orDash(row.mode),
            row.age ? ageText(*row.age) : "-"}) {
        cells.push_back(cell);
      }
    }
    cells.push_back(managedText(row));
    table.row(std::move(cells), row.managed == "no" ? view::Colour::kDim : view::Colour::kNone);
  }
  return table.toString(colours);
}

Result<std::vector<PodUsage>> parseSummary(std::string text) {
  std::vector<PodUsage> usages;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(text, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key != "pods") return;
      value.elements([&](JsonCursor pod) { usages.push_back(readPodUsage(pod)); });
    });
  });
  if (!parsed) return failure(Error(parsed.error()).within("summary of a kubelet"));
  return usages;
}

void addUsage(std::vector<PodRow>& rows, const std::vector<PodUsage>& usages) {
  std::map<std::string_view, const PodUsage*> by_uid;
  for (const PodUsage& usage : usages) by_uid[usage.uid] = &usage;
  for (PodRow& row : rows) {
    const auto found = by_uid.find(row.uid);
    if (found == by_uid.end()) continue;
    row.usage = found->second->usage;
    row.pressure = found->second->pressure;
  }
}

void sortByUsage(std::vector<PodRow>& rows) {
  std::ranges::sort(rows, [](const PodRow& a, const PodRow& b) {
    const Millicores used_by_a = a.usage.value_or(Millicores(-1));
    const Millicores used_by_b = b.usage.value_or(Millicores(-1));
    if (used_by_a != used_by_b) return used_by_a > used_by_b;
    return std::tie(a.name_space, a.pod) < std::tie(b.name_space, b.pod);
  });
}

std::string usageTable(const std::vector<PodRow>& rows, bool namespaces, bool wide, bool colours) {
  const bool throttled =
      std::ranges::any_of(rows, [](const PodRow& row) { return row.throttled.has_value(); });
  const bool pressure =
      std::ranges::any_of(rows, [](const PodRow& row) { return row.pressure.has_value(); });
  std::vector<Table::Column> columns;
  if (namespaces) columns.push_back({"NAMESPACE", kLeft});
  columns.insert(
      columns.end(),
      {{"POD", kLeft}, {"NODE", kLeft}, {"USAGE"}, {"REQUEST"}, {"LIMIT"}, {"OF LIMIT"}});
  if (throttled) columns.push_back({"THROTTLED"});
  if (pressure) columns.push_back({"PRESSURE"});
  if (wide) columns.insert(columns.end(), {{"QOS", kLeft}, {"UID", kLeft}});
  Table table(std::move(columns));
  for (const PodRow& row : rows) {
    std::vector<std::string> cells;
    if (namespaces) cells.push_back(row.name_space);
    for (const std::string& cell :
         {row.pod, orDash(row.node), cpuText(row.usage), cpuText(row.request), row.limit_text,
          percentText(ofLimit(row))}) {
      cells.push_back(cell);
    }
    if (throttled) {
      cells.push_back(row.throttled ? fmt::format("{} ms/s", row.throttled->count()) : "-");
    }
    if (pressure) cells.push_back(percentText(row.pressure));
    if (wide) {
      cells.push_back(orDash(row.qos));
      cells.push_back(row.uid);
    }
    const bool full = ofLimit(row).value_or(0) >= 0.9;
    table.row(std::move(cells), full ? view::Colour::kYellow : view::Colour::kNone);
  }
  return table.toString(colours);
}

std::vector<PodRow> hostRows(std::span<const sense::PodSignals> pods, const NodeRecord* agent,
                             const NodeRecord* host) {
  std::map<std::string_view, const PodRecord*> known;
  if (agent != nullptr) {
    for (const PodRecord& record : agent->pods) known[record.uid] = &record;
  }
  std::vector<PodRow> rows;
  for (const sense::PodSignals& signals : pods) {
    const auto record = known.find(signals.uid);
    PodRow row =
        record != known.end() ? rowOf(*record->second, agent->node) : PodRow{.pod = signals.uid};
    row.uid = signals.uid;
    row.qos = std::string(kernel::name(signals.qos));
    const auto limit = signals.cpu.limit ? signals.cpu.limit->millicores() : std::nullopt;
    row.limit = limit;
    row.limit_text = !signals.cpu.limit ? "?" : limit ? cpuText(*limit) : "none";
    row.usage = signals.cpu.usageRate();
    row.throttled = signals.cpu.blockedRate();
    if (signals.cpu_pressure) row.pressure = signals.cpu_pressure->some;
    rows.push_back(std::move(row));
  }
  if (host != nullptr) {
    for (const PodRecord& record : host->pods) rows.push_back(rowOf(record, host->node));
  }
  std::ranges::sort(rows, {}, [](const PodRow& row) { return std::pair(row.name_space, row.pod); });
  return rows;
}

std::string rowsJson(const std::vector<PodRow>& rows, const std::vector<std::string>& notes) {
  std::string out;
  JsonWriter json(out);
  json.beginObject().key("pods").beginArray();
  for (const PodRow& row : rows) {
    json.beginObject();
    json.key("namespace").value(row.name_space);
    json.key("pod").value(row.pod);
    json.key("uid").value(row.uid);
    json.key("node").value(row.node);
    json.key("qos").value(row.qos);
    writeCpu(json, "request", row.request);
    writeCpu(json, "limit", row.limit);
    writeCpu(json, "declared", row.declared);
    writeCpu(json, "floor", row.floor);
    writeCpu(json, "ceiling", row.ceiling);
    json.key("mode").value(row.mode);
    json.key("managed").value(row.managed);
    json.key("why").value(row.why);
    json.key("remedy").value(row.remedy);
    writeCpu(json, "usage", row.usage);
    writeCpu(json, "throttled", row.throttled);
    writeNumber(json, "pressure", row.pressure);
    json.endObject();
  }
  json.endArray().key("notes").beginArray();
  for (const std::string& note : notes) json.value(note);
  json.endArray().endObject();
  return out;
}

}  // namespace mbcas::cli
