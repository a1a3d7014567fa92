#include "mbcas/kube/watch_stream.h"

#include <fmt/format.h>

#include <optional>

#include "mbcas/kube/client.h"

namespace mbcas::kube {
namespace {

constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

std::optional<WatchEvent::Type> typeOf(std::string_view text) {
  if (text == "ADDED") return WatchEvent::Type::kAdded;
  if (text == "MODIFIED") return WatchEvent::Type::kModified;
  if (text == "DELETED") return WatchEvent::Type::kDeleted;
  if (text == "BOOKMARK") return WatchEvent::Type::kBookmark;
  if (text == "ERROR") return WatchEvent::Type::kError;
  return std::nullopt;
}

}  // namespace

WatchReader::WatchReader(const Kind& kind, Decoder& decoder,
                         std::function<void(WatchEvent)> on_event)
    : kind_(kind),
      decoder_(decoder),
      on_event_(std::move(on_event)),
      splitter_(JsonSplitter::Mode::kSequence, kMaxObject) {}

Result<void> WatchReader::receive(std::string_view piece) {
  Result<void> failed;
  Result<void> split = splitter_.push(piece, [&](std::string& frame) {
    failed = readEvent(frame);
    return failed.has_value();
  });
  return failed ? split : failed;
}

Result<void> WatchReader::readEvent(std::string& frame) {
  std::optional<WatchEvent::Type> type;
  std::optional<WatchEvent> event;
  const auto readMembers = [&](std::string_view key, JsonCursor value) {
    if (key == "type") {
      const std::string_view text = value.text();
      type = typeOf(text);
      if (!type) value.fail(fmt::format("unknown type of event \"{}\"", text.substr(0, 32)));
    }
    if (key != "object" || !type) return;
    event.emplace();
    event->type = *type;
    if (*type == WatchEvent::Type::kError) {
      event->error = decodeStatus(value);
    } else {
      event->object = decoder_.decode(kind_, value);
    }
  };
  // The type comes first in practice. JSON does not promise it: then a second look finds the
  // object.
  for (int look = 0; look < 2 && !event; ++look) {
    Result<void> parsed =
        decoder_.parser().parse(frame, [&](JsonCursor root) { root.members(readMembers); });
    if (!parsed) {
      return failure(std::move(parsed).error().within(
          fmt::format("decoding a watch event of {}", kind_.name)));
    }
  }
  if (!event) return failure("decoding a watch event: type or object is missing");
  if (event->object) {
    const ObjectMeta& meta = event->object->meta;
    event->resource_version = meta.resource_version.view();
    if (event->resource_version.empty()) {
      return failure("decoding a watch event: no resourceVersion");
    }
    if (event->type == WatchEvent::Type::kBookmark) {
      event->initial_events_end = find(meta.annotations, kInitialEventsEnd) == "true";
      event->object.reset();
    } else if (meta.name.empty()) {
      return failure("decoding a watch event: metadata.name is missing");
    }
  }
  on_event_(*std::move(event));
  return {};
}

}  // namespace mbcas::kube
