#include "mbcas/cli/cluster_view.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "mbcas/base/json_writer.h"
#include "mbcas/control/reason.h"

namespace mbcas::cli {
namespace {

using podallocation::PodAllocation;

std::optional<Millicores> declaredOf(const PodAllocation& allocation) {
  Millicores sum;
  for (const PodAllocation::OriginalView& container : allocation.original) {
    if (!container.limit) return std::nullopt;
    sum += *container.limit;
  }
  if (allocation.original.empty()) return std::nullopt;
  return sum;
}

void add(PodSum& sum, const PodAllocation& allocation, bool bound) {
  const Millicores have = allocation.applied.value_or(allocation.desired);
  const Millicores wanted = allocation.wanted.value_or(allocation.desired);
  ++sum.pods;
  if (bound) ++sum.bound;
  if (allocation.phase == podallocation::Phase::kFailed) ++sum.failed;
  sum.have += have;
  sum.wanted += wanted;
  sum.held += std::max(Millicores(0), wanted - have);
}

void write(JsonWriter& json, const PodSum& sum) {
  json.key("pods").value(sum.pods);
  json.key("bound").value(sum.bound);
  json.key("failed").value(sum.failed);
  json.key("have").value(sum.have.count());
  json.key("wanted").value(sum.wanted.count());
  json.key("held").value(sum.held.count());
}

}  // namespace

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
    const std::optional<control::SaidPrice> price = control::priceIn(allocation->reason.view());
    const std::optional<Millicores> declared = declaredOf(*allocation);
    const bool bound = price && (!declared || allocation->desired < *declared);
    if (bound) {
      tile.overloaded = tile.overloaded || !price->price;
      tile.price = std::max(tile.price, price->price.value_or(0));
    }
    add(tile.sum, *allocation, bound);
    add(sums[allocation->meta.namespace_.string()], *allocation, bound);
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
  json.endArray().endObject();
  return text;
}

}  // namespace mbcas::cli
