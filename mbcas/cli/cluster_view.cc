#include "mbcas/cli/cluster_view.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::cli {
namespace {

using kube::JsonCursor;
using podallocation::PodAllocation;

constexpr std::int64_t kLatest = 4'000'000'000'000;  // milliseconds: in the year 2096

void add(PodSum& sum, const PodAllocation& allocation, bool bound) {
  const Millicores have = allocation.applied.value_or(allocation.desired);
  const Millicores wanted = allocation.wanted.value_or(allocation.desired);
  ++sum.pods;
  if (bound) ++sum.bound;
  if (allocation.phase == podallocation::Phase::kFailed) ++sum.failed;
  sum.have += have;
  sum.wanted += wanted;
  sum.held += std::max(Millicores(0), wanted - have);
  if (const std::optional<Millicores> use = control::useIn(allocation.reason)) {
    sum.use += *use;
    ++sum.use_told;
  }
}

void write(JsonWriter& json, const PodSum& sum) {
  json.key("pods").value(sum.pods);
  json.key("bound").value(sum.bound);
  json.key("failed").value(sum.failed);
  json.key("have").value(sum.have.count());
  json.key("wanted").value(sum.wanted.count());
  json.key("held").value(sum.held.count());
  json.key("use").value(sum.use.count());
  json.key("useTold").value(sum.use_told);
}

bool readSum(PodSum& sum, std::string_view key, JsonCursor value) {
  const auto count = [&] {
    const std::int64_t number = value.integer();
    if (number < 0) value.fail("less than nothing");
    return static_cast<std::size_t>(std::max<std::int64_t>(number, 0));
  };
  if (key == "pods") {
    sum.pods = count();
  } else if (key == "bound") {
    sum.bound = count();
  } else if (key == "failed") {
    sum.failed = count();
  } else if (key == "have") {
    sum.have = Millicores(value.integer());
  } else if (key == "wanted") {
    sum.wanted = Millicores(value.integer());
  } else if (key == "held") {
    sum.held = Millicores(value.integer());
  } else if (key == "use") {
    sum.use = Millicores(value.integer());
  } else if (key == "useTold") {
    sum.use_told = count();
  } else {
    return false;
  }
  return true;
}

NodeTile readTile(JsonCursor object) {
  NodeTile tile;
  object.members([&](std::string_view key, JsonCursor value) {
    if (readSum(tile.sum, key, value)) return;
    if (key == "node") tile.node = value.text();
    if (key == "ready") tile.ready = value.boolean();
    if (key == "capacity" && !value.isNull()) tile.capacity = Millicores(value.integer());
    if (key == "shortSince" && !value.isNull()) {
      const std::int64_t since = value.integer();
      if (since < 0 || since > kLatest) return value.fail("not a time");
      tile.short_since = WallTime(std::chrono::milliseconds(since));
    }
    if (key != "price") return;
    if (value.isNull()) {
      tile.overloaded = true;
      return;
    }
    const std::string_view text = value.scalar();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), tile.price);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (!whole || !std::isfinite(tile.price) || tile.price < 0) value.fail("not a price");
  });
  return tile;
}

}  // namespace

std::optional<Millicores> declaredOf(const PodAllocation& allocation) {
  Millicores sum;
  for (const PodAllocation::OriginalView& container : allocation.original) {
    if (!container.limit) return std::nullopt;
    sum += *container.limit;
  }
  if (allocation.original.empty()) return std::nullopt;
  return sum;
}

std::optional<control::SaidPrice> boundAt(const PodAllocation& allocation) {
  const std::optional<control::SaidPrice> price = control::priceIn(allocation.reason.view());
  if (!price) return std::nullopt;
  const std::optional<Millicores> declared = declaredOf(allocation);
  return declared && allocation.desired >= *declared ? std::nullopt : price;
}

ClusterView clusterOf(const std::vector<AllocationPtr>& allocations,
                      const std::vector<NodePtr>& nodes) {
  std::map<std::string, NodeTile, std::less<>> tiles;
  std::map<std::string, PodSum, std::less<>> sums;
  for (const NodePtr& node : nodes) {
    NodeTile& tile = tiles[node->meta.name.string()];
    tile.capacity = node->allocatable.cpu();
    tile.ready = node->ready;
  }
  for (const AllocationPtr& allocation : allocations) {
    NodeTile& tile = tiles[allocation->node.string()];
    if (allocation->bounds() != nullptr && !allocation->bounds()->managed) continue;
    const std::optional<control::SaidPrice> price = boundAt(*allocation);
    if (price) {
      tile.overloaded = tile.overloaded || !price->price;
      tile.price = std::max(tile.price, price->price.value_or(0));
    }
    add(tile.sum, *allocation, price.has_value());
    add(sums[allocation->meta.namespace_.string()], *allocation, price.has_value());
  }
  ClusterView view;
  for (auto& [name, tile] : tiles) {
    tile.node = name;
    view.nodes.push_back(std::move(tile));
  }
  for (const auto& [name, sum] : sums) view.namespaces.push_back({name, sum});
  return view;
}

void ShortSince::update(ClusterView& view, WallTime now) {
  std::map<std::string, WallTime> still;
  for (NodeTile& tile : view.nodes) {
    if (!tile.isShort()) continue;
    const auto before = since_.find(tile.node);
    tile.short_since = before == since_.end() ? now : before->second;
    still[tile.node] = *tile.short_since;
  }
  since_ = std::move(still);
}

std::string clusterJson(const ClusterView& view) {
  std::string text;
  JsonWriter json(text);
  json.beginObject();
  if (view.time != WallTime{}) {
    json.key("time").value(formatRfc3339(view.time, TimePrecision::kMicros));
  }
  json.key("nodes").beginArray();
  for (const NodeTile& tile : view.nodes) {
    json.beginObject();
    json.key("node").value(tile.node);
    write(json, tile.sum);
    json.key("price");
    if (tile.overloaded) {
      json.null();
    } else {
      json.value(tile.price);
    }
    json.key("capacity");
    if (tile.capacity) {
      json.value(tile.capacity->count());
    } else {
      json.null();
    }
    json.key("ready").value(tile.ready);
    json.key("shortSince");
    if (tile.short_since) {
      json.value(std::chrono::duration_cast<std::chrono::milliseconds>(
                     tile.short_since->time_since_epoch())
                     .count());
    } else {
      json.null();
    }
    json.endObject();
  }
  json.endArray().key("namespaces").beginArray();
  for (const NamespaceSum& entry : view.namespaces) {
    json.beginObject();
    json.key("namespace").value(entry.name_space);
    write(json, entry.sum);
    json.endObject();
  }
  json.endArray().key("notes").beginArray();
  for (const std::string& note : view.notes) json.value(note);
  json.endArray();
  if (!view.gone.empty()) {
    json.key("gone").beginArray();
    for (const std::string& node : view.gone) json.value(node);
    json.endArray();
  }
  json.endObject();
  return text;
}

ClusterView readCluster(JsonCursor object) {
  ClusterView view;
  object.members([&](std::string_view key, JsonCursor value) {
    if (key == "time") {
      const Result<WallTime> time = parseRfc3339(value.text());
      if (!time) return value.fail(time.error().message());
      view.time = *time;
    }
    if (key == "nodes") {
      value.elements([&](JsonCursor node) { view.nodes.push_back(readTile(node)); });
    }
    if (key == "namespaces") {
      value.elements([&](JsonCursor entry) {
        NamespaceSum& sum = view.namespaces.emplace_back();
        entry.members([&](std::string_view name, JsonCursor field) {
          if (name == "namespace") sum.name_space = field.text();
          (void)readSum(sum.sum, name, field);
        });
      });
    }
    if (key == "notes") {
      value.elements([&](JsonCursor note) { view.notes.emplace_back(note.text()); });
    }
    if (key == "gone") {
      value.elements([&](JsonCursor node) { view.gone.emplace_back(node.text()); });
    }
  });
  return view;
}

}  // namespace mbcas::cli
