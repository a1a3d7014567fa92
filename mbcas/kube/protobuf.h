// Objects in Kubernetes' binary encoding, which a server writes in half the time that JSON takes
// it. Protobuf knows fields by number; a ProtobufMessage gives those that are used the names and
// types of the JSON form, so that one decoder reads both:
//
//   constexpr ProtobufField kOsFields[] = {{1, "name", ProtobufType::kText}};
//   constexpr ProtobufMessage kOs{kOsFields};
//
// Fields that are not in the table are skipped. Every length is checked against what is there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::kube {

enum class ProtobufType : std::uint8_t {
  kText,
  kBytes,
  kInteger,
  kBoolean,
  kQuantity,  // in JSON a text
  kTime,      // in JSON a text, to the second
  kMessage,
};

enum class ProtobufShape : std::uint8_t { kOne, kRepeated, kMap };  // a map's keys are texts

struct ProtobufMessage;

struct ProtobufField {
  std::uint32_t number = 0;
  std::string_view name;
  ProtobufType type = ProtobufType::kText;
  ProtobufShape shape = ProtobufShape::kOne;
  const ProtobufMessage* message = nullptr;  // kMessage
};

struct ProtobufMessage {
  std::span<const ProtobufField> fields;  // at most 64
};

// metadata of any object, and a Status.
extern const ProtobufMessage kProtobufObjectMeta;
extern const ProtobufMessage kProtobufStatus;

// One field as it stands in the bytes.
struct WireField {
  enum class Type : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  std::uint32_t number = 0;
  Type type = Type::kVarint;
  std::uint64_t value = 0;  // kVarint; kBytes: their number
  std::string_view bytes;   // kBytes
};

enum class WireRead { kField, kEnd, kMalformed };

// Takes tag and number, or tag and length, from the front. kEnd: they are not all there.
WireRead takeWireHeader(std::string_view& bytes, WireField& field);
// How many bytes follow the header.
std::uint64_t payloadSize(const WireField& field);
// Takes a whole field. kEnd: there is none left. Truncated is malformed.
WireRead takeWireField(std::string_view& bytes, WireField& field);

// Texts that the visitor gets are valid during the visit.
Result<void> parseProtobuf(const ProtobufMessage& message, std::string_view bytes,
                           FunctionRef<void(JsonCursor)> visit);

// What all single objects and lists begin with.
inline constexpr std::string_view kProtobufMagic("k8s\0", 4);

struct ProtobufEnvelope {
  std::string_view kind;
  std::string_view object;  // the encoded message
};
// The kind in an encoded TypeMeta, which is an envelope's first field.
std::string_view protobufKind(std::string_view type_meta);
// Takes the envelope off.
Result<ProtobufEnvelope> openProtobuf(std::string_view bytes);

}  // namespace mbcas::kube
