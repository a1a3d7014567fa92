#include "mbcas/cli/record.h"

#include <algorithm>
#include <charconv>

#include "mbcas/base/time.h"
#include "mbcas/cli/words.h"
#include "mbcas/control/split.h"
#include "mbcas/demand/need.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::cli {
namespace {

using kube::JsonCursor;

void read(JsonCursor value, std::string& to) {
  to = value.text();
}
void read(JsonCursor value, bool& to) {
  to = value.boolean();
}
void read(JsonCursor value, std::int64_t& to) {
  to = value.integer();
}
void read(JsonCursor value, Millicores& to) {
  to = Millicores(value.integer());
}
void read(JsonCursor value, double& to) {
  const std::string_view text = value.scalar();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc() || end != text.data() + text.size()) {
    value.fail("not a number");
  }
}
void read(JsonCursor value, WallTime& to) {
  const Result<WallTime> time = parseRfc3339(value.text());
  if (!time) return value.fail(time.error().message());
  to = *time;
}
void read(JsonCursor value, std::optional<double>& to) {
  if (!value.isNull()) read(value, to.emplace());
}
void read(JsonCursor value, std::optional<Millicores>& to) {  // 0: there is none
  if (const std::int64_t cpu = value.integer(); cpu != 0) to = Millicores(cpu);
}

template <class Record>
struct Field {
  std::string_view name;
  void (*read)(Record& record, JsonCursor value);
};
template <class Record, class T>
Record recordOf(T Record::* member);
// "limit", read into that member.
template <auto member, class Record = decltype(recordOf(member))>
constexpr Field<Record> field(std::string_view name) {
  return {name, [](Record& record, JsonCursor value) { read(value, record.*member); }};
}

template <class Record, std::size_t n>
void readFields(Record& record, const Field<Record> (&fields)[n], std::string_view key,
                JsonCursor value) {
  for (const Field<Record>& field : fields) {
    if (field.name == key) return field.read(record, value);
  }
}

constexpr Field<ContainerRecord> kContainer[] = {
    field<&ContainerRecord::name>("name"),
    field<&ContainerRecord::limit>("limit"),
    field<&ContainerRecord::declared>("declared"),
    field<&ContainerRecord::request>("request"),
    field<&ContainerRecord::desired>("desired"),
    field<&ContainerRecord::usage>("usage"),
    field<&ContainerRecord::blocked>("blocked"),
    field<&ContainerRecord::periods>("periods"),
    field<&ContainerRecord::throttled_periods>("throttledPeriods"),
    field<&ContainerRecord::use>("use"),
    field<&ContainerRecord::use_peak>("usePeak"),
    field<&ContainerRecord::used_peak>("usedPeak"),
    field<&ContainerRecord::burst>("burst"),
    field<&ContainerRecord::burst_state>("burstState"),
    field<&ContainerRecord::binding>("binding"),
    field<&ContainerRecord::samples>("samples"),
};

constexpr Field<BoundsRecord> kBounds[] = {
    field<&BoundsRecord::managed>("managed"), field<&BoundsRecord::floor>("floor"),
    field<&BoundsRecord::ceiling>("ceiling"), field<&BoundsRecord::start>("start"),
    field<&BoundsRecord::weight>("weight"),   field<&BoundsRecord::reason>("reason"),
};

constexpr Field<MarketRecord> kMarket[] = {
    field<&MarketRecord::capacity>("capacity"), field<&MarketRecord::whole_machine>("wholeMachine"),
    field<&MarketRecord::demand>("demand"),     field<&MarketRecord::scarce>("scarce"),
    field<&MarketRecord::mode>("mode"),         field<&MarketRecord::price>("price"),
    field<&MarketRecord::welfare>("welfare"),   field<&MarketRecord::unmanaged_use>("unmanagedUse"),
};

constexpr Field<PodRecord> kPod[] = {
    field<&PodRecord::name_space>("namespace"),
    field<&PodRecord::pod>("pod"),
    field<&PodRecord::uid>("uid"),
    field<&PodRecord::limit>("limit"),
    field<&PodRecord::declared>("declared"),
    field<&PodRecord::desired>("desired"),
    field<&PodRecord::answer>("answer"),
    field<&PodRecord::wanted>("wanted"),
    field<&PodRecord::applied>("applied"),
    field<&PodRecord::urgent>("urgent"),
    field<&PodRecord::constrained>("constrained"),
    field<&PodRecord::throttled>("throttled"),
    field<&PodRecord::basis>("basis"),
    field<&PodRecord::reason>("reason"),
    field<&PodRecord::held_by>("heldBy"),
    field<&PodRecord::left_alone>("leftAlone"),
    field<&PodRecord::award>("award"),
    field<&PodRecord::by_kernel>("byKernel"),
    field<&PodRecord::help>("help"),
    field<&PodRecord::claim>("claim"),
    {"boundFor",
     [](PodRecord& pod, JsonCursor value) {
       value.elements([&](JsonCursor name) { pod.bound_for.emplace_back(name.text()); });
     }},
    field<&PodRecord::usage>("usage"),
    field<&PodRecord::blocked>("blocked"),
    field<&PodRecord::pressure>("pressure"),
    field<&PodRecord::contention>("contention"),
    field<&PodRecord::weight>("weight"),
    field<&PodRecord::kernel_weight>("kernelWeight"),
    field<&PodRecord::priority>("priority"),
    field<&PodRecord::ready>("ready"),
    {"bounds",
     [](PodRecord& pod, JsonCursor value) {
       if (value.isNull()) return;
       BoundsRecord& bounds = pod.bounds.emplace();
       value.members([&](std::string_view key, JsonCursor field) {
         readFields(bounds, kBounds, key, field);
       });
     }},
    {"containers",
     [](PodRecord& pod, JsonCursor value) {
       value.elements([&](JsonCursor element) {
         ContainerRecord& container = pod.containers.emplace_back();
         element.members([&](std::string_view key, JsonCursor field) {
           readFields(container, kContainer, key, field);
         });
       });
     }},
};

constexpr Field<OtherRecord> kOther[] = {
    field<&OtherRecord::name>("name"),
    field<&OtherRecord::usage>("usage"),
    field<&OtherRecord::kernel_weight>("kernelWeight"),
};

void readMarket(MarketRecord& market, JsonCursor value) {
  value.members(
      [&](std::string_view key, JsonCursor field) { readFields(market, kMarket, key, field); });
}

void writeContainer(JsonWriter& json, const ContainerRecord& container) {
  json.beginObject();
  json.key("name").value(container.name);
  writeCpu(json, "limit", container.limit);
  writeCpu(json, "declared", container.declared);
  writeCpu(json, "request", container.request);
  writeCpu(json, "desired", container.desired);
  writeCpu(json, "usage", container.usage);
  writeCpu(json, "blocked", container.blocked);
  json.key("periods").value(container.periods);
  json.key("throttledPeriods").value(container.throttled_periods);
  writeCpu(json, "use", container.use);
  writeCpu(json, "usePeak", container.use_peak);
  writeCpu(json, "usedPeak", container.used_peak);
  writeCpu(json, "burst", container.burst);
  json.key("burstState").value(container.burst_state);
  json.key("binding").value(container.binding);
  json.key("samples").value(container.samples);
  json.endObject();
}

void writeIntervention(JsonWriter& json, const PodRecord& pod) {
  if (pod.award) writeCpu(json, "award", pod.award);
  if (pod.by_kernel) writeCpu(json, "byKernel", pod.by_kernel);
  if (!pod.help.empty()) json.key("help").value(pod.help);
  if (pod.claim) writeCpu(json, "claim", pod.claim);
  if (pod.bound_for.empty()) return;
  json.key("boundFor").beginArray();
  for (const std::string& name : pod.bound_for) json.value(name);
  json.endArray();
}

}  // namespace

const PodRecord* NodeRecord::find(std::string_view name_space, std::string_view pod) const {
  for (const PodRecord& record : pods) {
    if (record.pod == pod && record.name_space == name_space) return &record;
  }
  return nullptr;
}

Millicores neededOf(const ContainerRecord& container) {
  demand::Need need;
  need.use_peak = container.use_peak;
  need.burst = container.burst;
  return std::max(control::neededLimit(need, {}), container.request.value_or(Millicores(0)));
}

std::optional<Millicores> neededOf(const PodRecord& pod) {
  Millicores sum;
  bool measured = false;
  for (const ContainerRecord& container : pod.containers) {
    sum += neededOf(container);
    measured |= container.samples > 0;
  }
  if (!measured) return std::nullopt;
  return sum;
}

std::string hostPhase(const PodRecord& pod) {
  if (!pod.desired || !pod.limit) return "";
  return *pod.desired == *pod.limit ? "Applied" : "Pending";
}

Result<NodeRecord> parseState(std::string text) {
  NodeRecord node;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(text, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key == "node") read(value, node.node);
      if (key == "time") read(value, node.time);
      if (key == "capacity") read(value, node.capacity);
      if (key == "market") readMarket(node.market, value);
      if (key == "pods") {
        value.elements([&](JsonCursor element) {
          PodRecord& pod = node.pods.emplace_back();
          element.members(
              [&](std::string_view name, JsonCursor field) { readFields(pod, kPod, name, field); });
        });
      }
      if (key == "others") {
        value.elements([&](JsonCursor element) {
          OtherRecord& other = node.others.emplace_back();
          element.members([&](std::string_view name, JsonCursor field) {
            readFields(other, kOther, name, field);
          });
        });
      }
      if (key == "notes") {
        value.elements([&](JsonCursor note) { node.notes.emplace_back(note.text()); });
      }
    });
  });
  if (!parsed) return failure(Error(parsed.error()).within("state of an agent"));
  return node;
}

Result<Decision> parseDecision(std::string line) {
  Decision decision;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(line, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key == "node") return read(value, decision.node);
      if (key == "time") return read(value, decision.time);
      if (key == "market") return readMarket(decision.market, value);
      readFields(decision.pod, kPod, key, value);
    });
  });
  if (!parsed) return failure(Error(parsed.error()).within("decision log"));
  return decision;
}

void writeRecord(JsonWriter& json, const PodRecord& pod) {
  json.beginObject();
  json.key("namespace").value(pod.name_space);
  json.key("pod").value(pod.pod);
  json.key("uid").value(pod.uid);
  writeCpu(json, "limit", pod.limit);
  writeCpu(json, "declared", pod.declared);
  writeCpu(json, "desired", pod.desired);
  writeCpu(json, "answer", pod.answer);
  writeCpu(json, "wanted", pod.wanted);
  writeCpu(json, "applied", pod.applied);
  json.key("urgent").value(pod.urgent);
  json.key("constrained").value(pod.constrained);
  json.key("throttled").value(pod.throttled);
  json.key("basis").value(pod.basis);
  json.key("reason").value(pod.reason);
  if (!pod.held_by.empty()) json.key("heldBy").value(pod.held_by);
  json.key("leftAlone").value(pod.left_alone);
  writeIntervention(json, pod);
  writeCpu(json, "usage", pod.usage);
  writeCpu(json, "blocked", pod.blocked);
  writeNumber(json, "pressure", pod.pressure);
  writeNumber(json, "contention", pod.contention);
  json.key("weight").value(pod.weight);
  if (pod.kernel_weight) writeNumber(json, "kernelWeight", pod.kernel_weight);
  json.key("priority").value(pod.priority);
  json.key("ready").value(pod.ready);
  json.key("bounds");
  if (pod.bounds) {
    json.beginObject();
    json.key("managed").value(pod.bounds->managed);
    writeCpu(json, "floor", pod.bounds->floor);
    writeCpu(json, "ceiling", pod.bounds->ceiling);
    writeCpu(json, "start", pod.bounds->start);
    json.key("weight").value(pod.bounds->weight);
    json.key("reason").value(pod.bounds->reason);
    json.endObject();
  } else {
    json.null();
  }
  json.key("containers").beginArray();
  for (const ContainerRecord& container : pod.containers) writeContainer(json, container);
  json.endArray().endObject();
}

void writeRecord(JsonWriter& json, const MarketRecord& market) {
  json.beginObject();
  writeCpu(json, "capacity", market.capacity);
  json.key("wholeMachine").value(market.whole_machine);
  writeCpu(json, "demand", market.demand);
  json.key("scarce").value(market.scarce);
  json.key("mode").value(market.mode);
  writeNumber(json, "price", market.price);
  json.key("welfare").value(market.welfare);
  writeCpu(json, "unmanagedUse", market.unmanaged_use);
  json.endObject();
}

std::string stateJson(const NodeRecord& node) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("node").value(node.node);
  json.key("time").value(formatRfc3339(node.time));
  writeCpu(json, "capacity", node.capacity);
  json.key("market");
  writeRecord(json, node.market);
  json.key("pods").beginArray();
  for (const PodRecord& pod : node.pods) writeRecord(json, pod);
  json.endArray().key("others").beginArray();
  for (const OtherRecord& other : node.others) {
    json.beginObject();
    json.key("name").value(other.name);
    writeCpu(json, "usage", other.usage);
    if (other.kernel_weight) writeNumber(json, "kernelWeight", other.kernel_weight);
    json.endObject();
  }
  json.endArray().key("notes").beginArray();
  for (const std::string& note : node.notes) json.value(note);
  json.endArray().endObject();
  return out;
}

}  // namespace mbcas::cli
