#include "mbcas/kube/watch_stream.h"

#include <fmt/format.h>

#include <optional>

#include "mbcas/kube/client.h"

namespace mbcas::kube {
namespace {

// A RawExtension is {raw: 1}.
constexpr ProtobufField kRawFields[] = {{1, "raw", ProtobufType::kBytes}};
constexpr ProtobufMessage kRaw{kRawFields};
constexpr ProtobufField kEventFields[] = {
    {1, "type"}, {2, "object", ProtobufType::kMessage, ProtobufShape::kOne, &kRaw}};
constexpr ProtobufMessage kEvent{kEventFields};

std::optional<WatchEvent::Type> typeOf(JsonCursor value) {
  const std::string_view text = value.text();
  if (text == "ADDED") return WatchEvent::Type::kAdded;
  if (text == "MODIFIED") return WatchEvent::Type::kModified;
  if (text == "DELETED") return WatchEvent::Type::kDeleted;
  if (text == "BOOKMARK") return WatchEvent::Type::kBookmark;
  if (text == "ERROR") return WatchEvent::Type::kError;
  value.fail(fmt::format("unknown type of event \"{}\"", text.substr(0, 32)));
  return std::nullopt;
}

}  // namespace

WatchReader::WatchReader(const Kind& kind, Decoder& decoder,
                         std::function<void(WatchEvent)> on_event)
    : kind_(kind),
      decoder_(decoder),
      on_event_(std::move(on_event)),
      json_(JsonSplitter::Mode::kSequence, kMaxObject) {}

Result<void> WatchReader::receive(std::string_view piece) {
  if (!begun_ && !piece.empty()) {
    begun_ = true;
    // The first byte of a length that is within the bound; no JSON begins with it.
    if (kind_.protobuf != nullptr && piece.front() == '\0') protobuf_.emplace(kMaxObject);
  }
  Result<void> failed;
  Result<void> split = protobuf_ ? protobuf_->push(piece,
                                                   [&](std::string_view frame) {
                                                     failed = readProtobuf(frame);
                                                     return failed.has_value();
                                                   })
                                 : json_.push(piece, [&](std::string& frame) {
                                     failed = readJson(frame);
                                     return failed.has_value();
                                   });
  return failed ? split : failed;
}

Result<void> WatchReader::readJson(std::string& frame) {
  std::optional<WatchEvent::Type> type;
  std::optional<WatchEvent> event;
  const auto readMembers = [&](std::string_view key, JsonCursor value) {
    if (key == "type") type = typeOf(value);
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
    if (parsed) continue;
    if (!event || !event->object) return malformed(std::move(parsed).error());
    PassedOver found;
    const Result<void> identified = decoder_.parser().parse(frame, [&](JsonCursor root) {
      root.members([&](std::string_view key, JsonCursor value) {
        if (key == "object") found = Decoder::identify(value);
      });
    });
    if (!identified) return malformed(std::move(parsed).error());
    found.because(parsed.error());
    return passOver(*type, std::move(found), std::move(parsed).error());
  }
  if (!event) return failure("decoding a watch event: type or object is missing");
  return deliver(*std::move(event));
}

Result<void> WatchReader::readProtobuf(std::string_view frame) {
  std::optional<WatchEvent::Type> type;
  std::string_view raw;
  Result<void> parsed = parseProtobuf(kEvent, frame, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key == "type") type = typeOf(value);
      if (key != "object") return;
      value.members([&](std::string_view, JsonCursor bytes) { raw = bytes.text(); });
    });
  });
  if (!parsed) return malformed(std::move(parsed).error());
  if (!type) return failure("decoding a watch event: type or object is missing");
  Result<ProtobufEnvelope> envelope = openProtobuf(raw);
  if (!envelope) return malformed(std::move(envelope).error());

  WatchEvent event;
  event.type = *type;
  const bool failed = *type == WatchEvent::Type::kError;
  if (envelope->kind != (failed ? "Status" : kind_.name)) {
    return malformed(Error(fmt::format("unexpected kind \"{}\"", envelope->kind.substr(0, 32))));
  }
  parsed = parseProtobuf(failed ? kProtobufStatus : *kind_.protobuf, envelope->object,
                         [&](JsonCursor root) {
                           if (failed) {
                             event.error = decodeStatus(root);
                           } else {
                             event.object = decoder_.decode(kind_, root);
                           }
                         });
  if (!parsed && failed) return malformed(std::move(parsed).error());
  if (!parsed) {
    Result<PassedOver> found = Decoder::identifyProtobuf(envelope->object, parsed.error());
    if (!found) return malformed(std::move(parsed).error());
    return passOver(*type, *std::move(found), std::move(parsed).error());
  }
  return deliver(std::move(event));
}

// A bookmark is no object of a user's: if that cannot be read, the stream cannot.
Result<void> WatchReader::passOver(WatchEvent::Type type, PassedOver object, Error why) {
  if (type == WatchEvent::Type::kBookmark || object.name.empty() ||
      object.resource_version.empty()) {
    return malformed(std::move(why));
  }
  WatchEvent event{.type = type, .resource_version = object.resource_version};
  event.passed_over = std::move(object);
  on_event_(std::move(event));
  return {};
}

std::unexpected<Error> WatchReader::malformed(Error error) const {
  return failure(std::move(error).within(fmt::format("decoding a watch event of {}", kind_.name)));
}

Result<void> WatchReader::deliver(WatchEvent event) {
  if (event.object) {
    const ObjectMeta& meta = event.object->meta;
    event.resource_version = meta.resource_version.view();
    if (event.resource_version.empty()) {
      return failure("decoding a watch event: no resourceVersion");
    }
    if (event.type == WatchEvent::Type::kBookmark) {
      event.initial_events_end = find(meta.annotations, kInitialEventsEnd) == "true";
      event.object.reset();
    } else if (meta.name.empty()) {
      return failure("decoding a watch event: metadata.name is missing");
    }
  }
  on_event_(std::move(event));
  return {};
}

}  // namespace mbcas::kube
