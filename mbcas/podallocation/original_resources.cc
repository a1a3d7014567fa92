#include "mbcas/podallocation/original_resources.h"

#include <fmt/format.h>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/quantity.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::podallocation {
namespace {

// More containers than any pod has; an annotation may be 256 KiB of anything.
constexpr std::size_t kMostContainers = 1000;

std::optional<Millicores> decodeCpu(kube::JsonCursor value) {
  const Result<Quantity> quantity = Quantity::parse(value.scalar());
  if (!quantity) {
    value.fail(quantity.error().message());
  } else if (*quantity < Quantity()) {
    value.fail("negative");
  } else if (quantity->millicores() >= kube::Amounts::kMostCpu) {
    value.fail("more CPU than can be counted");
  } else {
    return quantity->millicores();
  }
  return std::nullopt;
}

// Nothing where the amount may be larger than it reads: it could not be written back.
std::optional<Millicores> exact(std::optional<Millicores> cpu) {
  return cpu && *cpu < kube::Amounts::kMostCpu ? cpu : std::nullopt;
}

}  // namespace

std::vector<OriginalCpu> currentCpu(const kube::Pod& pod) {
  std::vector<OriginalCpu> containers;
  for (const kube::Container& container : pod.containers) {
    if (container.role == kube::ContainerRole::kInit) continue;
    containers.push_back(
        {container.name.string(), exact(container.requests.cpu()), exact(container.limits.cpu())});
  }
  return containers;
}

std::string encodeOriginal(const std::vector<OriginalCpu>& containers) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  for (const OriginalCpu& original : containers) {
    json.key(original.container).beginObject();
    if (original.request) json.key("request").value(fmt::format("{}m", original.request->count()));
    if (original.limit) json.key("limit").value(fmt::format("{}m", original.limit->count()));
    json.endObject();
  }
  json.endObject();
  return out;
}

Result<std::vector<OriginalCpu>> parseOriginal(std::string_view annotation) {
  std::vector<OriginalCpu> containers;
  std::string text(annotation);
  kube::JsonParser parser;
  Result<void> parsed = parser.parse(text, [&](kube::JsonCursor root) {
    root.members([&](std::string_view container, kube::JsonCursor value) {
      if (containers.size() == kMostContainers) return value.fail("too many containers");
      OriginalCpu original{.container = std::string(container)};
      value.members([&](std::string_view key, kube::JsonCursor cpu) {
        if (key == "request") original.request = decodeCpu(cpu);
        if (key == "limit") original.limit = decodeCpu(cpu);
      });
      containers.push_back(std::move(original));
    });
  });
  if (!parsed) return failure(std::move(parsed).error().within(kOriginalResources));
  return containers;
}

std::string annotateOriginal(const kube::Pod& pod, const std::vector<OriginalCpu>& original) {
  std::string out;
  JsonWriter json(out);
  json.beginObject().key("metadata").beginObject();
  json.key("uid").value(pod.meta.uid);
  json.key("resourceVersion").value(pod.meta.resource_version);
  json.key("annotations").beginObject();
  json.key(kOriginalResources).value(encodeOriginal(original));
  json.endObject().endObject().endObject();
  return out;
}

}  // namespace mbcas::podallocation
