#include "mbcas/agent/view.h"

#include <cmath>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/market/json.h"

namespace mbcas::agent {
namespace {

void write(JsonWriter& json, std::string_view key, Millicores cpu) {
  json.key(key).value(cpu.count());
}

void write(JsonWriter& json, std::string_view key, std::optional<Millicores> cpu) {
  if (cpu) write(json, key, *cpu);
}

void writeShare(JsonWriter& json, std::string_view key, std::optional<double> share) {
  if (share) json.key(key).value(std::round(*share * 1000) / 1000);
}

void writeBounds(JsonWriter& json, const podallocation::Bounds& bounds) {
  json.key("bounds").beginObject();
  json.key("managed").value(bounds.managed);
  write(json, "floor", bounds.floor);
  write(json, "ceiling", bounds.ceiling);
  write(json, "start", bounds.start);
  json.key("weight").value(bounds.weight);
  json.key("reason").value(bounds.reason);
  json.endObject();
}

void writeContainer(JsonWriter& json, const ContainerView& container) {
  const demand::Need& need = container.need;
  json.beginObject();
  json.key("name").value(container.name);
  write(json, "limit", container.limit);
  write(json, "declared", container.declared);
  write(json, "request", container.request);
  write(json, "desired", container.desired);
  write(json, "usage", need.last.usage);
  write(json, "blocked", need.last.blocked);
  json.key("periods").value(need.last.periods);
  json.key("throttledPeriods").value(need.last.throttled_periods);
  write(json, "use", need.use);
  write(json, "usePeak", need.use_peak);
  write(json, "usedPeak", need.used_peak);
  write(json, "burst", need.burst);
  json.key("burstState").value(demand::name(need.burst_state));
  json.key("binding").value(need.binding);
  json.key("samples").value(need.samples);
  json.endObject();
}

std::string nameOf(const View& view, const std::string& uid) {
  for (const PodView& pod : view.pods) {
    if (pod.uid == uid) return pod.name_space + "/" + pod.name;
  }
  return uid;
}

// What the market gives the pod, who is bound for it, and for whom it is bound.
void writeIntervention(JsonWriter& json, const View& view, const control::PodDecision& decision) {
  write(json, "award", decision.award);
  if (!decision.by_kernel) return;  // limits are cleared: no pod is bound for another
  write(json, "byKernel", *decision.by_kernel);
  json.key("help").value(control::name(decision.help));
  write(json, "claim", decision.claim);
  if (decision.bound_for.empty()) return;
  json.key("boundFor").beginArray();
  for (const std::string& uid : decision.bound_for) json.value(nameOf(view, uid));
  json.endArray();
}

// The members of a pod's object that are the same in the log and in the state.
void writePod(JsonWriter& json, const View& view, const PodView& pod) {
  const control::PodDecision& decision = pod.decision;
  const bool managed = pod.left_alone.empty();
  json.key("namespace").value(pod.name_space);
  json.key("pod").value(pod.name);
  json.key("uid").value(pod.uid);
  write(json, "limit", pod.limit);
  write(json, "declared", pod.declared);
  write(json, "desired", decision.desired);
  write(json, "answer", decision.answer);
  write(json, "wanted", decision.wanted);
  write(json, "applied", pod.applied);
  json.key("urgent").value(decision.urgent);
  json.key("constrained").value(decision.constrained);
  json.key("throttled").value(decision.throttled);
  if (managed) {
    json.key("basis").value(control::name(decision.reason.basis));
    json.key("reason").value(control::sentence(decision.reason));
    writeIntervention(json, view, decision);
  } else {
    json.key("leftAlone").value(pod.left_alone);
  }
  write(json, "usage", pod.usage);
  write(json, "blocked", pod.blocked);
  writeShare(json, "pressure", pod.cpu_pressure);
  writeShare(json, "contention", pod.contention);
  json.key("weight").value(pod.weight);
  json.key("priority").value(pod.priority);
  json.key("ready").value(pod.ready);
  if (pod.bounds) writeBounds(json, *pod.bounds);
  json.key("containers").beginArray();
  for (const ContainerView& container : pod.containers) writeContainer(json, container);
  json.endArray();
}

void writeMarket(JsonWriter& json, const View& view) {
  json.key("market").beginObject();
  write(json, "capacity", view.node.capacity);
  json.key("wholeMachine").value(view.node.whole_machine);
  write(json, "demand", view.node.demand);
  json.key("scarce").value(view.node.scarce);
  if (view.node.mode) json.key("mode").value(market::name(*view.node.mode));
  json.key("price");
  if (view.node.price) {
    json.value(*view.node.price);
  } else {
    json.null();
  }
  writeShare(json, "welfare", view.node.welfare);
  write(json, "unmanagedUse", view.unmanaged_use);
  json.endObject();
}

void writeTime(JsonWriter& json, WallTime wall) {
  json.key("time").value(formatRfc3339(wall, TimePrecision::kMicros));
}

void writeSense(JsonWriter& json, const sense::SenseCounters& sense) {
  json.key("sense").beginObject();
  json.key("ticks").value(sense.ticks);
  json.key("lateTicks").value(sense.late_ticks);
  json.key("missedTicks").value(sense.missed_ticks);
  json.key("gaps").value(sense.gaps);
  json.key("suspensions").value(sense.suspensions);
  json.key("resets").value(sense.resets);
  json.key("limitsChanged").value(sense.limits_changed);
  json.key("podsStarted").value(sense.pods_started);
  json.key("podsEnded").value(sense.pods_ended);
  json.key("reads").value(sense.reads);
  json.key("failures").value(sense.failures);
  json.key("lastFailure").value(sense.last_failure);
  json.endObject();
}

}  // namespace

std::string decisionJson(const View& view, const PodView& pod) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  writeTime(json, view.wall);
  json.key("node").value(view.node_name);
  writePod(json, view, pod);
  writeMarket(json, view);
  json.endObject();
  return out;
}

std::string stateJson(const View& view) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("node").value(view.node_name);
  writeTime(json, view.wall);
  write(json, "capacity", view.capacity);
  writeMarket(json, view);
  json.key("pods").beginArray();
  for (const PodView& pod : view.pods) {
    json.beginObject();
    writePod(json, view, pod);
    json.endObject();
  }
  json.endArray();
  json.key("notes").beginArray();
  for (const std::string& note : view.notes) json.value(note);
  json.endArray();
  writeSense(json, view.sense);
  json.endObject();
  return out;
}

}  // namespace mbcas::agent
