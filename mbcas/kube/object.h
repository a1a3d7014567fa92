// What every Kubernetes object has, and how a kind is described. A kind is a struct derived from
// Object, and a Kind that says where the API serves it and how its members are read:
//
//   struct Widget : Object {
//     Str colour;
//     static const Kind& kind();
//   };
//   const Kind& Widget::kind() {
//     static const Kind kKind = makeKind<Widget>(
//         {.group = "example.com", .version = "v1", .plural = "widgets", .name = "Widget"},
//         [](Widget& widget, std::string_view key, JsonCursor value) {
//           if (key == "spec") { ... widget.colour = widget.arena.text(value.text()); }
//         });
//     return kKind;
//   }
//
// Objects are immutable once decoded and travel as shared_ptr<const T>.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kube/arena.h"
#include "mbcas/kube/json_cursor.h"
#include "mbcas/kube/protobuf.h"

namespace mbcas::kube {

struct KeyValue {
  Str key;
  Str value;
};

// The value for a key, nothing if the key is absent.
std::optional<std::string_view> find(const List<KeyValue>& map, std::string_view key);

struct OwnerReference {
  Str kind;
  Str name;
  Str uid;
  bool controller = false;
  std::array<std::uint8_t, 7> unused{};  // no undefined bytes: see Arena::sharedList
};

struct ObjectMeta {
  Str name;
  Str namespace_;  // empty for cluster-wide objects
  Str uid;
  Str resource_version;
  std::int64_t generation = 0;
  WallTime created{};
  WallTime deleted{};  // when deletion was asked for; zero if it was not
  List<KeyValue> labels;
  List<KeyValue> annotations;  // without kubectl's copy of the whole object
  List<OwnerReference> owners;

  bool beingDeleted() const { return deleted != WallTime{}; }
  const OwnerReference* controller() const;
};

// An object that the server has and that cannot be read here. Readers go on without it, as if it
// were not there.
struct PassedOver {
  std::string name_space;
  std::string name;  // empty: not even that can be read
  std::string uid;
  std::string resource_version;
  std::string why;  // one printable line

  void because(const Error& error);  // sets it: users choose what an object says
};

struct Object {
  explicit Object(std::size_t arena_size) : arena(arena_size) {}
  Arena arena;
  ObjectMeta meta;
};
using ObjectPtr = std::shared_ptr<const Object>;

// Of two versions of one object. They are decimal integers of any length.
inline bool isNewer(std::string_view version, std::string_view than) {
  return version.size() != than.size() ? version.size() > than.size() : version > than;
}

// "namespace/name", or "name" for a cluster-wide object: what work queues carry.
std::string objectKey(std::string_view name_space, std::string_view name);
inline std::string objectKey(const ObjectMeta& meta) {
  return objectKey(meta.namespace_, meta.name);
}
struct SplitKey {
  std::string_view name_space;
  std::string_view name;
};
SplitKey splitKey(std::string_view key);

// For a segment of a path or a value in a query.
std::string percentEncode(std::string_view text);

struct Kind {
  std::string_view group;  // "" is the core group
  std::string_view version;
  std::string_view plural;
  std::string_view name;
  bool namespaced = true;
  // How the server's protobuf maps to the JSON form; null: it is asked for JSON only.
  const ProtobufMessage* protobuf = nullptr;

  std::shared_ptr<Object> (*create)(std::size_t arena_size) = nullptr;
  // One member of the object besides metadata.
  void (*member)(Object& object, std::string_view key, JsonCursor value) = nullptr;

  // "v1", "apps/v1".
  std::string apiVersion() const;
  // "/api/v1/namespaces/NS/pods/NAME/resize"; empty parts are left out.
  std::string path(std::string_view name_space, std::string_view object = {},
                   std::string_view subresource = {}) const;
};

// `member` is a captureless callable (T&, std::string_view key, JsonCursor value).
template <class T, class Member>
Kind makeKind(Kind kind, Member) {
  static_assert(std::is_empty_v<Member>, "a function pointer cannot carry captures");
  kind.create = [](std::size_t arena_size) -> std::shared_ptr<Object> {
    return std::make_shared<T>(arena_size);
  };
  kind.member = [](Object& object, std::string_view key, JsonCursor value) {
    Member{}(static_cast<T&>(object), key, value);
  };
  return kind;
}

// Annotation of the bookmark that ends the initial events of a streaming list.
inline constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

// Turns JSON or protobuf into objects; keeps its buffers, so one per stream. Not thread-safe.
class Decoder {
 public:
  Result<ObjectPtr> decode(const Kind& kind, std::string& json);
  // An encoded message, without an envelope. The kind must have a table for it.
  Result<ObjectPtr> decodeProtobuf(const Kind& kind, std::string_view bytes);
  // The same for a value inside a document that is being read.
  ObjectPtr decode(const Kind& kind, JsonCursor value);
  JsonParser& parser() { return parser_; }

  // From now on only annotations, or labels, whose keys begin with one of these are kept; the
  // bookmark's annotation always is.
  void keepAnnotations(std::vector<std::string> prefixes) { annotations_ = std::move(prefixes); }
  void keepLabels(std::vector<std::string> prefixes) { labels_ = std::move(prefixes); }
  // From now on an object of which more than this would be kept cannot be decoded.
  void keepAtMost(std::uint32_t bytes) { most_ = bytes; }

  // What can be read of an object that cannot be decoded for the reason `why`. An error if the text
  // is not even well-formed: then it is no object of the server's, but something that went wrong on
  // the way.
  Result<PassedOver> identify(std::string& json, const Error& why);
  static Result<PassedOver> identifyProtobuf(std::string_view bytes, const Error& why);
  static PassedOver identify(JsonCursor object);  // without the reason

 private:
  static Result<ObjectPtr> checked(const Kind& kind, ObjectPtr object, Result<void> parsed);
  void decodeMeta(Object& object, JsonCursor value) const;

  JsonParser parser_;
  std::shared_ptr<Pool> pool_;
  std::optional<std::vector<std::string>> annotations_;
  std::optional<std::vector<std::string>> labels_;
  std::uint32_t most_ = std::numeric_limits<std::uint32_t>::max();
  std::size_t expected_ = 256;  // arena bytes of the object before: neighbours are alike
};

template <class T>
Result<std::shared_ptr<const T>> decodeObject(std::string json) {
  Decoder decoder;
  Result<ObjectPtr> object = decoder.decode(T::kind(), json);
  if (!object) return failure(std::move(object).error());
  return std::static_pointer_cast<const T>(*std::move(object));
}

// Pieces for the decoders of kinds.
// Values as text: strings or numbers. Labels and the like: see Arena::shared.
List<KeyValue> decodeMap(Arena& arena, JsonCursor value);
WallTime decodeTime(JsonCursor value);  // zero if absent; see parseRfc3339 for what is far away
List<Str> decodeTexts(Arena& arena, JsonCursor value);

}  // namespace mbcas::kube
