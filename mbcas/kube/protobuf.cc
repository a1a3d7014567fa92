#include "mbcas/kube/protobuf.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <deque>

#include "mbcas/base/time.h"
#include "mbcas/kube/json_document.h"

namespace mbcas::kube {
namespace {

using enum ProtobufType;
using enum ProtobufShape;
using Wire = WireField::Type;

constexpr ProtobufField kOwnerFields[] = {
    {1, "kind"}, {3, "name"}, {4, "uid"}, {6, "controller", kBoolean}};
constexpr ProtobufMessage kOwner{kOwnerFields};
constexpr ProtobufField kMetaFields[] = {
    {1, "name"},
    {3, "namespace"},
    {5, "uid"},
    {6, "resourceVersion"},
    {7, "generation", kInteger},
    {8, "creationTimestamp", kTime},
    {9, "deletionTimestamp", kTime},
    {11, "labels", kText, kMap},
    {12, "annotations", kText, kMap},
    {13, "ownerReferences", kMessage, kRepeated, &kOwner},
};
constexpr ProtobufField kCauseFields[] = {{1, "reason"}, {2, "message"}, {3, "field"}};
constexpr ProtobufMessage kCause{kCauseFields};
constexpr ProtobufField kDetailsFields[] = {{4, "causes", kMessage, kRepeated, &kCause},
                                            {5, "retryAfterSeconds", kInteger}};
constexpr ProtobufMessage kDetails{kDetailsFields};
constexpr ProtobufField kStatusFields[] = {{3, "message"},
                                           {4, "reason"},
                                           {5, "details", kMessage, kOne, &kDetails},
                                           {6, "code", kInteger}};

WireRead takeVarint(std::string_view& bytes, std::uint64_t& number) {
  number = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    if (i == bytes.size()) return WireRead::kEnd;
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i == 9 && byte > 1) return WireRead::kMalformed;
    number |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if (byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return WireRead::kField;
    }
  }
  return WireRead::kMalformed;
}

Wire wireTypeOf(const ProtobufField& field) {
  const bool number = field.type == kInteger || field.type == kBoolean;
  return number && field.shape == kOne ? Wire::kVarint : Wire::kBytes;
}

}  // namespace

const ProtobufMessage kProtobufObjectMeta{kMetaFields};
const ProtobufMessage kProtobufStatus{kStatusFields};

WireRead takeWireHeader(std::string_view& bytes, WireField& field) {
  std::string_view rest = bytes;
  std::uint64_t tag = 0;
  if (const WireRead read = takeVarint(rest, tag); read != WireRead::kField) return read;
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.type = static_cast<Wire>(tag & 7);
  field.value = 0;
  field.bytes = {};
  if (field.number == 0 || tag >> 32 != 0) return WireRead::kMalformed;
  switch (field.type) {
    case Wire::kVarint:
    case Wire::kBytes:
      if (const WireRead read = takeVarint(rest, field.value); read != WireRead::kField) {
        return read;
      }
      break;
    case Wire::kFixed64:
    case Wire::kFixed32:
      break;
    default:
      return WireRead::kMalformed;
  }
  bytes = rest;
  return WireRead::kField;
}

std::uint64_t payloadSize(const WireField& field) {
  switch (field.type) {
    case Wire::kBytes:
      return field.value;
    case Wire::kFixed64:
      return 8;
    case Wire::kFixed32:
      return 4;
    case Wire::kVarint:
      break;
  }
  return 0;
}

WireRead takeWireField(std::string_view& bytes, WireField& field) {
  if (bytes.empty()) return WireRead::kEnd;
  if (takeWireHeader(bytes, field) != WireRead::kField) return WireRead::kMalformed;
  const std::uint64_t size = payloadSize(field);
  if (size > bytes.size()) return WireRead::kMalformed;
  field.bytes = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return WireRead::kField;
}

class ProtobufDocument final : public JsonCursor::Document {
 public:
  Result<void> visitRoot(const ProtobufMessage& message, std::string_view bytes,
                         FunctionRef<void(JsonCursor)> visit) {
    Value root{{.type = kMessage, .message = &message}, 0, bytes};
    visit(JsonCursor(&root, this));
    return outcome();
  }

  bool isNull(void*) override { return false; }  // what is absent is not written

  void members(void* value, JsonCursor::VisitMember visit) override {
    const Value& of = as(value);
    if (of.field.shape == kMap) return entries(of, visit);
    if (of.field.type != kMessage || of.field.shape != kOne) return fail("not an object");
    std::uint64_t visited = 0;
    std::string_view rest = of.bytes;
    for (;;) {
      WireField wire;
      const std::string_view from = rest;
      const WireRead read = takeWireField(rest, wire);
      if (read == WireRead::kEnd) return;
      if (read == WireRead::kMalformed) return fail(kMalformed);
      const auto fields = of.field.message->fields;
      const auto known = std::find_if(fields.begin(), fields.end(), [&](const ProtobufField& f) {
        return f.number == wire.number;
      });
      if (known == fields.end()) continue;
      Value member{*known, wire.value, wire.bytes};
      if (known->shape != kOne) {
        const std::uint64_t bit = std::uint64_t{1} << (known - fields.begin());
        if ((visited & bit) != 0) continue;
        visited |= bit;
        member.bytes = from;
      }
      if (wire.type != wireTypeOf(*known)) return fail(kMalformed);
      visitMember(known->name, &member, visit);
      if (failed()) return;
    }
  }

  void elements(void* value, JsonCursor::VisitElement visit) override {
    const Value& of = as(value);
    if (of.field.shape != kRepeated) return fail("not an array");
    std::size_t index = 0;
    occurrences(of, [&](std::string_view bytes) {
      Value element{of.field, 0, bytes};
      element.field.shape = kOne;
      visitElement(index++, &element, visit);
    });
  }

  std::string_view text(void* value) override {
    const Value& of = as(value);
    if (of.field.shape != kOne) return failText();
    switch (of.field.type) {
      case kText:
        return repaired(of.bytes);
      case kBytes:
        return of.bytes;
      case kQuantity:  // {string: 1}
        return repaired(inner(of.bytes, 1, Wire::kBytes).bytes);
      case kTime: {  // {seconds: 1, nanos: 2}; empty for none
        if (of.bytes.empty()) return {};
        const auto seconds = static_cast<std::int64_t>(inner(of.bytes, 1, Wire::kVarint).value);
        return texts_.emplace_back(formatRfc3339(saturatedTime(seconds)));
      }
      default:
        return failText();
    }
  }

  std::string_view scalar(void* value) override { return text(value); }

  std::int64_t integer(void* value) override {
    if (as(value).field.type != kInteger) fail("not an integer");
    return static_cast<std::int64_t>(as(value).number);
  }

  bool boolean(void* value) override {
    if (as(value).field.type != kBoolean) fail("not true or false");
    return as(value).number != 0;
  }

 private:
  struct Value {
    ProtobufField field;
    std::uint64_t number = 0;
    // A message or text; if repeated or a map: the parent's bytes, of which all occurrences of the
    // field are meant. They need not stand together.
    std::string_view bytes;
  };

  static constexpr std::string_view kMalformed = "malformed protobuf";

  static const Value& as(void* value) { return *static_cast<const Value*>(value); }

  std::string_view failText() {
    fail("not a string");
    return {};
  }

  // Go takes any bytes for a text. In JSON it writes U+FFFD for each that is not UTF-8, and so they
  // read here.
  std::string_view repaired(std::string_view text) {
    if (simdjson::validate_utf8(text)) return text;
    std::string& good = texts_.emplace_back();
    while (!text.empty()) {
      std::size_t length = 1;
      while (length <= std::min<std::size_t>(4, text.size()) &&
             !simdjson::validate_utf8(text.substr(0, length))) {
        ++length;
      }
      const bool whole = length <= std::min<std::size_t>(4, text.size());
      good += whole ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD");
      text.remove_prefix(whole ? length : 1);
    }
    return good;
  }

  // The last occurrence of a field in a small message; nothing if there is none.
  WireField inner(std::string_view bytes, std::uint32_t number, Wire type) {
    WireField found;
    for (WireField field;;) {
      const WireRead read = takeWireField(bytes, field);
      if (read == WireRead::kEnd) return found;
      if (read == WireRead::kMalformed) break;
      if (field.number != number) continue;
      if (field.type != type) break;
      found = field;
    }
    fail(kMalformed);
    return {};
  }

  void occurrences(const Value& of, FunctionRef<void(std::string_view bytes)> each) {
    std::string_view rest = of.bytes;
    for (WireField wire; !failed();) {
      const WireRead read = takeWireField(rest, wire);
      if (read == WireRead::kEnd) return;
      if (read == WireRead::kMalformed) return fail(kMalformed);
      if (wire.number != of.field.number) continue;
      if (wire.type != Wire::kBytes) return fail(kMalformed);
      each(wire.bytes);
    }
  }

  void entries(const Value& of, JsonCursor::VisitMember visit) {
    occurrences(of, [&](std::string_view entry) {  // {key: 1, value: 2}
      const std::string_view key = repaired(inner(entry, 1, Wire::kBytes).bytes);
      Value member{of.field, 0, inner(entry, 2, Wire::kBytes).bytes};
      member.field.shape = kOne;
      if (!failed()) visitMember(key, &member, visit);
    });
  }

  std::deque<std::string> texts_;  // of times, and repaired ones
};

Result<void> parseProtobuf(const ProtobufMessage& message, std::string_view bytes,
                           FunctionRef<void(JsonCursor)> visit) {
  return ProtobufDocument().visitRoot(message, bytes, visit);
}

std::string_view protobufKind(std::string_view type_meta) {
  std::string_view kind;
  for (WireField field; takeWireField(type_meta, field) == WireRead::kField;) {
    if (field.number == 2 && field.type == Wire::kBytes) kind = field.bytes;
  }
  return kind;
}

Result<ProtobufEnvelope> openProtobuf(std::string_view bytes) {
  if (!bytes.starts_with(kProtobufMagic)) return failure("not protobuf: the magic is missing");
  bytes.remove_prefix(kProtobufMagic.size());
  ProtobufEnvelope envelope;
  for (WireField field;;) {  // {typeMeta: 1, raw: 2}
    const WireRead read = takeWireField(bytes, field);
    if (read == WireRead::kEnd) return envelope;
    if (read == WireRead::kMalformed) return failure("a malformed protobuf envelope");
    if (field.type != Wire::kBytes) continue;
    if (field.number == 1) envelope.kind = protobufKind(field.bytes);
    if (field.number == 2) envelope.object = field.bytes;
  }
}

}  // namespace mbcas::kube
