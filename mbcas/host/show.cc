#include "mbcas/host/show.h"

#include <fmt/format.h>

#include "mbcas/base/json_writer.h"

namespace mbcas::host {
namespace {

constexpr std::size_t kPast = 60;
constexpr std::size_t kNotes = 20;

// A pod without a limit so far begins at what is declared.
Millicores newLimit(const PodView& pod) {
  return pod.limit ? pod.move.limit : pod.declared;
}

}  // namespace

bool isNew(const PodView& pod) {
  return pod.begins || (pod.decision.reason.basis == control::Basis::kNoData &&
                        pod.need.samples == 0 && pod.failure.empty());
}

std::string reasonOf(const PodView& pod) {
  if (!pod.failure.empty()) return pod.failure;
  if (!pod.left_alone.empty()) return "left alone: " + pod.left_alone;
  if (pod.begins) return "it begins with its declared limit";
  if (isNew(pod)) return "too new to judge, so it keeps its limit";
  return control::sentence(pod.decision.reason);
}

view::NodeScreen Show::screen(const View& view) {
  view::NodeScreen screen{.title = "",
                          .capacity = view.node.capacity,
                          .usage = view.node.whole_machine ? view.unmanaged_use : Millicores(0),
                          .scarce = view.node.scarce,
                          .price = view.node.price,
                          .welfare = view.node.welfare};
  for (const PodView& pod : view.pods) {
    std::vector<double>& past = throttling_[pod.name];
    past.push_back(static_cast<double>(pod.blocked.count()));
    if (past.size() > kPast) past.erase(past.begin());
    if (pod.left_alone.empty()) screen.usage += pod.usage;
    screen.pods.push_back({.name = pod.name,
                           .need = pod.decision.answer,
                           .limit = pod.limit,
                           .usage = pod.usage,
                           .throttled = pod.blocked,
                           .throttling = past,
                           .note = reasonOf(pod)});
    if (pod.changed) notes_.push_back(changeLine(pod));
    if (!pod.failure.empty()) notes_.push_back(pod.name + ": " + pod.failure);
  }
  for (const std::string& note : view.notes) notes_.push_back(note);
  while (notes_.size() > kNotes) notes_.erase(notes_.begin());
  screen.notes = notes_;
  return screen;
}

std::string changeLine(const PodView& pod) {
  return fmt::format("{}: {} -> {}m: {}", pod.name,
                     pod.limit ? fmt::format("{}m", pod.limit->count()) : "no limit",
                     newLimit(pod).count(), reasonOf(pod));
}

std::string changeJson(const PodView& pod, const std::string& time) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("time").value(time);
  json.key("pod").value(pod.name);
  json.key("cgroup").value(pod.path);
  json.key("from");
  if (pod.limit) {
    json.value(pod.limit->count());
  } else {
    json.null();
  }
  json.key("to").value(newLimit(pod).count());
  json.key("urgent").value(pod.decision.urgent);
  json.key("constrained").value(pod.decision.constrained);
  if (pod.left_alone.empty()) {
    json.key("award").value(pod.decision.award.count());
    if (pod.decision.by_kernel) json.key("help").value(control::name(pod.decision.help));
    if (pod.decision.claim) json.key("claim").value(pod.decision.claim->count());
    if (!pod.decision.bound_for.empty()) {
      json.key("boundFor").beginArray();
      for (const std::string& cgroup : pod.decision.bound_for) json.value(cgroup);
      json.endArray();
    }
  }
  json.key("reason").value(reasonOf(pod));
  json.endObject();
  return out;
}

}  // namespace mbcas::host
